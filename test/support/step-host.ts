import { join } from 'node:path';
import myApp from '../../src/my-app/app.ts';
import { createStepHost, type StepHostOptions, type StepRunOptions } from '../../src/app/processing/step-host.ts';
import type { StepParameters } from '../../src/app/processing/step-parameters.ts';
import type { RunInput } from '../../src/app/processing/run-input.ts';
import { testConfinement } from './confinement.ts';
import { inKeptChild } from './kept-children.ts';
import { testFolder } from './folders.ts';

const noPlatform = {
  check: () => Promise.reject(new Error('there is no platform here')),
  fetch: () => Promise.reject(new Error('there is no platform here')),
};

/** Starts a step host with an input folder for this test. With `keepsChildren`, its jobs share child processes. */
export async function startStepHost({
  workFolder: given,
  keepsChildren = false,
  ...options
}: Partial<StepHostOptions> & { workFolder?: string; keepsChildren?: boolean } = {}) {
  const folder = await testFolder();
  const inputDir = options.inputDir ?? folder;
  const host = createStepHost({
    definition: myApp,
    concurrency: 2,
    platformInput: noPlatform,
    confinement: await testConfinement(),
    ...(keepsChildren && { inChild: inKeptChild }),
    ...options,
    inputDir,
  });
  const workFolder = given ?? join(await testFolder(), 'work');
  return {
    host,
    inputDir,
    workFolder,
    run: async (
      stepId: string,
      input: RunInput,
      parameters: StepParameters = {},
      signal = new AbortController().signal,
      onProgress: StepRunOptions['onProgress'] = () => {},
    ) => {
      const { outputs, result } = await host.run(
        { owner: 'tester', stepId, stepVersion: host.find(stepId).version, parameters, input, workFolder },
        { signal, onProgress },
      );
      return { ...outputs[0]!, outputs, result };
    },
  };
}
