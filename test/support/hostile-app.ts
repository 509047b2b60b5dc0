/** Stands for the app in a test that kills it: runs one hostile step for ever. */
import { establishConfinement, type ConfinementMode } from '../../src/child/index.ts';
import hostileSteps from './hostile-steps.ts';
import { createStepHost } from '../../src/app/processing/step-host.ts';

const [mode = 'required', workFolder = '', marker = ''] = process.argv.slice(2);
const nobody = () => Promise.reject(new Error('there is no platform here'));
const host = createStepHost({
  definition: hostileSteps,
  inputDir: '/nowhere',
  confinement: await establishConfinement({ mode: mode as ConfinementMode, warn: () => {} }),
  platformInput: { check: nobody, fetch: nobody },
  concurrency: 1,
});
const task = {
  owner: 'tester',
  stepId: 'hostile',
  stepVersion: '1.0.0',
  parameters: { attack: 'linger', target: marker },
  input: { type: 'synthetic', size: 64 },
  workFolder,
} as const;
await host.run(task, { signal: new AbortController().signal, onProgress: () => {} });
