import { outsideParameter } from '../clip/outside.ts';
import { crs, defineStep, z } from '../step-kit.ts';

/** Cuts a raster to the polygons of a file. A pixel stays if its centre is in one of them. Pixels are neither moved nor resampled. */
export default defineStep({
  id: 'clip-to-features',
  version: '1.2.1',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Clip to features',
  description:
    'Cuts a raster to the polygons of a file, or to those with a value in a field. What lies outside holds no data.',
  parameters: z.object({
    field: z.string().max(63).default('').meta({
      title: 'Field',
      description: 'The field that chooses polygons by its value. Left empty: all polygons.',
    }),
    value: z.string().max(200).default('').meta({ title: 'Value', description: 'The value of the field.' }),
    crs: crs({
      title: 'Reference system of the features',
      description: 'Only for features that do not name their own, such as a CSV.',
    }).optional(),
    outside: outsideParameter,
  }),
  inputs: {
    raster: {
      title: 'Raster',
      description: 'A georeferenced raster.',
      maxItems: 1,
      synthetic: 'multispectral',
    },
    features: {
      kind: 'vector',
      title: 'Features',
      description: 'Polygons, in any reference system.',
      sourceTypes: ['POLYGON', 'UNKNOWN'],
    },
  },
  output: { fileName: 'clipped.tif', sourceType: 'as-input', bands: 'as-input', preview: { ramp: 'gray' } },
  work: () => import('./work.ts'),
});
