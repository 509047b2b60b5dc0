import * as z from 'zod';
import { callNames, calls, type CallName } from '../calls.ts';
import type { CallFacts } from '../calls/define-call.ts';
import type { HttpMethod } from '../wire.ts';

/** The place of a value in a request. */
export type FieldPlace = 'path' | 'query' | 'header' | 'body';

/** One call as the contract assumes it: what a change of the wire can name. */
export interface AssumedCall {
  readonly method: HttpMethod;
  /** With `:name` segments. */
  readonly path: string;
  /** Fields of the request by name, each with its place. */
  readonly request: Readonly<Record<string, FieldPlace>>;
  /** Fields of the answer. A plain text has one, called `text`. */
  readonly response: readonly string[];
  /** Fields that are lists or objects. */
  readonly structured: readonly string[];
  /** The body is a form. */
  readonly isForm: boolean;
  /** Values of the input that the contract's wire does not carry. */
  readonly extra: readonly string[];
  /** Headers that carry fields. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Fields that are lists or objects, in any call. */
const structured = ['parameters', 'bbox', 'collections', 'sortby', 'vectorMappingProperties', 'layerProperties'];

function assumed({ method, path, query, request, fields, headers = {}, response, ...row }: CallFacts): AssumedCall {
  const namesOf = (schema: z.ZodType | undefined) => (schema instanceof z.ZodObject ? Object.keys(schema.shape) : []);
  const at = (place: FieldPlace, names: readonly string[]) =>
    Object.fromEntries(names.map((name): [string, FieldPlace] => [name, place]));
  const all = {
    ...at(
      'path',
      [...path.matchAll(/:([A-Za-z]+)/g)].map(([, name = '']) => name),
    ),
    ...at('query', namesOf(query)),
    ...at('body', row.bodyFields ?? [...namesOf(request), ...namesOf(fields)]),
    ...at('header', Object.keys(headers)),
  };
  return {
    method,
    path,
    request: all,
    response: row.answerFields ?? namesOf(response),
    structured: structured.filter((name) => name in all),
    isForm: fields !== undefined,
    extra: row.extraFields ?? [],
    headers,
  };
}

/** The name of a call of the wire profile. */
export type WireCallName = CallName;
export const wireCallNames: readonly WireCallName[] = callNames;
/** Every call that a client of the platform makes, by its name in a `WireProfile`. */
export const wireCalls = Object.fromEntries(callNames.map((name) => [name, assumed(calls[name])])) as Readonly<
  Record<WireCallName, AssumedCall>
>;
