import { createHash } from 'node:crypto';
import {
  calls,
  changedForm,
  interfaceCalls,
  limits,
  matchPath,
  NotFinishedError,
  valueAt,
  valuesOutsideBody,
  wireCallNames,
  type CallChanges,
  type Endpoint,
  type OperationStatus,
  type WireCallName,
  type WireForm,
  type WireProfile,
} from '../../../contract/index.ts';
import { factsOf, jsonOf, unreadableReason, type Facts } from '../../../drift/facts.ts';
import { isRecord, messageOf } from '../../../files/index.ts';
import { parseRetryAfter } from '../../../platform-client/index.ts';
import { isInitiate, type CallDetail } from '../../../sandbox/referee/traced-call.ts';
import type { BodyEnds } from './body-copy.ts';
import type { PassedCall } from './forward.ts';
import { decoded, readForm } from './read-body.ts';

/** A call as it passed the referee, without anything secret. Times are epoch milliseconds. */
export interface ObservedCall {
  readonly at: number;
  readonly endedAt: number;
  readonly name: WireCallName;
  readonly endpoint: Endpoint;
  readonly method: string;
  /** Path of the call on this wire, with `:name` segments. */
  readonly path: string;
  readonly status: number | null;
  readonly delivered: boolean;
  readonly requestBytes: number;
  readonly responseBytes: number;
  /** Digest of the identity token; null for a call without one. */
  readonly token: string | null;
  /** Digest of the token that a renewal answered; null if it answered none. */
  readonly nextToken: string | null;
  /** Facts of request and answer. `operationStatus` is the one of the answer. */
  readonly detail: Omit<CallDetail, 'foreign' | 'tokenNumber'>;
  readonly facts: Facts | null;
  /** Reason why the profile cannot read the answer; null if it can. */
  readonly unreadable: string | null;
  /** The answer came before its result, and the app must make the call again. */
  readonly isUnfinished: boolean;
  /** The request has a content coding, so nobody knows what it said. */
  readonly isUnread: boolean;
}

const maxBodyBytes = limits.jsonBodyBytes;
const leastLateMs = 50;

const digestOf = (secret: string): string => createHash('sha256').update(secret).digest('base64url');

/** Recognizes the calls of a wire profile. */
export class CallReader {
  #profile: WireProfile;
  #calls: readonly { readonly name: WireCallName; readonly form: WireForm }[];
  #onCall: (call: ObservedCall) => void;
  #onUnknown: (passed: PassedCall) => void;
  #reading = new Set<Promise<void>>();
  /** Digests of tokens and keys. */
  #secrets = new Set<string>();
  /** Calls and statuses whose form is known. */
  #known = new Set<string>();

  /** `onCall` receives each call of the profile, and `onUnknown` every other request. */
  constructor(profile: WireProfile, onCall: (call: ObservedCall) => void, onUnknown: (passed: PassedCall) => void) {
    this.#onUnknown = onUnknown;
    const changes: Partial<Record<WireCallName, CallChanges>> = profile.changes?.calls ?? {};
    this.#profile = profile;
    this.#calls = wireCallNames.map((name) => ({ name, form: changedForm(name, changes[name] ?? {}) }));
    this.#onCall = onCall;
  }

