/** The steps that compute over bands, as an app's own. */
import { defineApp } from '../../src/app/definition/app-definition.ts';
import { bandMath, ndvi, spectralIndex } from '../../src/steps/index.ts';

export default defineApp({
  module: import.meta.url,
  id: 'indices',
  name: 'indices',
  description: 'Steps of a test.',
  steps: [bandMath, spectralIndex, ndvi],
});
