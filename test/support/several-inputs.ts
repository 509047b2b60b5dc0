/** Steps with several inputs. */
import { writeFileSync } from 'node:fs';
import { defineApp } from '../../src/app/definition/app-definition.ts';
import { band, command, defineStep, z } from '../../src/steps/index.ts';

const report = { kind: 'file', fileName: 'report.json', sourceType: 'UNKNOWN' } as const;

export default defineApp({
  module: import.meta.url,
  id: 'several-inputs',
  name: 'several-inputs',
  description: 'Steps of a test.',
  steps: [
    defineStep({
      id: 'compares',
      version: '1.0.0',
      title: 'Compares',
      description: 'Says what it was given.',
      parameters: z.object({
        band: band({ of: 'after', default: 'nir', title: 'Band', description: 'Of the later scene.' }),
      }),
      inputs: {
        before: { title: 'Before', description: 'The earlier scene.', synthetic: 'multispectral' },
        after: { title: 'After', description: 'The later scene.', maxItems: 1, synthetic: 'multispectral' },
        zones: { kind: 'vector', title: 'Zones', description: 'Areas to count in.', optional: true },
      },
      outputs: { report },
      async run({ inputs: { before, after, zones }, scene, parameters, outputs }) {
        const mean = (found: ReturnType<typeof before.findBand>) => found.band.computeStatistics(false).mean;
        writeFileSync(
          outputs.report,
          JSON.stringify({
            before: before.bands.length,
            isMain: scene === before,
            means: [before.findBand(parameters.band), after.findBand(parameters.band)].map(mean),
            files: [before, after].map(({ bands }) => bands[0]?.fileName),
            zones: zones?.onlyLayer().features.map((feature) => feature.fields.get('zone') as string) ?? null,
          }),
        );
      },
    }),
    defineStep({
      id: 'by-command',
      version: '1.0.0',
      title: 'By command',
      description: 'Says what it was given.',
      parameters: z.object({}),
      inputs: {
        heights: { description: 'Heights.', synthetic: 'elevation' },
        zones: { kind: 'vector', description: 'Areas.' },
      },
      outputs: { report },
      run: command({
        argv: [
          'python3',
          '-c',
          'import json, sys, marketplace_step as m; job = m.load(); json.dump([sys.argv[1:3], job.named_inputs, [b.names for b in job.bands]], open(job.output, "w"))',
          '{heights}',
          '{zones}',
          '{job}',
        ],
      }),
    }),
  ],
});
