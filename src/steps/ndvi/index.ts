import { estimateCog } from '../estimate.ts';
import { band } from '../parameters.ts';
import { defineStep, z } from '../step.ts';

const nodata = -9999;

/** (A - B) / (A + B), as Float32. No data where the sum is 0 or either band has none. */
export default defineStep({
  id: 'ndvi',
  version: '1.0.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Normalized difference',
  description:
    'The normalized difference (A - B) / (A + B) of two bands: NDVI with near infrared and red, NDWI with green and near infrared.',
  parameters: z.object({
    bandA: band({
      default: 'nir',
      title: 'Band A',
      description: 'Common name (nir, red, green, swir16), name (B5) or number of the band that counts positively.',
    }),
    bandB: band({
      default: 'red',
      title: 'Band B',
      description: 'The band that counts negatively, named in the same way.',
    }),
  }),
  input: {
    description: 'Two bands on the same grid, in one file or in one file each.',
    sourceTypes: ['MULTISPECTRAL', 'HYPERSPECTRAL', 'UNKNOWN'],
    synthetic: 'multispectral',
  },
  sameGrid: true,
  output: {
    fileName: 'ndvi.tif',
    sourceType: 'MULTISPECTRAL',
    bands: [{ description: 'normalized difference', dataType: 'Float32', nodata }],
    preview: { ramp: 'rdylgn', range: [-0.2, 0.9] },
  },

  estimate: (input) => estimateCog(input, { bytesPerPixel: 4.2, secondsPerMegapixel: 0.1 }),

  async run({ parameters, scene, raster, outputPath, workFolder, share }) {
    const a = scene.findBand(parameters.bandA);
    const b = scene.findBand(parameters.bandB);
    raster.requireSameGrid(a, b);
    const [nodataA, nodataB] = [a.band.noDataValue, b.band.noDataValue];

    const difference = await raster.createRaster(
      {
        path: `${workFolder}/difference.tif`,
        grid: raster.gridOf(a.dataset),
        dataType: 'Float32',
        bands: [{ description: 'normalized difference', nodata }],
      },
      (dataset) =>
        raster.walkStrips(
          [a.band, b.band],
          dataset.bands.get(1),
          ([valuesA = [], valuesB = []], out, count) => {
            for (let i = 0; i < count; i++) {
              const va = valuesA[i]!;
              const vb = valuesB[i]!;
              const sum = va + vb;
              const missing = sum === 0 || va === nodataA || vb === nodataB || Number.isNaN(sum);
              out[i] = missing ? nodata : (va - vb) / sum;
            }
          },
          share(0, 0.5),
        ),
    );
    raster.writeCog(
      difference,
      outputPath,
      { compression: 'DEFLATE', blockSize: 512, resampling: 'AVERAGE' },
      share(0.5, 1),
    );
    difference.close();
  },
});
