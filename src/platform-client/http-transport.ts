import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { Readable } from 'node:stream';
import { Axios, isAxiosError } from 'axios';
import * as z from 'zod';
import {
  endpointsWhere,
  NotFinishedError,
  type Call,
  type Content,
  type WireBody,
  type WireProfile,
  type WireRequest,
} from '../contract/index.ts';
import { startDeadline } from './deadline.ts';
import { multipartBody, type StreamedBody } from './multipart-body.ts';
import {
  intermediaryRefused,
  isIntermediaryStatus,
  PlatformError,
  redirectRefused,
  unanswered,
} from './platform-error.ts';
import { proxyFor } from './proxy.ts';
import { parseRetryAfter } from './retry-policy.ts';

/** Options of one request: its time limit in milliseconds, and a signal that ends it. */
export interface SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** Time until the answer must be there; for a streamed body, counted from the last piece that moved. */
  readonly timeoutMs: number;
  /** Values that must not stand in an error's message. */
  readonly secrets: readonly string[];
}

/** Sends requests to the platform. `createHttpTransport` makes one. */
export interface HttpTransport {
  /** Sends one request once. Throws `PlatformError`, or the signal's reason where the caller aborted. */
  send<Input, Output>(call: Call<Input, Output>, input: Input, options: SendOptions): Promise<Output>;
  close(): void;
}

const maxAnswerBytes = 4 * 1024 * 1024;
/** The value that axios sets when it takes a connection. An agent with another value costs two system calls per call. */
const keepAliveMsecs = 60_000;

/** HTTP to one platform with one API key. Streams request bodies, keeps connections alive, follows no redirect. */
export function createHttpTransport(options: { baseUrl: string; apiKey: string; profile: WireProfile }): HttpTransport {
  const keptAlive = { keepAlive: true, keepAliveMsecs };
  const agents = { httpAgent: new HttpAgent(keptAlive), httpsAgent: new HttpsAgent(keptAlive) };
  // None of axios' defaults, which it would merge anew into every call: 2,000 runs that wait ask 700 times a second.
  const http = new Axios({
    ...agents,
    adapter: 'http',
    baseURL: options.baseUrl,
    headers: options.profile.authenticate(options.apiKey),
    // A redirect would carry the API key to another host, and following one makes axios buffer the upload.
    maxRedirects: 0,
    maxBodyLength: Infinity,
    maxContentLength: maxAnswerBytes,
    responseType: 'text',
    validateStatus: () => true,
    ...proxyFor(new URL(options.baseUrl).hostname),
  });

  return {
    async send(call, input, sendOptions) {
      const secrets = [options.apiKey, ...sendOptions.secrets];
      const answer = await exchange(http, call.endpoint, call.encode(input), sendOptions);
      const body = parseBody(answer.body);
      if (answer.status >= 200 && answer.status < 300) return decode(call, body, answer);
      throw answerError(call.endpoint, options.profile, answer, body.value, secrets);
    },
    close() {
      agents.httpAgent.destroy();
      agents.httpsAgent.destroy();
    },
  };
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly header: (name: string) => string | undefined;
}

async function exchange(http: Axios, endpoint: string, request: WireRequest, options: SendOptions): Promise<Answer> {
  const deadline = startDeadline(options.timeoutMs, options.signal);
  const watch: BodyWatch = { onMoved: () => deadline.restart(), failure: null };
  const body = encodeBody(request.body, watch);
  try {
    const response = await http.request<string>({
      method: request.method,
      url: addressOf(request),
      headers: { accept: 'application/json, text/plain', ...request.headers, ...body.headers },
      data: body.data,
      signal: deadline.signal,
    });
    return {
      status: response.status,
      body: response.data,
      header: (name) => {
        const value: unknown = response.headers[name];
        return typeof value === 'string' ? value : undefined;
      },
    };
  } catch (error) {
    options.signal?.throwIfAborted();
    // This machine could not read the body, so the error is not the platform's.
    if (watch.failure !== null) throw watch.failure.error;
    if (isTooLarge(error))
      throw new PlatformError(endpoint, 'unexpected_answer', `answered with more than ${maxAnswerBytes} bytes`);
    const moved = body.data instanceof Readable ? ' after the last byte that moved' : '';
    throw unanswered(endpoint, error, deadline.isOver ? `no answer within ${options.timeoutMs} ms${moved}` : null);
  } finally {
    deadline.clear();
    if (body.data instanceof Readable) body.data.destroy();
  }
}

/** Axios has no code of its own for an answer beyond `maxContentLength`. */
const isTooLarge = (error: unknown) => isAxiosError(error) && error.message.startsWith('maxContentLength');

