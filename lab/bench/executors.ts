/**
 * `npm run lab -- lab/bench/executors.ts`: what an executor elsewhere costs, and what tiles gain: a step on this machine, by processes of `deploy/executors`,
 * and by Slurm where `SLURM_CONF` names a cluster; eight tiles on one place and on two; the memory of a tile of 32,768 x 32,768 pixels. `--side 8192`.
 */
import { createServer } from 'node:http';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import express from 'express';
import gdal from 'gdal-async';
import { pino } from 'pino';
import { openDatabase } from '../../src/app/database.ts';
import { CommandEngine, type CommandTemplates } from '../../src/app/execution/command-engine.ts';
import { JobDesk } from '../../src/app/execution/job-desk.ts';
import { JobRecords } from '../../src/app/execution/job-records.ts';
import { RemoteExecutor } from '../../src/app/execution/remote-executor.ts';
import { createLocalExecutor } from '../../src/app/processing/local-executor.ts';
import { createStepHost, type StepHostOptions } from '../../src/app/processing/step-host.ts';
import type { StepExecutor } from '../../src/app/processing/step-executor.ts';
import { establishConfinement } from '../../src/child/index.ts';
import { kitFolder } from '../../src/files/index.ts';
import myApp from '../../src/my-app/app.ts';
import { tell, type BenchRow } from './rows.ts';

const { values } = parseArgs({
  options: { side: { type: 'string', default: '8192' }, rounds: { type: 'string', default: '3' } },
});
const [side, rounds] = [Number(values.side), Number(values.rounds)];
const tileMemoryMib = 400;
const folder = await mkdtemp(join(tmpdir(), 'marketplace-app-kit-bench-'));
const inputDir = join(folder, 'inputs');
const confinement = await establishConfinement({ mode: 'required', warn: () => {} });
const never = new AbortController().signal;

/** A raster of heights that repeat, so that it is made quickly. */
function makeHeights(path: string, size: number, rows = size): void {
  const dataset = gdal.drivers.get('GTiff').create(path, size, size, 1, 'Int16', ['TILED=YES', 'SPARSE_OK=YES']);
  dataset.geoTransform = [500_000, 10, 0, 5_000_000, 0, -10];
  dataset.srs = gdal.SpatialReference.fromEPSG(32_633);
  const strip = Int16Array.from(
    { length: size * 256 },
    (_, i) => 500 + 200 * Math.sin((i % size) / 50) + ((i * 7_919) % 23),
  );
  for (let y = 0; y < rows; y += 256) dataset.bands.get(1).pixels.write(0, y, size, Math.min(256, size - y), strip);
  dataset.close();
}

async function run(
  stepId: string,
  input: Parameters<ReturnType<typeof createStepHost>['run']>[0]['input'],
  size: number | null,
  options: Partial<StepHostOptions>,
) {
  const host = createStepHost({
    definition: myApp,
    inputDir,
    confinement,
    concurrency: 1,
    platformInput: { check: () => Promise.reject(new Error('none')), fetch: () => Promise.reject(new Error('none')) },
    limits: { timeoutMs: 3_600_000, memoryBytes: 8 * 2 ** 30 },
    ...options,
  });
  const workFolder = join(folder, 'work');
  const began = performance.now();
  let tilesDone = began;
  const { usage } = await host.run(
    {
      ...{ owner: 'bench', stepId, stepVersion: host.find(stepId).version, parameters: {}, input, workFolder },
      ...{ grid: size === null ? null : { width: size, height: size }, run: { id: 'bench', claim: 1 } },
    },
    {
      signal: never,
      onProgress: (_fraction, _note, tiles) => {
        if (tiles && /^d+$/.test(tiles) && tilesDone === began) tilesDone = performance.now();
      },
    },
  );
  const seconds = (performance.now() - began) / 1_000;
  await rm(workFolder, { recursive: true });
  return { seconds, tileSeconds: (tilesDone - began) / 1_000, usage };
}

async function startRemote(name: string, environment: NodeJS.ProcessEnv) {
  const database = await openDatabase({ dataDir: folder, databaseUrl: null });
  const records = new JobRecords(database);
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const desk = new JobDesk(records, url);
  server.on('request', express().use(desk.routes));
  const templates = JSON.parse(await readFile(kitFolder(`deploy/executors/${name}.json`), 'utf8')) as CommandTemplates;
  const engine = new CommandEngine({ ...templates, pollSeconds: 1 }, { ...process.env, ...environment });
  const log = pino({ level: 'warn' });
  const executor = new RemoteExecutor({ engine, desk, records, addresses: [url], log });
  const close = async () => {
    await executor.close();
    server.closeAllConnections();
    server.close();
    await database.destroy();
  };
  return { executor, close };
}

