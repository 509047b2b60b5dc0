import { defineStep, namesIn, readingParameters, resampling, z } from '../step-kit.ts';
import { isSizeWord } from './size-words.ts';

/** Bands with pixels of different sizes on one grid, in one raster. */
export default defineStep({
  id: 'harmonize',
  version: '1.2.1',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Harmonize bands',
  description:
    'Brings bands with pixels of different sizes onto one grid, in one raster: those of Sentinel-2, for instance, of 10, 20 and 60 m.',
  parameters: z.object({
    grid: z.string().min(1).max(64).default('finest').meta({
      title: 'Grid',
      description: 'finest or coarsest of the bands, or the name of the band whose grid the others get.',
    }),
    bands: z.string().max(2_000).default('').meta({
      title: 'Bands',
      description: 'Their names, with commas between them, in the order in which they come out. Left empty: all.',
    }),
    resampling: resampling({
      title: 'Resampling',
      description: 'near or mode for classes, bilinear or cubic for finer pixels, average for coarser ones.',
    }),
    ...readingParameters,
  }),
  input: { description: 'A scene whose bands have pixels of different sizes.', synthetic: 'multispectral' },
  output: { fileName: 'harmonized.tif', sourceType: 'as-input', bands: 'any', preview: { ramp: 'gray' } },
  needs: ({ bands, grid }) => ({ bands: namesIn(bands), grid: isSizeWord(grid) ? [] : [grid] }),

  work: () => import('./work.ts'),
});
