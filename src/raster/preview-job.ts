import { writeFile } from 'node:fs/promises';
import type { Job } from './child-protocol.ts';
import { openRaster } from './open-raster.ts';
import { renderPreview, type PreviewStyle } from './preview.ts';

export interface PreviewJobInput {
  readonly rasterPath: string;
  readonly pngPath: string;
  readonly maxSide: number;
  readonly style?: PreviewStyle;
}

/** Job: a raster's preview as a PNG file. */
const job: Job<PreviewJobInput, { sizeBytes: number }> = async (input) => {
  const dataset = openRaster(input.rasterPath);
  const png = await renderPreview(dataset, input.maxSide, input.style);
  dataset.close();
  await writeFile(input.pngPath, png);
  return { sizeBytes: png.length };
};
export default job;
