/** `npm run bench:child-start`: what confinement adds to the start of a child process, load of GDAL included, in turns in one run. `-- --runs 20`. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ChildPool, establishConfinement, runInChild, type Confinement } from '../src/raster/index.ts';

const { values } = parseArgs({ options: { runs: { type: 'string', default: '20' } } });
const runs = Number(values.runs);
/** What a step's start may grow by. */
const goalMs = 60;

const module = new URL('../src/raster/child/probe-job.ts', import.meta.url);
const folder = await mkdtemp(join(tmpdir(), 'marketplace-app-kit-bench-'));
const ways = {
  confined: await establishConfinement({ mode: 'required', warn: () => {} }),
  unconfined: await establishConfinement({ mode: 'none', warn: () => {} }),
};
const timesMs: Record<string, number[]> = { unconfined: [], confined: [], 'confined, kept': [] };
const pool = new ChildPool({ confinement: ways.confined, folder: join(folder, 'pool') });

async function time(name: string, work: () => Promise<unknown>): Promise<void> {
  const from = performance.now();
  await work();
  timesMs[name]?.push(performance.now() - from);
}

const start = (confinement: Confinement) =>
  runInChild({ module, input: null, workFolder: join(folder, 'work'), confinement });
const reuse = () => pool.run({ module, input: null, owner: 'bench' });
await Promise.all([start(ways.confined), start(ways.unconfined)]);
await reuse();
for (let i = 0; i < runs; i++) {
  await time('unconfined', () => start(ways.unconfined));
  await time('confined', () => start(ways.confined));
  await time('confined, kept', reuse);
}
await pool.close();
await rm(folder, { recursive: true, force: true });

const median = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
for (const [name, times] of Object.entries(timesMs))
  console.log(
    `${name.padEnd(16)} median ${median(times).toFixed(0).padStart(4)} ms   ${Math.min(...times).toFixed(0)} to ${Math.max(...times).toFixed(0)} ms`,
  );
const addedMs = median(timesMs['confined'] ?? []) - median(timesMs['unconfined'] ?? []);
console.log(
  `\nconfinement adds ${addedMs.toFixed(0)} ms to a start (ratio ${(median(timesMs['confined'] ?? []) / median(timesMs['unconfined'] ?? [])).toFixed(2)}); at most ${goalMs} ms: ${addedMs <= goalMs ? 'met' : 'MISSED'}`,
);
process.exitCode = addedMs <= goalMs ? 0 : 1;
