/** Every step that the kit brings, and the fork's example. */
import scale from '../../src/my-app/steps/scale/index.ts';
import { defineApp } from '../../src/app/definition/app-definition.ts';
import { bandMath, cog, hillshade, ndvi, ndviPython, slope, spectralIndex } from '../../src/steps/index.ts';

export default defineApp({
  module: import.meta.url,
  id: 'all-steps',
  name: 'all-steps',
  description: 'Steps of a test.',
  steps: [ndvi, spectralIndex, bandMath, cog, hillshade, scale, slope, ndviPython],
});
