/**
 * `npm run lab -- lab/bench/steps.ts`: each step beside GDAL's own program for the same output, in turn in one run, on the same scene. A step's
 * time is that of the host: its process with its start, what it reads, writes, checks and sums up. Exit 1 where a goal is missed.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { createStepHost } from '../../src/app/processing/step-host.ts';
import type { RunInput } from '../../src/app/processing/run-input.ts';
import type { StepParameters } from '../../src/app/processing/step-parameters.ts';
import { confine } from '../../src/commands/confine.ts';
import { runInChild } from '../../src/child/index.ts';
import allSteps from '../../test/support/all-steps.ts';
import { median, tell, type BenchRow } from './rows.ts';

const usage = `usage: npm run lab -- lab/bench/steps.ts [options]

  --side PIXELS   of the scene (default 8192)
  --rounds N      of each, in turn (default 3)
  --only IDS      steps, separated by commas
  --json FILE     the table, for other programs
  --folder DIR    for the scene and the outputs (default data/bench)`;
const { values } = parseArgs({
  options: {
    side: { type: 'string', default: '8192' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: '' },
    json: { type: 'string' },
    folder: { type: 'string', default: 'data/bench' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}
const [side, rounds] = [Number(values.side), Number(values.rounds)];

/** At most the peer's time, and this much of the rest of what it takes. */
const goals = { time: 1, memory: 1.1, cpu: 1.1, disk: 1.1 };
const ndviPeakMiB = 320;

interface Work {
  readonly id: string;
  readonly parameters?: StepParameters;
  /** Below the folder of inputs; one of each input, if the step has several. */
  readonly input: string | Readonly<Record<string, string>>;
  /** Default: GDAL's own program. */
  readonly peerName?: string;
  /** Made in turn, into one folder: the programs of a peer. */
  readonly peer: (input: (name: string) => string, output: (name: string) => string) => readonly (readonly string[])[];
}

const cog = ['-of', 'COG', '-co', 'COMPRESS=DEFLATE', '-co', 'PREDICTOR=YES', '-co', 'NUM_THREADS=ALL_CPUS', '-co', 'BIGTIFF=IF_SAFER'] as const; // oxfmt-ignore
const calc = (formula: string, a: string, b: string, to: string) =>
  ['gdal_calc.py', '--quiet', '-A', a, '-B', b, `--calc=${formula}`, '--type=Float32', '--NoDataValue=-9999', `--outfile=${to}`, '--co=TILED=YES', '--co=BIGTIFF=IF_SAFER']; // oxfmt-ignore
const ndvi = '(A.astype(float32)-B)/(A.astype(float32)+B)';
const pixel = 30;
const [west, north] = [500_000, 5_400_000];
/** In the middle of the scene, a quarter of it. */
const middle = [west + (side / 4) * pixel, north - (side / 4) * pixel, west + ((side * 3) / 4) * pixel, north - ((side * 3) / 4) * pixel] as const; // oxfmt-ignore

