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
  const { x: width, y: height } = output.size;
  const blockRows = Math.max(1, ...inputs.map((band) => band.blockSize?.y ?? 1), output.blockSize?.y ?? 1);
  const wantedRows = Math.max(1, Math.floor(stripPixels / width));
  const rows = Math.min(height, Math.max(blockRows, Math.floor(wantedRows / blockRows) * blockRows));
  const buffers = inputs.map(() => new Float64Array(width * rows));
  const result = new Float32Array(width * rows);
  for (let y = 0; y < height; y += rows) {
    await tick(); // lets a cancel message in
    context.signal.throwIfAborted();
    const count = width * Math.min(rows, height - y);
    inputs.forEach((band, i) => band.pixels.read(0, y, width, count / width, buffers[i]));
    compute(buffers, result, count);
    output.pixels.write(0, y, width, count / width, result);
    context.progress(Math.min(1, (y + rows) / height));
  }
  // What follows may be one long call of GDAL, in which nothing is collected.
  for (const { buffer } of [...buffers, result]) release(buffer);
}

/** Gives the memory back at once, where the runtime can (Node 21 and later). */
function release(buffer: ArrayBufferLike): void {
  (buffer as { transfer?: (length: number) => void }).transfer?.(0);
}
