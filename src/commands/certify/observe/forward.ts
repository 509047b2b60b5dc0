import {
  request as requestHttp,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { request as requestHttps } from 'node:https';
import { pipeline } from 'node:stream';
import { Lateness } from '../../../sandbox/referee/lateness.ts';
import { BodyCopy, type BodyEnds } from './body-copy.ts';

/** A call that has passed. One thread sends it to another. Times are epoch milliseconds. */
export interface PassedCall {
  readonly at: number;
  readonly endedAt: number;
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly request: BodyEnds;
  /** False if the platform did not get the whole request. */
  readonly isRequestWhole: boolean;
  /** Null if the platform did not answer. */
  readonly answer: { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: BodyEnds } | null;
  /** The whole answer was handed to a client that was still connected. */
  readonly delivered: boolean;
  /** Delays of this process in the ten seconds, and the half second, before the call. */
  readonly lateMs: number;
  readonly heldMs: number;
}

export interface ForwardOptions {
  /** Called when a request begins. */
  readonly onBegun?: () => void;
  /** Receives each call when it is over. */
  readonly onPassed: (call: PassedCall) => void;
  /** Epoch milliseconds. Default: the machine's clock when the process started, and the time since then, which no correction moves back. */
  readonly now?: () => number;
}

const steadyNow = () => Math.round(performance.timeOrigin + performance.now());

/** The same as in the sandbox's trace. */
const [lookedBackMs, heldWithinMs] = [10_000, 500];
/** Largest JSON body that is read, in bytes. It is the limit of the contract. */
const maxBodyBytes = 1024 * 1024;
/** Headers of a connection, which end at each hop (RFC 9110, 7.6.1). */
const ofConnection = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']);

/**
 * Forwards each request to a platform, and its answer back. Changes no byte of a body and no header, except `Host` and the headers of a
 * connection. Opens a new connection for each call, so that the proxy itself never loses one. If the platform cuts a connection, the proxy
 * cuts the client's. If there is no connection, it answers 502.
 */
export function forwardTo(
  upstream: URL,
  { onBegun = () => {}, onPassed, now = steadyNow }: ForwardOptions,
): { readonly handler: RequestListener; readonly close: () => void } {
  const send = upstream.protocol === 'https:' ? requestHttps : requestHttp;
  const base = upstream.pathname.replace(/\/+$/, '');
  const lateness = new Lateness();
  const handler: RequestListener = (req, res) => {
    onBegun();
    const [at, started] = [now(), performance.now()];
    const [lateMs, heldMs] = [lateness.within(lookedBackMs), lateness.within(heldWithinMs)].map(Math.round);
    const hasChunks = req.headers['transfer-encoding'] !== undefined;
    const hasBody = hasChunks || req.headers['content-length'] !== undefined;
    // Without a length, Node would send an empty body in chunks, which not every platform takes.
    const isEmpty = !hasBody && /^(POST|PUT|PATCH)$/.test(req.method ?? '');
    const isFile = /^(multipart\/|application\/octet-stream)/i.test(req.headers['content-type'] ?? '');
    const [sent, received] = [new BodyCopy(isFile ? undefined : maxBodyBytes), new BodyCopy(maxBodyBytes)];
    let head: IncomingMessage | null = null;
    const out = send({
      protocol: upstream.protocol,
      hostname: upstream.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: upstream.port,
      method: req.method,
      path: base + req.url,
      agent: false,
      headers: [
        ...['Host', upstream.host, ...kept(req.rawHeaders, ['host'])],
        ...(hasChunks ? ['Transfer-Encoding', 'chunked'] : isEmpty ? ['Content-Length', '0'] : []),
      ],
    });
    out.once('response', (answer) => {
      head = answer;
      res.sendDate = false;
      try {
        res.writeHead(answer.statusCode ?? 502, answer.statusMessage, kept(answer.rawHeaders));
      } catch {
        // Node does not write a head that no client could read.
        return void req.socket.destroy();
      }
      answer.on('data', (bytes: Buffer) => received.add(bytes));
      // If the answer ends early, so does the response.
      pipeline(answer, res, () => {});
    });
    let isConnected = false;
    let isRefused = false;
    out.once('socket', (socket) => socket.once('connect', () => (isConnected = true)));
    // A connection that the platform cut is cut here too: the app must see what it would see without the referee.
    out.on('error', (error) => {
      if (isConnected) return void req.socket.destroy();
      isRefused = true;
      refuse(res, upstream, error);
    });
    // Another protocol cannot be judged.
    out.once('upgrade', (_answer, socket) => {
      socket.destroy();
      req.socket.destroy();
    });
    if (req.headers.expect !== undefined) out.once('continue', () => res.writeContinue());
    // If the platform answers before it has read the request, nobody needs the rest.
    out.once('close', () => req.unpipe(out).resume());
    res.once('close', () => {
      if (!res.writableFinished) out.destroy();
      onPassed({
        ...{ at, endedAt: at + performance.now() - started, lateMs: lateMs ?? 0, heldMs: heldMs ?? 0 },
        ...{ method: req.method ?? '', url: req.url ?? '/', headers: req.headers, request: sent.ends() },
        isRequestWhole: req.complete && !isRefused,
        answer: head && { status: head.statusCode ?? 0, headers: head.headers, body: received.ends() },
        // A 502 of the proxy is no answer of the platform.
        delivered: res.writableFinished && !req.socket.readableEnded && !isRefused,
      });
    });
    req.on('data', (bytes: Buffer) => sent.add(bytes));
    req.once('error', (error) => out.destroy(error));
    if (hasBody) req.pipe(out);
    else out.end();
  };
  return { handler, close: () => lateness.stop() };
}

function refuse(res: ServerResponse, upstream: URL, error: Error): void {
  // An answer that has begun can only be cut, as it was cut here.
  if (res.headersSent) return void res.destroy();
  const body = {
    error: `the platform at ${upstream.origin} cannot be reached: ${error.message}`,
    code: 'upstream_unavailable',
  };
  res.writeHead(502, { 'Content-Type': 'application/json; charset=utf-8' }).end(JSON.stringify(body));
}

/** Names and values, one after the other, as Node has them. */
function kept(rawHeaders: readonly string[], without: readonly string[] = []): string[] {
  return rawHeaders.flatMap((name, i) => {
    if (i % 2 === 1) return [];
    const lower = name.toLowerCase();
    return ofConnection.has(lower) || without.includes(lower) ? [] : [name, rawHeaders[i + 1] ?? ''];
  });
}
