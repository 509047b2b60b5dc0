import { crs, defineStep, resampling, z } from '../step-kit.ts';

/** Merges several rasters into one. */
export default defineStep({
  id: 'mosaic',
  version: '2.3.1',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Mosaic',
  description:
    'Combines rasters with the same bands into one raster on the grid of the first. Where rasters overlap, the result has the value of one raster, selected by order or by date, or a combination of all values. Uncovered pixels have no data.',
  parameters: z.object({
    overlap: z.enum(['last', 'first', 'newest', 'oldest', 'min', 'max', 'mean', 'median']).default('last').meta({
      title: 'Overlap',
      description:
        'The value of pixels that several rasters cover: the value of one raster, selected by order or by date, or a combination of all values. The date comes from the catalog item, or else from the file.',
    }),
    crs: crs({ title: 'Reference system', description: 'Its EPSG code. Left out: that of the first.' }).optional(),
    resampling: resampling({
      title: 'Resampling',
      description: 'How pixels that do not lie on the first grid are computed.',
    }),
  }),
  input: { description: 'Rasters with the same bands: scenes that lie side by side.', synthetic: 'multispectral' },
  output: { fileName: 'mosaic.tif', sourceType: 'as-input', bands: 'as-input', preview: { ramp: 'gray' } },

  work: () => import('./work.ts'),
});
