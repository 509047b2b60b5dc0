import { writeFileSync } from 'node:fs';
import { setImmediate as tick } from 'node:timers/promises';
import { KitError } from '../../contract/kit-error.ts';
import { band } from '../parameters.ts';
import { defineStep, z } from '../step.ts';
import { numberedZones, placedZones, readZones } from '../zones.ts';
import { csvOf, ZoneStatistics } from './statistics.ts';

const stripPixels = 200_000;
const fields = {
  zone: 'string',
  count: 'integer',
  mean: 'real',
  min: 'real',
  max: 'real',
  stdDev: 'real',
  sum: 'real',
} as const;

/** What a band holds within each of some areas: a pixel counts where its centre lies inside. */
export default defineStep({
  id: 'zonal-statistics',
  version: '1.0.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Zonal statistics',
  description:
    'Number, mean, extremes, deviation and sum of the pixels of a raster within each area: on the areas, and as a table.',
  parameters: z.object({
    band: band({ default: '1', title: 'Band', description: 'Name or number of the band.' }),
    label: z.string().max(63).default('').meta({
      title: 'Name of a zone',
      description: 'The field that names it; left empty, zones are numbered from 1.',
    }),
  }),
  inputs: {
    values: { title: 'Values', description: 'The raster that is counted.', mostItems: 1, synthetic: 'elevation' },
    zones: {
      kind: 'vector',
      title: 'Zones',
      description: 'Polygons, in any reference system. Where they overlap, the last counts.',
      sourceTypes: ['POLYGON', 'UNKNOWN'],
    },
  },
  outputs: {
    areas: { kind: 'vector', fileName: 'zones.geojson', sourceType: 'POLYGON', geometry: 'MultiPolygon', fields },
    table: { kind: 'vector', fileName: 'statistics.csv', sourceType: 'UNKNOWN', geometry: 'None', fields },
  },

  async run({ parameters, inputs, gdal, raster, outputs, workFolder, share, signal }) {
    const { band: values, dataset } = inputs.values.findBand(parameters.band);
    const { srs } = dataset;
    if (!srs)
      throw new KitError('not_placed', 'the raster does not say where it lies, so no area lies in it', { status: 422 });
    const layer = inputs.zones.onlyLayer();
    if (parameters.label !== '' && !layer.fields.getNames().includes(parameters.label))
      throw new KitError(
        'unknown_field',
        `the areas have no field ${JSON.stringify(parameters.label)}; they have ${layer.fields.getNames().join(', ')}`,
        { status: 422 },
      );
    const zones = readZones(gdal, inputs.zones.datasets[0]!, parameters.label, `${workFolder}/lon-lat.geojson`);
    const placed = placedZones(gdal, zones, srs, workFolder);
    const numbers = numberedZones(gdal, placed, dataset, workFolder);
    placed.close();
    const statistics = zones.map(() => new ZoneStatistics());
    const { width, height } = raster.gridOf(dataset);
    const counting = share(0.2, 1);
    const rows = Math.max(1, Math.min(height, Math.floor(stripPixels / width)));
    const [strip, ofZones] = [new Float64Array(width * rows), new Uint32Array(width * rows)];
    for (let y = 0; y < height; y += rows) {
      await tick();
      signal.throwIfAborted();
      const count = width * Math.min(rows, height - y);
      values.pixels.read(0, y, width, count / width, strip);
      numbers.bands.get(1).pixels.read(0, y, width, count / width, ofZones);
      for (let i = 0; i < count; i++) {
        const value = strip[i]!;
        // Number 0 is no zone.
        if (ofZones[i] !== 0 && value !== values.noDataValue && !Number.isNaN(value))
          statistics[ofZones[i]! - 1]?.add(value);
      }
      counting.progress(Math.min(1, (y + rows) / height));
    }
    numbers.close();
    if (statistics.every(({ count }) => count === 0))
      throw new KitError('zones_outside', 'no pixel with a value lies inside any of the areas', { status: 422 });
    const results = zones.map(({ name }, i) => ({ zone: name, ...statistics[i]!.values }));
    const features = zones.map(({ coordinates }, i) => ({
      type: 'Feature',
      properties: results[i],
      geometry: { type: 'MultiPolygon', coordinates },
    }));
    writeFileSync(outputs.areas, JSON.stringify({ type: 'FeatureCollection', features }));
    writeFileSync(outputs.table, csvOf(Object.keys(fields), results));
  },
});
