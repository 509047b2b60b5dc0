// @module-tag all
/** Several workers: releases with different steps, a machine that fails, a worker that stops, a newer database. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { assumedLimits, KitError } from '../../src/contract/index.ts';
import type { StepHost } from '../../src/app/processing/step-host.ts';
import { createRunEngine, type RunEngineOptions } from '../../src/app/runs/run-engine.ts';
import { localProgress } from '../../src/app/runs/run-progress.ts';
import { NotTakenError, type QueuedRun, type QueueWorker, type RunQueue } from '../../src/app/runs/run-queue.ts';
import { runViewer } from '../../src/app/runs/run-view.ts';
import { SqlRunStore } from '../../src/app/runs/sql-run-store.ts';
import { WorkerLease } from '../../src/app/runs/worker-lease.ts';
import { WorkFolders } from '../../src/app/runs/work-folders.ts';
import { StepVersionGoneError } from '../../src/app/processing/step-host.ts';
import type { WorkerPlace } from '../../src/app/runs/placement.ts';
import { caseOf } from '../../src/app/runs/desk.ts';
import { limitError } from '../../src/child/index.ts';
import type { StepRequirements } from '../../src/steps/step.ts';
import { ndvi as step } from '../../src/steps/index.ts';
import { slowly, someTurns } from '../support/slowly.ts';
import { noUsage } from '../support/usage.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { approvingCalls, databaseWithLaunch } from '../support/engine-fakes.ts';
import { testFolder } from '../support/folders.ts';

/** A queue that several engines in this process share. Like pg-boss, it has one job for each run, and offers a rejected job again. */
class SharedQueue {
  readonly jobs: QueuedRun[] = [];

  open(): RunQueue {
    const stopping = new AbortController();
    const loops: Promise<void>[] = [];
    const serve = async (queueName: QueuedRun['queueName'], worker: QueueWorker) => {
      while (!stopping.signal.aborted) {
        const at = worker.capacity(queueName) > 0 ? this.jobs.findIndex((job) => job.queueName === queueName) : -1;
        const [job] = at < 0 ? [] : this.jobs.splice(at, 1);
        if (job)
          await worker.take(job).catch((error: unknown) => {
            if (!(error instanceof NotTakenError)) worker.log.warn({ err: error }, 'given again');
            setTimeout(() => this.jobs.push(job), 50).unref();
          });
        await sleep(5);
      }
    };
    return slowly<RunQueue>({
      isShared: true,
      add: async (runs) => {
        for (const run of runs) if (!this.jobs.some(({ runId }) => runId === run.runId)) this.jobs.push(run);
      },
      work: async (worker) => void loops.push(serve('wait', worker), serve('process', worker)),
      stop: async () => {
        stopping.abort();
        await Promise.all(loops);
      },
      close: async () => {},
    });
  }
}

interface WorkerOptions {
  readonly version?: string;
  /** Work of the step. Default: none. */
  readonly process?: (signal: AbortSignal) => Promise<void>;
  /** Another id of the step. Default: that of `wanted`. */
  readonly stepId?: string;
  /** Default: 1. */
  readonly stepConcurrency?: number;
  /** Default: a minute. */
  readonly platformPatienceMs?: number;
  /** Runs after each claim of a waiting run. */
  readonly afterClaim?: () => Promise<void>;
  readonly isMachineWell?: () => Promise<boolean>;
  readonly drainMs?: number;
  readonly strandedAfterMs?: number;
  /** Clock of the lease, in milliseconds. Default: that of the machine. */
  readonly clock?: () => number;
  /** Memory, cores, disk and labels of the machine. Default: unlimited. */
  readonly place?: WorkerPlace;
  /** Requirements of the step. Default: none. */
  readonly requires?: StepRequirements;
}

