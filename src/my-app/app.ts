import {
  aspect,
  bandMath,
  change,
  clip,
  clipToFeatures,
  cloudMask,
  cog,
  colorRelief,
  contours,
  defineApp,
  harmonize,
  hillshade,
  mosaic,
  ndvi,
  panSharpen,
  polygonize,
  reproject,
  slope,
  spectralIndexFrom,
  terrainIndex,
  zonalStatistics,
} from '../index.ts';
import profile from './profile.ts';
import scale from './steps/scale/index.ts';

/** The kit's own indices, or those of a catalogue in this folder (docs/steps.md). */
const spectralIndex = spectralIndexFrom(new URL('.', import.meta.url));

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
    clipToFeatures,
    cog,
    reproject,
    harmonize,
    mosaic,
    hillshade,
    aspect,
    slope,
    terrainIndex,
    colorRelief,
    contours,
    polygonize,
    zonalStatistics,
    scale,
  ],
  profile,
  templates: new URL('../../templates/my-app/', import.meta.url),
});
