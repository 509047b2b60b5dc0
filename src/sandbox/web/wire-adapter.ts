import type { IncomingMessage } from 'node:http';
import type { RequestHandler, Response } from 'express';
import {
  apiKeyHeader,
  assumedForm,
  changedForm,
  fillPath,
  KitError,
  matchPath,
  setAt,
  valueAt,
  valuesOutsideBody,
  wireCallNames,
  wireCalls,
  type CallChanges,
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
  /** The contract's name of a form's field. */
  fieldOf(name: string): string;
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
  const isAt = ({ method, path }: WireForm, req: IncomingMessage, pathname: string) =>
    method === req.method && matchPath(path, pathname) !== null;

  return (req, res, next) => {
    // Two slashes would begin with a host.
    const url = new URL(req.url.replace(/^\/{2,}/, '/'), 'http://sandbox');
    const call = calls.find(({ form }) => isAt(form, req, url.pathname));
    const isGone = !call && calls.some(({ assumed }) => isAt(assumed, req, url.pathname));
    if (call || url.pathname.startsWith('/public/')) answerAs(res, changes, call?.name);
    if (isGone) return pathNotFound(req, res, next);
    if (changes.apiKey) readKey(req, changes.apiKey, call !== undefined);
    if (call && changes.calls?.[call.name]) rewrite(req, url, call.assumed, call.form);
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

function rewrite(req: IncomingMessage, url: URL, assumed: WireForm, form: WireForm): void {
  const values = valuesOutsideBody(form, url, req.headers);
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
  spoken.set(req, {
    isRaw: form.isRaw,
    fields: elsewhere,
    fieldOf: (name) => fields.get(name) ?? (inBody.has(name) ? `renamed ${name}` : name),
    read(body) {
      if (body !== null && typeof body !== 'object') return body;
      const read: Record<string, unknown> = { ...body };
      // Names of the contract that the wire does not have, and those of the wire, are no names here; then each has its value.
      for (const { field } of assumed.fields) delete read[field];
      for (const name of inBody.values()) delete read[name.split('.')[0] ?? ''];
      for (const [field, name] of inBody) {
        const value = valueAt(body, name);
        if (value !== undefined) read[field] = value;
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

function answerAs(res: Response, { calls, errors }: WireChanges, name: WireCallName | undefined): void {
  const response = (name && calls?.[name]?.response) ?? {};
  const send = res.send.bind(res);
  const isText = name !== undefined && wireCalls[name].response[0] === 'text';
  contextOf(res).translate = (body) => {
    // Express sends the JSON by `send`, which must not take it for a text.
    res.send = send;
    return res.statusCode >= 400 ? asError(body, errors) : asAnswer(body, response);
  };
  if (isText && Object.keys(response).length > 0)
    res.send = (body: unknown) => (typeof body === 'string' ? res.type('json').json({ text: body }) : send(body));
}

function asAnswer(body: unknown, response: NonNullable<CallChanges['response']>): unknown {
  if (!isRecord(body)) return body;
  const answer = { ...body };
  for (const field of Object.keys(response)) delete answer[field];
  for (const [field, change] of Object.entries(response)) {
    const { name: path = field, values = {} } = typeof change === 'string' ? { name: change } : change;
    const value = body[field];
    if (value !== undefined)
      setAt(answer, path, typeof value === 'string' && Object.hasOwn(values, value) ? values[value] : value);
  }
  return answer;
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