/** Writes the address in the same form as axios, which would do it twice for each call. */
function addressOf({ path, query = {} }: WireRequest): string {
  const text = new URLSearchParams(query).toString();
  return text === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${text}`;
}

interface EncodedBody {
  readonly headers: Readonly<Record<string, string>>;
  readonly data: string | Readable | undefined;
}

/** Observes a body while it is sent. */
interface BodyWatch {
  readonly onMoved: () => void;
  /** The error with which the content ended. */
  failure: { readonly error: unknown } | null;
}

function encodeBody(body: WireBody | undefined, watch: BodyWatch): EncodedBody {
  switch (body?.kind) {
    case undefined:
      return { headers: {}, data: undefined };
    case 'json':
      return { headers: { 'content-type': 'application/json' }, data: JSON.stringify(body.value) };
    case 'form':
      return {
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        data: new URLSearchParams(body.fields).toString(),
      };
    case 'raw':
      return streamed({
        stream: Readable.from(watched(body.content, watch).open(), { objectMode: false }),
        sizeBytes: body.content.sizeBytes,
        mediaType: body.mediaType,
      });
    case 'multipart':
      return streamed(multipartBody({ ...body, file: { ...body.file, content: watched(body.file.content, watch) } }));
  }
}

/** Asks for a piece only when those before it have gone. */
function watched(content: Content, watch: BodyWatch): Content {
  return {
    sizeBytes: content.sizeBytes,
    async *open() {
      try {
        for await (const piece of content.open()) {
          watch.onMoved();
          yield piece;
        }
      } catch (error) {
        watch.failure = { error };
        throw error;
      }
      watch.onMoved();
    },
  };
}

function streamed({ stream, sizeBytes, mediaType }: StreamedBody): EncodedBody {
  stream.on('error', () => {}); // a file that cannot be read ends the request; `BodyWatch` has the error
  return { headers: { 'content-type': mediaType, 'content-length': String(sizeBytes) }, data: stream };
}

interface Body {
  readonly value: unknown;
  readonly isJson: boolean;
}

function parseBody(text: string): Body {
  try {
    return { value: JSON.parse(text, hasLongNumber.test(text) ? exactInteger : undefined), isJson: true };
  } catch {
    return { value: text, isJson: false };
  }
}

const hasLongNumber = /\d{16}/;

const max64BitDigits = 20;

/** Returns the digits of an integer of up to 64 bits that a JavaScript number has rounded. */
function exactInteger(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  const source = context?.source ?? '';
  if (!/^-?\d+$/.test(source) || source.length > max64BitDigits) return value;
  return BigInt(source) === BigInt(value) ? value : source;
}

/** Calls whose success may be plain text, because nobody needs a field of the response. */
const answeredInWords = endpointsWhere(({ needsNoField }) => needsNoField === true);

/** True for words such as `Chunk uploaded successfully`. False for HTML and for JSON that was cut. */
const isPlainText = ({ value }: Body, { header }: Answer) =>
  typeof value === 'string' && !/^\s*[[{<]/.test(value) && !/\bhtml\b/i.test(header('content-type') ?? '');

function decode<Output>(call: Call<never, Output>, body: Body, answer: Answer): Output {
  try {
    return call.decode(body.value, answer);
  } catch (error) {
    if (error instanceof NotFinishedError) throw error;
    // A call that needs nothing of its answer has succeeded by the status.
    if (answeredInWords.has(call.endpoint) && isPlainText(body, answer)) {
      try {
        return call.decode(undefined);
      } catch {
        // The call needs a field.
      }
    }
    // JSON of another shape still comes from the platform. Anything that is not JSON was cut on its way, or comes from something in between.
    const [code, reason] = body.isJson
      ? (['unexpected_answer', decodingProblem(error)] as const)
      : (['broken_answer', 'with a body that is not JSON'] as const);
    throw new PlatformError(call.endpoint, code, `answered ${answer.status} ${reason}`, {
      platformStatus: answer.status,
      requestId: answer.header('x-request-id') ?? null,
    });
  }
}

function answerError(
  endpoint: string,
  profile: WireProfile,
  answer: Answer,
  body: unknown,
  secrets: readonly string[],
) {
  const facts = {
    platformStatus: answer.status,
    retryAfterMs: parseRetryAfter(answer.header('retry-after'), answer.header('date')),
  };
  if (answer.status < 400) {
    const advice = "; set PLATFORM_URL to the platform's final address";
    return redirectRefused(endpoint, answer.status, facts, advice);
  }
  const error = profile.decodeError(answer.status, body);
  if (error.code === null && isIntermediaryStatus(answer.status))
    return intermediaryRefused(endpoint, answer.status, facts);
  const message = error.message === null ? '' : `: ${scrub(error.message, secrets).slice(0, 500)}`;
  return new PlatformError(endpoint, error.code ?? 'unknown_error', `answered ${answer.status}${message}`, {
    ...facts,
    requestId: error.requestId ?? answer.header('x-request-id') ?? null,
    details: error.details.map((detail) => ({ path: detail.path, message: scrub(detail.message, secrets) })),
    expectedPart: error.expectedPart,
  });
}

/** Takes secrets out of foreign text. */
function scrub(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret !== '')
    .flatMap((secret) => [secret, encodeURIComponent(secret)])
    .reduce((clean, secret) => clean.replaceAll(secret, '[redacted]'), text);
}

const maxIssues = 5;
/** A key that is data, and no name of a field, is not shown. */
const shown = (part: PropertyKey) => (/^\w{1,40}$/.test(String(part)) ? String(part) : '*');

/** Says what a decoder did not find: the path and the expected type. Quotes no value of the body, because it may hold a token. */
function decodingProblem(error: unknown): string {
  if (error instanceof z.core.$ZodError) {
    const issues = error.issues.slice(0, maxIssues).map(({ path, code, ...more }) => {
      const expected =
        'expected' in more
          ? `must be ${String(more.expected)}`
          : 'values' in more
            ? `is none of ${more.values.map(String).join(', ')}`
            : `is not valid (${code})`;
      return `${path.map(shown).join('.') || 'the body'} ${expected}`;
    });
    return `with a body that the wire profile cannot read: ${issues.join('; ')}`;
  }
  // A message may quote a value: the `in` operator's does.
  return `and the decoder of the wire profile threw ${error instanceof Error ? error.name : typeof error}`;
}
