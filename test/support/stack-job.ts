/** Runs in a child process: puts single-band rasters into one, each band with its name. */
import { join } from 'node:path';
import type { Job } from '../../src/child/in-child.ts';
import { createRaster, gridOf, writeCog } from '../../src/raster/cog.ts';
import { openRaster } from '../../src/raster/open-raster.ts';

export interface StackInput {
  /** Band names of the files that the job is lent, in their order. */
  readonly bands: readonly string[];
}

export const stackName = 'stack.tif';

const job: Job<StackInput, null> = async ({ bands }, context) => {
  const path = join(context.workFolder, stackName);
  const sources = context.files.map((one) => openRaster(one));
  const view = await createRaster(
    {
      path: `${path}.pixels`,
      grid: gridOf(sources[0]!),
      dataType: 'UInt16',
      bands: bands.map((description) => ({ description })),
    },
    (dataset) => {
      sources.forEach((source, i) => {
        const { x, y } = source.rasterSize;
        const pixels = new Uint16Array(x * y);
        source.bands.get(1).pixels.read(0, 0, x, y, pixels);
        dataset.bands.get(i + 1).pixels.write(0, 0, x, y, pixels);
      });
    },
  );
  writeCog(view, path, { compression: 'DEFLATE', blockSize: 256, resampling: 'NEAREST' }, context);
  view.close();
  sources.forEach((source) => source.close());
  return null;
};
export default job;
