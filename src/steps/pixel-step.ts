import type Gdal from 'gdal-async';
import { addMask, type BandReader, type Reading } from '../raster/band-reader.ts';
import type { OutputValues, Strip } from '../raster/block-walk.ts';
import type { Grid } from '../raster/cog.ts';
import { inPieces } from '../raster/pieces.ts';
import type { Scene, SceneBand } from '../raster/scene.ts';
import type { SourceType } from '../contract/index.ts';
import { KitError } from '../contract/kit-error.ts';
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { command, type PixelProgram } from './command.ts';
import { canHold, integerRanges } from '../raster/integer-types.ts';
import { estimateCog } from './estimate.ts';
import { requireSameMeaning } from './same-meaning.ts';
import { readingOf, readingParameters, type ReadingParameters } from './reading.ts';
import {
  defineStep,
  z,
  type AnyStep,
  type BandDeclaration,
  type EstimateInput,
  type InputDeclaration,
  type RasterInput,
  type RasterOutput,
  type StepEstimate,
  type StepJob,
  type StepRequirements,
  type TileWork,
} from './step.ts';

/** Computes a strip from physical values. NaN marks missing values in the inputs and the outputs. */
export type BlockFunction = (inputs: readonly Float64Array[], outputs: readonly OutputValues[], strip: Strip) => void;

/** The grid of a step's bands. */
export interface PixelGrid extends Grid {
  /** The bands that the functions take, in their order. */
  readonly bands: readonly Gdal.RasterBand[];
}

/** Share of the progress bar for computing pixels. The rest is compression. */
const computePart = 0.5;
const bytesOf = (type: string) => Number(/(\d+)$/.exec(type)?.[1] ?? 8) / 8;

/** The raster that a pixel step writes: its bands and their overviews. */
export interface PixelOutput {
  readonly path: string;
  /** All bands have one type. A mask marks missing pixels of integers without a nodata value. */
  readonly bands: readonly BandDeclaration[];
  /** Bands of the input whose units the bands have, in their order. Default: none. */
  readonly unitsOf?: readonly SceneBand[];
  /** Overview resampling. Default: `AVERAGE` for real numbers, `NEAREST` for integers. */
  readonly overviews?: 'NEAREST' | 'AVERAGE' | 'MODE';
}

/**
 * Writes a Cloud Optimized GeoTIFF on the grid of `bands`, pixel by pixel. `compute` receives the values of `readers`. Pixels with NaN, infinite values and
 * values outside the type's range are missing. Integers are rounded. Throws `SceneError` if the bands are on different grids.
 */
export async function writePixels(
  { raster, workFolder, tile }: Pick<StepJob<never>, 'raster' | 'workFolder' | 'tile'>,
  {
    bands,
    reading = {},
    readers = bands.map((band) => raster.reader(band, reading)),
    reach = 0,
    output,
    share,
  }: {
    /** The output has the grid of the first band. */
    readonly bands: readonly SceneBand[];
    readonly reading?: Reading;
    /** Default: one reader per band, with the options `reading`. */
    readonly readers?: readonly BandReader[];
    readonly reach?: number;
    readonly output: PixelOutput;
    readonly share: StepJob<never>['share'];
  },
  compute: (grid: PixelGrid) => BlockFunction,
): Promise<void> {
  const [first] = bands;
  if (!first) throw new Error('a pixel step takes at least one band');
  for (const other of bands) raster.requireSameGrid(first, other);
  const grid = raster.gridOf(first.dataset);
  const dataType = output.bands[0]?.dataType ?? 'Float32';
  const block = tile?.type === 'whole' ? null : compute({ ...grid, bands: bands.map(({ band }) => band) });
  const isPart = tile?.type === 'part';
  // A tile below the raster, whose height was not known exactly, is not used.
  const fromRow = isPart ? Math.min(tile.from, grid.height - 1) : 0;
  const toRow = Math.max(fromRow + 1, Math.min(grid.height, (isPart ? tile.to : null) ?? grid.height));
  const parts = tile?.type === 'whole' ? new Parts(tile.parts, basename(output.path), raster.openRaster) : null;
  const needsMask = dataType in integerRanges && output.bands.every(({ nodata }) => nodata === undefined);
  const gaps = new Gaps(fromRow);
  const made = await raster.createRaster(
    {
      path: isPart
        ? output.path
        : `${workFolder}/pixels-${output.bands[0]?.description.replace(/\W+/g, '_') ?? ''}.tif`,
      // The part of a tile is an array of pixels, whose place the whole has.
      grid: isPart ? { ...grid, height: toRow - fromRow } : grid,
      dataType,
      bands: output.bands,
    },
    (target) =>
      raster.walkBands(
        {
          inputs: readers,
          outputs: output.bands.map((_, i) => target.bands.get(i + 1)),
          reach,
          fromRow,
          isRead: block !== null,
        },
        (inputs, outputs, strip) => {
          if (parts) {
            const mask = parts.read(outputs, strip, needsMask);
            if (mask) gaps.write(target, strip, mask);
            return;
          }
          block?.(inputs, outputs, strip);
          const count = strip.width * strip.rows;
          if (needsMask) gaps.write(target, strip, settleMasked(outputs, count, dataType));
          else
            outputs.forEach((values, i) => inPieces(count, (from, to) => settle(values, from, to, output.bands[i]!)));
        },
        share(0, isPart ? 1 : computePart),
      ),
  );
  parts?.close();
  if (isPart) return made.close();
  output.unitsOf?.forEach(({ band: { unitType } }, i) => {
    if (unitType) made.bands.get(i + 1).unitType = unitType;
  });
  const overviews = output.overviews ?? (dataType.startsWith('Float') ? 'AVERAGE' : 'NEAREST');
  raster.writeCog(
    made,
    output.path,
    { compression: 'DEFLATE', blockSize: 512, resampling: overviews },
    share(computePart, 1),
  );
  made.close();
}

