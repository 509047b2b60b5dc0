import { band, defineStep, readingParameters, z } from '../step-kit.ts';

/** Lines of equal height of a digital elevation model. */
export default defineStep({
  id: 'contours',
  version: '1.1.2',
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

  work: () => import('./work.ts'),
});
