import type * as z from 'zod';

/** One call as it stands in the document. Query parameters and forms are given as objects by name. */
export interface DocumentedCall {
  readonly id: string;
  readonly summary: string;
  /** Text for a reader who has never seen the interface. */
  readonly description: string;
  /** Descriptions of fields by their path. Default: none. */
  readonly descriptions?: Readonly<Record<string, string>>;
  /** Body of a request. */
  readonly example?: unknown;
  readonly tag: 'Catalog' | 'Files' | 'Inference' | 'External app' | 'Sandbox';
  readonly method: 'get' | 'post' | 'delete';
  /** Path in the syntax of Express. */
  readonly path: string;
  readonly query?: z.ZodObject;
  readonly headers?: z.ZodObject;
  readonly json?: z.ZodType;
  /** A form, urlencoded or multipart; with `file` a multipart one that has that file too. */
  readonly form?: { readonly fields: z.ZodObject; readonly file?: string };
  /** Status of success, default 200. */
  readonly success?: 200 | 201 | 204;
  /** A schema for what is JSON; without one the content is not looked into. */
  readonly response?: z.ZodType;
  /** Default application/json. */
  readonly mediaType?: string;
  /** Further media types that the query may ask for; their content is not looked into. */
  readonly otherMediaTypes?: readonly string[];
  /** Beside success and 405; 401, 403 and the rest as the group has them. */
  readonly errors: readonly number[];
  /** Section of the specification that describes the call. */
  readonly clause: string;
  /** Answers parts of a file, by the header Range (206, 416). Default false. */
  readonly takesRange?: boolean;
  /** A signed address: the API key is not needed. */
  readonly isSigned?: boolean;
  /** True if the key may also come as a bearer token. Default false. */
  readonly takesBearer?: boolean;
}
