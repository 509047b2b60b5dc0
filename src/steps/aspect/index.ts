import { estimateCog } from '../estimate.ts';
import { band } from '../parameters.ts';
import { defineStep, z } from '../step.ts';
import { withGaps } from '../heights.ts';

/** Where a slope of a digital elevation model faces, by gdaldem's Horn formula. */
export default defineStep({
  id: 'aspect',
  version: '1.0.1',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Aspect',
  description: 'Where the slopes of an elevation raster face, in degrees clockwise from north. Level ground has none.',
  parameters: z.object({
    band: band({ default: '1', title: 'Band', description: 'Name or number of the band that holds heights.' }),
  }),
  input: { description: 'One raster with heights.', mostItems: 1, synthetic: 'elevation' },
  output: {
    fileName: 'aspect.tif',
    sourceType: 'HEIGHTMAP',
    bands: [{ description: 'aspect', dataType: 'Float32', nodata: -9999 }],
    preview: { ramp: 'gray', range: [0, 360], unit: 'degrees' },
  },
  estimate: (input) => estimateCog(input, { bytesPerPixel: 4.2, secondsPerMegapixel: 0.12 }),

  async run({ parameters, scene, gdal, raster, outputPath, workFolder, share, signal }) {
    const found = scene.findBand(parameters.band);
    const dataset = withGaps(gdal, found);
    const computing = share(0, 0.5);
    const made = await gdal.demAsync(
      `${workFolder}/aspect.tif`,
      dataset,
      'aspect',
      ['-b', String(found.index), '-compute_edges', '-of', 'GTiff', '-co', 'BIGTIFF=IF_SAFER'],
      undefined,
      { progress_cb: (fraction) => computing.progress(fraction) },
    );
    if (dataset !== found.dataset) dataset.close();
    signal.throwIfAborted();
    const aspect = raster.nameBands(made, [{ description: 'aspect', nodata: -9999 }]);
    raster.writeCog(
      aspect,
      outputPath,
      { compression: 'DEFLATE', blockSize: 512, resampling: 'NEAREST' },
      share(0.5, 1),
    );
    aspect.close();
  },
});
