import { band, defineStep, estimateCog, z } from '../../../index.ts';

const nodata = -9999;

/** An example to replace by your own: measured values from the numbers that a file stores, as value * factor + offset. */
export default defineStep({
  id: 'scale',
  version: '1.0.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Scale and offset',
  description:
    'Makes measured values of stored numbers: value × factor + offset. The defaults are those of Landsat Collection 2 surface reflectance.',
  parameters: z.object({
    band: band({ default: '1', title: 'Band', description: 'Name or number of the band.' }),
    factor: z
      .number()
      .min(-1e6)
      .max(1e6)
      .default(0.0000275)
      .meta({ title: 'Factor', description: 'The factor that multiplies stored numbers.' }),
    offset: z.number().min(-1e6).max(1e6).default(-0.2).meta({ title: 'Offset', description: 'The number to add.' }),
  }),
  input: { description: 'One raster with stored numbers.', synthetic: 'multispectral' },
  output: {
    fileName: 'scaled.tif',
    sourceType: 'UNKNOWN',
    bands: [{ description: 'scaled', dataType: 'Float32', nodata }],
    preview: { ramp: 'gray' },
  },
  estimate: (input) => estimateCog(input, { bytesPerPixel: 3.2, secondsPerMegapixel: 0.1 }),
  async run({ parameters: { band, factor, offset }, scene, raster, outputPath, workFolder, share }) {
    const source = scene.findBand(band);
    const missing = source.band.noDataValue;
    const scaled = await raster.createRaster(
      {
        path: `${workFolder}/scaled.tif`,
        grid: raster.gridOf(source.dataset),
        dataType: 'Float32',
        bands: [{ description: 'scaled', nodata }],
      },
      (target) =>
        raster.walkStrips(
          [source.band],
          target.bands.get(1),
          ([values = []], out, count) => {
            for (let i = 0; i < count; i++) {
              const value = values[i]!;
              out[i] = value === missing || Number.isNaN(value) ? nodata : value * factor + offset;
            }
          },
          share(0, 0.5),
        ),
    );
    raster.writeCog(
      scaled,
      outputPath,
      { compression: 'DEFLATE', blockSize: 512, resampling: 'AVERAGE' },
      share(0.5, 1),
    );
    scaled.close();
  },
});
