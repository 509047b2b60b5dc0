import { writeFileSync } from 'node:fs';
import { setImmediate as tick } from 'node:timers/promises';
import { KitError } from '../../contract/kit-error.ts';
import { isNotAlpha } from '../named-bands.ts';
import { defineStep, z } from '../step.ts';
import { band, crs } from '../parameters.ts';
import { readingOf, readingParameters } from '../reading.ts';
import { coverShares, markInside, placeZones, windowOf } from '../zones.ts';
import { csvOf, ZoneStatistics } from './statistics.ts';

const stripPixels = 200_000;
/** Minimum number of strips per zone, so that progress is visible. */
const leastStrips = 8;
const fields = {
  zone: 'string',
  band: 'string',
  mean: 'real',
  min: 'real',
  max: 'real',
  stdDev: 'real',
  sum: 'real',
  count: 'real',
  p10: 'real',
  p25: 'real',
  median: 'real',
  p75: 'real',
  p90: 'real',
  majority: 'real',
  variety: 'integer',
} as const;
const classFields = { zone: 'string', band: 'string', value: 'real', count: 'real', share: 'real' } as const;

/** Statistics of the bands of a raster within each of some areas. */
export default defineStep({
  id: 'zonal-statistics',
  version: '2.2.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Zonal statistics',
  description:
    'Number, mean, extremes, deviation and sum of the pixels of a raster within each area, and on request percentiles and classes: on the areas, and as tables.',
  parameters: z.object({
    band: band({ default: '1', title: 'Band', description: 'Name or number of the band.' }),
    label: z.string().max(63).default('').meta({
      title: 'Name of a zone',
      description: 'The field that names it; left empty, zones are numbered from 1.',
    }),
    pixels: z.enum(['centre', 'touched', 'share']).default('centre').meta({
      title: 'Pixels of a zone',
      description:
        'centre: those whose centre lies inside. touched: all that the zone touches. share: each by the share of it that lies inside.',
    }),
    allBands: z.boolean().default(false).meta({
      title: 'All bands',
      description: 'Every band of the raster, a row each, instead of the one above.',
    }),
    percentiles: z.boolean().default(false).meta({
      title: 'Percentiles',
      description: 'The 10th, 25th, 75th and 90th percentile, and the median.',
    }),
    classes: z.boolean().default(false).meta({
      title: 'Classes',
      description:
        'The most frequent value, the number of different values, and a table with the pixels of each value.',
    }),
    crs: crs({
      title: 'Reference system of the zones',
      description: 'Only for zones that do not name their own, such as a CSV.',
    }).optional(),
    ...readingParameters,
  }),
  inputs: {
    values: { title: 'Values', description: 'The raster that is counted.', maxItems: 1, synthetic: 'elevation' },
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
    counts: {
      kind: 'vector',
      fileName: 'class-counts.csv',
      sourceType: 'UNKNOWN',
      geometry: 'None',
      fields: classFields,
      optional: true,
    },
  },

  async run({ parameters, inputs, gdal, raster, outputs, workFolder, share, signal }) {
    const scene = inputs.values;
    const chosen = parameters.allBands ? scene.bands.filter(isNotAlpha) : [scene.findBand(parameters.band)];
    // A scene has a band besides alpha.
    const [first] = chosen as [(typeof chosen)[number]];
    for (const sceneBand of chosen) raster.requireSameGrid(first, sceneBand);
    const { dataset } = first;
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
    const bands = chosen.map((sceneBand) => ({
      name: sceneBand.names[0] ?? String(sceneBand.index),
      reader: raster.reader(sceneBand, readingOf(parameters)),
    }));
    const { width, height } = raster.gridOf(dataset);
    const counting = share(0.2, 1);
    const byShare = parameters.pixels === 'share';
    const asked = {
      percentiles: parameters.percentiles,
      classes: parameters.classes,
      shares: byShare,
      bands: bands.length,
    };
    let [strip, inside] = [new Float64Array(0), new Float64Array(0)];
    let mask = new Uint8Array(0);
    const results: ({ zone: string; band: string } & ZoneStatistics['values'])[] = [];
    const classes: Readonly<Record<keyof typeof classFields, string | number>>[] = [];
    const features: object[] = [];
    for (const [i, { name: zone, rings, coordinates }] of zones.entries()) {
      const statistics = bands.map(() => new ZoneStatistics(asked));
      const window = windowOf(rings, width, height);
      const rows = window
        ? Math.max(1, Math.min(Math.ceil(window.height / leastStrips), Math.floor(stripPixels / window.width)))
        : 1;
      for (let y = 0; window && y < window.height; y += rows) {
        await tick();
        signal.throwIfAborted();
        const part = { ...window, y: window.y + y, height: Math.min(rows, window.height - y) };
        const count = part.width * part.height;
        if (strip.length < count) {
          [strip, inside] = [new Float64Array(count), new Float64Array(count)];
          mask = new Uint8Array(count);
        }
        if (byShare) coverShares(rings, part, inside);
        else markInside(rings, part, mask, { isTouched: parameters.pixels === 'touched' });
        const weights = byShare ? inside : mask;
        bands.forEach(({ reader }, k) => {
          reader.read([part.x, part.y, part.width, part.height], strip);
          for (let n = 0; n < count; n++)
            if (weights[n]! > 0 && Number.isFinite(strip[n])) statistics[k]!.add(strip[n]!, weights[n]);
        });
        counting.progress((i + Math.min(1, (y + rows) / window.height)) / zones.length);
      }
      for (const [k, { name: band }] of bands.entries()) {
        const ofBand = statistics[k]!;
        const properties = { zone, band, ...ofBand.values };
        results.push(properties);
        features.push({ type: 'Feature', properties, geometry: { type: 'MultiPolygon', coordinates } });
        for (const [value, count] of ofBand.classes)
          classes.push({ zone, band, value, count, share: count / ofBand.count });
      }
    }
    if (results.every(({ count }) => count === 0))
      throw new KitError('zones_outside', 'no pixel with a value lies inside any of the areas', { status: 422 });
    writeFileSync(outputs.areas, JSON.stringify({ type: 'FeatureCollection', features }));
    writeFileSync(outputs.table, csvOf(Object.keys(fields), results));
    if (parameters.classes) writeFileSync(outputs.counts, csvOf(Object.keys(classFields), classes));
  },
});
