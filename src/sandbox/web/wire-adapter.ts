import type { IncomingMessage } from 'node:http';
import type { RequestHandler, Response } from 'express';
import {
  apiKeyHeader,
  assumedForm,
  changedForm,
  fillPath,
  KitError,
  limits,
  matchPath,
  setAt,
  valueAt,
  valuesOutsideBody,
  wireCallNames,
  wireCalls,
  type CallChanges,
  type ValidationDetail,
  type WireCallName,
  type WireChanges,
  type WireForm,
  type WireProfile,
} from '../../contract/index.ts';
import { hasKey } from '../../contract/keys.ts';
import { isRecord } from '../../files/index.ts';
import { contextOf } from './call-context.ts';
import { pathNotFound } from '../error-boundary.ts';
import { invalid } from './sandbox-error.ts';

/** Body of a request on another wire than the contract's. */
export interface AdaptedBody {
  /** The file's bytes are the whole body. */
  readonly isRaw: boolean;
  /** Fields that stood elsewhere, by the contract's names. */
  readonly fields: Readonly<Record<string, string>>;
  /** The contract's name of a form's field, or of its file. */
  fieldOf(name: string): string;
  /** The contract's value of a form's field. Throws 400 for a field that never changes and has another value. */
  valueOf(name: string, value: string): string;
  /** This wire's name of the form's file. */
  readonly file: string | null;
  /** Names of fields that this wire demands beyond those of the contract. */
  readonly demanded: readonly string[];
  /** A parsed JSON body, by the contract's names. */
  read(body: unknown): unknown;
}

const spoken = new WeakMap<IncomingMessage, AdaptedBody>();

/** Undefined for a request on the contract's own wire. */
export function adaptedBody(req: IncomingMessage): AdaptedBody | undefined {
  return spoken.get(req);
}

/** The data of a profile, for a sandbox that is to speak it. Throws where it has none. */
export function changesOf(profile: WireProfile): WireChanges {
  if (profile.changes) return profile.changes;
  throw new KitError(
    'bad_wire_profile',
    `the sandbox cannot speak the wire profile ${profile.name}: it exists only as code. Make it with wireProfile({...}), which describes the differences as data`,
  );
}

/** Numbers that a header, a query or a path can only hold as text. */
const numeric = new Set(['fileSize', 'limit', 'offset']);

/**
 * Lets the sandbox speak a platform's wire: a request of that wire becomes one of the contract's, and an answer goes back
 * as that platform says it. A call that stands elsewhere there is 404 where the contract has it.
 */
export function adaptWire(changes: WireChanges): RequestHandler {
  const calls = wireCallNames.map((name) => {
    return { name, assumed: assumedForm(name), form: changedForm(name, changes.calls?.[name] ?? {}) };
  });
  const first = changes.limits?.firstPartNumber ?? limits.firstPartNumber;
  /** Ids of files whose first answer was an unfinished one. */
  const unfinished = new Set<unknown>();
  const isAt = ({ method, path }: WireForm, req: IncomingMessage, pathname: string) =>
    method === req.method && matchPath(path, pathname) !== null;

  return (req, res, next) => {
    // Two slashes would begin with a host.
    const path = req.url.replace(/^\/{2,}/, '/');
    if (!URL.canParse(path, 'http://sandbox')) return next();
    const url = new URL(path, 'http://sandbox');
    const call = calls.find(({ form }) => isAt(form, req, url.pathname));
    const isGone = !call && calls.some(({ assumed }) => isAt(assumed, req, url.pathname));
    if (call || url.pathname.startsWith('/public/')) answerAs(res, changes, call, { first, unfinished });
    if (isGone) return pathNotFound(req, res, next);
    if (changes.apiKey) readKey(req, changes.apiKey, call !== undefined);
    if (call && (changes.calls?.[call.name] || first !== limits.firstPartNumber))
      rewrite(req, url, call.assumed, call.form, first);
    next();
  };
}

/** The pages of the sandbox itself send the contract's header; the platform's calls must not. */
function readKey(
  req: IncomingMessage,
  { header, prefix = '' }: NonNullable<WireChanges['apiKey']>,
  isCall: boolean,
): void {
  const name = header.toLowerCase();
  const given = req.headers[name];
  if (typeof given === 'string' && given.startsWith(prefix)) {
    if (name !== apiKeyHeader.toLowerCase()) delete req.headers[name];
    req.headers[apiKeyHeader.toLowerCase()] = given.slice(prefix.length);
  } else if (isCall) delete req.headers[apiKeyHeader.toLowerCase()];
}

/** Numbers of parts as the contract counts them. */
const counted = (field: string, value: string, first: number) =>
  field === 'partNumber' && /^\d{1,9}$/.test(value) ? String(Number(value) + 1 - first) : value;

