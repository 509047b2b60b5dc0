import { randomUUID } from 'node:crypto';
import { request as requestHttp, type IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import {
  interfaceCalls,
  KitError,
  neededPermissions,
  NotFinishedError,
  permissions,
  type AnswerHead,
  type Permission,
  type WireCallName,
  type WireProfile,
  type WireRequest,
} from '../contract/index.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseRetryAfter } from '../platform-client/index.ts';
import { factsOf, jsonOf, unreadableReason, type Facts, type RawAnswer } from './facts.ts';

export const levels = ['read', 'launch', 'write'] as const;
export type Level = (typeof levels)[number];

/** Limits on the request rate. */
export interface Pace {
  /** Least time between the starts of two requests, ms. */
  readonly requestMs: number;
  /** Time between two polls of a changing state, ms. */
  readonly pollMs: number;
}

/** For a platform that other people use. Two requests per second, and polls at the interval of section 4.8. */
export const considerate: Pace = { requestMs: 500, pollMs: 3_000 };
/** For a platform on this machine. */
export const unpaced: Pace = { requestMs: 0, pollMs: 500 };

/** A platform that is probed. */
export interface Target {
  readonly url: string;
  readonly apiKey: string;
  readonly profile: WireProfile;
  readonly pace: Pace;
  /** Permissions of the app's key: a call that needs another one is none of the app's. Default: all. */
  readonly permissions?: readonly Permission[];
  /** Time limit for an answer, ms. Default: 30,000. */
  readonly answerMs?: number;
  /** An identity token of a launch. Asked for once, of a level above `read`. */
  token(): Promise<string>;
  /** Resolves when the user has approved. `token`: the one that holds by now. */
  approve(operationId: string, token: string): Promise<void>;
}

/** One request with what came back, as a report shows it: no key, no token, no signature. */
export interface Exchange {
  /** Name of the probe and of one of its requests. */
  readonly name: string;
  /** The call of the wire that it is; null for one that no profile knows. */
  readonly call: WireCallName | null;
  readonly method: string;
  readonly path: string;
  readonly requestBody: string | null;
  readonly responseBody: string;
  readonly facts: Facts;
  /** Reason why the profile cannot read the response; null if it can, or if the app reads none. */
  readonly unreadable: string | null;
  /** The app makes it too: one that fails is a fault of the app. */
  readonly isOfApp: boolean;
}

/** A probe cannot be made: what it needs is not there. */
export class NotObserved extends Error {}

export interface RawRequest {
  readonly method: string;
  /** Below the base address, or an address of its own. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** Default: the API key's. */
  readonly authenticated?: boolean;
  /** The app makes it too. Default: every call of the wire profile. */
  readonly isOfApp?: boolean;
}

const defaultAnswerMs = 30_000;
const maxBodyBytes = 64 * 1024 * 1024;
const shownCharacters = 1_500;
/** Part of a body in which secrets are looked for. */
const searchedCharacters = 100_000;
/** Redacting shorter names would remove ordinary words from a report. */
const leastOfName = 3;
/** Tries of a call that the platform has taken and not finished. */
const maxUnfinished = 100;
const [maxWaits, defaultWaitMs, longestWaitMs] = [5, 5_000, 120_000];

/** Sends requests as they are, follows nothing, repeats nothing but what a rate limit refused, and keeps what was seen. */
export class Conversation {
  readonly target: Target;
  readonly exchanges: Exchange[] = [];
  #secrets = new Set<string>();
  #renewed: string | null = null;
  #nextAt = 0;

  constructor(target: Target) {
    this.target = target;
    this.#secrets.add(target.apiKey);
  }

  /** The launch's token, or what a renewal has given in its place. */
  async token(): Promise<string> {
    return this.#renewed ?? this.target.token();
  }

  /** A renewal has given another one, which holds from now on. */
  renewed(token: string): void {
    this.hide(token);
    this.#renewed = token;
  }

  /** Keeps a secret out of every report. */
  hide(secret: string): void {
    this.#secrets.add(secret);
  }

  /** A call as the profile writes it. `reads`: the app reads the answer, so it must be readable. */
  async call<Name extends WireCallName>(
    name: string,
    call: Name,
    input: Parameters<WireProfile['calls'][Name]['encode']>[0],
    { expect = 'success' }: { readonly expect?: 'success' | 'refusal' } = {},
  ): Promise<RawAnswer> {
    // Input and call belong together by the signature, which TypeScript does not follow into the profile.
    const wireCall = this.target.profile.calls[call] as {
      encode(input: unknown): WireRequest;
      decode(body: unknown, head: AnswerHead): unknown;
    };
    const wire = wireCall.encode(input);
    const reads = (answer: RawAnswer) => {
      if (expect === 'refusal' || answer.status < 200 || answer.status > 299) return null;
      const json = jsonOf(answer);
      try {
        const head = { status: answer.status, header: (field: string) => answer.headers[field] };
        usable = usesOf(wireCall.decode(json === undefined ? answer.body.toString('utf8') : json, head));
        return null;
      } catch (error) {
        progress.isUnfinished = error instanceof NotFinishedError;
        return unreadableReason(error);
      }
    };
    let usable: Facts = {};
    const progress = { isUnfinished: false };
    let answer = await this.send(name, await raw(wire), call, reads);
    // The profile says that the platform answers again when it has finished.
    for (let tries = 1; progress.isUnfinished && tries < maxUnfinished; tries++) {
      progress.isUnfinished = false;
      this.exchanges.pop();
      await sleep(this.target.pace.pollMs);
      answer = await this.send(name, await raw(wire), call, reads);
    }
    if (Object.keys(usable).length > 0) this.note(name, usable, call);
    return answer;
  }

  /** Any request. */
  async send(
    name: string,
    request: RawRequest,
    call: WireCallName | null = null,
    reads: (answer: RawAnswer) => string | null = () => null,
  ): Promise<RawAnswer> {
    const headers = {
      accept: '*/*',
      ...(request.authenticated === false ? {} : this.target.profile.authenticate(this.target.apiKey)),
      ...request.headers,
    };
    const url = /^https?:/.test(request.path) ? request.path : `${this.target.url}${request.path}`;
    const ask = async () => {
      await this.#turn();
      return exchange(url, { ...request, headers }, this.target.answerMs ?? defaultAnswerMs).catch(
        (error: unknown): RawAnswer => {
          // Without any earlier response there is nothing to compare. A later broken connection says nothing about the interface.
          if (this.exchanges.length === 0) throw error;
          throw new NotObserved(error instanceof Error ? error.message : 'there was no answer');
        },
      );
    };
    let answer = await ask();
    // A rate limit is no difference of the interface: wait, and ask again.
    for (let waits = 0; answer.status === 429 && waits < maxWaits; waits++) {
      const wantedMs = parseRetryAfter(answer.headers['retry-after'], answer.headers['date']) ?? defaultWaitMs;
      await sleep(Math.min(wantedMs, longestWaitMs));
      answer = await ask();
    }
    if (answer.status === 429) throw new NotObserved('the platform limits how often it is asked (429)');
    // The response to a renewal holds a token, under any field name.
    const answerHolds = call === null ? undefined : interfaceCalls[call]?.answerHolds;
    if (answerHolds === 'token' && answer.status < 300) for (const text of longTexts(jsonOf(answer))) this.hide(text);
    // Records must not contain users' names.
    if (answerHolds === 'names' && answer.status < 300)
      for (const text of textsOf(jsonOf(answer))) if (text.length >= leastOfName) this.hide(text);
    const unreadable = reads(answer);
    this.exchanges.push({
      name,
      call,
      method: request.method,
      path: this.#shown(request.path),
      requestBody: request.body === undefined ? null : this.#shown(request.body.toString()),
      responseBody: this.#shown(
        /text|json|xml/.test(answer.headers['content-type'] ?? '')
          ? answer.body.toString('utf8')
          : `${answer.body.length} bytes`,
      ),
      facts: factsOf(answer, { quotesWords: answerHolds === undefined }),
      unreadable,
      isOfApp: request.isOfApp ?? this.#isOfApp(call),
    });
    return answer;
  }

  /** Something that is no answer by itself: whether two pages are disjoint. */
  note(name: string, facts: Facts, call: WireCallName | null = null): void {
    this.exchanges.push({
      name,
      call,
      isOfApp: this.#isOfApp(call),
      method: '',
      path: '',
      requestBody: null,
      responseBody: '',
      facts,
      unreadable: null,
    });
  }

  #isOfApp(call: WireCallName | null): boolean {
    const { permissions: granted = permissions } = this.target;
    const row = call === null ? undefined : interfaceCalls[call];
    if (!row) return false;
    const needed = neededPermissions(row);
    return needed.length === 0 || needed.some((permission) => granted.includes(permission));
  }

  /** Waits until the pace allows another request. */
  async #turn(): Promise<void> {
    const now = Date.now();
    const at = Math.max(now, this.#nextAt);
    this.#nextAt = at + this.target.pace.requestMs;
    if (at > now) await sleep(at - now);
  }

  #shown(text: string): string {
    // More is not shown, and would cost the time of a search.
    let shown = text.slice(0, searchedCharacters);
    for (const secret of this.#secrets)
      for (const form of [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')])
        shown = shown.replaceAll(form, '[redacted]');
    // The signature of a temporary link is as good as a key until the link expires.
    shown = shown.replace(
      /([?&"]?(?:sig(?:nature)?|x-amz-[a-z-]{1,60}|token|access_token)"?\s*[=:]\s*"?)[^&"\s\\]+/gi,
      '$1[redacted]',
    );
    // A record is kept, and shown to others: it tells nobody's address.
    shown = shown.replace(/[^\s"'@<>,;:]{1,64}@[^\s"'@<>,;:]{1,253}\.[a-z]{2,24}/gi, '[e-mail]');
    return shown.length > shownCharacters
      ? `${shown.slice(0, shownCharacters)} ... (${text.length} characters)`
      : shown;
  }
}

/** Returns all strings of a JSON value. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return value !== null && typeof value === 'object' ? Object.values(value).flatMap(textsOf) : [];
}

/** Returns the strings of a JSON value that may be tokens: long ones that are no times. */
export const longTexts = (value: unknown): string[] =>
  textsOf(value).filter((text) => text.length >= 16 && Number.isNaN(Date.parse(text)));

/** Returns the parts of a response that the app uses. A readable response without them is useless. */
function usesOf(output: unknown): Facts {
  const { items, children, ...description }: { items?: unknown; children?: unknown; dataHref?: unknown } = output ?? {};
  const some = (is: boolean) => (is ? 'some' : 'none');
  return {
    ...(Array.isArray(items) ? { 'usable.items': some(items.length > 0) } : {}),
    ...(Array.isArray(children) ? { 'usable.children': some(children.length > 0) } : {}),
    ...('dataHref' in description ? { 'usable.data': some(description.dataHref !== undefined) } : {}),
  };
}

async function raw({ method, path, query, headers, body }: WireRequest): Promise<RawRequest> {
  const search = query && Object.keys(query).length > 0 ? `?${new URLSearchParams(query).toString()}` : '';
  const request = { method, path: `${path}${search}` };
  if (!body) return { ...request, headers: headers ?? {} };
  if (body.kind === 'json')
    return {
      ...request,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body.value),
    };
  if (body.kind === 'form')
    return {
      ...request,
      headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(body.fields).toString(),
    };
  const content = await readBytes(body.kind === 'raw' ? body.content : body.file.content);
  if (body.kind === 'raw')
    return { ...request, headers: { ...headers, 'content-type': body.mediaType }, body: content };
  return { ...request, ...multipart(body.fields, { ...body.file, content }, headers) };
}

/** A form with one file. */
export function multipart(
  fields: Readonly<Record<string, string>>,
  file: { readonly field: string; readonly fileName: string; readonly content: Buffer } | null,
  headers: Readonly<Record<string, string>> = {},
): Pick<RawRequest, 'headers' | 'body'> {
  const boundary = `drift-${randomUUID()}`;
  const parts: Buffer[] = Object.entries(fields).map(([name, value]) =>
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`),
  );
  if (file)
    parts.push(
      Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="${file.field}"; filename="${file.fileName}"\r\nContent-Type: application/octet-stream\r\n\r\n`,
      ),
      file.content,
      Buffer.from('\r\n'),
    );
  return {
    headers: { ...headers, 'content-type': `multipart/form-data; boundary=${boundary}` },
    body: Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)]),
  };
}

