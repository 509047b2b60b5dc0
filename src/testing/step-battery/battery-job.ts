/** Runs in a child process: a step on many small inputs, one after the other, each with what it left. */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import gdal from 'gdal-async';
import stepJob, { type StepJobInput } from '../../app/processing/step-job.ts';
import { setStripPixels } from '../../raster/block-walk.ts';
import { addMask, maskOf } from '../../raster/band-reader.ts';
import { nameBands } from '../../raster/cog.ts';
import { KitError } from '../../contract/kit-error.ts';
import { describedError } from '../../child/in-child.ts';
import type { Job } from '../../child/in-child.ts';
import { openRaster } from '../../raster/open-raster.ts';
import { openVector } from '../../raster/open-vector.ts';
import { outputsOf, type AnyStep } from '../../steps/step.ts';
import { isRaster, type FileRecipe, type RasterRecipe } from './cases.ts';
import { isGap, rowOf, type Gap } from './recipe.ts';
import { metadataOf } from '../../raster/metadata-of.ts';

export interface BatteryRun {
  readonly parameters: StepJobInput['parameters'];
  readonly inputs: Readonly<Record<string, readonly FileRecipe[]>>;
  readonly gap: Gap | null;
  /** Size of the strips in which the input is read; null for the usual size. */
  readonly stripPixels: number | null;
  /** False for outputs that are too large to be sent: they count as not there. */
  readonly readsOutputs: boolean;
  /** Cancels when the step has come so far, 0 to 1. */
  readonly cancelAt: number | null;
}

export interface BatteryInput {
  readonly definition: string;
  readonly stepId: string;
  readonly runs: readonly BatteryRun[];
}

export interface LeftRaster {
  readonly kind: 'raster';
  readonly width: number;
  readonly height: number;
  readonly geoTransform: readonly number[] | null;
  readonly crs: string | null;
  /** `pixels`: of each Float64, as bytes. */
  readonly bands: readonly {
    readonly pixels: Uint8Array;
    readonly nodata: number | null;
    /** A mask marks missing pixels. */
    readonly isMasked: boolean;
  }[];
}
export interface LeftFeatures {
  readonly kind: 'vector';
  readonly properties: readonly Readonly<Record<string, unknown>>[];
}
/** A file output. Cases cannot check its content. */
export interface LeftFile {
  readonly kind: 'file';
  readonly sizeBytes: number;
}
export type LeftOutput = LeftRaster | LeftFeatures | LeftFile;

export interface BatteryAnswer {
  /** Null where the step failed. */
  readonly outputs: Readonly<Record<string, LeftOutput | null>> | null;
  readonly failure: { readonly kind: string; readonly code: string; readonly message: string } | null;
  readonly isCancelled: boolean;
  /** Windows that the step has read after the cancel. */
  readonly readsAfterCancel: number;
  /** Between two fractions that it told. */
  readonly largestJump: number;
  /** Size of the largest window that the step has read, in pixels. */
  readonly largestRead: number;
  /** True if every file of the step's input is unchanged. */
  readonly isInputUntouched: boolean;
  /** Coordinate reference system of the first input, as the outputs' is told. */
  readonly inputCrs: string | null;
  readonly tookMs: number;
}

/** Progress from here on is the host's: it checks what was left. */
const stepEnds = 0.95;
const usualStripPixels = 2_500_000;

const job: Job<BatteryInput, BatteryAnswer[]> = async ({ definition, stepId, runs }, context) => {
  // The host has loaded the same module, and checked it.
  const {
    default: { steps },
  } = (await import(definition)) as { default: { steps: readonly AnyStep[] } };
  const step = steps.find(({ id }) => id === stepId)!;
  const answers: BatteryAnswer[] = [];
  for (const [i, run] of runs.entries()) {
    context.progress(i / runs.length, String(i));
    const startMs = performance.now();
    const answer = await runOne(step, definition, run, join(context.workFolder, String(i)));
    answers.push({ ...answer, tookMs: performance.now() - startMs });
  }
  return answers;
};
export default job;