/** Replaces values that the type cannot store by nodata, and rounds integers. */
function settle(values: OutputValues, from: number, to: number, { dataType, nodata = NaN }: BandDeclaration): void {
  const range = integerRanges[dataType];
  if (!range) {
    // Only a finite number minus itself is 0.
    for (let i = from; i < to; i++) if (values[i]! - values[i]! !== 0) values[i] = nodata;
    return;
  }
  const [low, high] = range;
  for (let i = from; i < to; i++) {
    const value = Math.floor(values[i]! + 0.5);
    if (value >= low && value <= high) values[i] = value;
    else values[i] = nodata;
  }
}

/** Rounds integers, and returns the mask of the pixels that the type can store. Throws where bands miss different pixels. */
function settleMasked(outputs: readonly OutputValues[], count: number, dataType: string): Uint8Array {
  const [low, high] = integerRanges[dataType]!;
  const mask = new Uint8Array(count);
  outputs.forEach((values, band) =>
    inPieces(count, (from, to) => {
      for (let i = from; i < to; i++) {
        const value = Math.floor(values[i]! + 0.5);
        const isThere = value >= low && value <= high;
        if (band > 0 && isThere !== (mask[i] === 255))
          throw new Error(
            `a pixel is missing in some bands only, which no mask can say: declare a nodata value of ${dataType} in output.bands`,
          );
        mask[i] = isThere ? 255 : 0;
        values[i] = isThere ? value : 0;
      }
    }),
  );
  return mask;
}

/** Writes the mask of a raster strip by strip, from the first missing pixel on. */
class Gaps {
  #mask: ReturnType<typeof addMask> | null = null;
  #fromRow: number;

  /** `fromRow`: row of the whole that is the first of the raster. */
  constructor(fromRow: number) {
    this.#fromRow = fromRow;
  }

  write(target: Parameters<typeof addMask>[0], { y, width, rows }: Strip, mask: Uint8Array): void {
    if (!this.#mask && !mask.includes(0)) return;
    this.#mask ??= addMask(target);
    this.#mask.pixels.write(0, y - this.#fromRow, width, rows, mask);
  }
}

/** Stored pixels of an output, from the files that the jobs of its tiles have made. */
class Parts {
  #parts: readonly { readonly from: number; readonly dataset: Gdal.Dataset }[];

