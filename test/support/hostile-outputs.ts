/** A step that writes what it should, and then puts something else in its place: as a hostile file that had taken over its process could. */
import { defineApp } from '../../src/app/definition/app-definition.ts';
import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, renameSync, symlinkSync } from 'node:fs';
import { defineStep, z } from '../../src/steps/step.ts';

const steps = [
  defineStep({
    id: 'leaves',
    version: '1.0.0',
    title: 'leaves',
    description: 'leaves',
    parameters: z.object({
      kind: z.string().meta({ title: 'kind', description: 'kind' }),
      target: z.string().meta({ title: 'target', description: 'target' }),
    }),
    input: { description: 'anything', synthetic: 'elevation' },
    output: { fileName: 'out.tif', sourceType: 'UNKNOWN', bands: 'as-input', preview: { ramp: 'gray' } },
    async run({ parameters: { kind, target }, scene, raster, outputPath, share }) {
      raster.writeCog(
        scene.onlyRaster(),
        outputPath,
        { compression: 'NONE', blockSize: 256, resampling: 'NEAREST' },
        share(0, 1),
      );
      process.once('exit', () => {
        renameSync(outputPath, `${outputPath}.aside`);
        if (kind === 'link') symlinkSync(target, outputPath);
        if (kind === 'hard-link') linkSync(`${outputPath}.aside`, outputPath);
        if (kind === 'pipe') execFileSync('/usr/bin/mkfifo', [outputPath]);
        if (kind === 'folder') mkdirSync(outputPath);
      });
    },
  }),
];

export default defineApp({
  module: import.meta.url,
  id: 'hostile-outputs',
  name: 'hostile-outputs',
  description: 'Steps of a test.',
  steps,
});