/** Several workers with one database, and a platform that approves every operation. */
async function startFleet() {
  const folder = await testFolder();
  const database = await databaseWithLaunch(folder);
  const store = new SqlRunStore(database, Date.now);
  const queue = new SharedQueue();
  const done: { worker: string; runId: string }[] = [];
  const logged: string[] = [];
  const logger: RunEngineOptions['log'] = {
    info: (_facts, message) => void logged.push(message),
    warn: (_facts, message) => void logged.push(message),
    error: (_facts, message) => void logged.push(message),
    child: () => logger,
  };

  async function worker(name: string, options: WorkerOptions = {}) {
    const own = {
      ...step,
      id: options.stepId ?? step.id,
      version: options.version ?? step.version,
      ...(options.requires && { requires: options.requires }),
    };
    const host = slowly({
      steps: [own],
      find: (id: string) => {
        if (id !== own.id) throw new KitError('unknown_step', `there is no step ${id}`);
        return own;
      },
      check: async () => ({ step: own, parameters: {} }),
      load: () => ({ running: 0, waiting: 0 }),
      run: async (
        { workFolder, stepVersion }: { workFolder: string; stepVersion: string },
        { signal }: { signal: AbortSignal },
      ) => {
        if (stepVersion !== own.version) throw new StepVersionGoneError(own, stepVersion);
        await mkdir(join(workFolder, 'output'), { recursive: true });
        await options.process?.(signal);
        const path = join(workFolder, 'output', 'out.tif');
        await writeFile(path, 'pixels');
        done.push({ worker: name, runId: workFolder });
        return {
          outputs: [{ path, sizeBytes: 6, sha256: 'a'.repeat(64) }],
          result: null,
          provenance: null,
          usage: noUsage,
        };
      },
    }) as unknown as StepHost;
    const [onOutdated, onPassedOn] = [vi.fn(), vi.fn()];
    const ownStore = new Proxy(store, {
      get(target, method: keyof SqlRunStore) {
        const call = target[method] as (...args: unknown[]) => Promise<unknown>;
        return async (...args: unknown[]) => {
          await someTurns();
          const answer = await call.apply(target, args);
          await someTurns();
          if (method === 'claimNext' && answer !== null) await options.afterClaim?.();
          return answer;
        };
      },
    });
    const engine = createRunEngine({
      store: ownStore,
      queue: queue.open(),
      progress: localProgress(),
      lease: new WorkerLease(name, { isShared: true, ...(options.clock && { clock: options.clock }) }),
      callsOf: () => approvingCalls,
      ownerOf: async () => 'u',
      steps: host,
      settings: {
        ...{ pollIntervalMs: 2_000, uploadPartBytes: 1_000, refusedFields: [], limits: assumedLimits },
        platformPatienceMs: options.platformPatienceMs ?? 60_000,
        stepConcurrency: options.stepConcurrency ?? 1,
        ...{ stepQueue: 100, runsPerUser: 100 },
        drainMs: options.drainMs ?? 0,
        ...(options.strandedAfterMs !== undefined && { strandedAfterMs: options.strandedAfterMs }),
      },
      folders: new WorkFolders(join(folder, `work-${name}`), store),
      now: Date.now,
      log: logger,
      onOutdated,
      onPassedOn,
      ...(options.place && { place: options.place }),
      ...(options.isMachineWell && { isMachineWell: options.isMachineWell }),
    });
    cleanUpLater(() => engine.stop());
    await engine.work();
    return { engine, steps: host, onOutdated, onPassedOn };
  }

  const wanted = { stepId: step.id, parameters: {}, input: { type: 'synthetic', size: 64 } } as const;
  const stateOf = async (id: string) => (await store.find(id))?.state;
  return { database, store, worker, done, logged, wanted, stateOf };
}

const within = { timeout: 20_000, interval: 50 };

