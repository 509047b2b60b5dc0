import {
  aspect,
  bandMath,
  change,
  clip,
  cloudMask,
  cog,
  contours,
  defineApp,
  hillshade,
  mosaic,
  ndvi,
  panSharpen,
  polygonize,
  reproject,
  spectralIndex,
  zonalStatistics,
} from '../index.ts';
import profile from './profile.ts';
import scale from './steps/scale/index.ts';

/** Your app. This folder, `templates/my-app` and `test/my-app` are yours; everything else is the kit's (docs/forking.md). */
export default defineApp({
  module: import.meta.url,
  id: 'reference-app',
  name: 'Reference app',
  description: 'The app of this kit: processes a raster after your approval and delivers the result.',
  steps: [
    ndvi,
    spectralIndex,
    bandMath,
    panSharpen,
    change,
    cloudMask,
    clip,
    cog,
    reproject,
    mosaic,
    hillshade,
    aspect,
    contours,
    polygonize,
    zonalStatistics,
    scale,
  ],
  profile,
  templates: new URL('../../templates/my-app/', import.meta.url),
});
