import { defineApp } from '../../../src/app/definition/app-definition.ts';
import { defineStep, z } from '../../../src/steps/step.ts';

/** A mebibyte is 16 rows of pixels of 4 bytes: 10 GiB stay below what a raster may have of pixels. */
const [width, rowsPerMebibyte] = [16_384, 16];

/** Writes an uncompressed raster of a wanted size, quickly and without repeating itself: something big to upload. */
const big = defineStep({
  id: 'big',
  version: '1.0.0',
  title: 'A big raster',
  description: 'Makes an uncompressed raster of a wanted size.',
  parameters: z.object({
    mebibytes: z.int().min(1).max(65_536).meta({ title: 'Size', description: 'Size in MiB.' }),
  }),
  input: { description: 'Nothing is read.', synthetic: 'elevation' },
  output: {
    fileName: 'big.tif',
    sourceType: 'UNKNOWN',
    bands: [{ description: '', dataType: 'UInt32' }],
    preview: { ramp: 'gray' },
  },
  async run({ parameters, gdal, outputPath, progress }) {
    const height = parameters.mebibytes * rowsPerMebibyte;
    const dataset = gdal.drivers.get('GTiff').create(outputPath, width, height, 1, 'UInt32', ['BIGTIFF=IF_SAFER']);
    const words = new Uint32Array(width * rowsPerMebibyte);
    let state = 1;
    for (let y = 0; y < height; y += rowsPerMebibyte) {
      for (let i = 0; i < words.length; i++) words[i] = state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      dataset.bands.get(1).pixels.write(0, y, width, rowsPerMebibyte, words);
      progress(y / height);
    }
    dataset.close();
  },
});

export default defineApp({
  module: import.meta.url,
  id: 'bench',
  name: 'bench',
  description: 'Steps of a test.',
  steps: [big],
});