test('during a roll-out of a new step version, each worker processes the runs of its version', async () => {
  const { worker, store, done, wanted, stateOf } = await startFleet();
  const old = await worker('old', { version: '1.0.0' });
  const next = await worker('new', { version: '2.0.0' });
  const ofOld = await Promise.all([1, 2, 3].map(() => old.engine.start('launch', wanted)));
  const ofNew = await Promise.all([1, 2, 3].map(() => next.engine.start('launch', wanted)));
  for (const { id } of [...ofOld, ...ofNew])
    await vi.waitFor(async () => expect(await stateOf(id)).toBe('COMPLETED'), within);
  const workersOf = async (runs: readonly { id: string }[]) =>
    new Set(
      (await Promise.all(runs.map(({ id }) => store.stages(id))))
        .flat()
        .filter(({ state }) => state === 'PROCESSING')
        .map((stage) => stage.worker),
    );
  expect([await workersOf(ofOld), await workersOf(ofNew)]).toEqual([new Set(['old']), new Set(['new'])]);
  expect(done).toHaveLength(6);
});

test('a run waits if no worker has its step, shows that, and fails later', async () => {
  const { worker, store, wanted, stateOf } = await startFleet();
  const old = await worker('old', { version: '1.0.0', drainMs: 0 });
  const waiting = await old.engine.start('launch', wanted);
  await old.engine.stop();
  const next = await worker('new', { version: '2.0.0', strandedAfterMs: 6_000 });
  await vi.waitFor(async () => expect(await stateOf(waiting.id)).toBe('APPROVED'), within);
  await sleep(1_000);
  const run = (await store.find(waiting.id))!;
  expect(run.state).toBe('APPROVED');
  const viewer = runViewer({ store, engine: next.engine, steps: next.steps });
  const note = 'no worker has the step ndvi 1.0.0 at the moment; the run waits for one';
  expect((await viewer.one(run)).progress.note).toBe(note);
  expect((await viewer.all([run, run])).map(({ progress }) => progress.note)).toEqual([note, note]);
  await vi.waitFor(async () => expect(await stateOf(waiting.id)).toBe('FAILED'), within);
  expect((await store.find(waiting.id))!.failure).toMatchObject({ code: 'step_version_gone' });
}, 40_000);

const place = { labels: [], memoryBytes: 4_000, cores: 2, diskBytes: null };

test('a run with a label waits, says why, and is done when a worker with the label comes', async () => {
  const { worker, store, done, wanted, stateOf } = await startFleet();
  const requires = { label: 'gpu' };
  const plain = await worker('plain', { requires, place });
  const { id } = await plain.engine.start('launch', wanted);
  await vi.waitFor(async () => expect(await stateOf(id)).toBe('APPROVED'), within);
  const viewer = runViewer({ store, engine: plain.engine, steps: plain.steps });
  const view = await viewer.one((await store.find(id))!);
  expect(view.progress.note).toMatch(/^no worker has the step ndvi \S+, the label gpu at the moment; the run waits/);
  // The worker that saw the approval may still have the run for a moment.
  const waitsFor = async () => (await caseOf(store, id))?.waitsFor;
  await expect.poll(waitsFor).toBe('no living worker with its step has the label gpu');
  await worker('with-gpu', { requires, place: { ...place, labels: ['gpu'] } });
  await vi.waitFor(async () => expect(await stateOf(id)).toBe('COMPLETED'), within);
  expect(done.map((one) => one.worker)).toEqual(['with-gpu']);
});

test('a run that no worker ever has room for fails with what it needs', async () => {
  const { worker, store, wanted, stateOf } = await startFleet();
  const requires = { memoryBytes: 8_000, label: 'gpu' };
  const { engine } = await worker('plain', { requires, place, strandedAfterMs: 3_000 });
  const { id } = await engine.start('launch', wanted);
  await vi.waitFor(async () => expect(await stateOf(id)).toBe('FAILED'), within);
  expect((await store.find(id))!.failure).toMatchObject({
    code: 'no_fitting_worker',
    message: expect.stringContaining('the label gpu and') as string,
  });
});

test('the memory of the runs of a worker stays within what it has, and another worker takes what does not fit', async () => {
  const { worker, done, wanted, stateOf } = await startFleet();
  const requires = { memoryBytes: 3_000 };
  let [now, most] = [0, 0];
  const process = async () => {
    most = Math.max(most, (now += 1));
    await sleep(1_500);
    now -= 1;
  };
  const first = await worker('first', { requires, place, process, stepConcurrency: 8 });
  const ids = await Promise.all([1, 2, 3].map(async () => (await first.engine.start('launch', wanted)).id));
  await vi.waitFor(() => expect(now).toBe(1), within);
  await worker('second', { requires, place, process: () => sleep(10), stepConcurrency: 8 });
  for (const id of ids) await vi.waitFor(async () => expect(await stateOf(id)).toBe('COMPLETED'), within);
  expect(most).toBe(1);
  expect(new Set(done.map((one) => one.worker)).has('second')).toBe(true);
});