const works: readonly Work[] = [
  {
    id: 'ndvi',
    input: 'scene',
    peer: (of, to) => [
      calc(ndvi, of('scene/nir.tif'), of('scene/red.tif'), to('a.tif')),
      ['gdal_translate', '-q', ...cog, to('a.tif'), to('out.tif')],
    ],
  },
  {
    id: 'band-math',
    parameters: { expression: 'sqrt(nir * red) + 1' },
    input: 'scene',
    peer: (of, to) => [
      calc('sqrt(A.astype(float32)*B)+1', of('scene/nir.tif'), of('scene/red.tif'), to('a.tif')),
      ['gdal_translate', '-q', ...cog, to('a.tif'), to('out.tif')],
    ],
  },
  {
    id: 'cog',
    input: 'scene/nir.tif',
    peer: (of, to) => [['gdal_translate', '-q', ...cog, of('scene/nir.tif'), to('out.tif')]],
  },
  {
    id: 'hillshade',
    input: 'heights.tif',
    peer: (of, to) => [['gdaldem', 'hillshade', '-q', '-compute_edges', ...cog, of('heights.tif'), to('out.tif')]],
  },
  {
    id: 'aspect',
    input: 'heights.tif',
    peer: (of, to) => [['gdaldem', 'aspect', '-q', '-compute_edges', ...cog, of('heights.tif'), to('out.tif')]],
  },
  {
    id: 'slope',
    input: 'heights.tif',
    peer: (of, to) => [['gdaldem', 'slope', '-q', '-compute_edges', ...cog, of('heights.tif'), to('out.tif')]],
  },
  {
    id: 'contours',
    parameters: { interval: 100 },
    input: 'heights.tif',
    peer: (of, to) => [['gdal_contour', '-q', '-f', 'GPKG', '-a', 'elevation', '-i', '100', of('heights.tif'), to('out.gpkg')]], // oxfmt-ignore
  },
  {
    id: 'polygonize',
    input: 'classes.tif',
    peer: (of, to) => [['gdal_polygonize.py', '-q', of('classes.tif'), '-f', 'GPKG', to('out.gpkg'), 'areas', 'value']],
  },
  {
    id: 'reproject',
    parameters: { crs: 'EPSG:3857', resampling: 'bilinear' },
    input: 'scene/nir.tif',
    peer: (of, to) => [
      ['gdalwarp', '-q', '-t_srs', 'EPSG:3857', '-r', 'bilinear', '-multi', '-wo', 'NUM_THREADS=ALL_CPUS', '-co', 'TILED=YES', of('scene/nir.tif'), to('a.tif')], // oxfmt-ignore
      ['gdal_translate', '-q', ...cog, to('a.tif'), to('out.tif')],
    ],
  },
  {
    id: 'mosaic',
    input: 'tiles',
    peer: (of, to) => [
      ['gdalwarp', '-q', '-multi', '-wo', 'NUM_THREADS=ALL_CPUS', '-co', 'TILED=YES', of('tiles/1.tif'), of('tiles/2.tif'), to('a.tif')], // oxfmt-ignore
      ['gdal_translate', '-q', ...cog, to('a.tif'), to('out.tif')],
    ],
  },
  {
    id: 'clip',
    input: 'scene/nir.tif',
    peer: (of, to) => [
      ['gdalwarp', '-q', '-cutline', of('area.geojson'), '-crop_to_cutline', '-multi', '-wo', 'NUM_THREADS=ALL_CPUS', '-co', 'TILED=YES', of('scene/nir.tif'), to('a.tif')], // oxfmt-ignore
      ['gdal_translate', '-q', ...cog, to('a.tif'), to('out.tif')],
    ],
  },
];

const terrain = (id: string, mode: string, parameters?: StepParameters): Work => ({
  id,
  ...(parameters && { parameters }),
  input: 'heights.tif',
  peer: (of, to) => [['gdaldem', mode, '-q', '-compute_edges', ...cog, of('heights.tif'), to('out.tif')]],
});

const toCog = (from: string, to: string) => ['gdal_translate', '-q', ...cog, from, to];

const further: readonly Work[] = [
  terrain('terrain-index', 'roughness', { index: 'roughness' }),
  ...['spectral-index', 'ndvi-python'].map((id): Work => ({ ...works.find((work) => work.id === 'ndvi')!, id })),
  {
    id: 'color-relief',
    parameters: { colors: '0 #1a9641, 800 #ffffbf, 2000 #8c6d5a' },
    input: 'heights.tif',
    peer: (of, to) => [['gdaldem', 'color-relief', '-q', '-alpha', ...cog, of('heights.tif'), of('colors.txt'), to('out.tif')]], // oxfmt-ignore
  },
  {
    id: 'change',
    parameters: { band: '1' },
    input: { before: 'scene/nir.tif', after: 'later/nir.tif' },
    peer: (of, to) => [calc('A.astype(float32)-B', of('later/nir.tif'), of('scene/nir.tif'), to('a.tif')), toCog(to('a.tif'), to('out.tif'))], // oxfmt-ignore
  },
  {
    id: 'cloud-mask',
    parameters: { band: 'red' },
    input: 'masked',
    peer: (of, to) => [calc('where((B&31)!=0,-9999,A.astype(float32))', of('masked/red.tif'), of('masked/QA_PIXEL.tif'), to('a.tif')), toCog(to('a.tif'), to('out.tif'))], // oxfmt-ignore
  },
  {
    id: 'pan-sharpen',
    input: 'pan',
    peer: (of, to) => [
      ['gdal_pansharpen.py', '-q', '-co', 'TILED=YES', of('pan/pan.tif'), ...['red', 'green', 'blue'].map((name) => of(`pan/${name}.tif`)), to('a.tif')], // oxfmt-ignore
      toCog(to('a.tif'), to('out.tif')),
    ],
  },
  {
    id: 'harmonize',
    parameters: { resampling: 'bilinear' },
    input: 'pan',
    peer: (of, to) => [
      ['gdalbuildvrt', '-q', '-separate', '-resolution', 'highest', '-r', 'bilinear', to('a.vrt'), ...['blue', 'green', 'pan', 'red'].map((name) => of(`pan/${name}.tif`))], // oxfmt-ignore
      ['gdal_translate', '-q', '-ot', 'Float32', ...cog, to('a.vrt'), to('out.tif')],
    ],
  },
  {
    id: 'clip-to-features',
    input: { raster: 'scene/nir.tif', features: 'area.geojson' },
    peer: works.find(({ id }) => id === 'clip')!.peer,
  },
  {
    id: 'zonal-statistics',
    input: { values: 'heights.tif', zones: 'zones.geojson' },
    // GDAL's programs have none before 3.12.
    peerName: 'saga_cmd',
    peer: (of, to) => [['saga_cmd', '-f=s', 'shapes_grid', '2', '-GRIDS', of('heights.tif'), '-POLYGONS', of('zones.geojson'), '-RESULT', to('out.shp')]], // oxfmt-ignore
  },
];

