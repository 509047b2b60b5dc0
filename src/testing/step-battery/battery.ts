import { checkParameters, parameterSchema, type StepParameters } from '../../app/processing/step-parameters.ts';
import { KitError } from '../../contract/index.ts';
import { mainInput, type AnyStep } from '../../steps/step.ts';
import type { BatteryAnswer } from './battery-job.ts';
import { isRaster, type RasterRecipe, type StepCases } from './cases.ts';
import { fail, smallTimeoutMs, type BatteryCheck, type BatteryOptions, type Inputs, type Variant } from './check.ts';
import { isAsExpected, liesAsItsInput } from './expectation.ts';
import { inOneChild } from './in-child.ts';
import { largeChecks } from './large-checks.ts';
import { stored, type Gap } from './recipe.ts';

/**
 * All that a step must do: its own cases, and what is asked of every step without being told. Throws `KitError` where the
 * cases do not fit the step. Checks may run in any order, one after the other.
 */
export function batteryOf(options: BatteryOptions): BatteryCheck[] {
  const { definition, stepId, cases, onlyCases = false } = options;
  const step = definition.steps.find(({ id }) => id === stepId);
  if (!step) throw new KitError('unknown_step', `the app has no step ${stepId}`);
  const [base] = cases.cases;
  if (!base?.expect) throw new KitError('bad_cases', 'the first case must say what to expect: the battery varies it');
  const variants = [...ownCases(step, cases), ...(onlyCases ? [] : variantsOf(step, cases))];
  let answers: Promise<readonly BatteryAnswer[]> | undefined;
  let times: readonly number[] = [];
  const answersOnce = () =>
    (answers ??= inOneChild(options, variants, step, smallTimeoutMs).then((all) => {
      times = all.map(({ tookMs }) => tookMs);
      return all;
    }));
  const checks: BatteryCheck[] = [
    ...variants.map((variant, i) => ({
      name: variant.name,
      run: async () => variant.holds((await answersOnce())[i]!, variant),
      tookMs: () => times[i],
    })),
    { name: 'the same pixels twice', run: async () => sameTwice(await answersOnce(), variants) },
    { name: 'its input is as it was', run: async () => untouched(await answersOnce(), variants) },
    { name: 'its declared bounds hold', run: async () => boundsHold(step, base.parameters) },
    ...(onlyCases ? [] : largeChecks(options, step)),
  ];
  // With `onlyCases` the common checks are absent, so their names cannot be verified.
  const unknown = Object.keys(cases.exempt).find((name) =>
    name.startsWith('case: ') ? true : !onlyCases && !checks.some((check) => check.name === name),
  );
  if (unknown !== undefined)
    throw new KitError(
      'bad_cases',
      `cases.json exempts ${JSON.stringify(unknown)}: exempt is for what every step must do, by its name (${checks
        .map(({ name }) => name)
        .filter((name) => !name.startsWith('case: '))
        .join('; ')})`,
    );
  return checks.map((check) => {
    const exempt = cases.exempt[check.name];
    return exempt === undefined ? check : { ...check, exempt };
  });
}

function ownCases(step: AnyStep, cases: StepCases): Variant[] {
  return cases.cases.map(({ name, inputs, parameters, expect, refused }) => ({
    name: `case: ${name}`,
    inputs,
    parameters,
    holds: (answer, variant) => {
      if (expect) return isAsExpected(step, cases, expect, answer, variant);
      mustRefuse(refused!, answer);
    },
  }));
}

function mustRefuse(code: string, { failure }: BatteryAnswer): void {
  if (!failure) return fail(`it ran, and must refuse with ${code}`);
  if (failure.kind !== 'input' || failure.code !== code)
    fail(`it must refuse with ${code}, and ended by ${failure.code} (${failure.kind}): ${failure.message}`);
}

