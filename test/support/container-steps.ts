/** Steps whose program runs in an image, each to show one thing of it. Any image with a shell will do. */
import { defineApp } from '../../src/app/definition/app-definition.ts';
import { command, defineStep, ndvi, ndviImage, z, type Command } from '../../src/steps/index.ts';

export const testImage = 'marketplace-app-kit-test:1';

function made(id: string, script: string, { image = testImage, ...more }: Partial<Command> = {}) {
  return defineStep({
    id,
    version: '1.0.0',
    title: id,
    description: id,
    parameters: z.object({ text: z.string().default('plain').meta({ title: 'Text', description: 'Any.' }) }),
    input: { description: 'anything', synthetic: 'elevation' },
    output: { fileName: 'out.tif', sourceType: 'UNKNOWN', bands: 'as-input', preview: { ramp: 'gray' } },
    run: command({ argv: ['sh', '-c', script, 'sh', '{input}', '{output}', '{job}', '{text}'], image, ...more }),
  });
}

const file = { kind: 'file', fileName: 'told.txt', sourceType: 'UNKNOWN' } as const;

export default defineApp({
  module: import.meta.url,
  id: 'container-steps',
  name: 'container-steps',
  description: 'Steps of a test.',
  steps: [
    ndvi,
    ndviImage,
    made('copies', 'echo \'{"progress": 0.5, "note": "half of it"}\'; echo "said $4"; cp "$1" "$2"'),
    made('percent', 'printf "0...10...20...30..."; sleep 0.3; cp "$1" "$2"', { progress: 'percent' }),
    made('refuses', 'echo \'{"message": "there is no snow in it", "code": "no_snow"}\' > error.json; exit 3'),
    made('breaks', 'echo "a mistake in the image" >&2; exit 4'),
    made('sleeps', 'echo begun; sleep 60'),
    made('fills', 'while true; do cat "$1" >> big; done'),
    made('prints', 'head -c 300000000 /dev/zero >&2; head -c 20000000 /dev/zero | tr "\\0" "\\n"'),
    made('links', 'ln -s /etc/hostname "$2"'),
    made('is-not-there', 'true', { image: 'marketplace-app-kit-absent:1' }),
    defineStep({
      ...made('tells', ''),
      output: undefined,
      outputs: { output: file },
      run: command({ argv: ['sh', '-c', 'cat "$1" > "$2"', 'sh', '{job}', '{output}'], image: testImage }),
    }),
    defineStep({
      ...made('looks-around', ''),
      output: undefined,
      outputs: { output: file },
      run: command({
        argv: [
          'sh',
          '-c',
          `{ touch /of-the-image 2>/dev/null && echo "wrote to the image"
             touch "$1" 2>/dev/null && echo "wrote to the input"
             grep -qv -e lo: -e Inter -e face /proc/net/dev && echo "has a network"
             env | grep -i -e secret -e api_key && echo "has a secret"
             echo "user $(id -u)"; } > "$2"`,
          'sh',
          '{input}',
          '{output}',
        ],
        image: testImage,
      }),
    }),
  ],
});