const wanted = values.only === '' ? null : values.only.split(',');
const inside = (name: string) => name;
const isInstalled = (program: string) => spawnSync('which', [program]).status === 0;
const chosen = [...works, ...further]
  .filter(({ id }) => wanted?.includes(id) ?? true)
  .filter(({ id, peer }) => {
    const missing = peer(inside, inside).map(([program = '']) => program).filter((program) => !isInstalled(program)); // oxfmt-ignore
    if (missing.length > 0) console.log(`  ${id} is left out: ${missing.join(', ')} is not installed`);
    return missing.length === 0;
  });
await mkdir(values.folder, { recursive: true });
const folder = await mkdtemp(join(resolve(values.folder), 'steps-'));
const inputs = join(folder, 'inputs');
const confinement = await confine({ mode: 'auto', readable: [] }, []);

/** Processor time of the processes that `pid` has started and that run while `work` lasts, in seconds. */
async function cpuWhile(pid: number, work: Promise<unknown>): Promise<number> {
  const secondsOf = new Map<number, number>();
  const state = { isOver: false };
  void work.finally(() => (state.isOver = true)).catch(() => {});
  async function look(parent: number): Promise<void> {
    const text = await readFile(`/proc/${parent}/task/${parent}/children`, 'utf8').catch(() => '');
    for (const child of text.trim().split(/\s+/).filter(Boolean).map(Number)) {
      const line = await readFile(`/proc/${child}/stat`, 'utf8').catch(() => '');
      // utime and stime, in hundredths of a second, after the name in parentheses.
      const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
      if (line !== '') secondsOf.set(child, (Number(fields[11]) + Number(fields[12])) / 100);
      await look(child);
    }
  }
  while (!state.isOver) {
    await look(pid);
    await new Promise((next) => setTimeout(next, 20));
  }
  return secondsOf.values().reduce((sum, seconds) => sum + seconds, 0);
}

/** Bytes of a folder on disk, at their most while `work` lasts. */
async function diskWhile(place: string, work: Promise<unknown>): Promise<number> {
  let [most, isOver] = [0, false];
  void work.finally(() => (isOver = true)).catch(() => {});
  while (!isOver) {
    most = Math.max(most, await bytesIn(place));
    await new Promise((next) => setTimeout(next, 100));
  }
  return Math.max(most, await bytesIn(place));
}

async function bytesIn(place: string): Promise<number> {
  const entries = await readdir(place, { recursive: true }).catch(() => []);
  const sizes = await Promise.all(entries.map((name) => stat(join(place, name)).catch(() => null)));
  return sizes.reduce((sum, found) => sum + (found?.isFile() ? found.blocks * 512 : 0), 0);
}

/** Resident at the peak, of a process and what it has started. */
async function peakWhile(pid: number, work: Promise<unknown>): Promise<number> {
  let [peak, isOver] = [0, false];
  void work.finally(() => (isOver = true)).catch(() => {});
  while (!isOver) {
    peak = Math.max(peak, await residentOf(pid));
    await new Promise((next) => setTimeout(next, 20));
  }
  return peak;
}