/** The first case on other inputs. */
function variantsOf(step: AnyStep, cases: StepCases): Variant[] {
  const [base] = cases.cases;
  const { inputs, parameters } = base!;
  // Features, and pixels that are given one by one, are those of that input alone.
  const expect = Object.fromEntries(
    Object.entries(base!.expect ?? {}).filter(([, expected]) => 'band' in expected && expected.pixels === undefined),
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
  /** Makes a variant that must end as expected, or by the refusal that the cases name. */
  const variant = (name: string, more: Omit<Variant, 'name' | 'holds' | 'parameters'> & Partial<Variant>): Variant => ({
    parameters,
    ...more,
    name,
    holds: (answer, itself) => {
      const code = cases.refuses[name];
      if (code === undefined) return (more.holds ?? isWhole)(answer, itself);
      mustRefuse(code, answer);
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
  const plain = changed(() => ({ nodata: undefined }));
  const takesSeveral = (mainInput(step)?.[1].maxItems ?? 2) > 1;
  const bands = (inputs[main] ?? []).filter(isRaster).flatMap((file) => file.bands.map((band) => ({ file, band })));
  const asFiles = bands.map(({ file, band }) => ({
    ...file,
    name: `${band.name}.tif`,
    bands: [{ ...band, name: '' }],
  }));
  const asOne = [{ ...bands[0]!.file, name: 'scene.tif', bands: bands.map(({ band }) => band) }];
  const canSplit = takesSeveral && bands.length > 1 && bands.every(({ band }) => /^[A-Za-z]\w*$/.test(band.name));
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
          variant('NaN beside no data', { inputs: floats, gap: gapOf('nodata and NaN', 'some') }),
          variant('a mask', { inputs: plain, gap: gapOf('mask', 'some') }),
          // A file of one band is called by its name only without an alpha band.
          ...(files.every((file) => file.bands.length > 1 || file.bands[0]?.name !== '')
            ? [variant('an alpha band', { inputs: plain, gap: gapOf('alpha', 'some') })]
            : []),
          variant('a scale and an offset', {
            inputs: changed(() => ({ type: 'Float64', nodata: undefined, scale: { factor: 0.5, offset: 100 } })),
          }),
          ...(cases.types.includes('Byte')
            ? [variant('signed bytes', { inputs: changed(() => ({ type: 'Int8', nodata: undefined })) })]
            : []),
          variant('rows from south to north', {
            inputs: changed(() => ({ geoTransform: [500_000, 30, 0, 5_400_000, 0, 30] })),
            holds: elsewhere,
          }),
          variant('pixels that are not square', {
            inputs: changed(() => ({ geoTransform: [500_000, 30, 0, 5_400_000, 0, -10] })),
            holds: elsewhere,
          }),
          variant('no coordinate reference system', { inputs: changed(() => ({ epsg: null })), holds: elsewhere }),
          variant('degrees at 60° north', {
            inputs: changed(() => ({ epsg: 4326, geoTransform: [13, 0.001, 0, 60, 0, -0.001] })),
            holds: elsewhere,
          }),
          variant('the south pole', {
            inputs: changed(() => ({ epsg: 3031, geoTransform: [-500, 30, 0, 300, 0, -30] })),
            holds: elsewhere,
          }),
          variant('across 180°', {
            inputs: changed(() => ({ epsg: 4326, geoTransform: [179.99, 0.001, 0, -16, 0, -0.001] })),
            holds: elsewhere,
          }),
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
          variant('a different nodata value in each band', {
            inputs: { ...inputs, [main]: asFiles.map((file, i) => ({ ...file, type: 'Float32', nodata: -9_999 - i })) },
            gap: gapOf('nodata', 'some'),
          }),
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

const maxReadsAfterCancel = 2;

function endsWhenCancelled({ cancel }: StepCases, answer: BatteryAnswer): void {
  if (!answer.isCancelled && cancel === 'outside') return;
  if (!answer.isCancelled) fail('it told no progress before its end: there was nothing to cancel');
  if (!answer.failure) fail('it was cancelled in the middle, and left its outputs all the same');
  if (answer.failure?.message !== 'cancelled by the battery')
    fail(`it was cancelled, and ended by another error: ${answer.failure?.code}: ${answer.failure?.message}`);
  if (cancel === 'cooperative' && answer.readsAfterCancel > maxReadsAfterCancel)
    fail(`it went on after the cancel, and read ${answer.readsAfterCancel} more windows`);
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
      if (!isRefused({ ...good, [name]: value })) fail(`it takes ${JSON.stringify(value).slice(0, 60)} as ${name}`);
    if ((type === 'number' || type === 'integer') && !choices && (minimum === undefined || maximum === undefined))
      fail(`${name} has no bounds: give it .min() and .max()`);
  }
}
