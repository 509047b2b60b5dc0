import { writeFileSync } from 'node:fs';
import { setImmediate as tick } from 'node:timers/promises';
import { KitError } from '../../contract/kit-error.ts';
import { defineStep, z } from '../step.ts';
import { band, crs } from '../parameters.ts';
import { readingOf, readingParameters } from '../reading.ts';
import { markInside, placeZones, windowOf } from '../zones.ts';
import { csvOf, ZoneStatistics } from './statistics.ts';

const stripPixels = 200_000;
/** Minimum number of strips per zone, so that progress is visible. */
const leastStrips = 8;
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
  version: '2.0.0',
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
    touched: z.boolean().default(false).meta({
      title: 'All that is touched',
      description: 'Pixels count that an area touches, and not only those whose centre lies inside.',
    }),
    crs: crs({
      title: 'Reference system of the zones',
      description: 'Only for zones that do not name their own, such as a CSV.',
    }).optional(),
    ...readingParameters,
  }),
  inputs: {
    values: { title: 'Values', description: 'The raster that is counted.', mostItems: 1, synthetic: 'elevation' },
    zones: {
      kind: 'vector',
      title: 'Zones',
      description: 'Polygons, in any reference system. Where they overlap, each counts what lies in it.',
      sourceTypes: ['POLYGON', 'UNKNOWN'],
    },
  },
  outputs: {
    areas: { kind: 'vector', fileName: 'zones.geojson', sourceType: 'POLYGON', geometry: 'MultiPolygon', fields },
    table: { kind: 'vector', fileName: 'statistics.csv', sourceType: 'UNKNOWN', geometry: 'None', fields },
  },

  async run({ parameters, inputs, gdal, raster, outputs, workFolder, share, signal }) {
    const values = inputs.values.findBand(parameters.band);
    const { dataset } = values;
    const layer = inputs.zones.onlyLayer();
    if (parameters.label !== '' && !layer.fields.getNames().includes(parameters.label))
      throw new KitError(
        'unknown_field',
        `the areas have no field ${JSON.stringify(parameters.label)}; they have ${layer.fields.getNames().join(', ')}`,
        { status: 422 },
      );
    const zones = placeZones(gdal, inputs.zones.datasets[0]!, dataset, {
      label: parameters.label,
      crs: parameters.crs,
      folder: workFolder,
    });
    const reader = raster.reader(values, readingOf(parameters));
    const { width, height } = raster.gridOf(dataset);
    const counting = share(0.2, 1);
    let [strip, isInside] = [new Float64Array(0), new Uint8Array(0)];
    const statistics: ZoneStatistics[] = [];
    for (const [i, { rings }] of zones.entries()) {
      const ofZone = new ZoneStatistics();
      statistics.push(ofZone);
      const window = windowOf(rings, width, height);
      if (!window) continue;
      const rows = Math.max(
        1,
        Math.min(Math.ceil(window.height / leastStrips), Math.floor(stripPixels / window.width)),
      );
      for (let y = 0; y < window.height; y += rows) {
        await tick();
        signal.throwIfAborted();
        const part = { ...window, y: window.y + y, height: Math.min(rows, window.height - y) };
        const count = part.width * part.height;
        if (strip.length < count) [strip, isInside] = [new Float64Array(count), new Uint8Array(count)];
        reader.read([part.x, part.y, part.width, part.height], strip);
        markInside(rings, part, isInside, parameters.touched);
        for (let k = 0; k < count; k++) if (isInside[k] === 1 && Number.isFinite(strip[k])) ofZone.add(strip[k]!);
        counting.progress((i + Math.min(1, (y + rows) / window.height)) / zones.length);
      }
    }
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
