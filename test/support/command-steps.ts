/** Steps that a program does, each to show one thing of it. */
import { defineApp } from '../../src/app/definition/app-definition.ts';
import { area, command, defineStep, ndviPython, slope, z, type Command } from '../../src/steps/index.ts';

const python = (script: string, more: Partial<Command> = {}) =>
  command({ argv: ['python3', '-c', script, '{job}'], ...more });

function made(id: string, run: ReturnType<typeof command>) {
  return defineStep({
    id,
    version: '1.0.0',
    title: id,
    description: id,
    parameters: z.object({ text: z.string().default('plain').meta({ title: 'Text', description: 'Any.' }) }),
    input: { description: 'anything', synthetic: 'elevation' },
    output: { fileName: 'out.tif', sourceType: 'UNKNOWN', bands: 'as-input', preview: { ramp: 'gray' } },
    run,
  });
}

const copy = 'import marketplace_step as m, shutil; job = m.load(); shutil.copyfile(job.inputs[0], job.output)';

export default defineApp({
  module: import.meta.url,
  id: 'command-steps',
  name: 'command-steps',
  description: 'Steps of a test.',
  steps: [
    ndviPython,
    slope,
    made('copies', python(`${copy}; m.progress(0.25, "a quarter"); print("said", job.parameters["text"])`)),
    made('refuses', python('import marketplace_step as m; m.load(); m.refuse("there is no snow in it", "no_snow")')),
    made('refuses-at-length', python('import marketplace_step as m; m.load(); m.refuse("ж" * 5000, "no_snow")')),
    made('joins-text', command({ argv: ['cp', '{text}{text}', '{output}'] })),
    made('breaks', python('raise ValueError("a mistake in Python")')),
    made('sleeps', python('import time; open("pid", "w").write("x"); time.sleep(60)')),
    made('is-not-there', command({ argv: ['no-such-program', '{input}', '{output}'] })),
    made('takes-text', command({ argv: ['cp', '{text}', '{output}'] })),
    defineStep({
      ...made('area-file', command({ argv: ['cp', '{place}', '{output}'] })),
      parameters: z.object({ place: area({ title: 'Place', description: 'Any.' }) }),
      output: undefined,
      outputs: {
        output: { kind: 'vector', fileName: 'place.geojson', sourceType: 'POLYGON', geometry: 'Polygon', fields: {} },
      },
      run: command({ argv: ['cp', '{place}', '{output}'] }),
    }),
    made(
      'looks-around',
      python(
        'import marketplace_step as m, socket; job = m.load(); socket.create_connection(("127.0.0.1", int(job.parameters["text"])), 5)',
      ),
    ),
  ],
});
