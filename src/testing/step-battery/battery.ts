import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AppDefinition } from '../../app/definition/app-definition.ts';
import type { RunInput } from '../../app/processing/run-input.ts';
import { createStepHost } from '../../app/processing/step-host.ts';
import { checkParameters, parameterSchema, type StepParameters } from '../../app/processing/step-parameters.ts';
import { KitError } from '../../contract/index.ts';
import { removeFolder, runInChild, type Confinement } from '../../raster/index.ts';
import { inputsOf, mainInput, outputsOf, type AnyStep, type StepEstimate } from '../../steps/step.ts';
import type { BatteryAnswer, BatteryInput, BatteryRun, LeftRaster } from './battery-job.ts';
import {
  isRaster,
  type ExpectedFeatures,
  type ExpectedRaster,
  type FileRecipe,
  type RasterRecipe,
  type StepCases,
} from './cases.ts';
import { formulaValue, isGap, rowOf, stored, type Gap } from './recipe.ts';

/** One thing that a step must do. `run` rejects with what it did in its place. */
export interface BatteryCheck {
  readonly name: string;
  readonly run: () => Promise<void>;
}

export interface BatteryOptions {
  /** The app, or a definition of your own that lists the step; children load it from its module. */
  readonly definition: Pick<AppDefinition, 'module' | 'steps'>;
  readonly stepId: string;
  readonly cases: StepCases;
  /** Asked for when the first check runs. */
  readonly confinement: () => Promise<Confinement>;
  /** Pixels a side of the large input, 64 times those of the small one. Default 4096. */
  readonly largeSide?: number;
}

/** What the step did, and what it should have. */
export class BatteryError extends Error {}

const fail = (what: string): never => {
  throw new BatteryError(what);
};

const batteryJob = new URL('./battery-job.ts', import.meta.url);
const writeJob = new URL('./write-job.ts', import.meta.url);
const childTimeoutMs = 300_000;

type Inputs = Readonly<Record<string, readonly FileRecipe[]>>;

interface Variant {
  readonly name: string;
  readonly inputs: Inputs;
  readonly gap?: Gap;
  readonly stripPixels?: number;
  readonly cancelAt?: number;
  readonly readsOutputs?: boolean;
  readonly parameters?: StepParameters;
  readonly holds: (answer: BatteryAnswer, variant: Variant) => void;
}

/**
 * All that a step must do: its own cases, and what is asked of every step without being told. Throws `KitError` where the
 * cases do not fit the step. Checks may run in any order, one after the other.
 */
export function batteryOf(options: BatteryOptions): BatteryCheck[] {
  const { definition, stepId, cases } = options;
  const step = definition.steps.find(({ id }) => id === stepId);
  if (!step) throw new KitError('unknown_step', `the app has no step ${stepId}`);
  const [base] = cases.cases;
  if (!base?.expect) throw new KitError('bad_cases', 'the first case must say what to expect: the battery varies it');
  const variants = [...ownCases(step, cases), ...variantsOf(step, cases)];
  let answers: Promise<readonly BatteryAnswer[]> | undefined;
  const answersOnce = () => (answers ??= inOneChild(options, variants, step));
  return [
    ...variants.map((variant, i) => ({
      name: variant.name,
      run: async () => variant.holds((await answersOnce())[i]!, variant),
    })),
    { name: 'the same pixels twice', run: async () => sameTwice(await answersOnce(), variants) },
    { name: 'its input is as it was', run: async () => untouched(await answersOnce(), variants) },
    { name: 'its declared bounds hold', run: async () => boundsHold(step, base.parameters) },
    ...largeChecks(options, step),
  ].map((check) => (Object.hasOwn(cases.exempt, check.name) ? { ...check, run: async () => {} } : check));
}

