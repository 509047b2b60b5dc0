/** Steps that Slurm gives room: a controller and two nodes on this machine, by the templates that the kit ships. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, expect, test, vi } from 'vitest';
import { CommandEngine } from '../../src/app/execution/command-engine.ts';
import type { AppDefinition } from '../../src/app/definition/app-definition.ts';
import badSteps from '../support/bad-steps.ts';
import { shippedTemplates, startRemoteExecutor } from '../support/executors.ts';
import { fileNeeds } from '../support/needs.ts';
import { slurm, startSlurm } from '../support/slurm.ts';
import { startStepHost } from '../support/step-host.ts';
import { onlyInAll } from '../support/tags.ts';
import { executorSuite } from '../support/suites/executor-suite.ts';

const hasSlurm = fileNeeds(slurm);

const synthetic = { type: 'synthetic', size: 64 } as const;
let env: NodeJS.ProcessEnv = {};
beforeAll(async () => {
  if (hasSlurm) ({ env } = await startSlurm());
}, 90_000);

const engineFor = ({ module }: Pick<AppDefinition, 'module'>) =>
  new CommandEngine(
    { ...shippedTemplates('slurm'), pollSeconds: 0.5 },
    { ...process.env, ...env, MY_APP: fileURLToPath(module), STEP_CONFINEMENT: 'auto' },
  );

const call = async (program: string, ...args: string[]) =>
  (await promisify(execFile)(program, args, { env: { ...process.env, ...env } })).stdout;
const untilNoJobs = () =>
  vi.waitFor(async () => expect(await call('squeue', '--noheader')).toBe(''), { timeout: 40_000, interval: 500 });

executorSuite('Slurm', {
  tags: [onlyInAll],
  start: async (definition) => (await startRemoteExecutor(definition, { engine: engineFor(definition) })).executor,
  untilGone: untilNoJobs,
});

test('neither the token nor a secret of the app is in what Slurm shows of a job', async () => {
  const engine = engineFor(badSteps);
  const remote = await startRemoteExecutor(badSteps, { engine });
  const { run } = await startStepHost({ definition: badSteps, executor: remote.executor });
  const abort = new AbortController();
  let token = '';
  const submit = engine.submit.bind(engine);
  engine.submit = async (job) => {
    token = job.environment.STEP_JOB_TOKEN;
    await submit(job);
  };
  const running = run('cooperative', synthetic, {}, abort.signal);
  running.catch(() => {});
  await vi.waitFor(async () => expect(await call('squeue', '--noheader')).toContain('step-'), 20_000);
  const shown = await call('scontrol', 'show', 'job', '--details');
  expect(shown).toContain('JobName=step-');
  expect(token).not.toBe('');
  expect(shown).not.toContain(token);
  abort.abort(new Error('enough'));
  await expect(running).rejects.toThrow('enough');
  await untilNoJobs();
});

test('a job that Slurm ends is a lost one', async () => {
  const { executor } = await startRemoteExecutor(badSteps, { engine: engineFor(badSteps) });
  const { run } = await startStepHost({ definition: badSteps, executor });
  const isBusy = Promise.withResolvers<void>();
  const running = run('endless', synthetic, {}, new AbortController().signal, (_fraction, note) => {
    if (note === 'endless') isBusy.resolve();
  });
  running.catch(() => {});
  await isBusy.promise;
  await call(
    'scancel',
    '--signal=KILL',
    '--full',
    '--name',
    (await call('squeue', '--noheader', '--format=%j')).trim(),
  );
  await expect(running).rejects.toMatchObject({ kind: 'transient' });
  await untilNoJobs();
});
