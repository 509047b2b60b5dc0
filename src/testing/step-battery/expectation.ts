import { mainInput, outputsOf, type AnyStep } from '../../steps/step.ts';
import type { BatteryAnswer, LeftRaster } from './battery-job.ts';
import { isRaster, type ExpectedFeatures, type ExpectedRaster, type RasterRecipe, type StepCases } from './cases.ts';
import { fail, type Variant } from './check.ts';
import { formulaValue, isGap, rowOf, stored } from './recipe.ts';

/** Expected outputs of a case, over an input's values. */
export type Expect = Readonly<Record<string, ExpectedRaster | ExpectedFeatures>>;

export function isAsExpected(
  step: AnyStep,
  cases: StepCases,
  expect: Expect,
  answer: BatteryAnswer,
  variant: Variant,
): void {
  liesAsItsInput(step, cases, answer, variant);
  for (const [name, expected] of Object.entries(expect)) {
    const output = answer.outputs?.[name];
    if (!output) return fail(`it left no ${name}`);
    if (output.kind === 'file') {
      if (checksContent(expected)) return fail(`${name} is a file output, and cases cannot check its content`);
      continue;
    }
    if ('band' in expected) {
      if (output.kind !== 'raster') return fail(`${name} is no raster`);
      pixelsAre(name, output, expected, cases, variant);
    } else {
      if (output.kind !== 'vector') return fail(`${name} holds no features`);
      featuresAre(name, output.properties, expected);
    }
  }
}

/** True if a case checks more than that the output exists. */
const checksContent = (expected: ExpectedRaster | ExpectedFeatures) =>
  !('band' in expected) || expected.pixels !== undefined || expected.value !== undefined;

/** It ran, and its rasters have the pixels of the first input. */
export function liesAsItsInput(step: AnyStep, { grid }: StepCases, answer: BatteryAnswer, { inputs }: Variant): void {
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
  if (expected.geoTransform?.some((value, i) => Math.abs(value - (output.geoTransform?.[i] ?? NaN)) > 1e-6))
    fail(`${name} has the geotransform ${String(output.geoTransform)}, and must have ${String(expected.geoTransform)}`);
  if (expected.pixels && expected.pixels.length !== width * height)
    fail(`${name} has ${width} x ${height} pixels, and must have ${expected.pixels.length}`);
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
      // If a value stands for gaps, NaN does not stand for one.
      const isGone =
        band.isMasked || band.nodata === null || Number.isNaN(band.nodata)
          ? Number.isNaN(is) || is === band.nodata
          : is === band.nodata;
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
        file.bands.forEach((fileBand, band) => {
          const own = fileBand.name || file.name.replace(/\.tif$/, '');
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
    // oxlint-disable-next-line typescript/no-unnecessary-condition -- the callback above sets it
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
      // Fields of features hold scalars.
      const is = (properties[i]?.[field] ?? null) as string | number | boolean | null;
      const isRight =
        typeof value === 'number' && is !== null
          ? Math.abs(Number(is) - value) <= expected.tolerance * Math.max(1, Math.abs(value))
          : String(is) === String(value);
      if (!isRight) fail(`${name} has ${field} ${String(is)} in feature ${i + 1}, and must have ${String(value)}`);
    }
  });
}
