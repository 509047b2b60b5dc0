import { band, defineStep, z } from '../step-kit.ts';

/** The areas of a raster of classes, as polygons. */
export default defineStep({
  id: 'polygonize',
  version: '2.0.1',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Polygons of classes',
  description:
    'Connected areas of the same whole number in a raster, as polygons of a GeoPackage, simplified where you say so.',
  parameters: z.object({
    band: band({ default: '1', title: 'Band', description: 'Name or number of the band that holds classes.' }),
    tolerance: z.number().min(0).max(1e6).default(0).meta({
      title: 'Tolerance',
      description:
        'How far a simplified outline may lie from the pixels, in units of the reference system; 0 keeps every corner. Each area is simplified by itself: neighbours may overlap or part by that much.',
    }),
    connected: z.enum(['4', '8']).default('4').meta({
      title: 'Connected by',
      description: 'Pixels that share a side (4), or a side or a corner (8), are one area.',
    }),
    sieve: z.int().min(0).max(1_000_000).default(0).meta({
      title: 'Sieve',
      description: 'Areas of fewer pixels become part of their largest neighbour.',
    }),
    smallest: z.number().min(0).max(1e12).default(0).meta({
      title: 'Smallest area',
      description: 'Polygons below it are left out, in square units of the reference system.',
    }),
  }),
  input: { description: 'One raster of classes.', maxItems: 1, synthetic: 'elevation' },
  outputs: {
    areas: {
      kind: 'vector',
      fileName: 'areas.gpkg',
      sourceType: 'POLYGON',
      geometry: 'Polygon',
      fields: { value: 'integer' },
    },
  },

  work: () => import('./work.ts'),
});