/** Runs every variant in one process: a start costs more than most of them. The first comes twice. */
async function inOneChild(
  { definition, stepId, confinement }: BatteryOptions,
  variants: readonly Variant[],
  step: AnyStep,
): Promise<readonly BatteryAnswer[]> {
  const runs = variants.map(
    ({
      inputs,
      gap = null,
      stripPixels = null,
      cancelAt = null,
      readsOutputs = true,
      parameters = {},
    }): BatteryRun => ({
      parameters: checkParameters(step, parameters),
      inputs,
      gap,
      stripPixels,
      cancelAt,
      readsOutputs,
    }),
  );
  const input: BatteryInput = {
    definition: definition.module,
    stepId,
    runs: runs.length > 1 ? [...runs, runs[0]!] : runs,
  };
  return inFolder(async (workFolder) =>
    runInChild<BatteryAnswer[]>({
      module: batteryJob,
      input,
      imports: [new URL(definition.module)],
      workFolder,
      confinement: await confinement(),
      limits: { timeoutMs: childTimeoutMs },
    }),
  );
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'step-battery-'));
  try {
    return await work(join(folder, 'work'));
  } finally {
    await removeFolder(folder);
  }
}

function ownCases(step: AnyStep, cases: StepCases): Variant[] {
  return cases.cases.map(({ name, inputs, parameters, expect, refused }) => ({
    name: `case: ${name}`,
    inputs,
    parameters,
    holds: (answer, variant) => {
      if (expect) return isAsExpected(step, cases, expect, answer, variant);
      const { failure } = answer;
      if (!failure) return fail(`it ran, and must refuse with ${refused}`);
      if (failure.kind !== 'user' || failure.code !== refused)
        fail(`it must refuse with ${refused}, and ended by ${failure.code} (${failure.kind}): ${failure.message}`);
    },
  }));
}

/** The first case on other inputs. */
function variantsOf(step: AnyStep, cases: StepCases): Variant[] {
  const [base] = cases.cases;
  const { inputs, parameters } = base!;
  // Features, and pixels that are given one by one, are those of that input alone.
  const expect = Object.fromEntries(
    Object.entries(base!.expect ?? {}).filter(([, one]) => 'band' in one && one.pixels === undefined),
  );
  const main = mainInput(step)?.[0] ?? '';
  const changed = (change: (file: RasterRecipe) => Partial<RasterRecipe>): Inputs =>
    Object.fromEntries(
      Object.entries(inputs).map(([name, files]) => [
        name,
        files.map((file) => (isRaster(file) ? { ...file, ...change(file) } : file)),
      ]),
    );
  const files = Object.values(inputs).flat().filter(isRaster);
  const isWhole = (answer: BatteryAnswer, variant: Variant) => isAsExpected(step, cases, expect, answer, variant);
  /** As expected, or one of the refusals that the cases name. */
  const variant = (name: string, more: Omit<Variant, 'name' | 'holds' | 'parameters'> & Partial<Variant>): Variant => ({
    parameters,
    ...more,
    name,
    holds: (answer, itself) => {
      if (!cases.refuses.includes(name)) return (more.holds ?? isWhole)(answer, itself);
      if (answer.failure?.kind !== 'user')
        fail(`its cases say that it refuses, and it ${answer.failure ? `ended by ${answer.failure.message}` : 'ran'}`);
    },
  });
  const size = (width: number, height: number) => changed(() => ({ width, height }));
  const ofItsOwnGrid = cases.grid === 'own';
  // Slopes depend on the size of a pixel: elsewhere only where the pixels lie is held.
  const elsewhere = (answer: BatteryAnswer, itself: Variant) =>
    cases.dependsOnPlace ? liesAsItsInput(step, cases, answer, itself) : isWhole(answer, itself);
  const gapOf = (as: Gap['as'], which: Gap['which']): Gap => ({ as, which });
  const types = cases.types.map((type) =>
    variant(`${type} in`, {
      inputs: changed(({ nodata }) => ({
        type,
        nodata: nodata === undefined || stored(nodata, type) === nodata ? nodata : undefined,
      })),
    }),
  );
  const floats = changed(() => ({ type: 'Float32', nodata: -9_999 }));
  const takesSeveral = (mainInput(step)?.[1].mostItems ?? 2) > 1;
  const bands = (inputs[main] ?? []).filter(isRaster).flatMap((file) => file.bands.map((one) => ({ file, one })));
  const asFiles = bands.map(({ file, one }) => ({ ...file, name: `${one.name}.tif`, bands: [{ ...one, name: '' }] }));
  const asOne = [{ ...bands[0]!.file, name: 'scene.tif', bands: bands.map(({ one }) => one) }];
  const canSplit = takesSeveral && bands.length > 1 && bands.every(({ one }) => /^[A-Za-z]\w*$/.test(one.name));
  const tall = size(64, 1_300);
  return [
    ...(ofItsOwnGrid
      ? []
      : [
          variant('one pixel', { inputs: size(1, 1) }),
          variant('one row', { inputs: size(61, 1) }),
          variant('one column', { inputs: size(1, 61) }),
          variant('a size off the tile', { inputs: size(513, 259) }),
          variant('a size off the strip', { inputs: size(130, 1_100), stripPixels: 130 * 100 }),
        ]),
    ...types,
    variant('no data anywhere', { inputs: floats, gap: gapOf('nodata', 'all') }),
    variant('no data here and there', { inputs: floats, gap: gapOf('nodata', 'some') }),
    variant('NaN anywhere', { inputs: changed(() => ({ type: 'Float32' })), gap: gapOf('NaN', 'all') }),
    variant('NaN here and there', { inputs: changed(() => ({ type: 'Float32' })), gap: gapOf('NaN', 'some') }),
    ...(files.length === 0
      ? []
      : [
          variant('a rotated geotransform', {
            inputs: changed(() => ({ geoTransform: [500_000, 26, 15, 5_400_000, 15, -26] })),
            holds: elsewhere,
          }),
          variant('another coordinate reference system', {
            inputs: changed(() => ({ epsg: 4326, geoTransform: [13, 0.001, 0, 47, 0, -0.001] })),
            holds: elsewhere,
          }),
        ]),
    ...(canSplit
      ? [
          variant('each band a file', { inputs: { ...inputs, [main]: asFiles } }),
          variant('all bands in one file', { inputs: { ...inputs, [main]: asOne } }),
        ]
      : []),
    variant('in small strips', { inputs: tall, stripPixels: 64 }),
    variant('in large strips', { inputs: tall }),
    variant('cancelled in the middle', {
      inputs: size(256, 2_000),
      stripPixels: 256 * 100,
      cancelAt: 0.06,
      holds: (answer) => endsWhenCancelled(cases, answer),
    }),
  ];
}

