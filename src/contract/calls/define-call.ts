import * as z from 'zod';
import type { CallGroup, Permission } from './groups.ts';
import { fillPath, type Call, type Content, type HttpMethod, type WireBody, type WireRequest } from '../wire.ts';

/** An assumption about a call, where the specification is silent. */
export interface CallAssumption {
  /** Name that marks in the code use for the assumption. */
  readonly id: string;
  /** Section of the interface. Default: that of the call. */
  readonly section?: string;
  /** One sentence. */
  readonly assumes: string;
  /** The probe of `npm run drift` that checks it, or the manual check. */
  readonly probe: string | { readonly byHand: string };
  /** Part of the call whose form it assumes. Absent if it is about behaviour. */
  readonly about?: 'request' | 'answer' | 'both';
}

/** One call of the platform's interface, before it is encoded and decoded: the only place that describes it. */
export interface CallFacts {
  /** Name in faults, rate limits, metrics, traces and errors. */
  readonly endpoint: string;
  readonly group: CallGroup;
  /** Permissions of which the key needs one, if they are not those of the group. */
  readonly permissions?: readonly Permission[];
  /** True if the key may also come as `Authorization: Bearer` (spec 5). Default false. */
  readonly takesBearer?: boolean;
  /** True if a token that has expired will do for a while, as for its renewal. Default false. */
  readonly takesExpiredToken?: boolean;
  /** Section of the interface. */
  readonly section: string;
  /** Place in the flow of section 4.8, from 1. */
  readonly step?: number;
  readonly summary: string;
  /** Text for a reader who has never seen the interface. */
  readonly description: string;
  readonly method: HttpMethod;
  /** Path with `:name` segments. */
  readonly path: string;
  readonly query?: z.ZodObject;
  /** Headers that carry values of the input, by the names of these values. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Schema of a JSON body. */
  readonly request?: z.ZodType;
  /** Schema of a form. */
  readonly fields?: z.ZodObject;
  /** Name of the form's part that is a file. */
  readonly fileField?: string;
  /** Schema of the answer. */
  readonly response?: z.ZodType;
  /** Media type of the answer. Default: `application/json`. */
  readonly mediaType?: string;
  /** Descriptions of fields by their path, such as `in.name` for one of the request, if the general one of the field does not fit. */
  readonly descriptions?: Readonly<Record<string, string>>;
  /** Statuses of errors beside those of every call, with the message of section 7. Null: the message says what was wrong. */
  readonly errors: Readonly<Partial<Record<number, string | null>>>;
  /** Default: none. */
  readonly assumptions?: readonly CallAssumption[];
  /** Body of a request, as an example. */
  readonly example?: unknown;
  /** Content of the answer that a record must hide: an identity token, or the names of a person. Default: neither. */
  readonly answerHolds?: 'token' | 'names';
  /** True if the answer comes only after the platform has read or assembled a file. Default false. */
  readonly isLong?: boolean;
  /** True if the sandbox can let the work fail half-way, as a fault. Default false. */
  readonly canFailInWork?: boolean;
  /** False for a call that polls: the next poll takes the place of a repeat. Default true: the client repeats transient failures. */
  readonly retries?: boolean;
  /** True if a success may be plain text, because the client needs no field of the answer. Default false. */
  readonly needsNoField?: boolean;
  /** Values of the input that the contract's wire does not carry, and a wire profile may. */
  readonly extraFields?: readonly string[];
  /** Fields of the body that a wire profile can rename. Default: those of `request` and `fields`. */
  readonly bodyFields?: readonly string[];
  /** Fields of the answer that the section names, where it does not show the rest. */
  readonly shownFields?: readonly string[];
  /** Fields of the answer that a wire profile can rename. Default: those of `response`. */
  readonly answerFields?: readonly string[];
}

/** A call with the functions of the client. */
export type CallRow<Facts extends CallFacts, Input, Output> = Facts & Call<Input, Output>;

interface ClientSide<Input, Output> {
  /** Member of the input that is the JSON body. Default: the whole input. */
  readonly body?: keyof Input & string;
  /** Reads the 2xx body. Throws `z.ZodError` if a value is missing that the app needs. */
  readonly decode: (body: unknown) => Output;
  /** Default: values of the input go where the schemas have them. */
  readonly encode?: (input: Input) => WireRequest;
}

/** Makes a row of the table of calls. The request is derived from its schemas. */
export function defineCall<Input extends object, Output>() {
  return <const Facts extends CallFacts>(facts: Facts & ClientSide<Input, Output>): CallRow<Facts, Input, Output> => ({
    ...facts,
    encode: facts.encode ?? ((input) => encodeCall(facts, input, facts.body)),
  });
}

/** Names of the values in the path of a call. */
const namesInPath = (path: string) => [...path.matchAll(/:([A-Za-z]+)/g)].map(([, name = '']) => name);

/** Names of the values that a call takes, but for the token. `body` is the member of the input that is the JSON body. */
export function inputNames({
  path,
  query,
  headers,
  request,
  fields,
  fileField,
  body,
}: CallFacts & { readonly body?: string }): string[] {
  const inForm = [...Object.keys(fields?.shape ?? {}), ...(fileField === undefined ? [] : ['content'])];
  const inBody = request ? [body ?? 'body'] : inForm;
  const names = [...namesInPath(path), ...Object.keys(query?.shape ?? {}), ...Object.keys(headers ?? {}), ...inBody];
  return names.filter((name) => name !== 'token');
}

/** The JSON body of the contract's wire. */
function carriedBy(value: unknown, extraFields: readonly string[]): unknown {
  if (extraFields.length === 0 || value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => !extraFields.includes(name)));
}

function encodeCall(
  { method, path, query, headers = {}, request, fields, fileField, extraFields = [] }: CallFacts,
  input: object,
  body: string | undefined,
): WireRequest {
  const values = new Map<string, unknown>(Object.entries(input));
  const textsOf = (names: readonly string[]) =>
    Object.fromEntries(
      names.filter((name) => values.get(name) !== undefined).map((name) => [name, String(values.get(name))]),
    );
  const form = fields && textsOf(Object.keys(fields.shape));
  const carried = Object.entries(headers).map(([name, header]) => [header, String(values.get(name))]);
  return {
    method,
    path: fillPath(path, textsOf(namesInPath(path))),
    ...(query && { query: textsOf(Object.keys(query.shape)) }),
    ...(carried.length > 0 && { headers: Object.fromEntries(carried) as Record<string, string> }),
    body: bodyOf(
      values,
      request && carriedBy(body === undefined ? input : values.get(body), extraFields),
      form,
      fileField,
    ),
  };
}

function bodyOf(
  values: ReadonlyMap<string, unknown>,
  json: unknown,
  form: Readonly<Record<string, string>> | undefined,
  fileField: string | undefined,
): WireBody | undefined {
  if (json !== undefined) return { kind: 'json', value: json };
  if (!form) return undefined;
  if (fileField === undefined) return { kind: 'form', fields: form };
  // The input of a call with a file has its content.
  const content = values.get('content') as Content;
  return {
    kind: 'multipart',
    fields: form,
    file: { field: fileField, fileName: `part-${String(values.get('partNumber'))}`, content },
  };
}
