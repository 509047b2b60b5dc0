import { setImmediate as tick } from 'node:timers/promises';
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
    const shaded = gdal.dem(
      `${workFolder}/shaded.tif`,
      dataset,
      'hillshade',
      [...args.map(String), '-of', 'GTiff'],
      undefined,
      {
        progress_cb: (fraction) => computing.progress(fraction),
      },
    );
    if (dataset !== found.dataset) dataset.close();
    const grid = raster.gridOf(found.dataset);
    const named = await raster.createRaster(
      { path: `${workFolder}/named.tif`, grid, dataType: 'Byte', bands: [{ description: 'hillshade', nodata: 0 }] },
      async (target) => {
        const stripRows = 256;
        const strip = new Uint8Array(grid.width * stripRows);
        for (let y = 0; y < grid.height; y += stripRows) {
          await tick();
          signal.throwIfAborted();
          const rows = Math.min(stripRows, grid.height - y);
          shaded.bands.get(1).pixels.read(0, y, grid.width, rows, strip);
          target.bands.get(1).pixels.write(0, y, grid.width, rows, strip);
        }
      },
    );
    shaded.close();
    raster.writeCog(
      named,
      outputPath,
      { compression: 'DEFLATE', blockSize: 512, resampling: 'AVERAGE' },
      share(0.5, 1),
    );
    named.close();
  },
});