  constructor(
    parts: Extract<TileWork, { type: 'whole' }>['parts'],
    fileName: string,
    open: (path: string) => Gdal.Dataset,
  ) {
    this.#parts = parts.map(({ from, paths }) => {
      const path = paths[fileName];
      if (path === undefined) throw new Error(`the tile at row ${from} has no ${fileName}`);
      return { from, dataset: open(path) };
    });
  }

  /** Fills the outputs of a strip. Returns the mask of the strip if the parts have one, and `hasMask`. Throws if the parts do not have all rows. */
  read(outputs: readonly OutputValues[], { y, rows, width }: Strip, hasMask: boolean): Uint8Array | null {
    const mask = hasMask ? new Uint8Array(width * rows) : null;
    for (let row = y; row < y + rows;) {
      const part = this.#parts.findLast(({ from }) => from <= row);
      const height = part?.dataset.rasterSize.y ?? 0;
      const count = Math.min(y + rows, (part?.from ?? 0) + height) - row;
      if (!part || count <= 0 || part.dataset.rasterSize.x !== width || part.dataset.bands.count() !== outputs.length)
        throw new Error(`the tiles do not have row ${row}`);
      const [offset, length] = [(row - y) * width, count * width];
      const from = row - part.from;
      outputs.forEach((values, i) =>
        part.dataset.bands.get(i + 1).pixels.read(0, from, width, count, values.subarray(offset, offset + length)),
      );
      if (mask) {
        // Every band has one: without missing pixels it is full.
        const band = part.dataset.bands.get(1).getMaskBand()!;
        band.pixels.read(0, from, width, count, mask.subarray(offset, offset + length));
      }
      row += count;
    }
    return mask;
  }

  close(): void {
    for (const { dataset } of this.#parts) dataset.close();
  }
}

type Bands = Readonly<Record<string, z.ZodType<string, string | undefined>>>;
type Values<Of extends Bands> = { readonly [Name in keyof Of]: string } & ReadingParameters;

/** The GeoTIFF that a pixel step writes. */
export interface PixelStepOutput {
  /** File name that ends with `.tif`. */
  readonly fileName: string;
  /** Default: `MULTISPECTRAL` for real numbers, `UNKNOWN` for integers. */
  readonly sourceType?: SourceType;
  /** All bands have one type. Default nodata: NaN for real numbers, and a mask for integers. */
  readonly bands: readonly [BandDeclaration, ...BandDeclaration[]];
  /** Default: `{ ramp: 'gray' }`. */
  readonly preview?: RasterOutput['preview'];
  readonly overviews?: PixelOutput['overviews'];
}

/** The function that computes the pixels: one of these. */
export interface PixelFunctions<Parameters> {
  /** Computes one pixel from one value per band, in the order of `bands`. Returns an array for several output bands. Called only if every band has a value. */
  readonly pixel?: (parameters: Parameters) => (...values: number[]) => number | readonly number[];
  /** Computes one pixel from its neighbourhood: one array of (2 × `reach` + 1)² values per band, row by row, with NaN for missing values. */
  readonly window?: (parameters: Parameters) => (...windows: Float64Array[]) => number | readonly number[];
  /** Computes a whole strip of arrays. NaN marks missing values in the inputs and the outputs. */
  readonly block?: (parameters: Parameters, grid: PixelGrid) => BlockFunction;
  /** Python program that computes the pixels with `marketplace_step.pixels`, for example `new URL('./my-step.py', import.meta.url)`. */
  readonly python?: URL;
}

/** A step that computes each pixel from the pixels of some bands, by one of `pixel`, `window`, `block` and `python`. */
export interface PixelStep<Of extends Bands, Own extends z.ZodRawShape> extends PixelFunctions<
  Values<Of> & z.output<z.ZodObject<Own>>
> {
  readonly id: string;
  readonly version: string;
  readonly title: string;
  readonly description: string;
  readonly cases?: URL;
  /** Parameters that choose the bands (`band()`), in the order in which the functions take them. */
  readonly bands: Of;
  /** Additional parameters, besides the bands, `scaling` and `nodata`. Default: none. */
  readonly parameters?: z.ZodObject<Own>;
  /** Default: one scene with the bands. */
  readonly input?: RasterInput;
  /** Several inputs by name. Each band belongs to the input that it names in `of`. Default: `input`. */
  readonly inputs?: Readonly<Record<string, InputDeclaration>>;
  readonly output: PixelStepOutput;
  /** The functions receive stored numbers, and the step has no parameter `scaling`. Default: false. */
  readonly isStored?: boolean;
  /** Each band is read from every input in turn: first `a` of `before`, then `a` of `after`. Default: false. */
  readonly ofEachInput?: boolean;
  /** A run waits until a worker has all of this. Default: any worker will do. */
  readonly requires?: StepRequirements;
  /** False for a `block` that keeps something from strip to strip: its rows are computed by one job. Default true. */
  readonly isTiled?: boolean;
  /** Number of neighbouring pixels on each side for `window` and `block`. Default: 0. */
  readonly reach?: number;
  /** Default: an estimate from the output types. */
  readonly estimate?: (input: EstimateInput) => StepEstimate;
}