  /** Reads a call. Another request goes to `onUnknown`. */
  read(passed: PassedCall): void {
    const path = passed.url.replace(/^\/{2,}/, '/');
    if (!URL.canParse(path, 'http://referee')) return this.#onUnknown(passed);
    const url = new URL(path, 'http://referee');
    const isAt = ({ method, path: pattern }: WireForm) =>
      method === passed.method && matchPath(pattern, url.pathname) !== null;
    let found = this.#calls.find(({ form }) => isAt(form));
    if (!found) {
      // Some platforms accept a slash at the end.
      url.pathname = url.pathname.replace(/\/+$/, '');
      found = this.#calls.find(({ form }) => isAt(form));
    }
    if (!found) return this.#onUnknown(passed);
    const reading = this.#read(passed, { ...found, url }).then((call) => this.#onCall(call));
    this.#reading.add(reading);
    void reading.finally(() => this.#reading.delete(reading));
  }

  /** True if a call used the text as its token or API key. An app may put one into another field by mistake. */
  isSecret(text: string): boolean {
    return this.#secrets.has(digestOf(text));
  }

  #remember({ headers }: PassedCall, tokens: readonly (string | undefined)[]): void {
    const ofKey = Object.keys(this.#profile.authenticate('')).map((name) => headers[name.toLowerCase()]);
    for (const text of [...tokens, ...ofKey].filter((secret) => typeof secret === 'string'))
      for (const secret of [text, text.split(' ').at(-1) ?? '']) if (secret !== '') this.#secrets.add(digestOf(secret));
  }

  /** Resolves when every call that is over has been read. */
  async settled(): Promise<void> {
    await Promise.all(this.#reading);
  }

  async #read(passed: PassedCall, call: FoundCall): Promise<ObservedCall> {
    const { name, form } = call;
    const { token, ...asked } = await readRequest(
      passed,
      call,
      this.#profile.limits.firstPartNumber ?? limits.firstPartNumber,
    );
    const told = this.#readAnswer(name, passed);
    const isUnread = /[^\s]/.test((passed.headers['content-encoding'] ?? '').replace(/identity/i, ''));
    this.#remember(passed, [token, told.token]);
    const { uploadId, key } = isInitiate(calls[name]) ? told : asked;
    const isLate = (ms: number) => (name === 'getOperation' && ms >= leastLateMs ? ms : undefined);
    const detail = {
      operationId: told.operationId ?? asked.operationId,
      ...{ uploadId, key, partNumber: asked.partNumber, size: asked.size, fileSize: asked.fileSize },
      ...{ fileId: told.fileId, code: told.code, retryAfterSeconds: told.retryAfterSeconds },
      operationStatus: name === 'getOperation' ? told.status : undefined,
      ...{ lateMs: isLate(passed.lateMs), heldMs: isLate(passed.heldMs) },
    };
    const { at, endedAt, delivered, answer } = passed;
    return {
      ...{ at, endedAt, delivered, name, endpoint: calls[name].endpoint, method: form.method, path: form.path },
      status: answer?.status ?? null,
      ...{ requestBytes: lengthOf(passed.request), responseBytes: answer ? lengthOf(answer.body) : 0 },
      token: token === undefined ? null : digestOf(token),
      nextToken: told.token === undefined || told.token === token ? null : digestOf(told.token),
      // Unknown values have no field.
      detail: Object.fromEntries(Object.entries(detail).filter(([, value]) => value !== undefined)),
      ...{ facts: told.facts, unreadable: told.unreadable, isUnfinished: told.isUnfinished ?? false, isUnread },
    };
  }

  #readAnswer(name: WireCallName, { answer, delivered }: PassedCall): Told {
    const nothing: Told = { facts: null, unreadable: null };
    if (answer === null) return nothing;
    const { status, headers: given } = answer;
    const waitMs = parseRetryAfter(given['retry-after'], given.date) ?? 0;
    const retryAfter = waitMs > 0 ? { retryAfterSeconds: waitMs / 1000 } : {};
    if (answer.body.missing > 0) return { ...nothing, ...retryAfter };
    let body: Buffer;
    try {
      body = decoded(answer.body.bytes, given['content-encoding'], maxBodyBytes);
    } catch (error) {
      return { ...nothing, ...retryAfter, unreadable: `its content coding is damaged: ${messageOf(error)}` };
    }
    const headers = Object.fromEntries(
      Object.entries(given).map(([field, value]) => [field, Array.isArray(value) ? value.join(', ') : (value ?? '')]),
    );
    const raw = { status, headers, body };
    const json = jsonOf(raw);
    const kind = `${name} ${status}`;
    // The record needs one answer of each kind, and the facts of a long answer take much memory.
    const facts = this.#known.has(kind)
      ? null
      : factsOf(raw, { quotesWords: interfaceCalls[name]?.answerHolds === undefined });
    if (delivered) this.#known.add(kind);
    const head = { status, header: (field: string) => headers[field] };
    try {
      if (status < 200 || status > 299) {
        const { code } = this.#profile.decodeError(status, json);
        return { ...nothing, ...retryAfter, facts, ...(code !== null && { code }) };
      }
      const read = this.#profile.calls[name].decode(json === undefined ? body.toString('utf8') : json, head);
      return { ...(isRecord(read) ? textsOf(read) : {}), ...retryAfter, facts, unreadable: null };
    } catch (error) {
      if (error instanceof NotFinishedError) return { ...nothing, ...retryAfter, isUnfinished: true };
      return { ...nothing, ...retryAfter, facts, unreadable: unreadableReason(error) };
    }
  }
}