test('a step that ran out of memory gets twice as much, once, where a worker has it', async () => {
  const { worker, store, wanted, stateOf, done } = await startFleet();
  const outOfMemory = async (_signal: AbortSignal) => {
    throw limitError('job_memory_exceeded', 'used more memory than', 3_000, 'bytes');
  };
  const small = await worker('small', { place, process: outOfMemory });
  const { id } = await small.engine.start('launch', wanted);
  // Twice as much is more than the only worker has.
  await vi.waitFor(async () => expect(await stateOf(id)).toBe('FAILED'), within);
  expect((await store.find(id))!.failure?.code).toBe('job_memory_exceeded');
  await worker('large', { place: { ...place, memoryBytes: 6_000 }, process: () => sleep(10) });
  await store.setRest('large', true);
  await sleep(1_500);
  const second = await small.engine.start('launch', wanted);
  await vi.waitFor(async () => expect((await store.find(second.id))!.memoryLimitBytes).toBe(6_000), within);
  await store.setRest('large', false);
  await vi.waitFor(async () => expect(await stateOf(second.id)).toBe('COMPLETED'), within);
  expect(done.map((one) => one.worker)).toEqual(['large']);
});

test('a worker with a full disk passes its runs on, and takes none until its check passes', async () => {
  const { worker, store, done, logged, wanted, stateOf } = await startFleet();
  let isFull = true;
  const full = await worker('full', {
    process: async () => {
      if (isFull) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
    },
    isMachineWell: async () => !isFull,
  });
  const runs = await Promise.all([1, 2, 3, 4].map(() => full.engine.start('launch', wanted)));
  await worker('well', { process: () => sleep(200) });
  for (const { id } of runs) await vi.waitFor(async () => expect(await stateOf(id)).toBe('COMPLETED'), within);
  expect(new Set(done.map(({ worker: name }) => name))).toEqual(new Set(['well']));
  const attempts = (await Promise.all(runs.map(({ id }) => store.stages(id)))).flat();
  expect(full.onPassedOn).toHaveBeenCalled();
  expect(attempts.filter((stage) => stage.worker === 'full' && stage.state === 'PROCESSING').length).toBeLessThan(8);
  isFull = false;
  await vi.waitFor(() => expect(logged).toContain('this machine can run steps again'), within);
});

test('a draining worker finishes its step and hands over its waiting runs', async () => {
  const { worker, store, done, wanted, stateOf } = await startFleet();
  let isRunning = false;
  const ending = await worker('ending', {
    drainMs: 15_000,
    process: async () => {
      isRunning = true;
      await sleep(2_500);
    },
  });
  const inStep = await ending.engine.start('launch', wanted);
  await vi.waitFor(() => expect(isRunning).toBe(true), within);
  const waits = await ending.engine.start('launch', wanted);
  await vi.waitFor(async () => expect(await stateOf(waits.id)).toBe('AWAITING_APPROVAL'), within);
  await worker('staying');
  const stopped = ending.engine.stop();
  await vi.waitFor(async () => expect(await stateOf(waits.id)).toBe('COMPLETED'), within);
  await stopped;
  expect(await stateOf(inStep.id)).toBe('COMPLETED');
  expect(done.map(({ worker: name }) => name).toSorted()).toEqual(['ending', 'staying']);
  const stages = await store.stages(inStep.id);
  expect(stages.filter(({ state }) => state === 'PROCESSING')).toHaveLength(1);
  await expect(ending.engine.start('launch', wanted)).rejects.toMatchObject({ code: 'shutting_down' });
});