/**
 * Defines a step by the computation of one pixel. The host finds the bands, checks that they share a grid, and reads physical values (scale, offset, mask, nodata).
 * It writes a Cloud Optimized GeoTIFF with statistics and provenance, and reports progress.
 */
export function definePixelStep<const Of extends Bands, Own extends z.ZodRawShape = Record<never, never>>(
  step: PixelStep<Of, Own>,
): AnyStep {
  const problem = problemOf(step);
  if (problem !== null) throw new KitError('bad_step_definition', `step ${step.id}: ${problem}`);
  const { bands, output, reach = 0 } = step;
  const names = Object.keys(bands);
  const made = output.bands.map((band) =>
    band.nodata === undefined && band.dataType.startsWith('Float') ? { ...band, nodata: NaN } : band,
  );
  const classes = typeof output.preview === 'object' ? output.preview.classes : undefined;
  const reading = step.isStored ? { nodata: readingParameters.nodata } : readingParameters;
  const overviews = output.overviews ?? (classes ? 'MODE' : undefined);
  // Compression leaves 0.45 of integers in Float32, 0.95 of ratios, and about 0.1 of classes.
  const bytesPerPixel =
    (classes ? 0.1 : 0.8) * made.reduce((sum, bandDeclaration) => sum + bytesOf(bandDeclaration.dataType), 0);
  return defineStep({
    id: step.id,
    version: step.version,
    title: step.title,
    description: step.description,
    ...(step.cases && { cases: step.cases }),
    // A shape that is missing spreads as none.
    parameters: z.object({ ...bands, ...(step.parameters?.shape as Own), ...reading }),
    ...(step.inputs
      ? { inputs: step.inputs }
      : {
          input: step.input ?? {
            description: `A scene with ${names.length > 1 ? 'the bands' : 'the band'}, on one grid.`,
            synthetic: 'multispectral',
          },
        }),
    sameGrid: true,
    ...(step.requires && { requires: step.requires }),
    ...(!step.python && { isTiled: step.isTiled ?? true }),
    ...(step.ofEachInput && {
      needs: (given) => Object.fromEntries(names.map((name) => [name, [String(given[name])]])),
    }),
    output: {
      fileName: output.fileName,
      ...(output.sourceType && { sourceType: output.sourceType }),
      bands: made,
      preview: output.preview ?? { ramp: 'gray' },
    },
    estimate: step.estimate ?? ((input) => estimateCog(input, { bytesPerPixel, secondsPerMegapixel: 0.1 })),
    run: step.python ? inPython(step.python, made, { of: inputsOf(bands), isStored: step.isStored ?? false }) : run,
  });

  async function run(job: StepJob<never>): Promise<void> {
    // The host has checked them by the schema above.
    const parameters = job.parameters as Values<Of> & z.output<z.ZodObject<Own>>;
    const found = names.flatMap((name) => {
      // Every input of such a step is one of rasters.
      const scenes = step.ofEachInput ? (Object.values(job.inputs) as Scene[]) : [sceneOf(job, bands[name]!)];
      const bandsOfInputs = scenes.map((scene) => scene.findBand(String(parameters[name])));
      const [first, ...others] = bandsOfInputs;
      for (const other of others) if (first) requireSameMeaning(first, other);
      return bandsOfInputs;
    });
    await writePixels(
      job,
      {
        bands: found,
        reading: readingOf(step.isStored ? { ...parameters, scaling: 'stored' } : parameters),
        reach,
        output: { path: job.outputPath, bands: made, ...(overviews && { overviews }) },
        share: job.share,
      },
      (grid) => blockOf(step, parameters, grid),
    );
  }
}

/** Options of `definePixelStep`. */
const known: ReadonlySet<string> = new Set([
  ...['id', 'version', 'title', 'description', 'cases', 'bands', 'parameters', 'input', 'inputs', 'output', 'isStored'],
  ...['ofEachInput', 'reach', 'isTiled', 'requires', 'estimate', 'pixel', 'window', 'block', 'python'],
]);