async function runOne(
  step: AnyStep,
  definition: string,
  run: BatteryRun,
  folder: string,
): Promise<Omit<BatteryAnswer, 'tookMs'>> {
  const inputs: StepJobInput['inputs'][number][] = [];
  const files: string[] = [];
  for (const [name, recipes] of Object.entries(run.inputs)) {
    const paths = recipes.map((recipe, i) => join(folder, 'input', name, String(i), recipe.name));
    for (const [i, path] of paths.entries()) writeFile(path, recipes[i]!, run.gap);
    inputs.push({
      name,
      kind: isRaster(recipes[0]!) ? 'raster' : 'vector',
      synthetic: null,
      fileCount: paths.length,
    });
    files.push(...paths);
  }
  const digests = files.map(digestOf);
  const workFolder = join(folder, 'work');
  mkdirSync(workFolder, { recursive: true });
  const cancel = new AbortController();
  const reads = watchReads(cancel.signal);
  setStripPixels(run.stripPixels ?? usualStripPixels);
  let outputs: BatteryAnswer['outputs'] = null;
  let failure: BatteryAnswer['failure'] = null;
  let [told, largestJump] = [0, 0];
  try {
    const made = await stepJob(
      { definition, stepId: step.id, parameters: run.parameters, provenance: null, inputs },
      {
        files,
        workFolder,
        ask: () => Promise.reject(new Error('a battery has no platform whose models a step could run')),
        signal: cancel.signal,
        progress: (fraction) => {
          largestJump = Math.max(largestJump, Math.min(1, fraction) - told);
          told = Math.max(told, Math.min(1, fraction));
          if (run.cancelAt !== null && fraction >= run.cancelAt && fraction < stepEnds)
            cancel.abort(new Error('cancelled by the battery'));
        },
      },
    );
    const left = new Set(made.outputs);
    outputs = Object.fromEntries(
      outputsOf(step).map(([name, { kind, fileName }]) => [
        name,
        !left.has(name) || !run.readsOutputs ? null : readOutput(join(workFolder, fileName), kind),
      ]),
    );
  } catch (error) {
    const { kind, code, message, stack } = describedError(error);
    const isDefect = !(error instanceof KitError) && !cancel.signal.aborted;
    const place = isDefect ? placeIn(stack ?? '', step.cases ?? new URL(definition)) : '';
    failure = { kind, code, message: `${message}${place}` };
  } finally {
    reads.stop();
    setStripPixels(usualStripPixels);
  }
  return {
    outputs,
    failure,
    isCancelled: cancel.signal.aborted,
    largestJump,
    ...reads.counts,
    isInputUntouched: files.every((path, i) => digestOf(path) === digests[i]),
    inputCrs: crsOfInput(files[0], run.inputs),
  };
}

/** Returns the first line of a stack that lies in the folder of a file, such as ` (step.ts:12:3)`, or an empty text. */
function placeIn(stack: string, file: URL): string {
  const folder = new URL('.', file).href;
  const frame = stack.split('\n').find((line) => line.includes(folder));
  return frame === undefined ? '' : ` (${frame.slice(frame.indexOf(folder) + folder.length).replace(/\)$/, '')})`;
}

const digestOf = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');

const bytesOf = ({ buffer, byteOffset, byteLength }: Float64Array) => new Uint8Array(buffer, byteOffset, byteLength);

type Read = (
  x: number,
  y: number,
  width: number,
  height: number,
  data?: unknown,
  options?: { readonly buffer_width?: number; readonly buffer_height?: number },
) => unknown;

/** Counts what is read through GDAL's bindings; a program's own reads nobody sees. */
function watchReads(signal: AbortSignal) {
  const counts = { largestRead: 0, readsAfterCancel: 0 };
  // The overloads of the real type cannot be given one function.
  const pixels = gdal.RasterBandPixels.prototype as { read: Read };
  const real = pixels.read;
  pixels.read = function (this: unknown, ...args) {
    const [, , width, height, , { buffer_width = width, buffer_height = height } = {}] = args;
    counts.largestRead = Math.max(counts.largestRead, buffer_width * buffer_height);
    if (signal.aborted) counts.readsAfterCancel += 1;
    return real.apply(this, args);
  };
  return { counts, stop: () => void (pixels.read = real) };
}

function writeFile(path: string, recipe: FileRecipe, gap: Gap | null): void {
  mkdirSync(join(path, '..'), { recursive: true });
  if (isRaster(recipe)) writeRaster(path, recipe, gap);
  else writeFileSync(path, JSON.stringify(recipe.geoJson));
}

