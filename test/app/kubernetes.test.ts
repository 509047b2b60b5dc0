/** Steps that Kubernetes gives room, against an API server that checks objects by the real schemas and plays pods and watches. */
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test, vi } from 'vitest';
import type { AppDefinition } from '../../src/app/definition/app-definition.ts';
import { KubernetesEngine, type KubernetesSettings } from '../../src/app/execution/kubernetes-engine.ts';
import { openEngine } from '../../src/app/execution/open-engine.ts';
import type { EngineJob } from '../../src/app/execution/step-engine.ts';
import { kitFolder } from '../../src/files/index.ts';
import badSteps from '../support/bad-steps.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { shippedTemplates, startRemoteExecutor } from '../support/executors.ts';
import { testFolder } from '../support/folders.ts';
import { startKubeApi, type KubeApi } from '../support/kube-api.ts';
import { startStepHost } from '../support/step-host.ts';
import { onlyInAll } from '../support/tags.ts';
import { executorSuite } from '../support/suites/executor-suite.ts';

const shipped = (
  JSON.parse(readFileSync(kitFolder('deploy/kubernetes/executor/engine.json'), 'utf8')) as {
    kubernetes: KubernetesSettings;
  }
).kubernetes;
const settings = { ...shipped, namespace: 'tests' };
const synthetic = { type: 'synthetic', size: 64 } as const;
const within = { timeout: 30_000, interval: 50 };

const execStep = ({ module }: Pick<AppDefinition, 'module'>) => ({
  argv: [process.execPath, kitFolder('bin/marketplace-app-kit.mjs'), 'exec-step'],
  env: {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    MY_APP: fileURLToPath(module),
    STEP_CONFINEMENT: 'auto',
  },
});

async function startCluster(command: Parameters<typeof startKubeApi>[1]) {
  const api = await startKubeApi('tests', command);
  const engine = new KubernetesEngine(settings, api.config);
  cleanUpLater(() => engine.close());
  return { api, engine };
}

let last: KubeApi | null = null;
executorSuite('Kubernetes', {
  tags: [onlyInAll],
  start: async (definition) => {
    const { api, engine } = await startCluster(execStep(definition));
    last = api;
    return (await startRemoteExecutor(definition, { engine })).executor;
  },
  untilGone: async () => {
    await vi.waitFor(() => expect([...last!.jobs.keys(), ...last!.secrets.keys()]).toEqual([]), within);
  },
});

const job: EngineJob = {
  name: 'step-0123456789abcdef01234567',
  environment: { STEP_JOB_URL: 'http://worker:3000/jobs/step-0123456789abcdef01234567', STEP_JOB_TOKEN: 'the-token' },
  ...{ memoryBytes: 2.5 * 2 ** 30, cores: 2, timeoutMs: 3_600_000, diskBytes: 2 ** 30, label: 'gpu' },
};
const container = { name: 'step', image: '', imageID: '', ready: false, restartCount: 0 };

