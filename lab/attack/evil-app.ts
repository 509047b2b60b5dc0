/** An app whose step is a process that a file has taken over: it says what the host alone may say. */
import { appendFileSync, readFileSync, writeSync } from 'node:fs';
import { execFileSync, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { KitError } from '../../src/contract/index.ts';
import { defineStep, z } from '../../src/steps/index.ts';

const channel = 3;
const deeds = readFileSync(fileURLToPath(new URL('./deeds.py', import.meta.url)), 'utf8');

function say(message: object): void {
  const bytes = Buffer.from(`:${JSON.stringify(message)}\n`);
  for (let at = 0; at < bytes.length;) at += writeSync(channel, bytes, at);
}

const failed = (code: string, kind: string, message = 'x') => say({ type: 'failed', kind, code, message, stack: null });

/** By their names; `path` is the step's output, which is whole by then. */
const lies: Readonly<Record<string, (path: string) => unknown>> = {
  honest: () => {},
  'no process can be started': () => failed('job_not_started', 'input'),
  'the disk is full': () => failed('disk_full', 'transient'),
  'other runs fill the disk': () => failed('work_disk_full', 'transient'),
  'the session has expired': () =>
    failed('token_expired', 'input', 'Sign in again at https://evil.example \u202e and\u0000 enter your key'),
  'a message of NUL and half a surrogate': () => failed('job_failed', 'input', 'a\u0000b\ud800c'),
  'a false size and a false digest': () =>
    say({
      type: 'done',
      output: { outputs: [{ name: 'output', sizeBytes: 100, sha256: 'ab'.repeat(32) }], inputs: [], gdalVersion: '1' },
    }),
  'a forged provenance': () =>
    say({
      type: 'done',
      output: {
        inputs: [{ name: 'input', files: [{ fileName: 'trusted.tif', sizeBytes: 1, sha256: 'cd'.repeat(32) }] }],
        gdalVersion: '<img src=x>',
      },
    }),
  'an answer, and then writes on': async (path) => {
    spawn('/bin/sh', ['-c', `sleep 0.2; echo more >> '${path}'`], { detached: true, stdio: 'ignore' }).unref();
    say({ type: 'done', output: {} });
    appendFileSync(path, 'late');
    await sleep(5_000);
  },
};

/** Declaration of both steps; `id` names its output too. */
const declared = <const Id extends string>(id: Id) => ({
  id,
  version: '1.0.0',
  input: { description: 'Any raster.', synthetic: 'elevation' } as const,
  output: {
    fileName: `${id}.tif`,
    sourceType: 'UNKNOWN',
    bands: [{ description: '', dataType: 'Byte' }],
    preview: { ramp: 'gray' },
  } as const,
});

export default {
  id: 'evil',
  name: 'Evil',
  description: 'Attacks its host.',
  steps: [
    defineStep({
      ...declared('evil'),
      title: 'Evil',
      description: 'Writes a raster, and lies.',
      parameters: z.object({ lie: z.string().max(100).meta({ title: 'Lie', description: 'Name of the lie.' }) }),
      async run({ parameters: { lie }, gdal, outputPath }) {
        const output = gdal.drivers.get('GTiff').create(outputPath, 64, 64, 1, 'Byte');
        output.bands.get(1).pixels.write(0, 0, 64, 64, new Uint8Array(4_096));
        output.close();
        await lies[lie]?.(outputPath);
      },
    }),
    defineStep({
      ...declared('deed'),
      title: 'Deed',
      description: 'Does a deed of deeds.py, and fails with what that printed.',
      parameters: z.object({
        deed: z.string().meta({ title: 'Deed', description: 'Its name.' }),
        target: z.string().meta({ title: 'Target', description: 'What it is done to.' }),
      }),
      run({ parameters: { deed, target } }) {
        throw new KitError('deed', execFileSync('/usr/bin/python3', ['-c', deeds, deed, target], { encoding: 'utf8' }));
      },
    }),
    defineStep({
      ...declared('unclosed'),
      title: 'Unclosed',
      description: 'Leaves its output open.',
      parameters: z.object({}),
      async run({ gdal, outputPath }) {
        const output = gdal.drivers.get('GTiff').create(outputPath, 64, 64, 1, 'Byte');
        output.bands.get(1).pixels.write(0, 0, 64, 64, new Uint8Array(4_096).fill(7));
        // Keeps it from being collected before the end.
        Object.assign(globalThis, { kept: output });
        await Promise.resolve();
      },
    }),
  ],
};
