import { randomUUID } from 'node:crypto';
import { createServer, STATUS_CODES, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { KitError } from '../contract/index.ts';
import { codeOf } from '../files/index.ts';
import type { TlsFiles } from './settings.ts';

const idleConnectionMs = 300_000;
/** Longer than clients and proxies keep one, who so end it first: what a busy server ends may carry a request by then. */
const keptBetweenRequestsMs = 75_000;
const lookForSlowMs = 5_000;

export interface Served {
  /** `http://host:port` or `https://host:port`, with the port that was really taken. */
  readonly url: string;
  /** Keeps no process from ending. */
  unref(): void;
  /** Takes no new connections, lets answers under way end, and cuts what is left after `graceMs`. */
  close(graceMs?: number): Promise<void>;
}

export interface ServeOptions {
  readonly host: string;
  readonly port: number;
  /** The setting that chose the port, for an error. */
  readonly portSetting: string;
  /** A request that has not come whole by then is answered 408. Default 0, none: uploads over slow lines take as long as they take. */
  readonly requestTimeoutMs?: number;
  /** Speaks TLS by this certificate. Default: none, plain HTTP. */
  readonly tls?: TlsFiles | null;
}

/** Listens. Rejects with a clear `KitError` where the port is taken or not allowed. */
export async function serve(handler: RequestListener, address: ServeOptions): Promise<Served> {
  const options = { connectionsCheckingInterval: lookForSlowMs, requireHostHeader: false };
  const server: Server = address.tls
    ? createTlsServer({ ...options, ...readTls(address.tls) }, handler)
    : createServer(options, handler);
  answerMalformed(server);
  server.requestTimeout = address.requestTimeoutMs ?? 0;
  // A connection on which nothing moves is cut.
  server.timeout = idleConnectionMs;
  server.keepAliveTimeout = keptBetweenRequestsMs;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(listenError(error.code ?? error.message, address, error)),
    );
    server.listen(address.port, address.host, resolve);
  });
  // A server that listens on a port has this address.
  const { port } = server.address() as AddressInfo;
  return {
    url: urlOf(address.host, port, address.tls ? 'https' : 'http'),
    unref() {
      server.unref();
      // Nor do connections that are kept between requests.
      server.on('connection', (socket) => void socket.unref());
    },
    close: (graceMs = 2_000) =>
      new Promise((resolve) => {
        const cut = setTimeout(() => server.closeAllConnections(), graceMs);
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}

/** Address of a server on this machine. One that listens on every address has the loopback's. */
export function urlOf(host: string, port: number, scheme: 'http' | 'https' = 'http'): string {
  const shown = host.includes(':') ? `[${host}]` : host;
  return `${scheme}://${shown === '0.0.0.0' ? '127.0.0.1' : shown}:${port}`;
}

/** Throws `KitError` for a file that cannot be read. */
function readTls({ certFile, keyFile }: TlsFiles): { cert: Buffer; key: Buffer } {
  const read = (setting: string, path: string) => {
    try {
      return readFileSync(path);
    } catch (cause) {
      throw new KitError('bad_configuration', `${setting}=${path} cannot be read (${codeOf(cause)})`, { cause });
    }
  };
  return { cert: read('TLS_CERT', certFile), key: read('TLS_KEY', keyFile) };
}

/** Statuses that Node itself answers with, by the code of its error. */
const malformed: Readonly<Record<string, { status: number; code: string }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, code: 'headers_too_large' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, code: 'request_timeout' },
};

/** Gives the refusals of Node itself the form of all others: the error body, and a request id. */
function answerMalformed(server: Server): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    const { status, code } = malformed[error.code ?? ''] ?? { status: 400, code: 'malformed_request' };
    const requestId = randomUUID();
    const body = JSON.stringify({ error: STATUS_CODES[status], code, requestId });
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8\r\nX-Request-Id: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  });
  server.on('checkExpectation', (_req, res: ServerResponse) => {
    const requestId = randomUUID();
    const body = { error: STATUS_CODES[417], code: 'expectation_failed', requestId };
    res.writeHead(417, { 'Content-Type': 'application/json; charset=utf-8', 'X-Request-Id': requestId });
    res.end(JSON.stringify(body));
  });
}

/** Error for a server that cannot listen, by the code of the system's error. */
export function listenError(
  code: string,
  { host, port, portSetting }: { host: string; port: number; portSetting: string },
  cause?: unknown,
): KitError {
  const reasons: Record<string, string> = {
    EADDRINUSE: `port ${port} of ${host} is in use: stop what uses it, or set ${portSetting} (0 takes any free port)`,
    EACCES: `port ${port} needs more rights: set ${portSetting} to a port above 1023`,
    EADDRNOTAVAIL: `this machine has no address ${host}: set HOST to one of its own, such as 127.0.0.1`,
  };
  return new KitError('cannot_listen', reasons[code] ?? `cannot listen on ${host}:${port} (${code})`, { cause });
}