test('another worker takes a step that is longer than the drain', async () => {
  const { worker, done, wanted, stateOf } = await startFleet();
  let isRunning = false;
  const ending = await worker('ending', {
    drainMs: 300,
    process: async () => {
      isRunning = true;
      await sleep(4_000);
    },
  });
  const run = await ending.engine.start('launch', wanted);
  await vi.waitFor(() => expect(isRunning).toBe(true), within);
  await worker('staying');
  await ending.engine.stop();
  await vi.waitFor(async () => expect(await stateOf(run.id)).toBe('COMPLETED'), within);
  expect(done.at(-1)!.worker).toBe('staying');
});

test('a worker stops if the database needs a newer release', async () => {
  const { worker, database, wanted, stateOf } = await startFleet();
  const old = await worker('old');
  expect(old.onOutdated).not.toHaveBeenCalled();
  await database.updateTable('schema_floor').set({ oldest: '999-contract' }).execute();
  await vi.waitFor(() => expect(old.onOutdated).toHaveBeenCalledOnce(), within);
  await expect(old.engine.start('launch', wanted)).rejects.toMatchObject({ code: 'shutting_down' });
  expect(await stateOf('none')).toBeUndefined();
});

test('drain, wake and requeue', async () => {
  const { worker, store, wanted, stateOf } = await startFleet();
  let isRunning = false;
  const first = await worker('first', {
    process: async () => {
      isRunning = true;
      await sleep(8_000);
    },
  });
  const stuck = await first.engine.start('launch', wanted);
  await vi.waitFor(() => expect(isRunning).toBe(true), within);
  expect(await store.setRest('nobody', true)).toBe(false);
  expect(await store.setRest('first', true)).toBe(true);
  await sleep(1_500);
  const waits = await first.engine.start('launch', wanted);
  await sleep(2_500);
  expect(await stateOf(waits.id)).toBe('CREATED');
  expect((await store.listWorkers()).map(({ name, isAlive, rests, runs }) => [name, isAlive, rests, runs])).toEqual([
    ['first', true, true, 1],
  ]);
  await worker('second');
  await vi.waitFor(async () => expect(await stateOf(waits.id)).toBe('COMPLETED'), within);
  expect(await store.requeue(stuck.id)).toBe(true);
  await vi.waitFor(async () => expect(await stateOf(stuck.id)).toBe('COMPLETED'), within);
  expect((await store.stages(stuck.id)).map(({ worker: name, outcome }) => [name, outcome])).toContainEqual([
    'first',
    'abandoned',
  ]);
  expect((await store.stages(stuck.id)).at(-1)!.worker).toBe('second');
  expect(await store.requeue(stuck.id)).toBe(false);
  await store.setRest('first', false);
  await vi.waitFor(async () => expect((await store.listWorkers()).every(({ rests }) => !rests)).toBe(true), within);
}, 60_000);

test('a run that is too large for every machine fails when its patience is over', async () => {
  const { worker, wanted, stateOf, store } = await startFleet();
  const process = async () => {
    throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
  };
  const small = { process, isMachineWell: async () => true, platformPatienceMs: 1_000 };
  const first = await worker('first', small);
  await worker('second', small);
  const { id } = await first.engine.start('launch', wanted);
  await vi.waitFor(async () => expect(await stateOf(id)).toBe('FAILED'), { timeout: 60_000, interval: 100 });
  const attempts = (await store.stages(id)).filter(({ state, outcome }) => state === 'PROCESSING' && outcome !== null);
  expect(new Set(attempts.map((stage) => stage.worker))).toEqual(new Set(['first', 'second']));
}, 90_000);

