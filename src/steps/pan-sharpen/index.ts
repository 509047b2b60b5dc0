import {
  band,
  defineStep,
  estimateCog,
  KitError,
  type OutputValues,
  readingOf,
  readingParameters,
  type SceneBand,
  SceneError,
  z,
} from '../step-kit.ts';
import { Upsampler, upsamplings, type Axis } from './upsampler.ts';

const nodata = NaN;
/** Tolerance over the whole raster, in coarse pixels. */
const slack = 1e-2;
const colours = ['red', 'green', 'blue'] as const;

const colour = (name: (typeof colours)[number]) =>
  band({ default: name, title: name[0]!.toUpperCase() + name.slice(1), description: `The band that becomes ${name}.` });
const weight = (name: (typeof colours)[number]) =>
  z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .meta({
      title: `Weight of ${name}`,
      description: `How much of ${name} the panchromatic band sees, beside the others.`,
    });

/** Three colours in the detail of a panchromatic band, by the weighted Brovey transform, as Float32. No data where one of the four bands has none, or the colours sum up to 0. */
export default defineStep({
  id: 'pan-sharpen',
  version: '1.2.1',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Pan-sharpening',
  description:
    'Three colours with the detail of a panchromatic band, by the weighted Brovey transform: each colour times the panchromatic value over the weighted mean of the colours.',
  parameters: z.object({
    red: colour('red'),
    green: colour('green'),
    blue: colour('blue'),
    pan: band({
      default: 'pan',
      title: 'Panchromatic band',
      description: 'The band with the detail, of smaller pixels: `pan`, or B8 of Landsat 7 to 9.',
    }),
    redWeight: weight('red'),
    greenWeight: weight('green'),
    blueWeight: weight('blue'),
    resampling: z.enum(upsamplings).default('cubic').meta({
      title: 'Resampling',
      description: 'How the colours are brought to the pixels of the panchromatic band.',
    }),
    ...readingParameters,
  }),
  input: {
    description: 'Three colours on one grid and a panchromatic band of smaller pixels, in the same reference system.',
    sourceTypes: ['MULTISPECTRAL', 'HYPERSPECTRAL', 'UNKNOWN'],
    synthetic: 'panchromatic',
  },
  output: {
    fileName: 'pan-sharpened.tif',
    sourceType: 'MULTISPECTRAL',
    bands: colours.map((description) => ({ description, dataType: 'Float32', nodata })),
    preview: { ramp: 'gray' },
  },
  estimate: (input) => estimateCog(input, { bytesPerPixel: 10, secondsPerMegapixel: 0.5 }),

  async run({ parameters, scene, raster, outputPath, workFolder, share }) {
    const reading = readingOf(parameters);
    const pan = scene.findBand(parameters.pan);
    const bands = colours.map((name) => scene.findBand(parameters[name]));
    const weights = weightsOf(parameters.redWeight, parameters.greenWeight, parameters.blueWeight);
    bands.slice(1).forEach((other) => raster.requireSameGrid(bands[0]!, other));
    const axes = axesBetween(pan, bands[0]!);
    const grid = raster.gridOf(pan.dataset);
    const upsamplers = bands.map(
      (sceneBand) => new Upsampler(raster.reader(sceneBand, reading), axes, grid.width, parameters.resampling),
    );
    const fine = raster.reader(pan, reading);

    const sharpened = await raster.createRaster(
      {
        path: `${workFolder}/sharpened.tif`,
        grid,
        dataType: 'Float32',
        bands: colours.map((description) => ({ description, nodata })),
      },
      async (target) => {
        const lines = colours.map(() => new Float64Array(grid.width));
        await raster.walkBands(
          { inputs: [fine], outputs: [1, 2, 3].map((number) => target.bands.get(number)) },
          ([detail], out, { y, rows, width }) => {
            upsamplers.forEach((upsampler) => upsampler.load(y, rows));
            for (let row = 0; row < rows; row++) {
              upsamplers.forEach((upsampler, i) => upsampler.fill(y + row, lines[i]!));
              sharpenRow(detail!, row * width, lines, weights, out);
            }
          },
          share(0, 0.5),
        );
      },
    );
    raster.writeCog(
      sharpened,
      outputPath,
      { compression: 'DEFLATE', blockSize: 512, resampling: 'AVERAGE' },
      share(0.5, 1),
    );
    sharpened.close();
  },
});

