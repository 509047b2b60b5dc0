/** An app whose step is taken over: its parameters say what it does, and to whom. */
import { defineApp } from '../../src/app/definition/app-definition.ts';
import { defineStep, z } from '../../src/steps/step.ts';
import { deeds } from './hostile-job.ts';

const hostile = defineStep({
  id: 'hostile',
  version: '1.0.0',
  title: 'hostile',
  description: 'hostile',
  parameters: z.object({
    deed: z.string().meta({ title: 'Deed', description: 'What it does.' }),
    victim: z.string().meta({ title: 'Victim', description: 'A folder of the host.' }),
  }),
  input: { description: 'anything', synthetic: 'elevation' },
  output: { fileName: 'out.tif', sourceType: 'UNKNOWN', bands: 'as-input', preview: { ramp: 'gray' } },
  async run({ parameters: { deed, victim }, scene, raster, workFolder, outputPath, share }) {
    raster.writeCog(
      scene.onlyRaster(),
      outputPath,
      { compression: 'NONE', blockSize: 256, resampling: 'NEAREST' },
      share(0, 1),
    );
    await deeds[deed]!(workFolder, victim);
  },
});

export default defineApp({
  module: import.meta.url,
  id: 'hostile',
  name: 'hostile',
  description: 'A step of a test.',
  steps: [hostile],
});
