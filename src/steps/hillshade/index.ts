import { withGaps } from '../heights.ts';
import { estimateCog } from '../estimate.ts';
import { band } from '../parameters.ts';
import { defineStep, z } from '../step.ts';

/** gdaldem's own figure, for heights in metres over a grid in degrees. */
const metresOfDegree = 111_120;

/** Shaded relief of a digital elevation model, by gdaldem's Horn formula. */
export default defineStep({
  id: 'hillshade',
  version: '1.2.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Hillshade',
  description:
    'Shaded relief of an elevation raster, lit from one direction. Heights are in metres, places in metres or degrees; use the z factor where they are not.',
  parameters: z.object({
    band: band({
      default: '1',
      title: 'Elevation band',
      description: 'Name or number of the band that holds heights.',
    }),
    azimuth: z
      .number()
      .min(0)
      .max(360)
      .default(315)
      .meta({ title: 'Azimuth', description: 'Direction of the light in degrees, clockwise from north.' }),
    altitude: z
      .number()
      .min(0)
      .max(90)
      .default(45)
      .meta({ title: 'Altitude', description: 'Height of the light above the horizon in degrees.' }),
    zFactor: z
      .number()
      .min(0.000001)
      .max(1000)
      .default(1)
      .meta({ title: 'Z factor', description: 'The factor that multiplies heights.' }),
  }),
  input: { description: 'One raster with heights.', mostItems: 1, synthetic: 'elevation' },
  output: {
    fileName: 'hillshade.tif',
    sourceType: 'HEIGHTMAP',
    bands: [{ description: 'hillshade', dataType: 'Byte', nodata: 0 }],
    preview: { ramp: 'gray', range: [1, 255] },
  },

  estimate: (input) => estimateCog(input, { bytesPerPixel: 0.7, secondsPerMegapixel: 0.045 }),

  async run({ parameters, scene, gdal, raster, outputPath, workFolder, share, signal }) {
    const found = scene.findBand(parameters.band);
    const { index } = found;
    const dataset = withGaps(gdal, found);
    const computing = share(0, 0.5);
    const args = [
      '-b',
      index,
      '-az',
      parameters.azimuth,
      '-alt',
      parameters.altitude,
      '-z',
      parameters.zFactor,
      '-s',
      dataset.srs?.isGeographic() ? metresOfDegree : 1,
      '-compute_edges',
    ];
    const made = await gdal.demAsync(
      `${workFolder}/shaded.tif`,
      dataset,
      'hillshade',
      [...args.map(String), '-of', 'GTiff', '-co', 'BIGTIFF=IF_SAFER'],
      undefined,
      { progress_cb: (fraction) => computing.progress(fraction) },
    );
    if (dataset !== found.dataset) dataset.close();
    signal.throwIfAborted();
    const shaded = raster.nameBands(made, [{ description: 'hillshade', nodata: 0 }]);
    raster.writeCog(
      shaded,
      outputPath,
      { compression: 'DEFLATE', blockSize: 512, resampling: 'AVERAGE' },
      share(0.5, 1),
    );
    shaded.close();
  },
});