const rows: BenchRow[] = [];
try {
  const { mkdir } = await import('node:fs/promises');
  await mkdir(inputDir);
  makeHeights(join(inputDir, 'heights.tif'), side);
  const heights = { type: 'local', path: 'heights.tif' } as const;
  const small = { type: 'synthetic', size: 64 } as const;
  const repeated = async (work: () => Promise<number>) => {
    const found: number[] = [];
    for (let i = 0; i < rounds; i++) found.push(await work());
    return found;
  };

  const local = createLocalExecutor({ module: myApp.module, confinement });
  const ofSmall = (executor: StepExecutor) =>
    repeated(async () => (await run('hillshade', small, null, { executor })).seconds);
  const here = await ofSmall(local);
  const engines: [string, string, NodeJS.ProcessEnv][] = [
    ['processes of this machine', 'processes', { JOBS_FOLDER: join(folder, 'jobs') }],
    ...(process.env['SLURM_CONF'] ? [['Slurm', 'slurm', {}] as [string, string, NodeJS.ProcessEnv]] : []),
  ];
  for (const [title, name, environment] of engines) {
    const { executor, close } = await startRemote(name, environment);
    try {
      const there = await ofSmall(executor);
      rows.push({
        what: `what ${title} add to a small step`,
        unit: 's',
        ours: there.map((seconds, round) => seconds - (here[round] ?? NaN)),
        peer: null,
        goal: { most: name === 'slurm' ? 5 : 2.5 },
      });
      const tilePixels = (side * side) / 8.5;
      const whole = await repeated(
        async () => (await run('slope', heights, side, { executor, tilePixels, concurrency: 2 })).seconds,
      );
      const alone = await repeated(
        async () => (await run('slope', heights, side, { tilePixels, concurrency: 2 })).seconds,
      );
      rows.push({
        what: `slope on ${side} x ${side} in tiles on two places of ${title}`,
        unit: 's',
        ours: whole,
        peer: { name: 'this machine', values: alone },
        goal: { most: 1.5 },
      });
    } finally {
      await close();
    }
  }

  const tilePixels = (side * side) / 7.9;
  const onPlaces = async (concurrency: number) => {
    const found = [];
    for (let i = 0; i < rounds; i++) found.push(await run('slope', heights, side, { tilePixels, concurrency }));
    return found;
  };
  const [one, two] = [await onPlaces(1), await onPlaces(2)];
  const inOnePiece = await repeated(async () => (await run('slope', heights, null, {})).seconds);
  const secondsOf = (found: typeof one) => found.map(({ seconds }) => seconds);
  const tilesOf = (found: typeof one) => found.map(({ tileSeconds }) => tileSeconds);
  rows.push(
    {
      what: `eight tiles of slope on ${side} x ${side}, on two places`,
      unit: 's',
      ours: tilesOf(two),
      peer: { name: 'one place', values: tilesOf(one) },
      goal: { most: 0.6 },
    },
    {
      what: `the whole run in eight tiles on two places`,
      unit: 's',
      ours: secondsOf(two),
      peer: { name: 'one place', values: secondsOf(one) },
      goal: { most: 1 },
    },
    {
      what: `the whole run in eight tiles on two places`,
      unit: 's',
      ours: secondsOf(two),
      peer: { name: 'in one piece', values: inOnePiece },
      goal: { most: 1 },
    },
  );

  makeHeights(join(inputDir, 'large.tif'), 32_768, 4_096);
  let peak = 0;
  const counted = createLocalExecutor({ module: myApp.module, confinement });
  const ended = new Error('enough tiles');
  const twoTiles: StepExecutor = {
    run: async (task, options) => {
      if (task.tile?.type !== 'part' || task.tile.number > 1) throw ended;
      const executed = await counted.run(task, options);
      peak = Math.max(peak, executed.usage.peakMemoryBytes);
      return executed;
    },
    close: async () => {},
  };
  await run('slope', { type: 'local', path: 'large.tif' }, 32_768, { executor: twoTiles, tilePixels: 2 ** 26 }).catch(
    (error: unknown) => {
      if (error !== ended) throw error;
    },
  );
  rows.push({
    what: 'memory of a tile of slope on 32,768 x 32,768',
    unit: 'MiB',
    ours: [peak / 2 ** 20],
    peer: null,
    goal: { most: tileMemoryMib },
  });
} finally {
  await rm(folder, { recursive: true, force: true });
}
tell(rows);
