import { band, crs, defineStep, readingParameters, z } from '../step-kit.ts';
import { classFields, fields } from './fields.ts';

/** Statistics of the bands of a raster within each of some areas. */
export default defineStep({
  id: 'zonal-statistics',
  version: '2.2.1',
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

  work: () => import('./work.ts'),
});
