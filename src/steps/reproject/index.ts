import { crs, defineStep, resampling, z } from '../step-kit.ts';

/** A raster in another coordinate reference system, with pixels of another size, or on the grid of another. */
export default defineStep({
  id: 'reproject',
  version: '2.3.1',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Reproject and resample',
  description:
    'Brings a raster into another coordinate reference system, with pixels of the size that suits it or that you say, or onto the grid of another raster. What nothing covers holds no data.',
  parameters: z.object({
    crs: crs({
      default: 'EPSG:4326',
      title: 'Reference system',
      description: 'Its EPSG code. Without effect where a raster gives the grid.',
    }),
    from: crs({
      title: 'Its own reference system',
      description: 'Only for a raster that does not say in which one it lies, or says a wrong one.',
    }).optional(),
    resampling: resampling({
      title: 'Resampling',
      description: 'near or mode for classes, bilinear or cubic for measurements.',
    }),
    pixelSize: z
      .number()
      .min(1e-9)
      .max(1e6)
      .optional()
      .meta({ title: 'Pixel size', description: 'In units of the reference system. Left out: as fine as the input.' }),
  }),
  inputs: {
    input: {
      title: 'Raster',
      description: 'A georeferenced raster.',
      maxItems: 1,
      synthetic: 'multispectral',
    },
    grid: {
      title: 'Grid of another',
      description: 'A raster whose grid the result gets: its reference system, pixels and extent.',
      maxItems: 1,
      optional: true,
      synthetic: null,
    },
  },
  output: { fileName: 'reprojected.tif', sourceType: 'as-input', bands: 'as-input', preview: { ramp: 'gray' } },

  work: () => import('./work.ts'),
});