test('after an outage of all workers, a run waits for a worker with its step', async () => {
  const { worker, database, wanted, stateOf } = await startFleet();
  const able = await worker('able', { version: '1.0.0', process: (signal) => sleep(60_000, undefined, { signal }) });
  const busy = await able.engine.start('launch', wanted);
  await vi.waitFor(async () => expect(await stateOf(busy.id)).toBe('PROCESSING'), within);
  const waiting = await able.engine.start('launch', wanted);
  await vi.waitFor(async () => expect(await stateOf(waiting.id)).toBe('APPROVED'), within);
  await able.engine.stop();
  // The run now seems to have waited for longer than `strandedAfterMs`.
  await database
    .updateTable('runs')
    .set({ updated_at: Date.now() - 9_000 })
    .where('id', '=', waiting.id)
    .execute();
  // For this worker no time passes, however often it looks.
  const clock = vi.fn(() => 1);
  await worker('other', { version: '2.0.0', strandedAfterMs: 400, clock });
  const looks = clock.mock.calls.length;
  await vi.waitFor(() => expect(clock.mock.calls.length).toBeGreaterThan(looks + 20), within);
  expect(await stateOf(waiting.id)).toBe('APPROVED');
  await worker('again', { version: '1.0.0' });
  await vi.waitFor(async () => expect(await stateOf(waiting.id)).toBe('COMPLETED'), within);
}, 60_000);

test('a run that is claimed while its worker stops goes to another worker', async () => {
  const { worker, store, wanted, stateOf } = await startFleet();
  const claimed = Promise.withResolvers<void>();
  const stopping = Promise.withResolvers<void>();
  const process = vi.fn(() => sleep(10_000));
  const first = await worker('first', {
    process,
    afterClaim: async () => {
      claimed.resolve();
      await stopping.promise;
    },
  });
  const { id } = await first.engine.start('launch', wanted);
  await claimed.promise;
  const stopped = first.engine.stop();
  stopping.resolve();
  await stopped;
  expect(process).not.toHaveBeenCalled();
  expect((await store.stages(id)).at(-1)).toMatchObject({ worker: 'first', outcome: 'given back' });
  await worker('second');
  await vi.waitFor(async () => expect(await stateOf(id)).toBe('COMPLETED'), within);
});

test('a worker that takes a run again ends its earlier attempt', async () => {
  const { worker, store, wanted, stateOf } = await startFleet();
  const signals: AbortSignal[] = [];
  const { engine } = await worker('first', {
    stepConcurrency: 2,
    process: async (signal) => {
      signals.push(signal);
      if (signals.length === 1) await sleep(30_000, undefined, { signal });
    },
  });
  const { id } = await engine.start('launch', wanted);
  await vi.waitFor(() => expect(signals).toHaveLength(1), within);
  await store.requeue(id);
  // Another job makes the worker look at once.
  await engine.start('launch', wanted);
  await vi.waitFor(() => expect(signals[0]!.aborted).toBe(true), within);
  await vi.waitFor(async () => expect(await stateOf(id)).toBe('COMPLETED'), { timeout: 30_000 });
}, 60_000);

test('a drained worker gives back a run that it holds but does not drive', async () => {
  const { worker, database, store, wanted, stateOf } = await startFleet();
  const first = await worker('first');
  await store.setRest('first', true);
  await sleep(1_500);
  const { id } = await first.engine.start('launch', wanted);
  await database.updateTable('runs').set({ worker: 'first', claim: 7 }).where('id', '=', id).execute();
  await worker('second');
  await vi.waitFor(async () => expect(await stateOf(id)).toBe('COMPLETED'), within);
});

test('an upload whose worker lacks the step waits for a worker with the step', async () => {
  const { worker, database, store, wanted, stateOf } = await startFleet();
  const able = await worker('able');
  await store.setRest('able', true);
  await sleep(1_500);
  const { id } = await able.engine.start('launch', wanted);
  const outputs = JSON.stringify([{ path: '/gone/out.tif', sizeBytes: 6, sha256: 'a'.repeat(64) }]);
  await database
    .updateTable('runs')
    .set({ state: 'UPLOADING', operation_id: 'op', outputs })
    .where('id', '=', id)
    .execute();
  await worker('other', { stepId: 'another-step' });
  await vi.waitFor(async () => expect(await stateOf(id)).toBe('PROCESSING'), within);
  await store.setRest('able', false);
  await vi.waitFor(async () => expect(await stateOf(id)).toBe('COMPLETED'), within);
}, 60_000);
