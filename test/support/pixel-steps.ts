import { defineApp } from '../../src/app/definition/app-definition.ts';
import { band, definePixelStep } from '../../src/steps/index.ts';

const input = { description: 'A raster.', synthetic: 'multispectral' } as const;
const sumAndDifference = {
  fileName: 'both.tif',
  bands: [
    { description: 'sum', dataType: 'Float32' },
    { description: 'difference', dataType: 'Float32' },
  ],
} as const;
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
      output: sumAndDifference,
      pixel: () => (a, b, c) => [a + b + c, a - b - c],
    }),
    definePixelStep({
      id: 'too-few',
      version: '1.0.0',
      title: 'Too few',
      description: 'A function that returns one value for two bands.',
      bands: one,
      input,
      output: sumAndDifference,
      pixel: () => (value) => value,
    }),
    ...Object.entries<unknown>({ boolean: true, text: 'bright', pair: [1, 2] }).map(([id, returned]) =>
      definePixelStep({
        id: `returns-${id}`,
        version: '1.0.0',
        title: 'Wrong type',
        description: 'A function that returns no number.',
        bands: one,
        input,
        output: { fileName: 'wrong.tif', bands: [{ description: 'wrong', dataType: 'Float32' }] },
        pixel: () => () => returned as number,
      }),
    ),
    definePixelStep({
      id: 'scalar-in-python',
      version: '1.0.0',
      title: 'One number in Python',
      description: 'A function that returns one number for a whole block.',
      bands: one,
      input,
      output: { fileName: 'scalar.tif', bands: [{ description: 'mean', dataType: 'Float32' }] },
      python: new URL('./scalar_in_python.py', import.meta.url),
    }),
    definePixelStep({
      id: 'in-python',
      version: '1.0.0',
      title: 'In Python',
      description: 'Two bands of whole numbers from two.',
      bands: { a: band({ default: '1' }), b: band({ default: '2' }) },
      input,
      output: {
        fileName: 'both.tif',
        bands: [
          { description: 'larger', dataType: 'Byte', nodata: 255 },
          { description: 'ratio', dataType: 'Byte', nodata: 255 },
        ],
      },
      python: new URL('./in_python.py', import.meta.url),
    }),
    ...[false, true].map((isStored) =>
      definePixelStep({
        id: isStored ? 'stored-difference-in-python' : 'difference-in-python',
        version: '1.0.0',
        title: 'Difference in Python',
        description: 'The later band minus the earlier one.',
        bands: { a: band({ default: '1', of: 'before' }), b: band({ default: '1', of: 'after' }) },
        inputs: {
          before: { title: 'Before', description: 'The earlier scene.', maxItems: 1, synthetic: 'multispectral' },
          after: { title: 'After', description: 'The later scene.', maxItems: 1, synthetic: 'multispectral' },
        },
        output: { fileName: 'difference.tif', bands: [{ description: 'difference', dataType: 'Float32' }] },
        isStored,
        python: new URL('./difference_in_python.py', import.meta.url),
      }),
    ),
    definePixelStep({
      id: 'around-in-python',
      version: '1.0.0',
      title: 'Around in Python',
      description: 'The sum of the four neighbours.',
      bands: one,
      input,
      output: { fileName: 'around.tif', bands: [{ description: 'around', dataType: 'Byte', nodata: 255 }] },
      python: new URL('./around_in_python.py', import.meta.url),
    }),
    ...(['pixel', 'python'] as const).map((form) =>
      definePixelStep({
        id: `no-nodata-${form}`,
        version: '1.0.0',
        title: 'No nodata',
        description: 'Whole numbers without a nodata value.',
        bands: { a: band({ default: '1' }), b: band({ default: '1' }) },
        input,
        output: {
          fileName: 'none.tif',
          bands: [
            { description: 'first', dataType: 'Byte' },
            { description: 'second', dataType: 'Byte' },
          ],
        },
        ...(form === 'pixel'
          ? { pixel: () => (a: number, b: number) => [a, b] }
          : { python: new URL('./in_python.py', import.meta.url) }),
      }),
    ),
    definePixelStep({
      id: 'wrong-name',
      version: '1.0.0',
      title: 'Wrong name',
      description: 'A program that names its argument wrongly.',
      bands: one,
      input,
      output: { fileName: 'none.tif', bands: [{ description: 'none', dataType: 'Float32' }] },
      python: new URL('./wrong_name.py', import.meta.url),
    }),
  ],
});
