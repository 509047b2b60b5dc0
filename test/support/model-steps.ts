/** Steps that the platform's models do. */
import { defineApp } from '../../src/app/definition/app-definition.ts';
import { defineStep, platformModel, z } from '../../src/steps/index.ts';

const words = { version: '1.0.0', description: 'A model of a test.' };
const output = { sourceType: 'UNKNOWN', bands: 'as-input', preview: { ramp: 'gray' } } as const;

export default defineApp({
  module: import.meta.url,
  id: 'models',
  name: 'models',
  description: 'Steps of a test.',
  steps: [
    platformModel({
      ...words,
      id: 'threshold',
      title: 'Threshold',
      modelId: 'threshold',
      bands: ['value'],
      labels: ['low', 'high'],
    }),
    platformModel({ ...words, id: 'absent', title: 'Absent', modelId: 'nobody', bands: ['value'], labels: ['one'] }),
    platformModel({ ...words, id: 'other-bands', title: 'Other bands', modelId: 'elsewhere', bands: ['value'], labels: ['one'] }), // oxfmt-ignore
    defineStep({
      ...words,
      id: 'undeclared',
      title: 'Undeclared',
      platformModels: ['threshold'],
      parameters: z.object({}),
      input: { description: 'Any.', synthetic: 'multispectral' },
      output: { ...output, fileName: 'undeclared.tif' },
      async run({ scene, platform, raster, workFolder, share }) {
        raster.writeCog(
          scene.onlyRaster(),
          `${workFolder}/a.tif`,
          { compression: 'NONE', blockSize: 512, resampling: 'NEAREST' },
          share(0, 0.5),
        );
        await platform.runModel({ modelId: 'elsewhere', path: `${workFolder}/a.tif` });
      },
    }),
  ],
});
