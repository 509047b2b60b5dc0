import * as z from 'zod';
import { KitError } from './kit-error.ts';
import { limits } from './limits.ts';

/** Bytes of known size that can be read again from the start, so that a request can be repeated. */
export interface Content {
  readonly sizeBytes: number;
  open(): AsyncIterable<Uint8Array>;
}

/** The body of a request: none, JSON, a multipart form, or raw bytes. */
export type WireBody =
  | { readonly kind: 'json'; readonly value: unknown }
  /** Without a file, urlencoded. */
  | { readonly kind: 'form'; readonly fields: Readonly<Record<string, string>> }
  | {
      readonly kind: 'multipart';
      readonly fields: Readonly<Record<string, string>>;
      readonly file: { readonly field: string; readonly fileName: string; readonly content: Content };
    }
  | { readonly kind: 'raw'; readonly mediaType: string; readonly content: Content };

/** The method of an HTTP request. */
export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH';

/** One HTTP request of the platform's interface, before base URL and API key. */
export interface WireRequest {
  readonly method: HttpMethod;
  /** Path under the base URL, already percent-encoded. It may hold the identity token: never log it. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: WireBody | undefined;
}

/** Status and headers of an answer. */
export interface AnswerHead {
  readonly status: number;
  /** Value of a header. Its name is in lower case. */
  readonly header: (name: string) => string | undefined;
}

/** Thrown by a decoder if an answer comes before its result. The client repeats the call after a pause. */
export class NotFinishedError extends KitError {
  /** Status of the answer. */
  readonly platformStatus: number;
  /** The header `Retry-After` of the answer, as it came. */
  readonly retryAfter: string | undefined;

  constructor({ status, header }: AnswerHead) {
    super('not_finished', `the platform has not finished yet (it answered ${status})`, { status: 502 });
    this.platformStatus = status;
    this.retryAfter = header('retry-after');
  }
}

/** A call on the wire: `encode` for what the app sends, `decode` for the 2xx body it gets. */
export interface Call<Input, Output> {
  /** Name in metrics, traces and errors. */
  readonly endpoint: string;
  encode(input: Input): WireRequest;
  /** Throws `z.ZodError` where a value that the app cannot do without is missing, and `NotFinishedError` for an answer that comes before its result. */
  decode(body: unknown, head?: AnswerHead): Output;
}

/** True for what can stand in an address as one segment of its path: not a dot or two, which would climb, and no half of a surrogate pair. */
export function isPathSegment(value: string): boolean {
  return value !== '' && value !== '.' && value !== '..' && value.isWellFormed();
}

/** A value would lead an address elsewhere. The error does not show the value: it may be a token. */
export class PathValueError extends KitError {
  constructor(name: string) {
    super(
      'unsafe_path_value',
      `${name} cannot stand in an address: it must be one segment of a path, and neither . nor ..`,
      { status: 400 },
    );
  }
}

/** Fills `:name` segments of a path template, percent-encoded. Throws `PathValueError` for a value that is no segment. */
export function fillPath(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/:([A-Za-z]+)/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new TypeError(`no value for :${name} in ${template}`);
    if (!isPathSegment(value)) throw new PathValueError(name);
    return encodeURIComponent(value);
  });
}

/**
 * The client's view of a response schema: only `required` must be there and right; anything else that
 * is missing, null or of another type reads as undefined, and unknown fields are ignored.
 */
export function tolerant<Shape extends z.ZodRawShape, Required extends keyof Shape & string>(
  schema: z.ZodObject<Shape>,
  required: readonly Required[],
): z.ZodType<
  { [K in Required]: z.output<Shape[K] & z.ZodType> } & {
    [K in Exclude<keyof Shape, Required>]?: z.output<Shape[K] & z.ZodType> | undefined;
  }
> {
  const shape = Object.fromEntries(
    Object.entries(schema.shape).map(([name, field]) => {
      // An identifier that the platform writes as a number reads as the text it is used as.
      const type =
        // The fields of a shape that is a type parameter have zod's least type.
        (field as unknown) === instant
          ? anyInstant
          : field instanceof z.ZodString
            ? z.preprocess((value) => (typeof value === 'number' ? String(value) : value), field)
            : (field as z.ZodType);
      const isRequired = required.some((requiredName) => requiredName === name);
      return [name, isRequired ? type : type.optional().catch(undefined)];
    }),
  );
  // The mapped type above is this object's; zod cannot infer it from a shape that is built at run time.
  return z.object(shape) as never;
}

/** True for a parsed JSON value of at most `limits.jsonDepth` levels. Walks without recursion: depth is what it guards against. */
export function isShallow(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= limits.jsonDepth; depth++) {
    level = level.flatMap((node): unknown[] => (node !== null && typeof node === 'object' ? Object.values(node) : []));
    if (level.length === 0) return true;
  }
  return false;
}

export const tooDeep = `must not be nested deeper than ${limits.jsonDepth} levels`;

/** Any JSON value, as a parsed body holds it. */
export const jsonValue = z.unknown().refine(isShallow, { message: tooDeep, abort: true });

/** An ISO 8601 UTC instant with milliseconds, as the platform writes times. */
export const instant = z.iso.datetime({ precision: 3 });

/** An instant in any usual form: any precision, an offset, or milliseconds since 1970. */
const anyInstant = z
  .union([z.iso.datetime({ offset: true }), z.number().min(0).max(8.64e15)])
  .transform((given) => new Date(given).toISOString());

/** A type whose parts are all read-only. */
export type Immutable<T> = T extends object ? { readonly [K in keyof T]: Immutable<T[K]> } : T;
