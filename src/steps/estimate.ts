import type { EstimateInput, StepEstimate } from './step.ts';

/** Start of the process, GDAL loaded. */
const startSeconds = 0.6;
const startBytes = 220e6;
/** GDAL's cache and the compression of blocks on all cores: grows with the raster, up to this. */
const usualWorkingBytes = 200e6;
const workingBytesPerMegapixel = 28e6;

/**
 * The estimate of a step that reads block by block and writes a COG. `bytesPerPixel`: of the compressed output, all bands and
 * overviews together. `secondsPerMegapixel`: of the step on two cores, compression included.
 * `maxWorkingBytes`: memory in addition to the process, for a raster of any size. Default 200 MB.
 */
export function estimateCog(
  { width, height }: EstimateInput,
  {
    bytesPerPixel,
    secondsPerMegapixel,
    maxWorkingBytes = usualWorkingBytes,
  }: { readonly bytesPerPixel: number; readonly secondsPerMegapixel: number; readonly maxWorkingBytes?: number },
): StepEstimate {
  const megapixels = (width * height) / 1e6;
  return {
    outputBytes: width * height * bytesPerPixel,
    seconds: startSeconds + megapixels * secondsPerMegapixel,
    memoryBytes: startBytes + Math.min(maxWorkingBytes, megapixels * workingBytesPerMegapixel),
  };
}