function rewrite(req: IncomingMessage, url: URL, assumed: WireForm, form: WireForm, first: number): void {
  const values = valuesOutsideBody(form, url, req.headers);
  for (const [field, value] of Object.entries(values)) values[field] = counted(field, value, first);
  const constants = Object.entries(form.constants);
  if (req.method === 'GET' || form.isRaw)
    for (const [name, value] of constants) {
      requireConstant(name, url.searchParams.getAll(name).join(), String(value));
      url.searchParams.delete(name);
    }
  const inBody = new Map(form.fields.flatMap(({ field, place, name }) => (place === 'body' ? [[field, name]] : [])));
  for (const { place, name } of form.fields) if (place === 'query') url.searchParams.delete(name);
  // Names of the contract have no meaning on this wire.
  const kept = new Set(form.fields.map(({ place, name }) => `${place} ${name.toLowerCase()}`));
  for (const { place, name } of assumed.fields) {
    if (kept.has(`${place} ${name.toLowerCase()}`)) continue;
    if (place === 'query') url.searchParams.delete(name);
    if (place === 'header') delete req.headers[name.toLowerCase()];
  }
  const elsewhere: Record<string, string> = {};
  const path: Record<string, string> = {};
  for (const { field, place, name } of assumed.fields) {
    const value = values[field];
    if (value === undefined) continue;
    if (place === 'path') path[name] = value;
    else if (place === 'query') url.searchParams.set(name, value);
    else if (place === 'header') req.headers[name.toLowerCase()] = value;
    else elsewhere[field] = value;
  }
  const toHeaders = assumed.fields.filter(({ place }) => place === 'header');
  const query = url.searchParams.size > 0 ? `?${url.searchParams.toString()}` : '';
  const missing = assumed.fields.find(({ place, name }) => place === 'path' && path[name] === undefined);
  if (missing)
    throw invalid([
      { path: form.fields.find(({ field }) => field === missing.field)?.name ?? missing.field, message: 'is required' },
    ]);
  req.method = assumed.method;
  req.url = fillPath(assumed.path, path) + query;
  const fields = new Map([...inBody].map(([field, name]) => [name, field]));
  // The contract's wire has no such value.
  const isExtra = (field: string) => !assumed.fields.some((known) => known.field === field);
  spoken.set(req, {
    isRaw: form.isRaw,
    fields: elsewhere,
    file: form.file,
    demanded: [
      ...constants.map(([name]) => name),
      ...[...inBody].flatMap(([field, name]) => (isExtra(field) ? [name] : [])),
    ],
    fieldOf(name) {
      if (form.file !== null && name === form.file) return assumed.file ?? name;
      return fields.get(name) ?? (inBody.has(name) || name === assumed.file ? `renamed ${name}` : name);
    },
    valueOf(name, value) {
      const constant = Object.hasOwn(form.constants, name) ? form.constants[name] : undefined;
      if (constant !== undefined) requireConstant(name, value, String(constant));
      if (isExtra(fields.get(name) ?? name) && fields.has(name)) requireCount(name, value);
      return counted(fields.get(name) ?? name, value, first);
    },
    read(body) {
      if (body !== null && typeof body !== 'object') return body;
      const read: Record<string, unknown> = { ...body };
      for (const [name, value] of constants) {
        requireConstant(name, valueAt(body, name), value);
        delete read[name.split('.')[0] ?? ''];
      }
      // Names of the contract that the wire does not have, and those of the wire, are no names here; then each has its value.
      for (const { field } of assumed.fields) delete read[field];
      for (const name of inBody.values()) delete read[name.split('.')[0] ?? ''];
      for (const [field, name] of inBody) {
        const value = valueAt(body, name);
        if (value !== undefined && !isExtra(field)) read[field] = value;
        if (isExtra(field)) requireCount(name, value);
      }
      for (const { field, name } of toHeaders) {
        if (typeof read[field] === 'string') req.headers[name.toLowerCase()] = read[field];
        delete read[field];
      }
      for (const [field, value] of Object.entries(elsewhere))
        read[field] = numeric.has(field) && /^\d+$/.test(value) ? Number(value) : value;
      return read;
    },
  });
}

/** Throws 400 for another value. */
function requireConstant(name: string, value: unknown, wanted: string | number | boolean): void {
  if (value !== wanted) throw invalid([{ path: name, message: `must be ${wanted}` }]);
}

/** Throws 400 for a value that is no number of parts. */
function requireCount(name: string, value: unknown): void {
  if (value === undefined) throw invalid([{ path: name, message: 'is required' }]);
  if (!/^[1-9]\d{0,8}$/.test(typeof value === 'number' ? String(value) : typeof value === 'string' ? value : ''))
    throw invalid([{ path: name, message: 'must be the number of parts' }]);
}

/** Files of which a first answer is remembered. */
const maxUnfinished = 1_000;

