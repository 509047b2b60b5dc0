/** Only for child processes. */
import { setImmediate as tick } from 'node:timers/promises';
import type gdal from 'gdal-async';
import { readerOf, type BandReader, type ReadableBand } from './band-reader.ts';
import type { JobContext } from '../child/in-child.ts';
import { accumulatorOf, keepStatistics } from './statistics.ts';

/** Size of a strip, so that one of Float64 takes about 20 MiB. */
let stripPixels = 2_500_000;

/** For tests that a step's pixels do not depend on it. At least one row of blocks is read all the same. */
export function setStripPixels(pixels: number): void {
  stripPixels = pixels;
}

/**
 * Goes through rasters of one size from top to bottom: `visit` gets the first row and the number of rows of each strip, which are whole
 * rows of blocks of all `bands`. `arrays`: how many arrays of Float64 of its size a strip may cost. Default 1.
 * Rejects with the signal's reason after a cancel, for which it looks before each strip.
 */
export async function eachStrip(
  { bands, arrays = 1 }: { readonly bands: readonly [gdal.RasterBand, ...gdal.RasterBand[]]; readonly arrays?: number },
  visit: (y: number, rows: number) => void,
  context: JobContext,
): Promise<void> {
  const { x: width, y: height } = bands[0].size;
  const blockRows = Math.max(...bands.map((band) => band.blockSize.y));
  const wantedRows = Math.floor(stripPixels / arrays / width);
  const rows = Math.min(height, Math.max(blockRows, Math.floor(wantedRows / blockRows) * blockRows));
  for (let y = 0; y < height; y += rows) {
    await tick(); // lets a cancel message in
    context.signal.throwIfAborted();
    visit(y, Math.min(rows, height - y));
    context.progress(Math.min(1, (y + rows) / height));
  }
}

/** A band, a band with item metadata, or a reader. */
export type Readable = gdal.RasterBand | ReadableBand | BandReader;

/** Values of an output band. */
export type OutputValues = Float32Array | Float64Array;

/** A strip of whole rows. */
export interface Strip {
  /** First row, and number of rows. */
  readonly y: number;
  readonly rows: number;
  /** Number of columns. */
  readonly width: number;
  /** Length of an input row: the columns, and `reach` values on each side. */
  readonly stride: number;
  /** Index of the strip's first pixel in an input array. */
  readonly start: number;
}

/**
 * Walks bands of the same size strip by strip. `compute` receives the physical values of `inputs` as Float64, with NaN for missing values, and fills `outputs`.
 * Float64 stores every 32-bit integer exactly. Arrays are reused from strip to strip, because new ones cost four times the memory and time.
 * `reach` adds that many pixels around each strip, NaN beyond the raster. Default 0. The walk also computes statistics of the outputs.
 */
export async function walkBands(
  {
    inputs,
    outputs,
    reach = 0,
    fromRow = 0,
    isRead = true,
  }: {
    readonly inputs: readonly Readable[];
    readonly outputs: readonly gdal.RasterBand[];
    readonly reach?: number;
    /** Row of the inputs that the first row of the outputs belongs to. Default 0. */
    readonly fromRow?: number;
    /** False: the inputs only decide the size of the strips, and `compute` gets arrays of no length. Default true. */
    readonly isRead?: boolean;
  },
  compute: (inputs: readonly Float64Array[], outputs: readonly OutputValues[], strip: Strip) => void,
  context: JobContext,
): Promise<void> {
  const [first] = outputs;
  if (!first) throw new Error('a walk writes into at least one band');
  const { x: width } = first.size;
  const readers = inputs.map((input) => readerOf(input));
  const height = readers[0]?.band.size.y ?? first.size.y;
  const stride = width + 2 * reach;
  let buffers: Float64Array[] = [];
  let results: OutputValues[] = [];
  const statistics = outputs.map((band) => accumulatorOf(band, outputs.length));
  const visit = (row: number, rows: number) => {
    const y = fromRow + row;
    if (results.length === 0) {
      // The first strip is the largest.
      buffers = inputs.map(() => new Float64Array(isRead ? stride * (rows + 2 * reach) : 0));
      results = outputs.map((band) => arrayFor(band, width * rows));
    }
    const [above, below] = [Math.min(reach, y), Math.min(reach, height - y - rows)];
    for (const [i, reader] of isRead ? readers.entries() : []) {
      const values = buffers[i]!;
      if (reach > 0) values.fill(NaN);
      const start = reach + (reach - above) * stride;
      reader.read([0, y - above, width, above + rows + below], values, reach > 0 ? { stride, start } : {});
    }
    compute(buffers, results, { y, rows, width, stride, start: reach * stride + reach });
    const count = width * rows;
    outputs.forEach((band, i) => {
      const values = results[i]!;
      band.pixels.write(0, row, width, rows, values);
      statistics[i]!.add(values, count);
    });
  };
  const arrays = Math.max(1, (inputs.length + outputs.length) / 3);
  await eachStrip({ bands: [first, ...outputs, ...readers.map(({ band }) => band)], arrays }, visit, context);
  outputs.forEach((band, i) => keepStatistics(band, statistics[i]!.values));
  // The next step may be one long call of GDAL, during which no garbage is collected.
  for (const { buffer } of [...buffers, ...results]) release(buffer);
}

/** Walks bands as `walkBands` does, with one output of Float32. The first `count` values of each array are valid. */
export function walkStrips(
  inputs: readonly Readable[],
  output: gdal.RasterBand,
  compute: (inputs: readonly Float64Array[], output: Float32Array, count: number) => void,
  context: JobContext,
): Promise<void> {
  return walkBands(
    { inputs, outputs: [output] },
    // Made by `arrayFor` for a band of Float32.
    (values, [out], { width, rows }) => compute(values, out as Float32Array, width * rows),
    context,
  );
}

/** Makes an array that stores the values of a band exactly. */
const arrayFor = ({ dataType }: gdal.RasterBand, count: number): OutputValues =>
  /^(Float32|Byte|U?Int16)$/.test(dataType ?? '') ? new Float32Array(count) : new Float64Array(count);

/** Gives the memory back at once, where the runtime can (Node 21 and later). */
function release(buffer: ArrayBufferLike): void {
  (buffer as { transfer?: (length: number) => void }).transfer?.(0);
}
