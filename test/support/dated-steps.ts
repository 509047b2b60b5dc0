/** Steps of the kit that declare other facts of their results. */
import { defineApp } from '../../src/app/definition/app-definition.ts';
import { mosaic, slope } from '../../src/steps/index.ts';

export default defineApp({
  module: import.meta.url,
  id: 'dated-steps',
  name: 'dated-steps',
  description: 'Steps of a test.',
  steps: [
    { ...mosaic, acquisition: 'earliest', output: { ...mosaic.output!, sourceType: 'THERMAL' } },
    { ...slope, acquisition: 'none' },
  ],
});
