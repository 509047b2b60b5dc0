/** Attacks by requests on a sandbox and an app of this process: large answers, requests that never end, foreign host names. */
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import definition from '../../src/my-app/app.ts';
import { startApp, startSandbox } from '../../src/testing/index.ts';
import { openLaunch } from '../../src/testing/app-session.ts';
import type { Attack } from './attack.ts';

type Platform = Awaited<ReturnType<typeof startSandbox>>;
type App = Awaited<ReturnType<typeof startApp>>;

/** A plain call beside an attack is answered within this time. */
const plainCallMs = 1_000;
const maxAnswerBytes = 50_000;

async function withServers<T>(work: (servers: { platform: Platform; app: App }) => Promise<T>): Promise<T> {
  const platform = await startSandbox();
  const app = await startApp(definition, { platform, env: { LOG_LEVEL: 'silent' } });
  try {
    return await work({ platform, app });
  } finally {
    await app.close();
    await platform.close();
  }
}

async function longestPlainCall(url: string, during: Promise<unknown>): Promise<number> {
  let longest = 0;
  const state = { isOver: false };
  void during.finally(() => (state.isOver = true));
  while (!state.isOver) {
    const began = performance.now();
    await fetch(`${url}/health`).then((answer) => answer.arrayBuffer());
    longest = Math.max(longest, performance.now() - began);
    await sleep(20);
  }
  return longest;
}

const late = (ms: number) => (ms > plainCallMs ? `a plain call beside it took ${Math.round(ms)} ms` : null);

/** Sockets that send `head`, and a byte each quarter of a second. */
function dribble(port: number, head: string, count: number): Socket[] {
  return Array.from({ length: count }, () => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {}).write(head);
    const timer = setInterval(() => socket.write('a'), 250);
    return socket.once('close', () => clearInterval(timer));
  });
}

/** Code of a thread that opens a thousand event streams and reads them. */
const holdStreams = `
const { workerData: { port, host } } = require('node:worker_threads');
const { connect } = require('node:net');
for (let i = 0; i < 1000; i++) {
  const socket = connect(port, '127.0.0.1').on('error', () => {}).resume();
  socket.write('GET /events HTTP/1.1\\r\\nHost: ' + host + '\\r\\n\\r\\n');
}`;

const servers = (name: string, attack: Attack['attack'], isShort = true): Attack => ({
  ...{ group: 'requests', name, isShort, attack },
  control: () => withServers(async ({ platform }) => late(await longestPlainCall(platform.url, sleep(500)))),
});

/** Both servers go on answering while sockets are held open. */
const holdsSockets = (name: string, head: (host: string) => string, count: number) =>
  servers(
    name,
    () =>
      withServers(async ({ platform, app }) => {
        for (const { url } of [platform, app]) {
          const { port, host } = new URL(url);
          const sockets = dribble(Number(port), head(host), count);
          const reason = late(await longestPlainCall(url, sleep(3_000)));
          sockets.forEach((socket) => socket.destroy());
          if (reason !== null) return reason;
        }
        return null;
      }),
    false,
  );

export const onServers: readonly Attack[] = [
  servers('a search whose bbox has 200,000 wrong numbers', () =>
    withServers(async ({ platform }) => {
      const searched = fetch(`${platform.url}/public/stac/search`, {
        method: 'POST',
        headers: { 'X-API-KEY': platform.apiKey, 'Content-Type': 'application/json' },
        body: JSON.stringify({ bbox: Array(200_000).fill('x'), collections: ['a'], datetime: '../..' }),
      }).then((answer) => answer.text());
      const longest = await longestPlainCall(platform.url, searched);
      const { length } = await searched;
      return length > maxAnswerBytes ? `the answer has ${length} bytes` : late(longest);
    }),
  ),
  servers('parameters with 20,000 unknown names', () =>
    withServers(async ({ platform, app }) => {
      const { launchUrl } = await platform.launch(app.launchUrl);
      const session = await openLaunch(launchUrl);
      const parameters = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`p${i}`, 1]));
      const message = await session
        .startRun({ stepId: 'ndvi', parameters, input: { type: 'synthetic', size: 64 } })
        .then(
          () => 'it was accepted',
          (error: unknown) => (error instanceof Error ? error.message : ''),
        );
      return message.length > maxAnswerBytes ? `the answer has ${message.length} bytes` : null;
    }),
  ),
  servers('/metrics by a name that leads to this machine', () =>
    withServers(async ({ app }) => {
      const { port } = new URL(app.url);
      const status = await new Promise((resolve, reject) => {
        request({ host: '127.0.0.1', port, path: '/metrics', headers: { Host: 'evil.example' } }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        })
          .once('error', reject)
          .end();
      });
      return status === 404 ? null : `it is answered with ${String(status)}`;
    }),
  ),
  holdsSockets(
    '500 requests whose heads never end',
    (host) => `GET /health HTTP/1.1\r\nHost: ${host}\r\nX-Slow: `,
    500,
  ),
  holdsSockets(
    '300 bodies that never end',
    (host) =>
      `POST /public/stac/search HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n{`,
    300,
  ),
  servers(
    'a thousand event streams without a session',
    () =>
      withServers(async ({ platform }) => {
        const { port, host } = new URL(platform.url);
        // Another thread, so that only the server's own work delays the plain calls.
        const attacker = new Worker(holdStreams, { eval: true, workerData: { port: Number(port), host } });
        const longest = await longestPlainCall(platform.url, sleep(5_000));
        await attacker.terminate();
        return late(longest);
      }),
    false,
  ),
  servers(
    'bodies of a megabyte by callers without a key, 200 at once',
    () =>
      withServers(async ({ platform }) => {
        const before = process.memoryUsage().rss;
        const body = JSON.stringify({ bbox: [0, 0, 1, 1], ids: Array(90_000).fill('x') });
        const calls = Array.from({ length: 200 }, () =>
          fetch(`${platform.url}/public/stac/search`, {
            method: 'POST',
            headers: { 'Content-Type': 'application/json' },
            body,
          }).then(
            (answer) => answer.arrayBuffer(),
            () => null,
          ),
        );
        const longest = await longestPlainCall(platform.url, Promise.all(calls));
        const more = process.memoryUsage().rss - before;
        return more > 500e6 ? `memory grew by ${Math.round(more / 1e6)} MB` : late(longest);
      }),
    false,
  ),
];
