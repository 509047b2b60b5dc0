import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/**
 * Treatment of a call. `pass`: none. `cut`: its connection is cut. `stall`: its answer never comes. `truncate`: its answer
 * is cut short. `garbage`: its answer is another's. `silent`: nobody is there.
 */
export type ProxyMode = 'pass' | 'cut' | 'stall' | 'truncate' | 'garbage' | 'silent';

/** Stands between the app and the platform. */
export interface Proxy {
  readonly url: string;
  /** Calls that met something else than `pass`. */
  readonly hit: number;
  /** From now on. What hangs from before is cut. */
  become(mode: ProxyMode): void;
  close(): Promise<void>;
}

const page = '<html><body>Please sign in to the network.</body></html>';

export async function startProxy(target: string): Promise<Proxy> {
  const upstream = new URL(target);
  const hanging = new Set<Socket>();
  let mode: ProxyMode = 'pass';
  let hit = 0;

  const server = createServer((req, res) => {
    const now = mode;
    if (now !== 'pass') hit += 1;
    if (now === 'cut') return void req.socket.destroy();
    if (now === 'silent') return void hanging.add(req.socket);
    if (now === 'garbage')
      return void res.writeHead(200, { 'content-type': 'text/html', 'content-length': page.length }).end(page);
    forward(req, res, now);
  });
  server.requestTimeout = 0;

  function forward(req: IncomingMessage, res: ServerResponse, how: ProxyMode): void {
    const sent = request(
      {
        host: upstream.hostname,
        port: upstream.port,
        method: req.method,
        path: req.url,
        headers: { ...req.headers, connection: 'close' },
      },
      (answer) => {
        // The platform was killed in the middle of its answer: without this the caller would wait for the rest.
        answer.once('error', () => req.socket.destroy());
        if (how === 'stall') {
          answer.resume();
          // It came when the trouble was over: cut, as those that hung.
          return mode === how ? void hanging.add(req.socket) : void req.socket.destroy();
        }
        if (how === 'pass') {
          res.writeHead(answer.statusCode ?? 502, answer.headers);
          return void answer.pipe(res);
        }
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.once('end', () => {
          const whole = Buffer.concat(parts);
          const cut = whole.subarray(0, Math.floor(whole.length / 2));
          res
            .writeHead(answer.statusCode ?? 502, { 'content-type': 'application/json', 'content-length': cut.length })
            .end(cut);
        });
      },
    );
    sent.once('error', () => req.socket.destroy());
    // A caller that goes leaves a call of its own half done, as without a proxy.
    res.once('close', () => sent.destroy());
    req.pipe(sent);
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get hit() {
      return hit;
    },
    become(next) {
      mode = next;
      for (const socket of hanging) socket.destroy();
      hanging.clear();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
