/** Wrong declarations of pixel steps: each is refused at the start, by one sentence that says what would be right. */
import { expect, test } from 'vitest';
import { band, definePixelStep, z } from '../../src/steps/index.ts';

type Declaration = Parameters<typeof definePixelStep>[0];

const right: Declaration = {
  ...{ id: 'mine', version: '1.0.0', title: 'Mine', description: 'Mine.' },
  bands: { red: band({ default: 'red' }) },
  output: { fileName: 'mine.tif', bands: [{ description: 'mine', dataType: 'Byte', nodata: 255 }] },
  pixel: () => (red) => red,
};
const output = (...bands: Declaration['output']['bands']) => ({ output: { fileName: 'mine.tif', bands } });
const withoutPixel = { ...right, pixel: undefined } as unknown as Declaration;
const byte = { description: 'mine', dataType: 'Byte' } as const;

test('the declaration that the others change is right', () => {
  expect(definePixelStep(right).id).toBe('mine');
});

test.each<[string, Declaration, RegExp]>([
  ['no band', { ...right, bands: {} }, /bands: name at least one band/],
  ['no function', withoutPixel, /give one of pixel, window, block and python, and not none/],
  ['two functions', { ...right, block: () => () => {} }, /give one of .*, and not pixel and block/],
  ['a window without reach', { ...withoutPixel, window: () => () => 1 }, /window needs reach: 1 gives it 3 × 3/],
  ['a pixel with reach', { ...right, reach: 1 }, /reach is for window and block/],
  ['half a pixel of reach', { ...right, reach: 0.5 }, /reach must be a whole number of pixels from 0, and not 0.5/],
  [
    'nodata out of range',
    { ...right, ...output({ ...byte, nodata: 300 }) },
    /nodata 300 does not fit Byte: .*0 to 255/,
  ],
  ['NaN for integers', { ...right, ...output({ ...byte, nodata: NaN }) }, /nodata NaN does not fit Byte/],
  [
    'two nodata values',
    { ...right, ...output({ ...byte, nodata: 0 }, { ...byte, description: 'other', nodata: 255 }) },
    /same nodata value, because a GeoTIFF has one, and not 0, 255/,
  ],
  [
    'two types',
    { ...right, ...output({ ...byte, nodata: 0 }, { description: 'other', dataType: 'UInt16', nodata: 0 }) },
    /same data type/,
  ],
  ['a parameter named as a band', { ...right, parameters: z.object({ red: z.number() }) }, /red is the name of a band/],
  ['a misspelled option', { ...right, bands: undefined, bnads: right.bands } as never, /there is no option bnads/],
  ['bands that are missing', { ...right, bands: undefined } as never, /bands is missing/],
  ['an option that is none', { ...right, nodata: 3 } as Declaration, /there is no option nodata; the options are id,/],
  ['a name in the place of a band', { ...right, bands: { red: 'red' } as never }, /bands.red must be band\(/],
  [
    'no output band',
    { ...right, output: { fileName: 'mine.tif', bands: [] as never } },
    /output.bands must name at least one band/,
  ],
  [
    'two output bands of one description',
    { ...right, ...output({ ...byte, nodata: 0 }, { ...byte, nodata: 0 }) },
    /two output bands have the same description: give each band a different one/,
  ],
  [
    'an output that is no GeoTIFF',
    { ...right, output: { ...right.output, fileName: 'mine.png' } },
    /output.fileName mine.png must end with .tif/,
  ],
  [
    'a program that is not there',
    { ...withoutPixel, python: new URL('./none.py', import.meta.url) },
    /there is no program .*none.py/,
  ],
  [
    'a parameter of the kit',
    { ...right, parameters: z.object({ nodata: z.number() }) },
    /nodata is the name of a band/,
  ],
])('%s is refused', (_what, declaration, message) => {
  const error = (() => {
    try {
      return definePixelStep(declaration);
    } catch (thrown) {
      return thrown;
    }
  })();
  expect(error).toMatchObject({
    code: 'bad_step_definition',
    message: expect.stringMatching(new RegExp(`^step mine: .*${message.source}`)) as string,
  });
});
