import { defineApp } from '../../src/app/definition/app-definition.ts';
import { defineStep, z } from '../../src/steps/step.ts';

const width = 16_384;
const bytesPerMebibyte = 1024 * 1024;

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
    bands: [{ description: '', dataType: 'Byte' }],
    preview: { ramp: 'gray' },
  },
  async run({ parameters, gdal, outputPath, progress }) {
    const height = (parameters.mebibytes * bytesPerMebibyte) / width;
    const dataset = gdal.drivers.get('GTiff').create(outputPath, width, height, 1, 'Byte', ['BIGTIFF=IF_SAFER']);
    const rows = new Uint8Array(width * 64);
    const words = new Uint32Array(rows.buffer);
    let state = 1;
    for (let y = 0; y < height; y += 64) {
      for (let i = 0; i < words.length; i++) words[i] = state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      dataset.bands.get(1).pixels.write(0, y, width, 64, rows);
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