/** Returns what is wrong with a pixel step and what would be right, or null. */
function problemOf<Of extends Bands, Own extends z.ZodRawShape>(step: PixelStep<Of, Own>): string | null {
  const unknown = Object.keys(step).find((name) => !known.has(name));
  if (unknown !== undefined) return `there is no option ${unknown}; the options are ${[...known].join(', ')}`;
  const missing = (['bands', 'output'] as const).find((name) => typeof step[name] !== 'object');
  if (missing !== undefined) return `${missing} is missing`;
  const names = Object.keys(step.bands);
  // JavaScript may give anything.
  const other = Object.entries(step.bands).find(([, band]) => !((band as unknown) instanceof z.ZodType));
  if (other) return `bands.${other[0]} must be band({ default: 'red' }) or the like`;
  if (names.length === 0) return "bands: name at least one band, for example { red: band({ default: 'red' }) }";
  const twice = [...names, ...Object.keys(step.parameters?.shape ?? {})].find(
    (name, i, all) => name in readingParameters || all.indexOf(name) !== i,
  );
  if (twice !== undefined)
    return `${twice} is the name of a band or parameter twice, or of a parameter that the kit adds: choose another name`;
  const { pixel, window, block, python, reach = 0, output } = step;
  const functions = Object.entries({ pixel, window, block, python }).filter(
    ([, pixelFunction]) => pixelFunction !== undefined,
  );
  if (functions.length !== 1)
    return `give one of pixel, window, block and python, and not ${functions.map(([name]) => name).join(' and ') || 'none'}`;
  if (python && step.ofEachInput)
    return 'ofEachInput is not for Python, whose arguments have the names of bands: give one band for each input, by of';
  if (python && !existsSync(python)) return `there is no program ${fileURLToPath(python)}`;
  if (!Number.isInteger(reach) || reach < 0) return `reach must be a whole number of pixels from 0, and not ${reach}`;
  if (window && reach === 0) return 'window needs reach: 1 gives it 3 × 3 pixels';
  if (reach > 0 && (pixel || python))
    return 'reach is for window and block: pixel has no neighbours, and in Python reach is an argument of pixels()';
  // `Array.isArray` forgets the type of the elements.
  const [first] = Array.isArray(output.bands) ? (output.bands as readonly BandDeclaration[]) : [];
  if (!first) return 'output.bands must name at least one band';
  const descriptions = output.bands.map(({ description }) => description);
  if (new Set(descriptions).size < descriptions.length)
    return 'two output bands have the same description: give each band a different one';
  if (!/\.tiff?$/.test(output.fileName)) return `output.fileName ${output.fileName} must end with .tif`;
  if (output.bands.some(({ dataType }) => dataType !== first.dataType))
    return 'all output bands must have the same data type, because a GeoTIFF has one: use Float32 for both, or defineStep with two outputs';
  const nodata = new Set(output.bands.map((band) => band.nodata));
  if (nodata.size > 1)
    return `all output bands must have the same nodata value, because a GeoTIFF has one, and not ${[...nodata].join(', ')}`;
  const range = integerRanges[first.dataType];
  if (range && first.nodata !== undefined && !canHold(first.dataType, first.nodata))
    return `nodata ${first.nodata} does not fit ${first.dataType}: it must be a whole number from ${range.join(' to ')}`;
  return null;
}

/** The input of each band that names one. */
const inputsOf = (bands: Bands): Record<string, string> =>
  Object.fromEntries(
    Object.entries(bands).flatMap(([name, band]) => {
      // `band` has put it there.
      const { of } = (band.meta() ?? {}) as { of?: string };
      return of === undefined ? [] : [[name, of]];
    }),
  );

const inPython = (program: URL, outputBands: readonly BandDeclaration[], pixels: PixelProgram) =>
  command({
    pixels,
    argv: ['python3', `{code}/${basename(fileURLToPath(program))}`, '{job}'],
    code: program.href,
    outputBands,
  });

/** The scene of a band parameter. */
function sceneOf(
  { scene, inputs }: Pick<StepJob<never>, 'scene' | 'inputs'>,
  bandSchema: z.ZodType,
): StepJob<never>['scene'] {
  // `band` has put it there, and bands are of inputs with rasters.
  const { of } = (bandSchema.meta() ?? {}) as { of?: string };
  return of === undefined ? scene : (inputs[of] as StepJob<never>['scene']);
}

function blockOf<Of extends Bands, Own extends z.ZodRawShape>(
  { pixel, window, block, reach = 0 }: PixelStep<Of, Own>,
  parameters: Values<Of> & z.output<z.ZodObject<Own>>,
  grid: PixelGrid,
): BlockFunction {
  if (block) return block(parameters, grid);
  if (window) return byWindow(window(parameters), reach);
  return byPixel(pixel!(parameters));
}

type OfTwo = (first: number, second?: number) => number;
type OfMany = (...values: number[]) => number | readonly number[];