const mostReadsAfterCancel = 2;

function endsWhenCancelled({ cancel }: StepCases, answer: BatteryAnswer): void {
  if (!answer.isCancelled && cancel === 'outside') return;
  if (!answer.isCancelled) fail('it told no progress before its end: there was nothing to cancel');
  if (!answer.failure) fail('it was cancelled in the middle, and left its outputs all the same');
  if (answer.failure?.message !== 'cancelled by the battery')
    fail(`it was cancelled, and ended by another error: ${answer.failure?.code}: ${answer.failure?.message}`);
  if (cancel === 'cooperative' && answer.readsAfterCancel > mostReadsAfterCancel)
    fail(`it went on after the cancel, and read ${answer.readsAfterCancel} more windows`);
}

/** What a case expects, over an input's values. */
type Expect = Readonly<Record<string, ExpectedRaster | ExpectedFeatures>>;

function isAsExpected(step: AnyStep, cases: StepCases, expect: Expect, answer: BatteryAnswer, variant: Variant): void {
  liesAsItsInput(step, cases, answer, variant);
  for (const [name, expected] of Object.entries(expect)) {
    const output = answer.outputs?.[name];
    if (!output) return fail(`it left no ${name}`);
    if ('band' in expected) {
      if (output.kind !== 'raster') return fail(`${name} is no raster`);
      pixelsAre(name, output, expected, cases, variant);
    } else {
      if (output.kind !== 'vector') return fail(`${name} holds no features`);
      featuresAre(name, output.properties, expected);
    }
  }
}

