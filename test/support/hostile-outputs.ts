/** A step that writes what it should, and then puts something else in its place: as a hostile file that had taken over its process could. */
import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, renameSync, symlinkSync } from 'node:fs';
import { defineStep } from '../../src/steps/step.ts';

export const steps = [
  defineStep<{ kind: string; target: string }>({
    id: 'leaves',
    version: '1.0.0',
    title: 'leaves',
    description: 'leaves',
    parameters: {
      kind: { type: 'string', title: 'kind', description: 'kind' },
      target: { type: 'string', title: 'target', description: 'target' },
    },
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
