import { interfaceCalls } from '../calls.ts';
import type { HttpMethod } from '../wire.ts';
import { wireCalls, type AssumedCall, type FieldPlace, type WireCallName } from './wire-calls.ts';
import type { CallChanges } from './call-changes.ts';

/** A field of a request on the wire. */
export interface WireField {
  /** The contract's name. */
  readonly field: string;
  readonly place: FieldPlace;
  /** The platform's name: of a path the name of its segment. */
  readonly name: string;
}

/** One call as it stands on a wire: the contract's, or a platform's that differs. */
export interface WireForm {
  readonly method: HttpMethod;
  readonly path: string;
  readonly fields: readonly WireField[];
  /** The file's bytes are the whole body. */
  readonly isRaw: boolean;
  /** Name of the form's part that is the file; null if the request has none. */
  readonly file: string | null;
  /** Fields with a value that never changes. */
  readonly constants: Readonly<Record<string, string | number | boolean>>;
}

/** Names of a path's `:name` segments. */
export const pathFieldsOf = (path: string): string[] =>
  [...path.matchAll(/:([A-Za-z]+)/g)].map(([, name = '']) => name);

/** The call as the contract assumes it. */
export function assumedForm(name: WireCallName): WireForm {
  const { method, path, request, headers }: AssumedCall = wireCalls[name];
  const fields = Object.entries(request).map(([field, place]) => ({
    field,
    place,
    name: headers[field] ?? field,
  }));
  return { method, path, fields, isRaw: false, file: interfaceCalls[name]?.fileField ?? null, constants: {} };
}

/** The call on the wire that `changes` describe. */
export function changedForm(name: WireCallName, changes: CallChanges): WireForm {
  const assumed = assumedForm(name);
  const path = changes.path ?? assumed.path;
  const isRaw = changes.body === 'raw';
  const inPath = new Set(pathFieldsOf(path));
  const call: AssumedCall = wireCalls[name];
  const extra = call.extra
    .filter((field) => inPath.has(field) || changes.request?.[field] !== undefined)
    .map((field): WireField => ({ field, place: 'body', name: field }));
  const fields = [...assumed.fields, ...extra].map((before): WireField => {
    const { field } = before;
    if (inPath.has(field)) return { field, place: 'path', name: field };
    const change = changes.request?.[field];
    if (typeof change === 'object') return { field, place: change.in, name: change.name };
    // A body of bytes has no room for fields.
    const place = isRaw && before.place === 'body' ? 'query' : before.place;
    return { field, place, name: change ?? before.name };
  });
  return {
    ...{ method: changes.method ?? assumed.method, path, fields, isRaw },
    ...{ file: changes.file ?? assumed.file, constants: changes.constants ?? {} },
  };
}

/** The values of a path's `:name` segments, decoded; null where it is another path. */
export function matchPath(template: string, path: string): Readonly<Record<string, string>> | null {
  // Most are another path, and show it before they are taken apart: every call is held against every template.
  const fixed = template.indexOf('/:');
  if (fixed < 0) return template === path ? {} : null;
  if (!path.startsWith(template.slice(0, fixed + 1))) return null;
  const [wanted, given] = [template.split('/'), path.split('/')];
  if (wanted.length !== given.length) return null;
  const values: Record<string, string> = {};
  for (const [i, segment] of wanted.entries()) {
    const value = given[i] ?? '';
    if (!segment.startsWith(':')) {
      if (segment !== value) return null;
      continue;
    }
    if (value === '') return null;
    try {
      values[segment.slice(1)] = decodeURIComponent(value);
    } catch {
      return null;
    }
  }
  return values;
}

/** Values of a request that stand outside its body, by the contract's names. Names of `headers` are in lower case. */
export function valuesOutsideBody(
  { path, fields }: WireForm,
  { pathname, searchParams }: URL,
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): Record<string, string> {
  const inPath = matchPath(path, pathname) ?? {};
  const valueOf = ({ place, name }: WireField) => {
    if (place === 'path') return inPath[name];
    if (place === 'query') return searchParams.get(name);
    const header = place === 'header' ? headers[name.toLowerCase()] : undefined;
    return header === undefined ? undefined : String(header);
  };
  return Object.fromEntries(
    fields.flatMap((field) => {
      const value = valueOf(field);
      return value == null ? [] : [[field.field, value]];
    }),
  );
}

/** The value at a dotted path of an object; undefined where there is none. */
export function valueAt(object: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (at, name) =>
        at !== null && typeof at === 'object' && Object.hasOwn(at, name) ? Reflect.get(at, name) : undefined,
      object,
    );
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

// An array, too, has fields that can be set.
const copyOf = (value: object) =>
  (Array.isArray(value) ? [...(value as unknown[])] : { ...value }) as Record<string, unknown>;

/** Sets the value at a dotted path. The objects on its way are made, or copied: they may belong to somebody else. */
export function setAt(object: Record<string, unknown>, path: string, value: unknown): void {
  const names = path.split('.');
  const last = names.pop() ?? '';
  let at = object;
  for (const name of names) {
    const next = Object.hasOwn(at, name) ? at[name] : undefined;
    const inner = isObject(next) ? copyOf(next) : {};
    Object.defineProperty(at, name, { value: inner, enumerable: true, writable: true, configurable: true });
    at = inner;
  }
  Object.defineProperty(at, last, { value, enumerable: true, writable: true, configurable: true });
}
