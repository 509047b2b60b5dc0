import { area, defineStep, z } from '../step-kit.ts';
import { outsideParameter } from './outside.ts';

/** Cuts a raster to an area. A pixel stays if its centre is inside. Pixels are neither moved nor resampled. */
export default defineStep({
  id: 'clip',
  version: '2.2.1',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Clip to an area',
  description: 'Cuts a raster to an area that you draw. What lies outside holds no data.',
  parameters: z.object({
    area: area({ title: 'Area', description: 'Draw it on the map, or give GeoJSON in longitude and latitude.' }),
    outside: outsideParameter,
  }),
  input: { description: 'A georeferenced raster.', maxItems: 1, synthetic: 'multispectral' },
  output: { fileName: 'clipped.tif', sourceType: 'as-input', bands: 'as-input', preview: { ramp: 'gray' } },
  work: () => import('./work.ts'),
});