async function residentOf(pid: number): Promise<number> {
  try {
    const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(/\s+/).filter(Boolean);
    const own = Number(/^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
    return (await Promise.all(children.map((one) => residentOf(Number(one))))).reduce((sum, one) => sum + one, own);
  } catch {
    return 0;
  }
}

async function ofPeer(work: Work): Promise<Measured> {
  const out = await mkdtemp(join(folder, 'peer-'));
  const began = performance.now();
  let [peak, disk, cpu] = [0, 0, 0];
  for (const [program = '', ...args] of work.peer(
    (name) => join(inputs, name),
    (name) => join(out, name),
  )) {
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'inherit'] });
    const ended = new Promise<void>((done, fail) =>
      child.once('error', fail).once('exit', (code) => (code === 0 ? done() : fail(new Error(`${program}: ${code}`)))),
    );
    const [used, written, took] = await Promise.all([peakWhile(child.pid!, ended), diskWhile(out, ended), cpuWhile(process.pid, ended)]); // oxfmt-ignore
    [peak, disk, cpu] = [Math.max(peak, used), Math.max(disk, written), cpu + took];
    await ended;
  }
  const seconds = (performance.now() - began) / 1000;
  const [last] = (await readdir(out)).filter((name) => name.startsWith('out.'));
  const bytes = (await stat(join(out, last!))).size;
  await rm(out, { recursive: true });
  return { seconds, cpuSeconds: cpu, peakMiB: peak / 1024 ** 2, diskMiB: disk / 1024 ** 2, bytes };
}

interface Measured {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMiB: number;
  /** The most that lay in the folder of the work at one time. */
  readonly diskMiB: number;
  readonly bytes: number;
}

async function ofStep(work: Work): Promise<Measured> {
  let peak = 0;
  const host = createStepHost({
    definition: allSteps,
    inputDir: inputs,
    confinement,
    concurrency: 1,
    platformInput: { check: () => Promise.reject(new Error('none')), fetch: () => Promise.reject(new Error('none')) },
    limits: { timeoutMs: 3_600_000 },
    onUsage: ({ memoryBytes }) => (peak = Math.max(peak, memoryBytes)),
  });
  const step = host.find(work.id);
  const local = (path: string) => ({ type: 'local', path }) as const;
  const input: RunInput =
    typeof work.input === 'string'
      ? local(work.input)
      : { type: 'named', inputs: Object.fromEntries(Object.entries(work.input).map(([name, path]) => [name, local(path)])) }; // oxfmt-ignore
  const { parameters } = await host.check(work.id, { ...work.parameters }, input);
  const workFolder = join(folder, 'run');
  const [began, before] = [performance.now(), process.cpuUsage()];
  const running = host.run(
    { owner: 'bench', stepId: work.id, stepVersion: step.version, parameters, input, workFolder },
    { signal: new AbortController().signal, onProgress: () => {} },
  );
  const [{ outputs }, disk, cpuOfChildren] = await Promise.all([running, diskWhile(workFolder, running), cpuWhile(process.pid, running)]); // oxfmt-ignore
  const seconds = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(before);
  const cpu = cpuOfChildren + (user + system) / 1e6;
  await rm(workFolder, { recursive: true });
  const bytes = outputs[0]!.sizeBytes;
  return { seconds, cpuSeconds: cpu, peakMiB: peak / 1024 ** 2, diskMiB: disk / 1024 ** 2, bytes };
}