/** It ran, and its rasters have the pixels of the first input. */
function liesAsItsInput(step: AnyStep, { grid }: StepCases, answer: BatteryAnswer, { inputs }: Variant): void {
  if (!answer.outputs)
    return fail(`it failed by ${answer.failure?.code} (${answer.failure?.kind}): ${answer.failure?.message}`);
  const first = inputs[mainInput(step)?.[0] ?? '']?.[0];
  if (grid === 'own' || !first || !isRaster(first)) return;
  for (const [name] of outputsOf(step)) {
    const output = answer.outputs[name];
    if (output?.kind !== 'raster') continue;
    if (output.width !== first.width || output.height !== first.height)
      fail(`${name} is ${output.width} x ${output.height}, and its input ${first.width} x ${first.height}`);
    const isSame = first.geoTransform.every((value, i) => Math.abs(value - (output.geoTransform?.[i] ?? NaN)) < 1e-9);
    if (!isSame)
      fail(`${name} has the geotransform ${String(output.geoTransform)}, and its input ${String(first.geoTransform)}`);
    if (output.crs !== answer.inputCrs)
      fail(`${name} lies in ${output.crs?.slice(0, 80) ?? 'no reference system'}, and its input does not`);
  }
}

function pixelsAre(
  name: string,
  output: LeftRaster,
  expected: ExpectedRaster,
  cases: StepCases,
  variant: Variant,
): void {
  const band = output.bands[expected.band - 1];
  if (!band) return fail(`${name} has no band ${expected.band}`);
  const { width, height } = output;
  const pixels = new Float64Array(Uint8Array.from(band.pixels).buffer);
  const valueAt = expected.pixels
    ? (x: number, y: number) => expected.pixels![y * width + x] ?? null
    : oracle(expected.value ?? 'x * 0', variant, { reach: cases.reach, width, height });
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const value = valueAt(x, y);
      const wanted = value === null ? (expected.missing ?? null) : value;
      if (wanted === undefined) continue;
      const is = pixels[y * width + x]!;
      // Where a value stands for gaps, NaN is no other.
      const isGone = band.nodata === null || Number.isNaN(band.nodata) ? Number.isNaN(is) : is === band.nodata;
      const isRight =
        wanted === null
          ? isGone
          : !isGone && Math.abs(is - wanted) <= expected.tolerance * Math.max(1, Math.abs(wanted));
      if (!isRight)
        fail(`${name} holds ${isGone ? 'no data' : is} at column ${x}, row ${y}, and must hold ${wanted ?? 'no data'}`);
    }
}

/** Gives a pixel's value by the formula; null for no data, undefined where a gap is within reach. */
function oracle(
  value: string,
  { inputs, gap }: Variant,
  { reach, width, height }: { readonly reach: number; readonly width: number; readonly height: number },
): (x: number, y: number) => number | null | undefined {
  const bands = new Map<string, { file: RasterRecipe; band: number }>();
  for (const [input, files] of Object.entries(inputs))
    for (const file of files)
      if (isRaster(file))
        file.bands.forEach((one, band) => {
          const own = one.name || file.name.replace(/\.tif$/, '');
          for (const name of [`${input}.${own}`, own]) if (!bands.has(name)) bands.set(name, { file, band });
        });
  const rows = new Map<string, Float64Array>();
  const rowAt = (name: string, y: number) => {
    const { file, band } = bands.get(name)!;
    const key = `${name} ${y}`;
    const known = rows.get(key) ?? rowOf(file, band, y, null);
    if (rows.size > 64) rows.clear();
    rows.set(key, known);
    return known;
  };
  return (x, y) => {
    if (gap && isGap(gap, x, y)) return null;
    if (reach > 0 && (x < reach || y < reach || x >= width - reach || y >= height - reach)) return undefined;
    if (gap && reach > 0)
      for (let dy = -reach; dy <= reach; dy++)
        for (let dx = -reach; dx <= reach; dx++) if (isGap(gap, x + dx, y + dy)) return undefined;
    let isMissing = false;
    const result = formulaValue(value, (name) => {
      if (name === 'x') return x;
      if (name === 'y') return y;
      const place = bands.get(name);
      if (!place) return fail(`the formula names ${name}, which no input has`);
      const is = rowAt(name, y)[x]!;
      if (is === place.file.nodata) isMissing = true;
      return is;
    });
    return isMissing || !Number.isFinite(Math.fround(result)) ? null : stored(result, 'Float64');
  };
}

