import { join } from 'node:path';
import * as z from 'zod';
import { createContainers } from '../app/processing/containers.ts';
import { CodeDigests } from '../app/processing/code-digest.ts';
import { createLocalExecutor } from '../app/processing/local-executor.ts';
import { execStep, JobOverError } from '../app/execution/exec-step.ts';
import { KitError } from '../contract/index.ts';
import { confinementSettings, confinementVariables } from '../child/index.ts';
import { kitCommand, messageOf, scratchFolder } from '../files/index.ts';
import { confine } from './confine.ts';
import { defineCommand, onInterrupt } from './command.ts';
import { loadMyApp } from './my-app.ts';

const usage = `usage: ${kitCommand} exec-step: does one step for a worker elsewhere, and ends

An engine such as Slurm starts it, with two variables from the app. It fetches the inputs from the worker, runs the
step in a confined child process as the worker would, and sends the outputs back. It needs no key and no database.

STEP_JOB_URL       address of the job at the worker
STEP_JOB_TOKEN     the job's one-time token
TMPDIR             folder for inputs and outputs (default /tmp)
CONTAINER_ENGINE   program that runs the images of steps (default: none)
STEP_CONFINEMENT   required, auto or none (default: auto; required with NODE_ENV=production)

Exits 0 if the worker confirmed the result, 1 otherwise (docs/executors.md)`;

const environment = z.object({
  STEP_JOB_URL: z.url({ protocol: /^https?$/ }),
  STEP_JOB_TOKEN: z.string().min(1),
  CONTAINER_ENGINE: z.string().optional(),
  ...confinementVariables,
});

export default defineCommand(import.meta, {
  usage,
  options: {},
  async run() {
    const read = environment.safeParse(process.env);
    if (!read.success)
      throw new KitError(
        'bad_configuration',
        'exec-step needs STEP_JOB_URL and STEP_JOB_TOKEN, which the app gives to its engine',
      );
    const { STEP_JOB_URL: url, STEP_JOB_TOKEN: token, CONTAINER_ENGINE: engine } = read.data;
    // The processes that this one starts need not have it.
    delete process.env['STEP_JOB_TOKEN'];
    const definition = await loadMyApp();
    const folder = scratchFolder('exec-step');
    const stopped = new AbortController();
    onInterrupt(() => stopped.abort(new Error('the executor has to stop')));
    try {
      const confinement = await confine(confinementSettings(process.env, read.data), [folder.path]);
      const containers = engine ? createContainers(engine, folder.path) : null;
      const executor = createLocalExecutor({
        module: definition.module,
        confinement,
        ...(containers && { containers }),
      });
      await execStep({
        ...{ url, token, executor, signal: stopped.signal },
        steps: definition.steps,
        code: new CodeDigests(definition.module),
        workFolder: join(folder.path, 'work'),
        log: (line) => console.log(line),
      });
      return 0;
    } catch (error) {
      // Neither is a defect of this process.
      if (!(error instanceof JobOverError) && !stopped.signal.aborted) throw error;
      console.log(messageOf(error));
      return 1;
    } finally {
      await folder.remove();
    }
  },
});
