/** Every step that the kit brings, and the fork's example. */
import scale from '../../src/my-app/steps/scale/index.ts';
import { defineApp } from '../../src/app/definition/app-definition.ts';
import * as kit from '../../src/steps/index.ts';

export default defineApp({
  module: import.meta.url,
  id: 'all-steps',
  name: 'all-steps',
  description: 'Steps of a test.',
  steps: [
    ...[kit.ndvi, kit.spectralIndex, kit.bandMath, kit.cog, kit.hillshade, scale, kit.slope, kit.ndviPython],
    ...[kit.aspect, kit.change, kit.cloudMask, kit.contours, kit.mosaic, kit.polygonize, kit.reproject],
    ...[
      kit.zonalStatistics,
      kit.clip,
      kit.clipToFeatures,
      kit.panSharpen,
      kit.harmonize,
      kit.terrainIndex,
      kit.colorRelief,
    ],
  ],
});
