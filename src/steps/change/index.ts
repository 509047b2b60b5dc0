import { estimateCog } from '../estimate.ts';
import { band } from '../parameters.ts';
import { defineStep, z } from '../step.ts';

const nodata = -9999;

const measures = {
  difference: (before: number, after: number) => after - before,
  relative: (before: number, after: number) => (after - before) / Math.abs(before),
  normalized: (before: number, after: number) => (after - before) / (after + before),
} as const;

const scene = { synthetic: 'multispectral' } as const;

/** What has changed in a band between two dates, as Float32. No data where either has none, or no finite number comes out. */
export default defineStep({
  id: 'change',
  version: '1.0.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Change',
  description:
    'What has changed in one band between two scenes on the same grid: after minus before, or a share of it.',
  parameters: z.object({
    band: band({
      default: 'nir',
      title: 'Band',
      description: 'Common name, name or number of the band in both scenes.',
    }),
    measure: z.enum(['difference', 'relative', 'normalized']).default('difference').meta({
      title: 'Measure',
      description: 'After minus before; that, of the value before; or of the sum of both.',
    }),
  }),
  inputs: {
    before: { ...scene, title: 'Before', description: 'The earlier scene.' },
    after: { ...scene, title: 'After', description: 'The later scene, on the same grid.' },
  },
  sameGrid: true,
  output: {
    fileName: 'change.tif',
    sourceType: 'MULTISPECTRAL',
    bands: [{ description: 'change', dataType: 'Float32', nodata }],
    preview: { ramp: 'rdylgn' },
  },
  needs: ({ band: name }) => ({ band: [name] }),
  estimate: (input) => estimateCog(input, { bytesPerPixel: 4, secondsPerMegapixel: 0.1 }),

  async run({ parameters, inputs, raster, outputPath, workFolder, share }) {
    const [before, after] = [inputs.before.findBand(parameters.band), inputs.after.findBand(parameters.band)];
    raster.requireSameGrid(before, after);
    const [gone, goneAfter] = [before.band.noDataValue, after.band.noDataValue];
    const measure = measures[parameters.measure];
    const changed = await raster.createRaster(
      {
        path: `${workFolder}/change.tif`,
        grid: raster.gridOf(before.dataset),
        dataType: 'Float32',
        bands: [{ description: 'change', nodata }],
      },
      (target) =>
        raster.walkStrips(
          [before.band, after.band],
          target.bands.get(1),
          ([earlier = [], later = []], out, count) => {
            for (let i = 0; i < count; i++) {
              const [a, b] = [earlier[i]!, later[i]!];
              const value = measure(a, b);
              out[i] = a === gone || b === goneAfter || !Number.isFinite(Math.fround(value)) ? nodata : value;
            }
          },
          share(0, 0.5),
        ),
    );
    raster.writeCog(
      changed,
      outputPath,
      { compression: 'DEFLATE', blockSize: 512, resampling: 'AVERAGE' },
      share(0.5, 1),
    );
    changed.close();
  },
});
