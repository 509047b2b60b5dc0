import { defineApp } from '../../src/app/definition/app-definition.ts';
import { band, definePixelStep } from '../../src/steps/index.ts';

/** A step that throws, with an estimate that is not a number. */
export default defineApp({
  id: 'faulty-steps',
  name: 'Faulty steps',
  description: 'Steps of a test.',
  module: import.meta.url,
  steps: [
    definePixelStep({
      id: 'faulty',
      version: '1.0.0',
      title: 'Faulty',
      description: 'Throws at each pixel.',
      bands: { band: band({ default: '1' }) },
      output: { fileName: 'faulty.tif', bands: [{ description: 'faulty', dataType: 'Float32' }] },
      pixel: () => (value) => {
        throw new RangeError(`too bright: ${value}`);
      },
      estimate: () => ({ outputBytes: NaN, seconds: 1, memoryBytes: 1e8 }),
    }),
  ],
});
