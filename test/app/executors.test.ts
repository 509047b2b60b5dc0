/** Steps that this machine does, and steps that a process elsewhere does: nothing is lost, done twice, or believed. */
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import { request } from 'node:http';
import { brotliCompressSync } from 'node:zlib';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { createLocalExecutor } from '../../src/app/processing/local-executor.ts';
import { RunReleased } from '../../src/app/processing/step-executor.ts';
import { CommandEngine } from '../../src/app/execution/command-engine.ts';
import { execStep } from '../../src/app/execution/exec-step.ts';
import { CodeDigests } from '../../src/app/processing/code-digest.ts';
import { EngineError } from '../../src/app/execution/step-engine.ts';
import { hashOf, jobName } from '../../src/app/execution/sealed-job.ts';
import type { StepHost } from '../../src/app/processing/step-host.ts';
import badSteps from '../support/bad-steps.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testConfinement } from '../support/confinement.ts';
import { startRemoteExecutor } from '../support/executors.ts';
import { testFolder } from '../support/folders.ts';
import { processesIn } from '../support/processes.ts';
import { startStepHost } from '../support/step-host.ts';
import { onlyInAll } from '../support/tags.ts';
import { executorSuite } from '../support/suites/executor-suite.ts';
import toySteps from '../support/toy-steps/app.ts';

executorSuite('this machine', {
  tags: [onlyInAll],
  start: async ({ module }) => createLocalExecutor({ module, confinement: await testConfinement() }),
  untilGone: async () => {},
});

let jobsFolder = '';
executorSuite('processes elsewhere', {
  start: async (definition) => {
    const remote = await startRemoteExecutor(definition);
    jobsFolder = remote.jobsFolder;
    return remote.executor;
  },
  untilGone: () => vi.waitFor(() => expect(processesIn(jobsFolder)).toEqual([]), { timeout: 15_000 }),
});

const synthetic = { type: 'synthetic', size: 64 } as const;
const never = new AbortController().signal;

/** Runs a step of `host` as an attempt of a run. */
function attemptOf(host: StepHost, stepId: string, workFolder: string, claim = 1, signal = never) {
  const parameters = stepId === 'multiply' ? { factor: 2 } : {};
  const step = { stepId, stepVersion: host.find(stepId).version, parameters };
  const notes: (string | null)[] = [];
  const task = { owner: 'tester', ...step, input: synthetic, workFolder, run: { id: 'a-run', claim } };
  const outcome = host.run(task, { signal, onProgress: (_fraction, note) => notes.push(note) });
  outcome.catch(() => {});
  return { outcome, notes };
}

const within = { timeout: 30_000, interval: 50 };
/** Process ids of the jobs in a folder. */
const pidsIn = (folder: string) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.pid'))
    .map((name) => Number(readFileSync(join(folder, name), 'utf8')));

