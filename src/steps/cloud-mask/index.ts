import {
  band,
  type BlockFunction,
  defineStep,
  estimateCog,
  isNotAlpha,
  KitError,
  namesIn,
  readingOf,
  readingParameters,
  realTypeOf,
  type Scene,
  type SceneBand,
  type Strip,
  writePixels,
  z,
} from '../step-kit.ts';
import { qualityBandOf, qualityBands } from './quality-bands.ts';

const nodata = NaN;
const maxBits = 16;
const maxBuffer = 50;
const usualBits = qualityBands.QA_PIXEL.bits;

const numbers = (text: string) => (text === '' ? [] : text.split(',').map(Number));

/** Bands of a scene without the pixels that its quality band marks, and the mask itself. */
export default defineStep({
  id: 'cloud-mask',
  version: '2.2.1',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Cloud mask',
  description:
    'One band of a scene, or several, without data where the quality band marks a pixel: by any of the chosen bits, or by one of the chosen values. The defaults are Landsat Collection 2: fill, dilated cloud, cirrus, cloud, cloud shadow.',
  parameters: z.object({
    band: band({ default: 'red', title: 'Band', description: 'The band that is kept.' }),
    bands: z.string().max(2_000).default('').meta({
      title: 'Several bands',
      description:
        'Names of the bands that are kept instead, separated by commas; all for every band with as many pixels as the quality band.',
    }),
    quality: band({
      default: 'QA_PIXEL',
      title: 'Quality band',
      description: 'The band that says what a pixel shows: QA_PIXEL of Landsat, SCL of Sentinel-2.',
    }),
    bits: z
      .string()
      .regex(/^\d{1,2}(,\d{1,2})*$/, 'must be numbers of bits from 0 to 15, separated by commas')
      .refine((text) => text.split(',').every((bit) => Number(bit) < maxBits), 'must be numbers from 0 to 15')
      .default(usualBits)
      .meta({
        title: 'Bits',
        description: `Bits that mark what is left out, from 0, separated by commas: ${qualityBands.BQA.bits} in BQA of Landsat Collection 1, ${qualityBands.QA60.bits} in QA60 of Sentinel-2.`,
      }),
    values: z
      .string()
      .regex(/^(\d{1,5}(,\d{1,5})*)?$/, 'must be whole numbers, separated by commas')
      .default('')
      .meta({
        title: 'Values',
        description: `Values of masked pixels, instead of bits: ${qualityBands.SCL.values} for clouds and shadows in SCL of Sentinel-2.`,
      }),
    buffer: z.int().min(0).max(maxBuffer).default(0).meta({
      title: 'Buffer',
      description: 'Pixels around what is marked that are left out too.',
    }),
    ...readingParameters,
  }),
  input: {
    description: 'A scene with its quality band (Landsat: QA_PIXEL, Sentinel-2: SCL).',
    sourceTypes: ['MULTISPECTRAL', 'HYPERSPECTRAL', 'THERMAL', 'UNKNOWN'],
    synthetic: 'multispectral',
  },
  sameGrid: true,
  isTiled: true,
  outputs: {
    masked: {
      fileName: 'masked.tif',
      sourceType: 'as-input',
      bands: 'any',
      preview: { ramp: 'gray' },
    },
    mask: {
      fileName: 'mask.tif',
      sourceType: 'UNKNOWN',
      bands: [{ description: 'mask', dataType: 'Byte' }],
      preview: {
        ramp: 'gray',
        classes: [
          { value: 0, name: 'kept', color: [76, 153, 0] },
          { value: 1, name: 'left out', color: [220, 220, 220] },
        ],
      },
    },
  },
  needs: ({ bands }) => ({ bands: bands === 'all' ? [] : namesIn(bands) }),
  estimate: (input, { bands }) => {
    const count =
      bands === '' ? 1 : bands === 'all' ? Math.max(1, input.bandCount - 1) : Math.max(1, namesIn(bands).length);
    return estimateCog(input, { bytesPerPixel: 0.2 + 3.2 * count, secondsPerMegapixel: 0.1 + 0.1 * count });
  },

  async run(job) {
    const { parameters, scene, raster, outputs, share } = job;
    const { buffer } = parameters;
    const quality = scene.findBand(parameters.quality);
    const kept = keptBands(scene, parameters, quality);
    const values = new Set(numbers(parameters.values));
    requireMarks(quality, { bits: parameters.bits, hasValues: values.size > 0 });
    const bits = numbers(parameters.bits).reduce((sum, bit) => sum | (1 << bit), 0);
    const isMarked = (value: number) =>
      Number.isNaN(value) || (values.size > 0 ? values.has(value) : (value & bits) !== 0);
    const marks = raster.reader(quality, { scaling: 'stored' });
    const given = { reach: buffer, bands: [...kept, quality] };
    const dataType = realTypeOf(kept.map(({ band: keptBand }) => keptBand.dataType));
    const made = kept.map((sceneBand, i) => ({
      description: parameters.bands === '' ? 'masked' : (sceneBand.names[0] ?? `band ${i + 1}`),
      dataType,
      nodata,
    }));
    const sharesOf =
      (part: ReturnType<typeof share>): typeof share =>
      (from, to) => ({
        signal: part.signal,
        progress: (fraction, note) => part.progress(from + fraction * (to - from), note),
      });
    const [ofMasked, ofMask] = [sharesOf(share(0, 0.6)), sharesOf(share(0.6, 1))];
    await writePixels(
      job,
      {
        ...given,
        readers: [...kept.map((sceneBand) => raster.reader(sceneBand, readingOf(parameters))), marks],
        output: { path: outputs.masked, bands: made, unitsOf: kept },
        share: ofMasked,
      },
      ({ height }) => masked(isMarked, buffer, height, (marked, value) => (marked ? NaN : value)),
    );
    await writePixels(
      job,
      {
        ...given,
        readers: [marks],
        output: { path: outputs.mask, bands: [{ description: 'mask', dataType: 'Byte' }], overviews: 'MODE' },
        share: ofMask,
      },
      ({ height }) => masked(isMarked, buffer, height, Number),
    );
  },
});