describe('a job and its pod', () => {
  test('the job has what the step needs, and the token is in its secret alone', async () => {
    const { api, engine } = await startCluster(null);
    await engine.submit(job);
    const made = api.jobs.get(job.name)!;
    expect(JSON.stringify(made)).not.toContain('the-token');
    const [step] = made.spec!.template.spec!.containers;
    expect(step!.resources!.limits).toEqual({
      ...{ cpu: '2', memory: '2560Mi', 'ephemeral-storage': '1024Mi', 'nvidia.com/gpu': '1' },
    });
    expect(step!.envFrom).toEqual([{ secretRef: { name: job.name } }]);
    expect(step!.securityContext).toMatchObject({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true });
    expect(made.spec).toMatchObject({ backoffLimit: 0 });
    // The pod has the deadline and the job has none, so that the wait for a node does not count.
    expect(made.spec!.activeDeadlineSeconds).toBeUndefined();
    expect(made.spec!.template.spec).toMatchObject({ activeDeadlineSeconds: 3_600, enableServiceLinks: false });
    const secret = api.secrets.get(job.name)!;
    expect(secret.stringData).toEqual(job.environment);
    expect(secret.metadata!.ownerReferences).toMatchObject([{ kind: 'Job', name: job.name, uid: made.metadata!.uid }]);
    // A job of the same name is refused, as after a lost answer.
    await expect(engine.submit(job)).rejects.toThrow('the API server answered 409: jobs.batch');
    await engine.cancel(job.name);
    await vi.waitFor(async () => expect(await engine.state(job.name)).toBe('unknown'), within);
    await engine.cancel(job.name);
  });

  test('a label without an entry is the label of a node', async () => {
    const { api, engine } = await startCluster(null);
    await engine.submit({ ...job, label: 'high-memory' });
    expect(api.jobs.get(job.name)!.spec!.template.spec!.nodeSelector).toEqual({
      'marketplace-app-kit/label': 'high-memory',
    });
  });

  test('a container that ran out of memory, and a pod that was evicted, are told apart', async () => {
    const { api, engine } = await startCluster(null);
    await engine.submit(job);
    expect(await engine.state(job.name)).toBe('waiting');
    api.setStatus(job.name, { phase: 'Running' });
    await vi.waitFor(async () => expect(await engine.state(job.name)).toBe('running'), within);
    const terminated = { exitCode: 137, reason: 'OOMKilled' };
    api.setStatus(job.name, { phase: 'Failed', containerStatuses: [{ ...container, state: { terminated } }] });
    await vi.waitFor(async () => expect(await engine.state(job.name)).toBe('out-of-memory'), within);
    api.setStatus(job.name, { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' });
    await vi.waitFor(async () => expect(await engine.state(job.name)).toBe('ended'), within);
  });

  test('a watch that is gone or cut begins again, and misses nothing', async () => {
    const { api, engine } = await startCluster(null);
    await engine.submit(job);
    for (const how of ['gone', 'cut'] as const) {
      api.setStatus(job.name, { phase: 'Pending' });
      await vi.waitFor(async () => expect(await engine.state(job.name)).toBe('waiting'), within);
      api.endWatches(how);
      // Nobody watches at this moment.
      api.setStatus(job.name, { phase: 'Running' });
      await vi.waitFor(async () => expect(await engine.state(job.name)).toBe('running'), within);
    }
    expect(api.requests.filter((request) => request === 'GET /api/v1/namespaces/tests/pods').length).toBeGreaterThan(2);
  });

  test('an API server with a fault is asked again, and says no secret', async () => {
    const { api, engine } = await startCluster(null);
    api.fail.status = 500;
    await expect(engine.submit(job)).rejects.toThrow('the API server answered 500: the API server has a fault');
    api.fail.status = null;
    await engine.submit(job);
    // The watch begins again by itself.
    await vi.waitFor(async () => expect(await engine.state(job.name)).toBe('waiting'), within);
  });
});

test('a pod that is killed is a lost one', async () => {
  const { api, engine } = await startCluster(execStep(badSteps));
  const { executor } = await startRemoteExecutor(badSteps, { engine });
  const { run } = await startStepHost({ definition: badSteps, executor });
  const isBusy = Promise.withResolvers<void>();
  const running = run('cooperative', synthetic, {}, new AbortController().signal, (_fraction, note) => {
    if (note === 'cooperative') isBusy.resolve();
  });
  running.catch(() => {});
  await isBusy.promise;
  for (const name of api.jobs.keys()) api.killPod(name);
  await expect(running).rejects.toMatchObject({ code: 'executor_lost', kind: 'transient' });
  await vi.waitFor(() => expect(api.jobs.size).toBe(0), within);
});

test('the file that the kit ships opens an engine, and a wrong one says what is wrong', async () => {
  const engine = await openEngine(kitFolder('deploy/kubernetes/executor/engine.json'));
  expect(engine.title).toBe('Kubernetes');
  await engine.close?.();
  const missing = '/does/not/exist.json';
  await expect(openEngine(missing)).rejects.toThrow(`STEP_EXECUTOR=${missing}: cannot be read (ENOENT)`);
  const folder = await testFolder();
  const wrong = async (file: unknown) => {
    await writeFile(join(folder, 'engine.json'), typeof file === 'string' ? file : JSON.stringify(file));
    return openEngine(join(folder, 'engine.json')).then(
      () => 'opened',
      (error: unknown) => (error as Error).message.replace(folder, ''),
    );
  };
  const slurm = shippedTemplates('slurm');
  expect(await wrong('{')).toMatch(/^STEP_EXECUTOR=\/engine.json: is no JSON/);
  expect(await wrong({ ...slurm, submit: ['sbatch', '{token}'] })).toMatch(/\{token\} may stand in `input` only/);
  expect(await wrong({ ...slurm, submit: ['sbatch', '{memoryMb}'] })).toMatch(/no placeholder \{memoryMb\}; there are/);
  expect(await wrong({ ...slurm, states: { running: '(' } })).toMatch(/states.running must be a regular expression/);
  expect(await wrong({ ...slurm, sumbit: [] })).toMatch(/sumbit/);
  expect(await wrong({ kubernetes: { namespace: 'a', pod: { containers: [] } } })).toMatch(
    /must be a pod with a container/,
  );
});