describe('a run outlives what does it', () => {
  test('an executor that is killed is a lost one, and another attempt may succeed', async () => {
    const { executor, jobsFolder: jobs, records } = await startRemoteExecutor(badSteps);
    const { host, workFolder } = await startStepHost({ definition: badSteps, executor });
    const { outcome, notes } = attemptOf(host, 'cooperative', workFolder);
    await vi.waitFor(() => expect(notes).toContain('cooperative'), within);
    for (const pid of pidsIn(jobs)) process.kill(-pid, 'SIGKILL');
    await expect(outcome).rejects.toMatchObject({ code: 'executor_lost', kind: 'transient' });
    await vi.waitFor(async () => expect(await records.ofRun('a-run')).toBeNull(), within);
    await attemptOf(host, 'talkative', workFolder, 2).outcome;
  });

  test('an executor that has to stop says so', async () => {
    const { executor, jobsFolder: jobs } = await startRemoteExecutor(badSteps);
    const { host, workFolder } = await startStepHost({ definition: badSteps, executor });
    const { outcome, notes } = attemptOf(host, 'cooperative', workFolder);
    await vi.waitFor(() => expect(notes).toContain('cooperative'), within);
    for (const pid of pidsIn(jobs)) process.kill(-pid, 'SIGTERM');
    await expect(outcome).rejects.toMatchObject({ code: 'executor_stopped', kind: 'transient' });
  });

  test('an owner that starts again finds its job, which is done once', async () => {
    const folder = await testFolder();
    const [first, gone] = [await startRemoteExecutor(toySteps, { folder }), new AbortController()];
    // The first owner dies before it gets an output.
    first.hook.before = (req, res) => {
      if (req.method !== 'PUT') return false;
      gone.abort(new RunReleased('the process is stopping'));
      res.destroy();
      return true;
    };
    const before = await startStepHost({ definition: toySteps, executor: first.executor });
    const { outcome } = attemptOf(before.host, 'multiply', before.workFolder, 1, gone.signal);
    await expect(outcome).rejects.toThrow('stopping');
    await first.close();
    const second = await startRemoteExecutor(toySteps, { folder, port: first.port });
    const after = await startStepHost({ definition: toySteps, executor: second.executor });
    const { outputs } = await attemptOf(after.host, 'multiply', after.workFolder, 2).outcome;
    expect(outputs).toHaveLength(1);
    expect(second.calls).not.toContain('POST /begin');
    expect(pidsIn(second.jobsFolder)).toHaveLength(1);
  });

  test('a later owner attaches to no job that does something else, and ends that', async () => {
    const folder = await testFolder();
    const [first, gone] = [await startRemoteExecutor(toySteps, { folder }), new AbortController()];
    const before = await startStepHost({ definition: toySteps, executor: first.executor });
    first.hook.before = (req, res) => {
      if (req.method !== 'PUT') return false;
      gone.abort(new RunReleased('the process is stopping'));
      res.status(503).end();
      return true;
    };
    const { outcome } = attemptOf(before.host, 'multiply', before.workFolder, 1, gone.signal);
    await expect(outcome).rejects.toThrow('stopping');
    const second = await startRemoteExecutor(toySteps, { folder });
    const after = await startStepHost({ definition: toySteps, executor: second.executor });
    const { outputs } = await after.host.run(
      {
        ...{ owner: 'tester', stepId: 'multiply', stepVersion: after.host.find('multiply').version },
        ...{ parameters: { factor: 3 }, input: synthetic, workFolder: after.workFolder },
        run: { id: 'a-run', claim: 2 },
      },
      { signal: never, onProgress: () => {} },
    );
    expect(outputs).toHaveLength(1);
    expect(second.calls).toContain('POST /begin');
    expect(pidsIn(second.jobsFolder)).toHaveLength(2);
    await vi.waitFor(() => expect(processesIn(second.jobsFolder)).toEqual([]), within);
  });

  test('an owner on another machine is found through any process of the app', async () => {
    const folder = await testFolder();
    const [first, gone] = [await startRemoteExecutor(toySteps, { folder }), new AbortController()];
    const before = await startStepHost({ definition: toySteps, executor: first.executor });
    const { outcome } = attemptOf(before.host, 'multiply', before.workFolder, 1, gone.signal);
    first.hook.before = (req, res) => {
      if (req.method !== 'PUT') return false;
      gone.abort(new RunReleased('the process is stopping'));
      res.status(503).end();
      return true;
    };
    await expect(outcome).rejects.toThrow('stopping');
    first.hook.before = () => false;
    const second = await startRemoteExecutor(toySteps, { folder });
    const after = await startStepHost({ definition: toySteps, executor: second.executor });
    const { outputs } = await attemptOf(after.host, 'multiply', after.workFolder, 2).outcome;
    expect(outputs).toHaveLength(1);
    expect(second.calls).toContain('POST /result');
    expect(second.calls).not.toContain('POST /begin');
  });

  test('answers that are lost, and an answer that comes twice, change nothing', async () => {
    const remote = await startRemoteExecutor(toySteps);
    const lost = new Map<string, number>();
    // The desk does its work, and the answer to each first call is lost.
    remote.hook.before = (req, res) => {
      const call = `${req.method} ${req.path.split('/')[3]}`;
      const times = lost.get(call) ?? 0;
      lost.set(call, times + 1);
      if (times === 0) res.end = () => (req.socket.destroy(), res);
      return false;
    };
    const { host, workFolder } = await startStepHost({ definition: toySteps, executor: remote.executor });
    const { outputs } = await attemptOf(host, 'multiply', workFolder).outcome;
    expect(outputs).toHaveLength(1);
    expect([...lost.keys()]).toEqual(expect.arrayContaining(['POST begin', 'PUT outputs', 'POST result']));
    await vi.waitFor(() => expect(pidsIn(remote.jobsFolder).every((pid) => !isAlive(pid))).toBe(true), within);
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('an executor is believed no more than a child', () => {
  /** A job that no process does: the test plays its executor. */
  async function openJob() {
    const engine = {
      ...{ title: 'nobody', pollMs: 100 },
      submit: vi.fn<(job: { environment: { STEP_JOB_URL: string; STEP_JOB_TOKEN: string } }) => Promise<void>>(
        async () => {},
      ),
      state: async () => 'running' as const,
      cancel: async () => {},
      logs: async () => '',
    };
    const remote = await startRemoteExecutor(toySteps, { engine });
    const { host, workFolder } = await startStepHost({ definition: toySteps, executor: remote.executor });
    const abort = new AbortController();
    cleanUpLater(() => abort.abort(new Error('the test has ended')));
    const { outcome, notes } = attemptOf(host, 'multiply', workFolder, 1, abort.signal);
    await vi.waitFor(() => expect(engine.submit).toHaveBeenCalled(), within);
    const { STEP_JOB_URL: url, STEP_JOB_TOKEN: token } = engine.submit.mock.calls[0]![0].environment;
    const session = 's'.repeat(40);
    const call = (path: string, init: RequestInit = {}, secret = session) =>
      fetch(`${url}${path}`, {
        ...init,
        headers: { Authorization: `Bearer ${secret}`, 'Content-Type': 'application/json', ...init.headers },
      });
    const post = (path: string, body: unknown, secret = session) =>
      call(path, { method: 'POST', body: JSON.stringify(body) }, secret);
    return {
      ...remote,
      host,
      abort,
      outcome,
      notes,
      url,
      token,
      session,
      call,
      post,
      stepFolder: join(workFolder, 'step'),
    };
  }
  const nothing = {
    ...{ type: 'done', descriptions: [], result: null, gdalVersion: '3.6.2', inputDigests: [], outputs: [] },
    usage: { cpuSeconds: 1, peakMemoryBytes: 1, place: 'elsewhere' },
  };

  test('nobody gets in without the secret, and the token opens one session', async () => {
    const { url, token, session, call, post } = await openJob();
    expect((await fetch(`${url}/inputs/0`)).status).toBe(401);
    expect((await post('/begin', { session }, 'wrong')).status).toBe(401);
    // Before a session there is none to have.
    expect((await post('/progress', { fraction: 0, note: null, printed: [] }, '')).status).toBe(401);
    expect((await post('/begin', { session }, token)).status).toBe(200);
    expect((await post('/begin', { session }, token)).status).toBe(200);
    expect((await post('/begin', { session: 't'.repeat(40) }, token)).status).toBe(409);
    expect((await call('/progress', {}, token)).status).toBe(404);
    expect((await post('/progress', { fraction: 0.5, note: null, printed: [] }, token)).status).toBe(401);
    expect((await post('/progress', { fraction: 0.5, note: null, printed: [] })).status).toBe(204);
    expect((await post('/progress', { fraction: 7, note: null, printed: [] })).status).toBe(400);
    const headers = { Authorization: `Bearer ${session}` };
    const other = url.replace(/step-.*/, 'step-000000000000000000000000');
    expect((await fetch(`${other}/begin`, { method: 'POST', headers })).status).toBe(410);
    expect((await fetch(`${other}/begin`, { method: 'POST' })).status).toBe(401);
  });

  test('a job says nothing secret', async () => {
    const { token, session, post, records } = await openJob();
    const sealed = await (await post('/begin', { session }, token)).text();
    expect(sealed).not.toContain(token);
    expect(sealed).not.toMatch(/api.?key|postgres:|token|password/i);
    const record = (await records.ofRun('a-run'))!;
    expect(JSON.stringify(record)).not.toContain(token);
    expect(record).toMatchObject({ name: jobName(token), sessionHash: hashOf(session) });
  });

  test('it brings nothing but declared outputs, of the size that it says, within the limit', async () => {
    const { token, session, call, post, outcome } = await openJob();
    await post('/begin', { session }, token);
    expect((await call('/inputs/0')).status).toBe(404);
    expect((await call('/inputs/..%2f..%2fetc%2fpasswd')).status).toBe(404);
    expect((await call('/outputs/other.tif', { method: 'PUT', body: 'x' })).status).toBe(404);
    expect((await call('/outputs/..%2f..%2fout.tif', { method: 'PUT', body: 'x' })).status).toBe(404);
    const claims = { ...nothing, outputs: [{ fileName: 'multiplied.tif', sizeBytes: 5, sha256: 'a'.repeat(64) }] };
    // An output that it says it has sent.
    const answer = await post('/result', claims);
    expect([answer.status, await answer.json()]).toEqual([409, { missing: ['multiplied.tif'] }]);
    expect((await call('/outputs/multiplied.tif', { method: 'PUT', body: '12345' })).status).toBe(204);
    // The digest that it says is not that of the file.
    expect((await post('/result', claims)).status).toBe(204);
    await expect(outcome).rejects.toMatchObject({ code: 'executor_answer_damaged' });
    expect((await post('/result', claims)).status).toBe(410);
  });

  test('its codes are those of a host of children, and it decides nothing by a kind', async () => {
    const { token, session, post, outcome } = await openJob();
    await post('/begin', { session }, token);
    const failed = (code: string) => ({
      ...{ type: 'failed', reported: null },
      found: { code, message: 'it \u001b[31mfailed' },
    });
    expect((await post('/result', failed('token_revoked'))).status).toBe(400);
    expect((await post('/result', { ...failed('job_memory_exceeded'), limit: 9e15 })).status).toBe(400);
    expect((await post('/result', failed('job_memory_exceeded'))).status).toBe(204);
    // The words and the number are the owner's own.
    await expect(outcome).rejects.toMatchObject({
      ...{ code: 'job_memory_exceeded', kind: 'input', data: { limit: 2 * 2 ** 30 } },
      message: 'the processing used more memory than the 2147483648 bytes it may',
    });
  });

  test('what it says of its machine says nothing of this one', async () => {
    const { token, session, post, outcome, host } = await openJob();
    await post('/begin', { session }, token);
    const found = { code: 'job_not_started', message: 'no process' };
    expect((await post('/result', { type: 'failed', reported: null, found })).status).toBe(204);
    await expect(outcome).rejects.toMatchObject({ code: 'executor_failed', kind: 'transient' });
    expect(host.canStartChildren()).toBe(true);
  });

  test('one output at a time, and nobody without the secret has a body parsed', async () => {
    const { token, session, url, call, post, stepFolder } = await openJob();
    await post('/begin', { session }, token);
    const headers = { Authorization: `Bearer ${session}`, 'Content-Length': 100 };
    const sending = request(`${url}/outputs/multiplied.tif`, { method: 'PUT', headers });
    sending.on('error', () => {}).write('ten bytes.');
    await vi.waitFor(() => expect(readdirSync(stepFolder)).toHaveLength(1), within);
    expect((await call('/outputs/multiplied.tif', { method: 'PUT', body: 'x' })).status).toBe(425);
    sending.destroy();
    await vi.waitFor(
      async () => expect((await call('/outputs/multiplied.tif', { method: 'PUT', body: 'x' })).status).toBe(204),
      within,
    );
    const body = brotliCompressSync(Buffer.from(`[${'{},'.repeat(1_000_000)}{}]`));
    const packed = { 'Content-Type': 'application/json', 'Content-Encoding': 'br' };
    const refused = await fetch(`${url}/result`, { method: 'POST', body, headers: packed });
    expect(refused.status).toBe(401);
    expect(
      (
        await fetch(`${url}/result`, {
          method: 'POST',
          body,
          headers: { ...packed, ...{ Authorization: `Bearer ${session}` } },
        })
      ).status,
    ).toBe(415);
  });

  test('a job that was closed while it began is over', async () => {
    const remote = await openJob();
    const { records, session, token, post, abort, outcome } = remote;
    const begin = records.begin.bind(records);
    records.begin = async (name, hash) => {
      const isBegun = await begin(name, hash);
      abort.abort(new Error('enough'));
      await expect(outcome).rejects.toThrow('enough');
      return isBegun;
    };
    expect((await post('/begin', { session }, token)).status).toBe(410);
    expect((await post('/progress', { fraction: 0, note: null, printed: [] })).status).toBe(410);
  });

  test('a job that an engine shows as running for longer than a step may run is too late', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    cleanUpLater(() => vi.useRealTimers());
    const { token, session, post, outcome } = await openJob();
    await post('/begin', { session }, token);
    await post('/progress', { fraction: 0.5, note: null, printed: [] });
    await new Promise((resolve) => setTimeout(resolve, 500));
    vi.advanceTimersByTime(2 * 3_600_000);
    await post('/progress', { fraction: 0.5, note: null, printed: [] });
    await expect(outcome).rejects.toMatchObject({ code: 'job_timeout' });
  });

  test('a link that a step leaves sends no file of the machine that did it', async () => {
    const { url, token, outcome, calls } = await openJob();
    const folder = await testFolder();
    await execStep({
      ...{ url, token, steps: toySteps.steps, code: new CodeDigests(toySteps.module), signal: never, log: () => {} },
      workFolder: join(folder, 'work'),
      executor: {
        run: async ({ workFolder }) => {
          await mkdir(join(workFolder, 'step'), { recursive: true });
          await symlink('/etc/hostname', join(workFolder, 'step', 'multiplied.tif'));
          const usage = { cpuSeconds: 0, peakMemoryBytes: 0, place: 'here' };
          return { answer: { descriptions: [], result: null }, gdalVersion: '3.6.2', usage, sent: new Map() };
        },
        close: async () => {},
      },
    });
    await expect(outcome).rejects.toMatchObject({ code: 'job_failed' });
    expect(calls.filter((call) => call.startsWith('PUT'))).toEqual([]);
  });

  test('a job that runs and does not call is shown', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    cleanUpLater(() => vi.useRealTimers());
    const { notes } = await openJob();
    await new Promise((resolve) => setTimeout(resolve, 500));
    vi.advanceTimersByTime(61_000);
    await vi.waitFor(() => expect(notes).toContain('the job runs in nobody and has not called the app yet'), within);
  });

  test('a summary of another shape is no result', async () => {
    const { token, session, call, post, outcome } = await openJob();
    await post('/begin', { session }, token);
    await call('/outputs/multiplied.tif', { method: 'PUT', body: '12345' });
    const result = { summary: { width: -1 }, picture: Buffer.from('no PNG').toString('base64') };
    await post('/result', {
      ...nothing,
      result,
      outputs: [{ fileName: 'multiplied.tif', sizeBytes: 5, sha256: hashOf('12345') }],
    });
    expect((await outcome).result).toBeNull();
  });

  test('an output that is cut off leaves nothing behind', async () => {
    const { token, session, url, post, stepFolder } = await openJob();
    await post('/begin', { session }, token);
    const headers = { Authorization: `Bearer ${session}`, 'Content-Length': 100 };
    const sending = request(`${url}/outputs/multiplied.tif`, { method: 'PUT', headers });
    sending.on('error', () => {}).write('ten bytes.');
    await vi.waitFor(() => expect(readdirSync(stepFolder)).toHaveLength(1), within);
    sending.destroy();
    await vi.waitFor(() => expect(readdirSync(stepFolder)).toEqual([]), within);
  });
});

describe('an engine with a command line', () => {
  const templates = { title: 'an engine', submit: ['true'], state: ['true'], states: {}, cancel: ['true'] };
  const shell = (script: string) => ['sh', '-c', script];

  test('an engine that does not answer has not lost its jobs', async () => {
    const away = shell('echo "Unable to contact the controller" >&2; exit 1');
    const engine = new CommandEngine({ ...templates, state: away, cancel: away });
    await expect(engine.state('step-1')).rejects.toThrow('state ended with 1: Unable to contact the controller');
    await expect(engine.cancel('step-1')).rejects.toThrow(EngineError);
    const unknown = new CommandEngine({ ...templates, state: away, states: { unknown: 'Unable to contact' } });
    expect(await unknown.state('step-1')).toBe('unknown');
  });

  test('an error has no token, whatever a command prints', async () => {
    const token = 'the-one-time-token-of-a-job-0123456789';
    const script = 'env; cat; printenv STEP_JOB_TOKEN | tr -d "\\n" | base64; exit 2';
    const engine = new CommandEngine({ ...templates, submit: shell(script), input: { token: '{token}' } });
    const environment = { STEP_JOB_URL: 'http://127.0.0.1:1/jobs/x', STEP_JOB_TOKEN: token };
    const sizes = { memoryBytes: 1, cores: 1, timeoutMs: 1, diskBytes: 1, label: null };
    const error = await engine.submit({ name: 'step-1', environment, ...sizes }).catch((caught: unknown) => caught);
    expect(String(error)).toContain('submit ended with 2');
    for (const part of [token, token.slice(-20), Buffer.from(token).toString('base64').slice(0, 40)])
      expect(String(error)).not.toContain(part);
  });

  test('a command gets none of the variables of the app but those that are listed', async () => {
    const engine = new CommandEngine(
      { ...templates, state: shell('echo "[$SLURM_CONF] [$PLATFORM_API_KEY]"; false'), environment: ['SLURM_CONF'] },
      { PATH: process.env['PATH'], PLATFORM_API_KEY: 'secret-key', SLURM_CONF: '/etc/slurm' },
    );
    const said = String(await engine.state('step-1').catch((error: unknown) => error));
    expect(said).toContain('[/etc/slurm] []');
  });
});