const lengthOf = ({ bytes, missing }: BodyEnds) => bytes.length + missing;

interface FoundCall {
  readonly name: WireCallName;
  readonly form: WireForm;
  readonly url: URL;
}

interface Told {
  readonly operationId?: string;
  readonly uploadId?: string;
  readonly key?: string;
  readonly fileId?: string;
  readonly token?: string;
  readonly status?: OperationStatus;
  readonly code?: string;
  readonly retryAfterSeconds?: number;
  readonly isUnfinished?: boolean;
  readonly facts: Facts | null;
  readonly unreadable: string | null;
}

/** Fields of a decoded answer that the rules look at. */
const toldFields = ['operationId', 'uploadId', 'key', 'fileId', 'token', 'status'] as const;

function textsOf(read: Readonly<Record<string, unknown>>): Omit<Told, 'facts' | 'unreadable'> {
  return Object.fromEntries(toldFields.flatMap((name) => (typeof read[name] === 'string' ? [[name, read[name]]] : [])));
}

interface Asked {
  readonly token?: string;
  readonly operationId?: string;
  readonly uploadId?: string;
  readonly key?: string;
  readonly partNumber?: number;
  readonly size?: number;
  readonly fileSize?: number;
}

async function readRequest(
  { headers, request, isRequestWhole }: PassedCall,
  { form, url }: FoundCall,
  first: number,
): Promise<Asked> {
  const values: Record<string, unknown> = valuesOutsideBody(form, url, headers);
  const contentType = headers['content-type'] ?? '';
  let size: number | null = null;
  if (form.isRaw) size = lengthOf(request);
  else if (/^multipart\/form-data\b/i.test(contentType)) {
    const { fields, fileBytes } = await readForm(request, contentType);
    Object.assign(values, bodyValues(form, fields));
    size = fileBytes;
  } else Object.assign(values, bodyValues(form, parsed(request, contentType)));
  const text = (name: string) => (typeof values[name] === 'string' ? { [name]: values[name] } : {});
  const number = (name: string, more = 0) => {
    const value = values[name];
    return /^\d{1,15}$/.test(String(value)) && value !== '' ? { [name]: Number(value) + more } : {};
  };
  return {
    ...text('token'),
    ...text('operationId'),
    ...text('uploadId'),
    ...text('key'),
    // The contract counts from 1.
    ...number('partNumber', 1 - first),
    ...number('fileSize'),
    // A request that was cut has no size.
    ...(size !== null && isRequestWhole && { size }),
  };
}

function bodyValues(form: WireForm, body: unknown): Record<string, unknown> {
  return Object.fromEntries(
    form.fields.flatMap(({ field, place, name }) => {
      const value = place === 'body' ? valueAt(body, name) : undefined;
      return value === undefined ? [] : [[field, value]];
    }),
  );
}

/** A body in JSON, or a form; undefined for any other. */
function parsed({ bytes, missing }: BodyEnds, contentType: string): unknown {
  if (missing > 0 || bytes.length === 0) return undefined;
  const text = Buffer.from(bytes).toString('utf8');
  if (/^application\/x-www-form-urlencoded\b/i.test(contentType)) return Object.fromEntries(new URLSearchParams(text));
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