function featuresAre(
  name: string,
  properties: readonly Readonly<Record<string, unknown>>[],
  expected: ExpectedFeatures,
): void {
  const count = expected.count ?? expected.properties?.length;
  if (count !== undefined && properties.length !== count)
    fail(`${name} has ${properties.length} features, and must have ${count}`);
  expected.properties?.forEach((wanted, i) => {
    for (const [field, value] of Object.entries(wanted)) {
      const is = (properties[i]?.[field] ?? null) as string | number | boolean | null;
      const isRight =
        typeof value === 'number' && is !== null
          ? Math.abs(Number(is) - value) <= expected.tolerance * Math.max(1, Math.abs(value))
          : String(is) === String(value);
      if (!isRight) fail(`${name} has ${field} ${String(is)} in feature ${i + 1}, and must have ${String(value)}`);
    }
  });
}

function sameTwice(answers: readonly BatteryAnswer[], variants: readonly Variant[]): void {
  const [first, again] = [answers[0]!, answers[variants.length]!];
  const textOf = ({ outputs }: BatteryAnswer) =>
    JSON.stringify(outputs, (_key, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value,
    );
  if (textOf(first) !== textOf(again)) fail('the same input gave other pixels the second time');
}

function untouched(answers: readonly BatteryAnswer[], variants: readonly Variant[]): void {
  answers.forEach(({ isInputUntouched }, i) => {
    if (!isInputUntouched) fail(`it changed a file of its input (${variants[i]?.name ?? 'second time'})`);
  });
}

/** The host refuses what the declaration does not take. */
function boundsHold(step: AnyStep, good: StepParameters): void {
  const isRefused = (parameters: unknown): boolean => {
    try {
      checkParameters(step, parameters);
      return false;
    } catch (error) {
      if (error instanceof KitError && error.code === 'invalid_parameters') return true;
      throw error;
    }
  };
  if (isRefused(good)) fail('it refuses the parameters of its own first case');
  if (!isRefused({ ...good, 'no-such-parameter': 1 })) fail('it takes a parameter that it does not have');
  for (const [name, { minimum, maximum, maxLength, enum: choices, type }] of Object.entries(
    parameterSchema(step).properties,
  )) {
    const bad: unknown[] = [
      ...(minimum === undefined ? [] : [minimum - Math.max(1, Math.abs(minimum))]),
      ...(maximum === undefined ? [] : [maximum + Math.max(1, Math.abs(maximum))]),
      ...(maxLength === undefined ? [] : ['x'.repeat(maxLength + 1)]),
      ...(choices ? ['no-such-choice'] : []),
      ...(type === 'number' || type === 'integer' ? ['text', null] : []),
    ];
    for (const value of bad)
      if (!isRefused({ ...good, [name]: value })) fail(`it takes ${JSON.stringify(value)?.slice(0, 60)} as ${name}`);
    if ((type === 'number' || type === 'integer') && !choices && (minimum === undefined || maximum === undefined))
      fail(`${name} has no bounds: give it .min() and .max()`);
  }
}

type Run = (diskBytes?: number) => Promise<{
  readonly peakBytes: number;
  readonly estimate: StepEstimate | null;
  readonly outputBytes: number;
}>;
const smallSide = 512;
/** Of an estimate, either way. */
const estimateFactor = 2;
/** What a step may hold of an input at once: at most so much of it. */
const largestShare = 1 / 4;
const syntheticSide = 1_024;
const smallStripPixels = 250_000;

function largeChecks(options: BatteryOptions, step: AnyStep): BatteryCheck[] {
  const { cases, definition, stepId, confinement } = options;
  const side = options.largeSide ?? smallSide * 8;
  const { inputs, parameters } = cases.cases[0]!;
  const isOfRasters = Object.values(inputs).flat().some(isRaster);

  /** Runs the step as the app does, again and again on the same input. */
  async function runsOn<T>(on: { side: number } | { synthetic: number }, work: (run: Run) => Promise<T>): Promise<T> {
    return inFolder(async (folder) => {
      const inputDir = join(folder, 'inputs');
      if ('side' in on)
        await runInChild<null>({
          module: writeJob,
          input: { inputs: sized(inputs, on.side, on.side) },
          workFolder: inputDir,
          confinement: await confinement(),
          limits: { timeoutMs: childTimeoutMs },
        });
      const wanted = checkParameters(step, 'side' in on ? parameters : {});
      const input =
        'side' in on ? inputOf(step, Object.keys(inputs)) : ({ type: 'synthetic', size: on.synthetic } as const);
      return work(async (diskBytes) => {
        let peakBytes = 0;
        const host = createStepHost({
          definition,
          inputDir,
          confinement: await confinement(),
          platformInput: { check: () => fail('no platform'), fetch: () => fail('no platform') },
          concurrency: 1,
          limits: { timeoutMs: childTimeoutMs, ...(diskBytes !== undefined && { diskBytes }) },
          onMemory: (bytes) => (peakBytes = Math.max(peakBytes, bytes)),
        });
        const estimate = diskBytes === undefined ? (await host.check(stepId, wanted, input)).estimate : null;
        const task = {
          owner: 'battery',
          stepId,
          stepVersion: step.version,
          parameters: wanted,
          input,
          workFolder: join(folder, 'run'),
        };
        const { outputs } = await host.run(task, { signal: new AbortController().signal, onProgress: () => {} });
        return { peakBytes, estimate, outputBytes: outputs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
      });
    });
  }

  /** With room, and then with half of what its outputs need. */
  const twice = (run: Run) =>
    run().then(async (first) => ({
      ...first,
      withoutRoom: await run(Math.floor(first.outputBytes / 2)).then(
        () => null,
        (error: unknown) => error as { code?: string; message?: string },
      ),
    }));
  let large: ReturnType<typeof twice> | undefined;
  const atLarge = () => (large ??= runsOn({ side }, twice));
  if (!isOfRasters) return [];
  return [
    {
      name: 'reads an input 64 times as large in parts',
      run: async () => {
        const [answer] = await inOneChild(options, [{ name: '', inputs: sized(inputs, side, side), parameters, readsOutputs: false, stripPixels: smallStripPixels, holds: () => {} }], step); // prettier-ignore
        if (answer!.failure) fail(`it failed by ${answer!.failure.code}: ${answer!.failure.message}`);
        const share = answer!.largestRead / (side * side);
        if (share > largestShare) fail(`it read ${Math.round(share * 100)} % of a raster of ${side} x ${side} at once`);
      },
    },
    {
      name: 'its memory and its estimate',
      run: async () => {
        const { peakBytes, estimate } = await atLarge();
        if (!estimate) return;
        const factor = peakBytes / estimate.memoryBytes;
        if (factor > estimateFactor || factor < 1 / estimateFactor)
          fail(`it held ${megabytes(peakBytes)}, and its estimate is ${megabytes(estimate.memoryBytes)}`);
      },
    },
    {
      name: 'its output and its estimate',
      run: async () => {
        const { outputBytes, estimate } = await runsOn({ synthetic: syntheticSide }, (run) => run());
        if (!estimate) return;
        const factor = outputBytes / estimate.outputBytes;
        if (factor > estimateFactor || factor < 1 / estimateFactor)
          fail(
            `it made ${megabytes(outputBytes)} of a synthetic scene, and its estimate is ${megabytes(estimate.outputBytes)}`,
          );
      },
    },
    {
      name: 'a disk without room',
      run: async () => {
        const { withoutRoom: ended } = await atLarge();
        if (ended?.code !== 'job_disk_exceeded')
          fail(
            `it had no room on its disk, and ended ${ended ? `by ${ended.code}: ${ended.message}` : 'as if it had'}`,
          );
      },
    },
  ];
}

/** Every input from the folder of its name. */
function inputOf(step: AnyStep, names: readonly string[]): RunInput {
  const sources = Object.fromEntries(names.map((name) => [name, { type: 'local', path: name } as const]));
  const [only] = Object.values(sources);
  return inputsOf(step).length === 1 && only ? only : { type: 'named', inputs: sources };
}

const sized = (inputs: Inputs, width: number, height: number): Inputs =>
  Object.fromEntries(
    Object.entries(inputs).map(([name, files]) => [
      name,
      files.map((file) => (isRaster(file) ? { ...file, width, height } : file)),
    ]),
  );
const megabytes = (bytes: number) => `${(bytes / 1e6).toPrecision(3)} MB`;
