/** Only for child processes. */
import { setImmediate as tick } from 'node:timers/promises';
import type gdal from 'gdal-async';
import type { JobContext } from './child/protocol.ts';

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
  const blockRows = Math.max(...bands.map((band) => band.blockSize?.y ?? 1));
  const wantedRows = Math.floor(stripPixels / arrays / width);
  const rows = Math.min(height, Math.max(blockRows, Math.floor(wantedRows / blockRows) * blockRows));
  for (let y = 0; y < height; y += rows) {
    await tick(); // lets a cancel message in
    context.signal.throwIfAborted();
    visit(y, Math.min(rows, height - y));
    context.progress(Math.min(1, (y + rows) / height));
  }
}

/**
 * Walks bands of the same size strip by strip. `compute` reads `inputs` and fills `output`, both reused
 * from strip to strip (fresh arrays cost four times the memory and time); `count` values are valid.
 * Values are Float64, which holds every GDAL integer to 32 bits exactly.
 */
export async function walkStrips(
  inputs: readonly gdal.RasterBand[],
  output: gdal.RasterBand,
  compute: (inputs: readonly Float64Array[], output: Float32Array, count: number) => void,
  context: JobContext,
): Promise<void> {
  const width = output.size.x;
  let buffers: Float64Array[] = [];
  let result = new Float32Array(0);
  const visit = (y: number, rows: number) => {
    const count = width * rows;
    if (result.length === 0) {
      // The first strip is the largest.
      buffers = inputs.map(() => new Float64Array(count));
      result = new Float32Array(count);
    }
    inputs.forEach((band, i) => band.pixels.read(0, y, width, rows, buffers[i]));
    compute(buffers, result, count);
    output.pixels.write(0, y, width, rows, result);
  };
  await eachStrip({ bands: [output, ...inputs] }, visit, context);
  // What follows may be one long call of GDAL, in which nothing is collected.
  for (const { buffer } of [...buffers, result]) release(buffer);
}

/** Gives the memory back at once, where the runtime can (Node 21 and later). */
function release(buffer: ArrayBufferLike): void {
  (buffer as { transfer?: (length: number) => void }).transfer?.(0);
}
