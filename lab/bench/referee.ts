/**
 * `npm run lab -- lab/bench/referee.ts`: what the referee in front of a platform costs, beside a proxy that only pipes: the CPU of
 * the process that chunks of 64 MiB pass. `--gibibytes 10 --rounds 3`.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { startProcess } from './processes.ts';
import { tell, type BenchRow } from './rows.ts';
import { form, send } from './upload-servers.ts';

const { values } = parseArgs({
  options: { gibibytes: { type: 'string', default: '10' }, rounds: { type: 'string', default: '3' } },
});
const chunkBytes = 64 * 1024 * 1024;
const chunks = (Number(values.gibibytes) * 1024 ** 3) / chunkBytes;

/** A platform that takes every chunk and keeps none. */
const platform = createServer((req, res) => {
  req.resume().once('end', () => res.writeHead(200, { 'content-type': 'application/json' }).end('{"partNumber":1}'));
}).listen(0, '127.0.0.1');
await once(platform, 'listening');
const upstream = `http://127.0.0.1:${(platform.address() as AddressInfo).port}`;
const chunk = randomBytes(chunkBytes);

const ways = {
  referee: () =>
    startProcess(
      new URL('../../src/commands/certify.ts', import.meta.url),
      'referee',
      ['--upstream', upstream, '--port', '0'],
      {},
    ),
  'a proxy of pipes': () => startProcess(new URL('./peers/proxy.mjs', import.meta.url), 'peer', [upstream], {}),
} as const;
type Way = keyof typeof ways;
const results = new Map<Way, { cpuSeconds: number; peakMiB: number }[]>();
for (let round = 0; round < Number(values.rounds); round++)
  for (const way of Object.keys(ways) as Way[]) {
    const server = await ways[way]();
    const before = server.cpuSeconds();
    for (let n = 1; n <= chunks; n++) {
      const { headers, parts } = form({ uploadId: 'bench', key: 'bench/key', partNumber: String(n) }, chunk);
      await send('POST', `${server.url}/public/external-app/file/bench-token/upload/chunk`, headers, parts);
    }
    const result = { cpuSeconds: server.cpuSeconds() - before, peakMiB: server.peakMiB() };
    results.set(way, [...(results.get(way) ?? []), result]);
    console.error(`${way}: ${result.cpuSeconds.toFixed(2)} CPU s, ${result.peakMiB.toFixed(0)} MiB`);
    await server.stop();
  }
platform.close();
const of = (way: Way, pick: (result: { cpuSeconds: number; peakMiB: number }) => number) =>
  (results.get(way) ?? []).map(pick);
const what = `${values.gibibytes} GiB in chunks of 64 MiB pass the referee`;
const rows: BenchRow[] = [
  {
    what: `${what}: the CPU of its process`,
    unit: 's',
    ours: of('referee', ({ cpuSeconds }) => cpuSeconds),
    peer: { name: 'a proxy of pipes', values: of('a proxy of pipes', ({ cpuSeconds }) => cpuSeconds) },
    goal: { most: 1.1 },
  },
  {
    what: `${what}: its peak memory`,
    unit: 'MiB',
    ours: of('referee', ({ peakMiB }) => peakMiB),
    peer: null,
    goal: { most: 200 },
  },
];
tell(rows);