function pieceOfOne(of: OfTwo, a: Float64Array, out: OutputValues, from: number, to: number): void {
  for (let i = from; i < to; i++) out[i] = a[i] === a[i] ? of(a[i]!) : NaN;
}

function pieceOfTwo(
  of: OfTwo,
  [a, b]: readonly [Float64Array, Float64Array],
  out: OutputValues,
  from: number,
  to: number,
): void {
  for (let i = from; i < to; i++) out[i] = a[i] === a[i] && b[i] === b[i] ? of(a[i]!, b[i]) : NaN;
}

function pieceOfMany(
  of: OfMany,
  inputs: readonly Float64Array[],
  outputs: readonly OutputValues[],
  from: number,
  to: number,
): void {
  const values = inputs.map(() => 0);
  for (let i = from; i < to; i++) {
    let isThere = true;
    for (let k = 0; k < values.length; k++) {
      const value = inputs[k]![i]!;
      values[k] = value;
      isThere &&= value === value;
    }
    put(isThere ? of(...values) : NaN, outputs, i);
  }
}

function byPixel(of: OfMany): BlockFunction {
  let isTried = false;
  return (inputs, outputs, { width, rows }) => {
    const [a = none, b] = inputs;
    const [out = none] = outputs;
    isTried ||= requireNumbers(of, inputs, outputs.length);
    inPieces(width * rows, (from, to) => {
      // One or two bands need no array per pixel.
      if (outputs.length > 1 || inputs.length > 2) pieceOfMany(of, inputs, outputs, from, to);
      // One or two bands and one output: the function takes so many numbers, and gives one.
      else if (b) pieceOfTwo(of as OfTwo, [a, b], out, from, to);
      else pieceOfOne(of as OfTwo, a, out, from, to);
    });
  };
}

function byWindow(of: (...windows: Float64Array[]) => number | readonly number[], reach: number): BlockFunction {
  const side = 2 * reach + 1;
  return (inputs, outputs, { width, rows, stride, start }) => {
    const windows = inputs.map(() => new Float64Array(side * side));
    for (let row = 0, i = 0; row < rows; row++)
      for (let column = 0; column < width; column++, i++) {
        const corner = start + row * stride + column - reach * stride - reach;
        windows.forEach((window, k) => {
          const values = inputs[k]!;
          for (let y = 0, to = 0; y < side; y++)
            for (let x = 0; x < side; x++, to++) window[to] = values[corner + y * stride + x]!;
        });
        const value = of(...windows);
        if (i === 0) requireNumber(value, outputs.length);
        put(value, outputs, i);
      }
  };
}

const none = new Float64Array(0);

/** Number of pixels in which `requireNumbers` looks for one that every band has. */
const maxTried = 10_000;

/** Throws if the function of a pixel does not return one number for each output band. Tries the first pixel that every band has, and returns false if there is none. */
function requireNumbers(of: OfMany, inputs: readonly Float64Array[], count: number): boolean {
  const at = inputs[0]?.subarray(0, maxTried).findIndex((_, i) => inputs.every((values) => !Number.isNaN(values[i])));
  if (at === undefined || at < 0) return false;
  requireNumber(of(...inputs.map((values) => values[at]!)), count);
  return true;
}

function requireNumber(result: unknown, count: number): void {
  const results: readonly unknown[] = Array.isArray(result) ? result : [result];
  if (Array.isArray(result) && results.length !== count)
    throw new TypeError(
      `the function of a pixel returned ${results.length} values for ${count} output band${count === 1 ? '' : 's'}`,
    );
  const wrong = results.findIndex((number) => typeof number !== 'number');
  if (wrong >= 0)
    throw new TypeError(
      `the function of a pixel returned a value of type ${typeof results[wrong]}: it must return a number${count === 1 ? '' : ` for each of the ${count} output bands`}, and NaN for a missing pixel`,
    );
}

/** Writes the values of a pixel. Throws if there is not one for each output band; a single NaN leaves all of them out. */
function put(value: number | readonly number[], outputs: readonly OutputValues[], i: number): void {
  if (typeof value === 'number' && (outputs.length === 1 || Number.isNaN(value))) {
    for (const out of outputs) out[i] = value;
    return;
  }
  const values = typeof value === 'number' ? [value] : value;
  if (values.length !== outputs.length) requireNumber(values, outputs.length);
  outputs.forEach((out, k) => (out[i] = values[k]!));
}