try {
  console.error(`a scene of ${side} x ${side} with the entropy of a real one`);
  const area = await runInChild<object>({
    module: new URL('./steps-scene-job.ts', import.meta.url),
    input: { side, pixel, west, north, middle },
    workFolder: inputs,
    confinement,
    limits: { timeoutMs: 3_600_000 },
  });
  const rows: Row[] = [];
  for (const work of chosen) {
    const parameters = work.id === 'clip' ? { area: area as never } : (work.parameters ?? {});
    const [ours, theirs]: [Measured[], Measured[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      ours.push(await ofStep({ ...work, parameters }));
      theirs.push(await ofPeer(work));
    }
    rows.push(rowOf(work, ours, theirs));
    console.error(`  ${work.id} done`);
  }
  print(rows);
  if (values.json)
    await import('node:fs/promises').then(({ writeFile }) =>
      writeFile(values.json!, `${JSON.stringify(rows, null, 2)}\n`),
    );
  tell(rows.flatMap(rowsOf));
} finally {
  await rm(folder, { recursive: true, force: true });
}

function rowsOf({ id, ours, theirs, seconds, peerSeconds, peerName }: Row): BenchRow[] {
  const row = (quantity: string, unit: string, own: readonly number[], peer: readonly number[], most: number) => ({
    what: `step ${id}, ${side}²: ${quantity}`,
    unit,
    ours: own,
    peer: { name: peerName, values: peer },
    goal: { most },
  });
  const memory = row('memory', 'MiB', [ours.peakMiB], [theirs.peakMiB], goals.memory);
  return [
    row('time', 's', seconds, peerSeconds, goals.time),
    memory,
    row('processor time', 's', [ours.cpuSeconds], [theirs.cpuSeconds], goals.cpu),
    row('disk', 'MiB', [ours.diskMiB], [theirs.diskMiB], goals.disk),
    ...(id === 'ndvi' ? [{ ...memory, peer: null, goal: { most: ndviPeakMiB } }] : []),
  ];
}

interface Row {
  readonly id: string;
  readonly ours: Measured;
  readonly theirs: Measured;
  /** Our time divided by theirs, for each round. */
  readonly timeRatios: readonly number[];
  readonly seconds: readonly number[];
  readonly peerSeconds: readonly number[];
  readonly memoryRatio: number;
  readonly isMet: boolean;
  readonly peerName: string;
}

function rowOf(
  { id, peerName = "GDAL's own program" }: Work,
  ours: readonly Measured[],
  theirs: readonly Measured[],
): Row {
  const of = (all: readonly Measured[]): Measured => ({
    seconds: median(all.map(({ seconds }) => seconds)),
    cpuSeconds: median(all.map(({ cpuSeconds }) => cpuSeconds)),
    peakMiB: median(all.map(({ peakMiB }) => peakMiB)),
    diskMiB: median(all.map(({ diskMiB }) => diskMiB)),
    bytes: all[0]!.bytes,
  });
  const [our, their] = [of(ours), of(theirs)];
  const timeRatios = ours.map(({ seconds }, i) => seconds / theirs[i]!.seconds);
  const memoryRatio = our.peakMiB / their.peakMiB;
  const isMet =
    median(timeRatios) <= goals.time && memoryRatio <= goals.memory && (id !== 'ndvi' || our.peakMiB < ndviPeakMiB);
  const secondsOf = (all: readonly Measured[]) => all.map(({ seconds }) => seconds);
  return {
    ...{ id, ours: our, theirs: their, timeRatios, memoryRatio, isMet, peerName },
    seconds: secondsOf(ours),
    peerSeconds: secondsOf(theirs),
  };
}

function print(rows: readonly Row[]): void {
  console.log(`${cpus().length} cores, GDAL's programs ${execFileSync('gdalinfo', ['--version'], { encoding: 'utf8' }).trim()}, medians of ${rounds}\n`); // oxfmt-ignore
  console.log(
    '| step | seconds | peer | time ratio (spread) | CPU, peer | MiB | peer | memory ratio | disk, peer | output, peer | goal |',
  );
  console.log(
    '|------|--------:|-----:|--------------------:|---:|----:|-----:|-------------:|---:|-------------:|------|',
  );
  for (const { id, ours, theirs, timeRatios, memoryRatio, isMet } of rows) {
    const spread = `${median(timeRatios).toFixed(2)} (${Math.min(...timeRatios).toFixed(2)} to ${Math.max(...timeRatios).toFixed(2)})`;
    const mega = (bytes: number) => (bytes / 1e6).toFixed(1);
    console.log(
      `| ${id} | ${ours.seconds.toFixed(1)} | ${theirs.seconds.toFixed(1)} | ${spread} | ${ours.cpuSeconds.toFixed(1)}, ${theirs.cpuSeconds.toFixed(1)} s | ${ours.peakMiB.toFixed(0)} | ${theirs.peakMiB.toFixed(0)} | ${memoryRatio.toFixed(2)} | ${ours.diskMiB.toFixed(0)}, ${theirs.diskMiB.toFixed(0)} MiB | ${mega(ours.bytes)}, ${mega(theirs.bytes)} MB | ${isMet ? 'met' : 'MISSED'} |`,
    );
  }
  console.log(
    `\ngoals: at most ${goals.time} of the peer's time and ${goals.memory} of its memory; ndvi below ${ndviPeakMiB} MiB`,
  );
}