/** The bands to mask: one, those that are named, or all bands with as many pixels as the quality band. Throws `KitError` if there are none. */
function keptBands(
  scene: Scene,
  { band: bandName, bands }: { readonly band: string; readonly bands: string },
  quality: SceneBand,
): readonly SceneBand[] {
  if (bands === '') return [scene.findBand(bandName)];
  if (bands !== 'all') return someOf(namesIn(bands).map((name) => scene.findBand(name)));
  const sizeOf = ({ dataset: { rasterSize } }: SceneBand) => `${rasterSize.x} x ${rasterSize.y}`;
  return someOf(
    scene.bands.filter((other) => other !== quality && isNotAlpha(other) && sizeOf(other) === sizeOf(quality)),
  );
}

function someOf(bands: readonly SceneBand[]): readonly SceneBand[] {
  if (bands.length > 0) return bands;
  throw new KitError('band_not_found', 'there is no band to mask; name bands that the scene has', { status: 422 });
}

/** Throws `KitError` for a known band that marks no clouds, or marks them in another way than by the bits: in silence, clouds would stay in. */
function requireMarks(
  { names }: SceneBand,
  { bits, hasValues }: { readonly bits: string; readonly hasValues: boolean },
): void {
  const known = qualityBandOf(names);
  if (!known) return;
  const { name } = known;
  const refuse = (code: string, message: string) => new KitError(code, message, { status: 422 });
  const isUsual = !hasValues && bits === usualBits;
  if (known.holds !== undefined && (isUsual || !known.hasBits))
    throw refuse('no_quality_band', `${name} holds ${known.holds} and marks no clouds; choose the quality band`);
  if (known.values !== undefined && !hasValues)
    throw refuse(
      'bits_of_classes',
      `${name} holds classes, not bits; set values=${known.values} to leave out clouds, cloud shadows and pixels without data`,
    );
  if (known.bits !== undefined && known.bits !== usualBits && isUsual)
    throw refuse('bits_of_another', `${usualBits} are the bits of QA_PIXEL; set bits=${known.bits} for ${name}`);
}

/**
 * Computes each pixel of each output from the value of its band, and from whether the last band marks that pixel or one within `buffer` pixels.
 * Counts marks by a summed-area table, so that the cost does not depend on the buffer.
 */
function masked(
  isMarked: (value: number) => boolean,
  buffer: number,
  height: number,
  of: (marked: boolean, value: number) => number,
): BlockFunction {
  let isOut = new Uint8Array(0);
  return (inputs, outputs, strip) => {
    const { width, rows, stride, start } = strip;
    const quality = inputs.at(-1)!;
    const count = width * rows;
    if (isOut.length < count) isOut = new Uint8Array(count);
    if (buffer === 0) for (let i = 0; i < count; i++) isOut[i] = Number(isMarked(quality[i]!));
    else markAround(quality, strip);
    outputs.forEach((out, k) => {
      const values = inputs[k]!;
      for (let row = 0, i = 0; row < rows; row++)
        for (let column = 0, at = start + row * stride; column < width; column++, i++, at++)
          out[i] = of(isOut[i] === 1, values[at]!);
    });
  };

  function markAround(quality: Float64Array, { y, width, rows, stride }: Strip): void {
    const lines = rows + 2 * buffer;
    const sums = new Uint32Array((stride + 1) * (lines + 1));
    for (let line = 0; line < lines; line++) {
      let ofLine = 0;
      // Pixels beyond the raster are NaN, and are not marked.
      const isLineOutside = y - buffer + line < 0 || y - buffer + line >= height;
      for (let column = 0; column < stride; column++) {
        const isOutside = isLineOutside || column < buffer || column >= stride - buffer;
        if (!isOutside && isMarked(quality[line * stride + column]!)) ofLine += 1;
        sums[(line + 1) * (stride + 1) + column + 1] = sums[line * (stride + 1) + column + 1]! + ofLine;
      }
    }
    const side = 2 * buffer + 1;
    for (let row = 0, i = 0; row < rows; row++)
      for (let column = 0; column < width; column++, i++) {
        const [top, bottom] = [row * (stride + 1), (row + side) * (stride + 1)];
        const count =
          sums[bottom + column + side]! - sums[bottom + column]! - sums[top + column + side]! + sums[top + column]!;
        isOut[i] = Number(count > 0);
      }
  }
}
