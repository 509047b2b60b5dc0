import { band } from '../parameters.ts';
import { readingOf, readingParameters } from '../reading.ts';
import { requireTransform } from '../require-placed.ts';
import { requireStoredLayer } from '../stored-layer.ts';
import { defineStep, z } from '../step.ts';
import { withoutMask } from '../without-mask.ts';

/** Lines of equal height of a digital elevation model. */
export default defineStep({
  id: 'contours',
  version: '1.1.1',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Contours',
  description: 'Lines of equal height in an elevation raster, as a GeoPackage.',
  parameters: z.object({
    band: band({ default: '1', title: 'Band', description: 'Name or number of the band that holds heights.' }),
    interval: z
      .number()
      .min(0.001)
      .max(10_000)
      .default(10)
      .meta({ title: 'Interval', description: 'Height between two lines, in the units of the raster.' }),
    base: z
      .number()
      .min(-20_000)
      .max(20_000)
      .default(0)
      .meta({ title: 'Base', description: 'A height that has a line.' }),
    levels: z
      .string()
      .max(1_000)
      .regex(/^(-?\d+(\.\d+)?(\s*,\s*-?\d+(\.\d+)?)*)?$/, 'must be numbers, separated by commas')
      .default('')
      .meta({
        title: 'Levels',
        description:
          'Heights of the lines, instead of interval and base: 100,250,500. A level at the lowest height has no line.',
      }),
    ...readingParameters,
  }),
  input: { description: 'An elevation raster (DEM).', maxItems: 1, synthetic: 'elevation' },
  outputs: {
    contours: {
      kind: 'vector',
      fileName: 'contours.gpkg',
      sourceType: 'LINESTRING',
      geometry: 'LineString',
      fields: { number: 'integer', elevation: 'real' },
    },
  },

  async run({ parameters, scene, gdal, raster, outputs, workFolder, share, signal }) {
    const found = scene.findBand(parameters.band);
    const { dataset } = found;
    requireTransform(raster.gridOf(dataset));
    const reader = raster.reader(found, readingOf(parameters));
    const plain = reader.isPlain ? null : await withoutMask(raster, reader, dataset, workFolder, share(0, 0.3));
    const heights = plain?.bands.get(1) ?? found.band;
    const generating = share(plain ? 0.3 : 0, 1);
    const levels = parameters.levels
      .split(',')
      .filter((part) => part.trim() !== '')
      .map(Number);
    const made = gdal.drivers.get('GPKG').create(outputs.contours);
    const layer = made.layers.create('contours', dataset.srs, gdal.wkbLineString);
    layer.fields.add(new gdal.FieldDefn('number', gdal.OFTInteger));
    layer.fields.add(new gdal.FieldDefn('elevation', gdal.OFTReal));
    const options = {
      src: heights,
      dst: layer,
      idField: 0,
      elevField: 1,
      ...(heights.noDataValue !== null && { nodata: heights.noDataValue }),
    };
    if (levels.length > 0) {
      // The asynchronous function reads the levels after they are freed (gdal-async 3.12), and loses lines.
      gdal.contourGenerate({ ...options, fixedLevels: levels.toSorted((a, b) => a - b) });
      generating.progress(1);
    } else
      await gdal.contourGenerateAsync({
        ...options,
        interval: parameters.interval,
        offset: parameters.base,
        progress_cb: (fraction) => generating.progress(fraction),
      });
    made.close();
    requireStoredLayer(gdal, dataset, outputs.contours);
    plain?.close();
    signal.throwIfAborted();
  },
});
