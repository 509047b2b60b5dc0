/**
 * `npm run lab -- lab/bench/upload.ts`: what a server does for an upload, beside `@tus/server`, multer and `cp`; what sending
 * costs the app, beside `fetch`; the app's upload into the sandbox, end to end; and what it would cost to hold a completed upload through a power cut. `--mebibytes 1024 --rounds 3 --end-to-end 1024,10240`.
 */
import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { randomBytes } from 'node:crypto';
import { tell, type BenchRow } from './rows.ts';
import { benchUpload } from './upload-app.ts';
import { benchClient } from './upload-client.ts';
import { benchServer, ways, type ServerResult, type Way } from './upload-servers.ts';

const { values } = parseArgs({
  options: {
    mebibytes: { type: 'string', default: '1024' },
    rounds: { type: 'string', default: '3' },
    'end-to-end': { type: 'string', default: '1024,10240' },
    folder: { type: 'string', default: 'data/bench' },
  },
});
const [mebibytes, rounds] = [Number(values.mebibytes), Number(values.rounds)];
const size = (mib: number) => (mib % 1024 === 0 ? `${mib / 1024} GiB` : `${mib} MiB`);
await mkdir(values.folder, { recursive: true });

const results = Object.fromEntries(ways.map((way) => [way, []])) as unknown as Record<Way, ServerResult[]>;
// The first start compiles what the later ones find.
await benchServer('sandbox', 64, values.folder);
for (let round = 0; round < rounds; round++)
  for (const way of ways) {
    const result = await benchServer(way, mebibytes, values.folder);
    results[way].push(result);
    console.error(`${way}: ${(mebibytes / result.seconds).toFixed(0)} MiB/s, ${result.cpuSeconds.toFixed(2)} CPU s`);
  }
const of = (way: Way, pick: (result: ServerResult) => number) => results[way].map(pick);
const speed = ({ seconds }: ServerResult) => mebibytes / seconds;
const cpu = ({ cpuSeconds }: ServerResult) => cpuSeconds;
const work = `${size(mebibytes)} into the sandbox in parts of 64 MiB`;
const rows: BenchRow[] = [
  ...(['@tus/server', 'multer'] as const).map((name): BenchRow => ({
    what: `${work}: the CPU of the server's process`,
    unit: 's',
    ours: of('sandbox', cpu),
    peer: { name, values: of(name, cpu) },
    goal: { most: 1 },
  })),
  ...(['@tus/server', 'multer'] as const).map((name): BenchRow => ({
    what: `${work}: throughput`,
    unit: 'MiB/s',
    ours: of('sandbox', speed),
    peer: { name, values: of(name, speed) },
    goal: { least: 1 },
  })),
  {
    what: `${work}: throughput, beside a copy of the file`,
    unit: 'MiB/s',
    ours: of('sandbox', speed),
    peer: { name: 'cp', values: of('cp', speed) },
    goal: { least: 0.5 },
  },
  {
    what: `${work}: the server's peak memory`,
    unit: 'MiB',
    ours: of('sandbox', ({ peakMiB }) => peakMiB),
    peer: null,
    goal: { most: 130 },
  },
];

const sent = await benchClient(mebibytes, rounds, values.folder);
rows.push({
  what: `${size(mebibytes)} sent by the app's uploader in parts of 64 MiB: the sender's CPU`,
  unit: 's',
  ours: sent.ours,
  peer: { name: 'fetch of FormData', values: sent.fetch },
  goal: { most: 1.5 },
});

for (const mib of values['end-to-end'].split(',').filter(Boolean).map(Number)) {
  const { uploadSeconds, cpSeconds, completeMs, appPeakMiB, sandboxPeakMiB } = await benchUpload(mib, values.folder);
  const what = `${size(mib)} from the app to a file that can be downloaded`;
  rows.push(
    {
      what: `${what}: time`,
      unit: 's',
      ours: [uploadSeconds],
      peer: { name: 'cp', values: [cpSeconds] },
      goal: { most: 10 },
    },
    { what: `${what}: complete`, unit: 'ms', ours: [completeMs], peer: null, goal: { most: 1_000 } },
    { what: `${what}: the app's peak memory`, unit: 'MiB', ours: [appPeakMiB], peer: null, goal: { most: 200 } },
    {
      what: `${what}: the sandbox's peak memory`,
      unit: 'MiB',
      ours: [sandboxPeakMiB],
      peer: null,
      goal: { most: 160 },
    },
  );
}
// Extra time of completing if it waited for the disk. docs/reliability.md explains why it does not.
const path = join(values.folder, 'sync');
const file = await open(path, 'w');
const bytes = randomBytes(1024 * 1024);
for (let i = 0; i < mebibytes; i++) await file.write(bytes);
const began = performance.now();
await file.datasync();
rows.push({
  what: `fdatasync of ${size(mebibytes)} that was just written, which no acknowledgement waits for`,
  unit: 's',
  ours: [(performance.now() - began) / 1000],
  peer: null,
  goal: { most: 1 },
});
await file.close();
await rm(path);
tell(rows);
