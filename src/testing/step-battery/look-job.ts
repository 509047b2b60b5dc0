/** Runs in a child process: what a program has left, for the declaration of its step. */
import type { Job } from '../../raster/child/protocol.ts';
import { openRaster } from '../../raster/open-raster.ts';
import { readOutput, type LeftFeatures, type LeftRaster } from './battery-job.ts';

export interface Looked {
  readonly output: LeftRaster | LeftFeatures;
  /** GDAL's names; empty for features. */
  readonly dataTypes: readonly string[];
}

const job: Job<{ readonly kind: 'raster' | 'vector' }, Looked> = async ({ kind }, { files: [path = ''] }) => {
  const output = readOutput(path, kind);
  if (kind === 'vector') return { output, dataTypes: [] };
  const dataset = openRaster(path);
  const dataTypes = dataset.bands.map((band) => band.dataType ?? '');
  dataset.close();
  return { output, dataTypes };
};
export default job;
