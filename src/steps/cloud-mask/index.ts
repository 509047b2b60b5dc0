import { estimateCog } from '../estimate.ts';
import { band } from '../parameters.ts';
import { defineStep, z } from '../step.ts';

const nodata = -9999;
const mostBits = 16;

/** A band without what the scene's quality band marks, and the mask itself. */
export default defineStep({
  id: 'cloud-mask',
  version: '1.0.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Cloud mask',
  description:
    'One band of a scene, no data where any of the chosen bits of its quality band is set. The defaults are Landsat Collection 2: dilated cloud, cirrus, cloud, cloud shadow.',
  parameters: z.object({
    band: band({ default: 'red', title: 'Band', description: 'The band that is kept.' }),
    quality: band({
      default: 'QA_PIXEL',
      title: 'Quality band',
      description: 'The band whose bits say what a pixel shows.',
    }),
    bits: z
      .string()
      .regex(/^\d{1,2}(,\d{1,2})*$/, 'must be numbers of bits from 0 to 15, separated by commas')
      .refine((text) => text.split(',').every((bit) => Number(bit) < mostBits), 'must be numbers from 0 to 15')
      .default('1,2,3,4')
      .meta({ title: 'Bits', description: 'Bits that mark what is left out, from 0, separated by commas.' }),
  }),
  input: {
    description: 'A scene with its quality band (Landsat: QA_PIXEL).',
    sourceTypes: ['MULTISPECTRAL', 'HYPERSPECTRAL', 'THERMAL', 'UNKNOWN'],
    synthetic: 'multispectral',
  },
  sameGrid: true,
  outputs: {
    masked: {
      fileName: 'masked.tif',
      sourceType: 'MULTISPECTRAL',
      bands: [{ description: 'masked', dataType: 'Float32', nodata }],
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
  estimate: (input) => estimateCog(input, { bytesPerPixel: 3.4, secondsPerMegapixel: 0.2 }),

  async run({ parameters, scene, raster, outputs, workFolder, share }) {
    const [kept, quality] = [scene.findBand(parameters.band), scene.findBand(parameters.quality)];
    raster.requireSameGrid(kept, quality);
    const bits = parameters.bits.split(',').reduce((sum, bit) => sum | (1 << Number(bit)), 0);
    const [gone, fill] = [kept.band.noDataValue, quality.band.noDataValue];
    const grid = raster.gridOf(kept.dataset);
    const isMarked = (value: number) => value === fill || Number.isNaN(value) || (value & bits) !== 0;
    const masked = await raster.createRaster(
      { path: `${workFolder}/masked.tif`, grid, dataType: 'Float32', bands: [{ description: 'masked', nodata }] },
      (target) =>
        raster.walkStrips(
          [kept.band, quality.band],
          target.bands.get(1),
          ([values = [], marks = []], out, count) => {
            for (let i = 0; i < count; i++) {
              const value = values[i]!;
              out[i] = isMarked(marks[i]!) || value === gone || Number.isNaN(value) ? nodata : value;
            }
          },
          share(0, 0.3),
        ),
    );
    const options = { compression: 'DEFLATE', blockSize: 512 } as const;
    raster.writeCog(masked, outputs.masked, { ...options, resampling: 'AVERAGE' }, share(0.3, 0.6));
    masked.close();
    const mask = await raster.createRaster(
      { path: `${workFolder}/mask.tif`, grid, dataType: 'Byte', bands: [{ description: 'mask' }] },
      (target) =>
        raster.walkStrips(
          [quality.band],
          target.bands.get(1),
          ([marks = []], out, count) => {
            for (let i = 0; i < count; i++) out[i] = isMarked(marks[i]!) ? 1 : 0;
          },
          share(0.6, 0.8),
        ),
    );
    raster.writeCog(mask, outputs.mask, { ...options, resampling: 'MODE' }, share(0.8, 1));
    mask.close();
  },
});