/** Shares of 1. */
function weightsOf(...weights: readonly number[]): number[] {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  if (sum === 0)
    throw new KitError('no_weight', 'the weights of red, green and blue are all 0: give one of them more', {
      status: 422,
    });
  return weights.map((weight) => weight / sum);
}

/**
 * Position of a pixel of `pan` among those of `coarse`. Throws if their reference systems differ, or if one is turned
 * against the other.
 */
function axesBetween(pan: SceneBand, coarse: SceneBand): { columns: Axis; rows: Axis } {
  const fail = (what: string): never => {
    throw new SceneError(
      'grids_differ',
      `${pan.place ?? 'the panchromatic band'} and ${coarse.place ?? 'the colours'} ${what}; reproject one of them first`,
    );
  };
  const [fineSrs, other] = [pan.dataset.srs, coarse.dataset.srs];
  if ((fineSrs === null) !== (other === null) || (fineSrs && other && !fineSrs.isSame(other)))
    fail('have different reference systems');
  const fine = pan.dataset.geoTransform;
  const rough = coarse.dataset.geoTransform;
  const { x: width, y: height } = pan.dataset.rasterSize;
  const size = coarse.dataset.rasterSize;
  if ((fine === null) !== (rough === null)) fail('lie in different ways: one says where, the other does not');
  if (!fine || !rough) {
    // Pictures without a place cover the same.
    return { columns: { scale: size.x / width, offset: 0 }, rows: { scale: size.y / height, offset: 0 } };
  }
  // A geotransform has six numbers.
  const [f0, f1, f2, f3, f4, f5] = fine as [number, number, number, number, number, number];
  const [r0, r1, r2, r3, r4, r5] = rough as [number, number, number, number, number, number];
  const determinant = r1 * r5 - r2 * r4;
  const column = (x: number, y: number) => (r5 * x - r2 * y) / determinant;
  const row = (x: number, y: number) => (r1 * y - r4 * x) / determinant;
  const turned = Math.max(Math.abs(column(f2, f5)) * height, Math.abs(row(f1, f4)) * width);
  if (!(turned < slack)) fail('are turned against each other');
  const place = {
    columns: { scale: column(f1, f4), offset: column(f0 - r0, f3 - r3) },
    rows: { scale: row(f2, f5), offset: row(f0 - r0, f3 - r3) },
  };
  const meets = ({ scale, offset }: Axis, fineSize: number, roughSize: number) =>
    Math.max(offset, offset + scale * fineSize) > 0 && Math.min(offset, offset + scale * fineSize) < roughSize;
  if (!meets(place.columns, width, size.x) || !meets(place.rows, height, size.y)) fail('do not overlap');
  return place;
}

/** One row: each colour times the panchromatic value over the weighted mean of the colours. */
function sharpenRow(
  detail: Float64Array,
  from: number,
  lines: readonly Float64Array[],
  [redWeight = 0, greenWeight = 0, blueWeight = 0]: readonly number[],
  [outRed, outGreen, outBlue]: readonly OutputValues[],
): void {
  const [red, green, blue] = lines;
  for (let x = 0, i = from; x < red!.length; x++, i++) {
    const pan = detail[i]!;
    const r = red![x]!;
    const g = green![x]!;
    const b = blue![x]!;
    const factor = pan / (r * redWeight + g * greenWeight + b * blueWeight);
    const isThere = Number.isFinite(factor);
    outRed![i] = isThere ? r * factor : nodata;
    outGreen![i] = isThere ? g * factor : nodata;
    outBlue![i] = isThere ? b * factor : nodata;
  }
}
