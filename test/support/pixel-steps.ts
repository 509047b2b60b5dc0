import { defineApp } from '../../src/app/definition/app-definition.ts';
import { band, definePixelStep } from '../../src/steps/index.ts';

const input = { description: 'A raster.', synthetic: 'multispectral' } as const;
const one = { band: band({ default: '1' }) };

/** Steps in each form of `definePixelStep`. */
export default defineApp({
  id: 'pixel-steps',
  name: 'Pixel steps',
  description: 'One step for each form of a pixel step.',
  module: import.meta.url,
  steps: [
    definePixelStep({
      id: 'largest-around',
      version: '1.0.0',
      title: 'Largest around',
      description: 'The largest of the nine values around each pixel.',
      bands: one,
      input,
      output: { fileName: 'largest.tif', bands: [{ description: 'largest', dataType: 'UInt16', nodata: 0 }] },
      reach: 1,
      window: () => (values) => Math.max(...values.filter((value) => !Number.isNaN(value))),
    }),
    definePixelStep({
      id: 'sum-and-difference',
      version: '1.0.0',
      title: 'Sum and difference',
      description: 'Two bands from three.',
      bands: { a: band({ default: '1' }), b: band({ default: '2' }), c: band({ default: '3' }) },
      input,
      output: {
        fileName: 'both.tif',
        bands: [
          { description: 'sum', dataType: 'Float32' },
          { description: 'difference', dataType: 'Float32' },
        ],
      },
      pixel: () => (a, b, c) => [a + b + c, a - b - c],
    }),
  ],
});
