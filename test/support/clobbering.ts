/** A step whose parameters have the names that a form has for its own fields. */
import { writeFileSync } from 'node:fs';
import { defineApp } from '../../src/app/definition/app-definition.ts';
import { defineStep, z } from '../../src/steps/index.ts';

const text = (title: string) => z.string().max(20).default(title).meta({ title, description: 'A text.' });

export default defineApp({
  module: import.meta.url,
  id: 'clobbering',
  name: 'clobbering',
  description: 'A step of a test.',
  steps: [
    defineStep({
      id: 'clobbers',
      version: '1.0.0',
      title: 'Clobbers',
      description: 'Says what it was given.',
      parameters: z.object({
        slot: text('A slot'),
        input: z.number().min(0).max(9).default(1).meta({ title: 'An input', description: 'A number.' }),
        form: text('A form'),
        dataset: text('A dataset'),
        addEventListener: text('A listener'),
        querySelector: text('A selector'),
        querySelectorAll: text('Selectors'),
      }),
      input: { description: 'A raster.', synthetic: 'elevation' },
      outputs: { report: { kind: 'file', fileName: 'report.json', sourceType: 'UNKNOWN' } },
      async run({ parameters, outputs }) {
        writeFileSync(outputs.report, JSON.stringify(parameters));
      },
    }),
  ],
});
