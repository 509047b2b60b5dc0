import { defineStep, z } from '../step-kit.ts';

/** Any raster as a Cloud Optimized GeoTIFF: tiled, compressed, with overviews, in the order that range requests like. */
export default defineStep({
  id: 'cog',
  version: '1.1.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Cloud Optimized GeoTIFF',
  description:
    'Rewrites one raster as a Cloud Optimized GeoTIFF with overviews. Values, CRS and nodata stay as they are.',
  parameters: z.object({
    compression: z
      .enum(['DEFLATE', 'LZW', 'ZSTD', 'NONE'])
      .default('DEFLATE')
      .meta({ title: 'Compression', description: 'All are lossless; every program reads DEFLATE.' }),
    blockSize: z
      .literal([256, 512, 1024])
      .default(512)
      .meta({ title: 'Tile size', description: 'Side of a tile in pixels.' }),
    resampling: z.enum(['NEAREST', 'AVERAGE', 'BILINEAR', 'CUBIC', 'MODE']).default('NEAREST').meta({
      title: 'Overview resampling',
      description: 'How to compute overviews. NEAREST or MODE for classes, AVERAGE or CUBIC for measurements.',
    }),
  }),
  input: { description: 'One raster file with any bands.', maxItems: 1, synthetic: 'multispectral' },
  output: { fileName: 'cog.tif', sourceType: 'as-input', bands: 'as-input', preview: { ramp: 'gray' } },
  work: () => import('./work.ts'),
});
