/** `npm run lab -- lab/bench/child-start.ts`: how long a child process takes until its job has run, load of GDAL included, confined, not confined and kept, in turns in one run. `--runs 20`. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { tell } from './rows.ts';
import { ChildPool, establishConfinement, runInChild, type Confinement } from '../../src/child/index.ts';

const { values } = parseArgs({ options: { runs: { type: 'string', default: '20' } } });
const runs = Number(values.runs);
/** Longest accepted time until a step begins, in milliseconds. */
const goalMs = 250;

const module = new URL('./empty-job.ts', import.meta.url);
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

const of = (name: string) => timesMs[name] ?? [];
const what = 'a confined child process with GDAL, until its job has run';
tell([
  { what: `${what}: a fresh one`, unit: 'ms', ours: of('confined'), peer: null, goal: { most: goalMs } },
  {
    what: `${what}: a fresh one, beside one that is not confined`,
    unit: 'ms',
    ours: of('confined'),
    peer: { name: 'unconfined', values: of('unconfined') },
    goal: { most: 1.2 },
  },
  { what: `${what}: one that was kept`, unit: 'ms', ours: of('confined, kept'), peer: null, goal: { most: goalMs } },
]);