/** A call, as the contract has it and as this wire has it. */
interface SpokenCall {
  readonly name: WireCallName;
  readonly assumed: WireForm;
  readonly form: WireForm;
}

interface AnswerState {
  /** Number of the first chunk on the wire. */
  readonly first: number;
  readonly unfinished: Set<unknown>;
}

function answerAs(
  res: Response,
  { calls, errors }: WireChanges,
  call: SpokenCall | undefined,
  { first, unfinished }: AnswerState,
): void {
  const name = call?.name;
  const { response = {}, unfinished: status } = (name && calls?.[name]) ?? {};
  const send = res.send.bind(res);
  const isText = name !== undefined && wireCalls[name].response[0] === 'text';
  contextOf(res).translate = (given) => {
    // Express sends the JSON by `send`, which must not take it for a text.
    res.send = send;
    const body = withPartsFrom(first, given);
    if (res.statusCode >= 400) return asError(call ? withNamesOf(call, body) : body, errors);
    // The first answer about a file comes before its result, as on such a platform.
    const fileId = isRecord(body) ? body['fileId'] : undefined;
    if (status === undefined || fileId === undefined || unfinished.has(fileId)) return asAnswer(body, response);
    unfinished.add(fileId);
    // The client of the oldest has long had its result.
    if (unfinished.size > maxUnfinished) unfinished.delete([...unfinished][0]);
    res.status(status);
    return { message: 'in progress' };
  };
  if (isText && Object.keys(response).length > 0)
    res.send = (body: unknown) => (typeof body === 'string' ? res.type('json').json({ text: body }) : send(body));
}

function asAnswer(body: unknown, response: NonNullable<CallChanges['response']>): unknown {
  if (!isRecord(body)) return body;
  const answer = { ...body };
  for (const field of Object.keys(response)) delete answer[field];
  for (const [field, change] of Object.entries(response)) {
    const { name: path = field, values = {}, join, as } = typeof change === 'string' ? { name: change } : change;
    const value = body[field];
    if (value === undefined) continue;
    if (join && typeof value === 'string') {
      const [head = '', ...words] = value.split(' ');
      for (const [i, part] of join.entries()) setAt(answer, part, i === 0 ? head : i === 1 ? words.join(' ') : '');
    } else if (as !== undefined && typeof value === 'string') setAt(answer, path, secondsOf(value, as));
    else setAt(answer, path, typeof value === 'string' && Object.hasOwn(values, value) ? values[value] : value);
  }
  return answer;
}

const secondsOf = (instant: string, as: 'seconds' | 'seconds-from-now') =>
  Math.round((Date.parse(instant) - (as === 'seconds' ? 0 : Date.now())) / 1_000);

const [numbersOfParts, textsOfParts] = [
  ['partNumber', 'expected', 'received'],
  ['message', 'error'],
];

/** An answer that counts parts as this wire does, also in its texts. */
function withPartsFrom(first: number, body: unknown): unknown {
  if (first === limits.firstPartNumber || !isRecord(body)) return body;
  const shifted = (count: number) => count - limits.firstPartNumber + first;
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => {
      if (typeof value === 'number' && numbersOfParts.includes(name)) return [name, shifted(value)];
      if (typeof value !== 'string' || !textsOfParts.includes(name)) return [name, value];
      return [
        name,
        value.replaceAll(/\b(Chunk|next, not) (\d+)/g, (_, words, count) => `${words} ${shifted(Number(count))}`),
      ];
    }),
  );
}

/** An error whose details name the fields of a request as this wire does. */
function withNamesOf({ assumed, form }: SpokenCall, body: unknown): unknown {
  if (!isRecord(body) || !Array.isArray(body['details'])) return body;
  const nameOf = (path: string) => {
    const [outer = '', ...inner] = path.split('.');
    const own = assumed.fields.find(({ field, name }) => [field, name.toLowerCase()].includes(outer));
    const field = form.fields.find((other) => other.field === own?.field);
    return field && !Object.hasOwn(form.constants, outer) ? [field.name, ...inner].join('.') : path;
  };
  // The sandbox makes details from the contract's schema.
  const details = (body['details'] as ValidationDetail[]).map((detail) => ({ ...detail, path: nameOf(detail.path) }));
  return { ...body, details };
}

function asError(body: unknown, { fields = {}, codes = {} }: NonNullable<WireChanges['errors']> = {}): unknown {
  if (body === null || typeof body !== 'object') return body;
  const error: Record<string, unknown> = { ...body };
  const answer = { ...error };
  for (const field of Object.keys(fields)) delete answer[field];
  const own = error['code'];
  const code = typeof own === 'string' && hasKey(codes, own) ? codes[own] : own;
  for (const [field, path] of Object.entries({ code: 'code', ...fields })) {
    const value = field === 'code' ? code : error[field];
    if (value !== undefined) setAt(answer, path, value);
  }
  return answer;
}
