import type { Job } from '../child/in-child.ts';
import { openRaster } from './open-raster.ts';
import { renderPreview, type PreviewStyle } from './preview.ts';

export interface PreviewJobInput {
  readonly maxSide: number;
  readonly style?: PreviewStyle;
}

/** Job: the raster that it is lent, as a PNG. */
const job: Job<PreviewJobInput, Uint8Array> = async ({ maxSide, style }, { files: [path = ''] }) => {
  const dataset = openRaster(path);
  try {
    return await renderPreview(dataset, maxSide, style);
  } finally {
    dataset.close();
  }
};
export default job;
