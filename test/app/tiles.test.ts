/** A run that is cut into tiles has the same bytes as in one piece, on every executor. A lost tile is computed again, and no other. */
import { mkdir, readFile, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { planTiles } from '../../src/app/processing/plan-tiles.ts';
import { createLocalExecutor } from '../../src/app/processing/local-executor.ts';
import { RunReleased, type ExecutorTask, type StepExecutor } from '../../src/app/processing/step-executor.ts';
import { ChildJobError, type Confinement } from '../../src/child/index.ts';
import type { StepParameters } from '../../src/app/processing/step-parameters.ts';
import type { RunInput } from '../../src/app/processing/run-input.ts';
import allSteps from '../support/all-steps.ts';
import { testConfinement } from '../support/confinement.ts';
import { startRemoteExecutor } from '../support/executors.ts';
import { inKeptChild } from '../support/kept-children.ts';
import { geoTiff } from '../support/geotiff.ts';
import { readGeoTiff } from '../support/read-geotiff.ts';
import { startStepHost } from '../support/step-host.ts';
import { onlyInAll } from '../support/tags.ts';

test('tiles are whole rows of blocks, the last one goes to the end, and a small raster is not cut', () => {
  expect(planTiles({ width: 10_000, height: 10_000 }, 25_000_000)).toEqual([]);
  expect(planTiles({ width: 10_000, height: 3_000 }, 6_000_000)).toEqual([
    { number: 0, from: 0, to: 512 },
    { number: 1, from: 512, to: 1_024 },
    { number: 2, from: 1_024, to: 1_536 },
    { number: 3, from: 1_536, to: 2_048 },
    { number: 4, from: 2_048, to: 2_560 },
    { number: 5, from: 2_560, to: null },
  ]);
  expect(planTiles({ width: 32_768, height: 32_768 }, 2 ** 26).map(({ from }) => from / 2_048)).toEqual([
    ...Array(16).keys(),
  ]);
  // One row of blocks is the least.
  expect(planTiles({ width: 1_000_000, height: 400 }, 1_000)).toEqual([]);
});

const never = new AbortController().signal;

/** Runs a step in one piece and in tiles, and returns both results and what became known of the tiles. */
async function runBoth(
  stepId: string,
  input: RunInput,
  size: { width: number; height: number },
  {
    parameters = {},
    files: inputs = {},
    executor,
  }: { parameters?: StepParameters; files?: Readonly<Record<string, Buffer>>; executor?: StepExecutor } = {},
) {
  const results = [];
  const states: string[] = [];
  for (const isTiled of [false, true]) {
    const { host, inputDir, workFolder } = await startStepHost({
      definition: allSteps,
      tilePixels: 20_000,
      ...(isTiled && executor && { executor }),
    });
    await mkdir(join(inputDir, 'scene'));
    for (const [name, bytes] of Object.entries(inputs)) await writeFile(join(inputDir, 'scene', name), bytes);
    const { outputs, result, provenance } = await host.run(
      {
        ...{ owner: 'tester', stepId, stepVersion: host.find(stepId).version, input, workFolder },
        parameters,
        grid: isTiled ? size : null,
        run: { id: 'a-run', claim: 1 },
      },
      { signal: never, onProgress: (_fraction, _note, tiles) => void (tiles && states.push(tiles)) },
    );
    const files = await Promise.all(outputs.map(async ({ path }) => readFile(path)));
    results.push({ files: files.map((file) => file.toString('latin1')), result, provenance });
  }
  return { whole: results[0]!, tiled: results[1]!, states };
}

const tiled = allSteps.steps.filter(({ isTiled }) => isTiled);

describe('the bytes are those of the run in one piece', () => {
  test('every step of the kit that computes pixels by rows is here', () => {
    expect(tiled.map(({ id }) => id).toSorted()).toEqual(
      ['aspect', 'band-math', 'change', 'cloud-mask', 'color-relief', 'hillshade', 'ndvi', 'scale', 'slope', 'spectral-index', 'terrain-index'].toSorted(), // oxfmt-ignore
    );
  });

  // The synthetic scene has no quality band for `cloud-mask`, which is below.
  test.each(tiled.map(({ id }) => id).filter((id) => id !== 'cloud-mask'))(
    '%s',
    { tags: [onlyInAll] },
    async (stepId) => {
      const size = 1_280;
      const {
        whole,
        tiled: inTiles,
        states,
      } = await runBoth(stepId, { type: 'synthetic', size }, { width: size, height: size });
      expect(inTiles).toEqual(whole);
      expect(states[0]).toMatch(/^[wr]{3}$/);
      expect(states.at(-1)).toBe('ddd');
    },
  );

  test('missing pixels, a mask, and neighbours across the border of tiles', async () => {
    const [width, height] = [60, 1_500];
    const isMissing = (x: number, y: number) => (x * 7 + y * 13) % 11 === 0 || (y > 505 && y < 520 && x < 20);
    const heights = geoTiff({
      ...{ width, height, nodata: 0 },
      value: (x, y) => (isMissing(x, y) ? 0 : Math.round(10_000 + 3_000 * Math.sin(x / 7) + 2_000 * Math.cos(y / 11))),
    });
    const quality = geoTiff({ width, height, value: (x, y) => ((x + y) % 97 === 0 ? 8 : 64) });
    const cases: [string, StepParameters][] = [
      ['slope', { height: '1' }],
      ['hillshade', { height: '1' }],
      ['terrain-index', { height: '1' }],
      ['band-math', { expression: 'red * 2', type: 'UInt16' }],
      ['cloud-mask', { buffer: 12 }],
    ];
    for (const [stepId, given] of cases) {
      const { parameters } = await (
        await startStepHost({ definition: allSteps })
      ).host
        .check(stepId, {}, { type: 'synthetic', size: 64 })
        .catch(() => ({ parameters: {} as StepParameters }));
      const own = Object.fromEntries(Object.entries(given).filter(([name]) => name in parameters || name !== 'height'));
      const files = { 'LC08_B4.tif': heights, ...(stepId === 'cloud-mask' && { 'LC08_QA_PIXEL.tif': quality }) };
      const { whole, tiled: inTiles } = await runBoth(
        stepId,
        { type: 'local', path: 'scene' },
        { width, height },
        { parameters: own, files },
      );
      expect(inTiles, stepId).toEqual(whole);
      expect(whole.result, stepId).not.toBeNull();
    }
  });

  test('without the rows of the neighbouring tile, the border would differ: the comparison can fail', async () => {
    const [width, height, border] = [60, 1_100, 512];
    const value = (x: number, y: number) => Math.round(10_000 + 3_000 * Math.sin(x / 7) + 2_000 * Math.cos(y / 11));
    const slopeOf = async (from: number, to: number) => {
      const { run, inputDir } = await startStepHost({ definition: allSteps });
      await writeFile(
        join(inputDir, 'a.tif'),
        geoTiff({ width, height: to - from, value: (x, y) => value(x, y + from) }),
      );
      return readGeoTiff((await run('slope', { type: 'local', path: 'a.tif' })).path);
    };
    const [whole, above] = [await slopeOf(0, height), await slopeOf(0, border)];
    const rowOf = ({ samples }: typeof whole, y: number) => samples.slice(y * width + 1, (y + 1) * width - 1);
    expect(rowOf(above, border - 2)).toEqual(rowOf(whole, border - 2));
    expect(rowOf(above, border - 1)).not.toEqual(rowOf(whole, border - 1));
  });

  test('with a height that the catalog got wrong', async () => {
    for (const height of [1_100, 2_400]) {
      const { whole, tiled: inTiles } = await runBoth(
        'slope',
        { type: 'synthetic', size: 1_280 },
        { width: 1_280, height },
      );
      expect(inTiles).toEqual(whole);
    }
  });

  test('computed elsewhere', async () => {
    const { executor, calls } = await startRemoteExecutor(allSteps);
    const size = { width: 1_280, height: 1_280 };
    const { whole, tiled: inTiles } = await runBoth('slope', { type: 'synthetic', size: 1_280 }, size, { executor });
    expect(inTiles).toEqual(whole);
    expect(calls.filter((call) => call === 'POST /begin')).toHaveLength(3);
  });
});

describe('executors that fail', () => {
  /** Runs `slope` in three tiles by an executor that does `before` to each attempt at a tile. */
  async function runWith(before: (task: ExecutorTask, attempt: number) => Promise<void>) {
    const local = createLocalExecutor({ module: allSteps.module, confinement: await testConfinement() });
    const attempts = new Map<number, number>();
    const executor: StepExecutor = {
      run: async (task, options) => {
        const number = task.tile?.type === 'part' ? task.tile.number : -1;
        const attempt = (attempts.get(number) ?? 0) + 1;
        attempts.set(number, attempt);
        await before(task, attempt);
        return local.run(task, options);
      },
      close: async () => {},
    };
    const outcome = runBoth('slope', { type: 'synthetic', size: 1_280 }, { width: 1_280, height: 1_280 }, { executor });
    return { outcome, attempts };
  }
  const numberOf = ({ tile }: ExecutorTask) => (tile?.type === 'part' ? tile.number : -1);
  const lost = () => new ChildJobError('executor_lost', 'the machine is gone', { kind: 'transient' });

  test('a lost tile is computed again, and no other', async () => {
    const { outcome, attempts } = await runWith(async (task, attempt) => {
      if (numberOf(task) === 1 && attempt < 3) throw lost();
    });
    const { whole, tiled: inTiles, states } = await outcome;
    expect(inTiles).toEqual(whole);
    expect(Object.fromEntries(attempts)).toEqual({ 0: 1, 1: 3, 2: 1 });
    expect(states.at(-1)).toBe('ddd');
  });

  test('a tile that is lost again and again fails the run, for another attempt at it', async () => {
    const { outcome, attempts } = await runWith(async (task) => {
      if (numberOf(task) === 1) throw lost();
    });
    await expect(outcome).rejects.toMatchObject({ code: 'executor_lost' });
    expect(attempts.get(1)).toBe(4);
  });

  test("a failure of the step's own ends the others", async () => {
    const { outcome, attempts } = await runWith(async (task) => {
      if (numberOf(task) === 0) throw new ChildJobError('job_timeout', 'it took too long');
    });
    await expect(outcome).rejects.toMatchObject({ code: 'job_timeout' });
    expect(attempts.get(0)).toBe(1);
  });
});

describe('another attempt at the run', () => {
  const source = { type: 'synthetic', size: 1_280 } as const;

  /** A host of `slope` in three tiles. Its executor does `before` to each, and `computed` has the tiles of which it computed pixels. */
  async function startHost(
    before: (number: number) => Promise<void> = async () => {},
    more: { readonly workFolder?: string; readonly confinement?: Confinement } = {},
  ) {
    const local = createLocalExecutor({
      module: allSteps.module,
      confinement: await testConfinement(),
      inChild: inKeptChild,
    });
    const computed: number[] = [];
    const executor: StepExecutor = {
      run: async (task, options) => {
        if (task.tile?.type === 'part') await before(task.tile.number);
        const executed = await local.run(task, options);
        if (task.tile?.type === 'part') computed.push(task.tile.number);
        return executed;
      },
      close: async () => {},
    };
    const { host, workFolder } = await startStepHost({ definition: allSteps, tilePixels: 20_000, executor, concurrency: 1, ...more }); // oxfmt-ignore
    const attempt = (claim: number, signal = never, parameters: StepParameters = {}) => {
      const states: string[] = [];
      const outputs = host
        .run(
          {
            ...{ owner: 'tester', stepId: 'slope', stepVersion: host.find('slope').version, input: source, parameters },
            ...{ grid: { width: 1_280, height: 1_280 }, run: { id: 'a-run', claim } },
            workFolder: join(workFolder, String(claim)),
          },
          { signal, onProgress: (_fraction, _note, tiles) => void (tiles && states.push(tiles)) },
        )
        .then(({ outputs: [output] }) => readFile(output!.path));
      return { outputs, states };
    };
    return { attempt, computed, workFolder };
  }

  /** The first attempt computes two tiles, and its process has to stop at the third. */
  async function interrupted() {
    const stop = new AbortController();
    let isFirst = true;
    const { attempt, computed, workFolder } = await startHost(async (number) => {
      if (number < 2 || !isFirst) return;
      stop.abort(new RunReleased('the worker is stopping'));
      stop.signal.throwIfAborted();
    });
    await expect(attempt(1, stop.signal).outputs).rejects.toThrow('the worker is stopping');
    isFirst = false;
    expect(computed.splice(0)).toEqual([0, 1]);
    return { attempt, computed, tiles: join(workFolder, '1', 'tiles') };
  }

  let onePiece: Promise<Buffer> | undefined;
  const inOnePiece = async () => {
    const { host, workFolder } = await startStepHost({ definition: allSteps, keepsChildren: true });
    const { version: stepVersion } = host.find('slope');
    const task = { owner: 'tester', stepId: 'slope', stepVersion, input: source, workFolder, parameters: {} };
    const { outputs } = await host.run(task, { signal: never, onProgress: () => {} });
    return readFile(outputs[0]!.path);
  };

  test('computes only the tiles that were not finished, and has the same bytes', async () => {
    const { attempt, computed, tiles } = await interrupted();
    const { outputs, states } = attempt(2);
    expect((await outputs).equals(await (onePiece ??= inOnePiece()))).toBe(true);
    expect(computed).toEqual([2]);
    expect(states).toContain('ddw');
    expect(states.at(-1)).toBe('ddd');
    expect(await readdir(join(tiles, '..', '..', '2'))).toEqual(['output']);
  });

  test.each<[string, string, (part: string) => Promise<void>]>([
    ['changed', 'gone', async (part) => void (await writeFile(part, Buffer.alloc((await stat(part)).size)))],
    ['cut short', 'incomplete', (part) => truncate(part, 100)],
  ])('computes tiles again whose file is %s or whose record is %s', async (_, state, damage) => {
    const { attempt, computed, tiles } = await interrupted();
    const [name = ''] = await readdir(join(tiles, '1', 'part'));
    await damage(join(tiles, '1', 'part', name));
    const record = join(tiles, '0', 'tile.json');
    await (state === 'gone' ? rm(record) : truncate(record, 20));
    expect((await attempt(2).outputs).equals(await (onePiece ??= inOnePiece()))).toBe(true);
    expect(computed.toSorted()).toEqual([0, 1, 2]);
  });

  test('has the tiles at once, so that tidying of earlier folders and another interruption lose none', async () => {
    const { attempt, computed, tiles } = await interrupted();
    const stop = new AbortController();
    const second = attempt(2, stop.signal).outputs;
    // Before anything is computed: a real input is fetched for minutes.
    await vi.waitFor(() => readdir(join(tiles, '..', '..', '2', 'tiles')), { timeout: 60_000, interval: 1 });
    stop.abort(new RunReleased('the worker is stopping'));
    await expect(second).rejects.toThrow('the worker is stopping');
    await rm(join(tiles, '..'), { recursive: true });
    await attempt(3).outputs;
    expect(computed.filter((number) => number < 2)).toEqual([]);
  });

  test('takes no tile of a later attempt, whose owner needs it', async () => {
    const { attempt, computed } = await interrupted();
    await attempt(0).outputs;
    expect(computed.toSorted()).toEqual([0, 1, 2]);
    computed.splice(0);
    await attempt(2).outputs;
    expect(computed).toEqual([2]);
  });

  test('takes no tile that was computed with other parameters', async () => {
    const { attempt, computed } = await interrupted();
    await attempt(2, never, { unit: 'percent' }).outputs;
    expect(computed.toSorted()).toEqual([0, 1, 2]);
  });

  test('takes no tile that another version of GDAL has computed', async () => {
    const { tiles } = await interrupted();
    const confinement = { ...(await testConfinement()), gdalVersion: '0.0.0' };
    const { attempt, computed } = await startHost(undefined, { workFolder: join(tiles, '..', '..'), confinement });
    await attempt(2).outputs;
    expect(computed.toSorted()).toEqual([0, 1, 2]);
  });

  test('finds no tiles if the disk was full, since they would take the room that the run needs', async () => {
    let isFull = true;
    const { attempt, computed, workFolder } = await startHost(async (number) => {
      if (number === 2 && isFull) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    });
    await expect(attempt(1).outputs).rejects.toMatchObject({ code: 'ENOSPC' });
    isFull = false;
    expect(await readdir(join(workFolder, '1'))).toEqual([]);
    await attempt(2).outputs;
    expect(computed.toSorted()).toEqual([0, 0, 1, 1, 2]);
  });
});