async function readBytes(content: { open(): AsyncIterable<Uint8Array> }): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of content.open()) parts.push(part);
  return Buffer.concat(parts);
}

/** One request over a connection of its own. Throws `KitError` where nothing answers. */
function exchange(address: string, request: RawRequest, timeoutMs: number): Promise<RawAnswer> {
  const url = new URL(address);
  const send = url.protocol === 'https:' ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const lost = (error: Error) =>
      reject(new KitError('platform_away', `${url.origin} did not answer ${request.method} as HTTP: ${error.message}`));
    const req = send(
      url,
      {
        method: request.method,
        headers: {
          ...request.headers,
          ...(request.body === undefined ? {} : { 'content-length': String(Buffer.byteLength(request.body)) }),
        },
        agent: false,
        timeout: timeoutMs,
      },
      (res: IncomingMessage) => {
        const parts: Buffer[] = [];
        let size = 0;
        res.on('data', (part: Buffer) => {
          size += part.length;
          if (size <= maxBodyBytes) parts.push(part);
          else res.destroy();
        });
        const done = () =>
          size > maxBodyBytes
            ? lost(new Error(`its answer has more than ${maxBodyBytes} bytes`))
            : !res.complete
              ? lost(new Error('its answer was cut'))
              : resolve({ status: res.statusCode ?? 0, headers: headersOf(res), body: Buffer.concat(parts) });
        res.once('close', done);
      },
    );
    req.once('timeout', () => req.destroy(new Error(`nothing came for ${timeoutMs / 1000} s`)));
    req.once('error', lost);
    req.end(request.body);
  });
}

const headersOf = (res: IncomingMessage) =>
  Object.fromEntries(
    Object.entries(res.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : (value ?? '')]),
  );