/** Writes a recipe's pixels, row by row, with the names of its bands. By nothing that steps are made with. */
export function writeRaster(path: string, recipe: RasterRecipe, gap: Gap | null): void {
  const { width, height, geoTransform, epsg, type, nodata, bands, scale } = recipe;
  const driver = gdal.drivers.get('GTiff');
  const aside = `${path}.pixels`;
  const isSigned = type === 'Int8';
  const hasAlpha = gap?.as === 'alpha';
  const dataset = driver.create(aside, width, height, bands.length + Number(hasAlpha), isSigned ? 'Byte' : type);
  if (epsg !== null) dataset.srs = gdal.SpatialReference.fromEPSG(epsg);
  dataset.geoTransform = [...geoTransform];
  const { factor, offset } = scale ?? { factor: 1, offset: 0 };
  for (let y = 0; y < height; y++) {
    bands.forEach((_band, i) => {
      const row = rowOf(recipe, i, y, gap);
      if (scale) row.forEach((value, x) => (row[x] = (value - offset) / factor));
      if (isSigned) row.forEach((value, x) => (row[x] = value & 255));
      dataset.bands.get(i + 1).pixels.write(0, y, width, 1, row);
    });
    if (hasAlpha) dataset.bands.get(bands.length + 1).pixels.write(0, y, width, 1, visibleRow(gap, width, y));
  }
  const view = nameBands(
    dataset,
    dataset.bands.map((band) => ({ description: bands[(band.id ?? 1) - 1]?.name ?? '', nodata })),
  );
  if (scale) view.bands.forEach((band) => void ([band.scale, band.offset] = [factor, offset]));
  if (hasAlpha) view.bands.get(bands.length + 1).colorInterpretation = 'Alpha';
  const made = driver.createCopy(path, view, isSigned ? { PIXELTYPE: 'SIGNEDBYTE' } : {});
  if (gap?.as === 'mask') {
    const mask = addMask(made);
    for (let y = 0; y < height; y++) mask.pixels.write(0, y, width, 1, visibleRow(gap, width, y));
  }
  made.close();
  view.close();
  driver.deleteDataset(aside);
}

const visibleRow = (gap: Gap, width: number, y: number) =>
  Uint8Array.from({ length: width }, (_, x) => (isGap(gap, x, y) ? 0 : 255));

function crsOfInput(path: string | undefined, inputs: BatteryRun['inputs']): string | null {
  const [first] = Object.values(inputs)[0] ?? [];
  if (path === undefined || !first || !isRaster(first)) return null;
  const dataset = openRaster(path);
  const crs = dataset.srs?.toWKT() ?? null;
  dataset.close();
  return crs;
}

/** Position and size of a feature, in the units of its layer; none without a geometry. */
function measuresOf(feature: gdal.Feature): Readonly<Record<string, unknown>> {
  let geometry: gdal.Geometry | null = null;
  try {
    geometry = feature.getGeometry();
  } catch {
    // The bindings throw where there is none.
  }
  if (!geometry) return {};
  const { minX, minY, maxX, maxY } = geometry.getEnvelope();
  // Only some classes of geometries have them.
  const { getArea, getLength } = geometry as { getArea?: () => number; getLength?: () => number };
  return {
    ...{ $west: minX, $south: minY, $east: maxX, $north: maxY },
    ...(getArea && { $area: getArea.call(geometry) }),
    ...(getLength && { $length: getLength.call(geometry) }),
  };
}

/** Values by the band's own scale, with NaN for masked pixels and for the nodata value of a scaled band. */
function valuesOf(band: gdal.RasterBand, width: number, height: number): Float64Array {
  const values = new Float64Array(width * height);
  band.pixels.read(0, 0, width, height, values);
  const [factor, offset] = [band.scale ?? 1, band.offset ?? 0];
  const { PIXELTYPE } = metadataOf(band, 'IMAGE_STRUCTURE');
  if (PIXELTYPE === 'SIGNEDBYTE') values.forEach((value, i) => value > 127 && (values[i] = value - 256));
  if (factor !== 1 || offset !== 0)
    values.forEach((value, i) => (values[i] = value === band.noDataValue ? NaN : value * factor + offset));
  const mask = maskOf(band)?.pixels.read(0, 0, width, height, new Uint8Array(width * height));
  mask?.forEach((isThere, i) => isThere === 0 && (values[i] = NaN));
  return values;
}

/** Reads the whole content of an output. */
export function readOutput(path: string, kind: LeftOutput['kind'] | undefined): LeftOutput {
  if (kind === 'file') return { kind, sizeBytes: statSync(path).size };
  if (kind === 'vector') {
    const dataset = openVector(path);
    try {
      return {
        kind: 'vector',
        properties: dataset.layers
          .get(0)
          // Values by the names of their fields; gdal-async gives them the type `any`.
          .features.map((feature) => ({ ...(feature.fields.toObject() as object), ...measuresOf(feature) })),
      };
    } finally {
      dataset.close();
    }
  }
  const dataset = openRaster(path);
  try {
    const { x: width, y: height } = dataset.rasterSize;
    return {
      kind: 'raster',
      width,
      height,
      geoTransform: dataset.geoTransform,
      crs: dataset.srs?.toWKT() ?? null,
      bands: dataset.bands.map((band) => ({
        pixels: bytesOf(valuesOf(band, width, height)),
        nodata: band.noDataValue,
        isMasked: maskOf(band) !== null,
      })),
    };
  } finally {
    dataset.close();
  }
}
