/** Life of a run: a database that is away, a disk that is full, defects, cancels, and attempts that died. */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { assumedLimits } from '../../src/contract/index.ts';
import { DatabaseUnavailableError } from '../../src/app/database-unavailable.ts';
import type { StepHost } from '../../src/app/processing/step-host.ts';
import { createRunEngine, type RunEngineOptions } from '../../src/app/runs/run-engine.ts';
import { localProgress } from '../../src/app/runs/run-progress.ts';
import { LocalRunQueue } from '../../src/app/runs/run-queue.ts';
import type { Run, RunStore } from '../../src/app/runs/run.ts';
import { SqlRunStore } from '../../src/app/runs/sql-run-store.ts';
import { WorkerLease } from '../../src/app/runs/worker-lease.ts';
import { WorkFolders } from '../../src/app/runs/work-folders.ts';
import { ChildJobError, limitError, ReportedJobError } from '../../src/child/index.ts';
import { ndvi as step } from '../../src/steps/index.ts';
import { slowly, someTurns } from '../support/slowly.ts';
import { noUsage } from '../support/usage.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { approvingCalls, databaseWithLaunch } from '../support/engine-fakes.ts';
import { testFolder } from '../support/folders.ts';

const wanted = { stepId: step.id, parameters: {}, input: { type: 'synthetic', size: 64 } } as const;

interface Fakes {
  /** Runs in place of the step; answers the output's path. */
  readonly process?: (workFolder: string, attempt: number) => Promise<void>;
  /** Stands before every call of the store. */
  readonly beforeStore?: (method: keyof RunStore) => void;
  /** Runs after every call of the store. The caller gets its error instead of the result. */
  readonly afterStore?: (method: keyof RunStore) => void;
  readonly patienceMs?: number;
  /** The engine's clock. */
  readonly now?: () => number;
}

/** An engine over a database of its own, with a platform that says yes and a step that the test writes. */
async function start({
  process = async () => {},
  beforeStore = () => {},
  afterStore = () => {},
  patienceMs = 60_000,
  now = Date.now,
}: Fakes = {}) {
  const folder = await testFolder();
  const database = await databaseWithLaunch(folder);
  const real = new SqlRunStore(database, Date.now);
  const store = new Proxy(real, {
    get:
      (target, name: keyof RunStore) =>
      (...args: unknown[]) => {
        const call = async () => {
          await someTurns();
          beforeStore(name);
          const answer = await Reflect.apply(target[name] as (...given: unknown[]) => unknown, target, args);
          await someTurns();
          afterStore(name);
          return answer;
        };
        return call();
      },
  });
  const logged: { level: string; facts: Record<string, unknown>; message: string }[] = [];
  const log = (level: string) => (facts: object, message: string) =>
    void logged.push({ level, facts: facts as Record<string, unknown>, message });
  const logger: RunEngineOptions['log'] = {
    info: log('info'),
    warn: log('warn'),
    error: log('error'),
    child: () => logger,
  };
  let attempts = 0;
  /** Owners of the tasks that the step got. */
  const owners: string[] = [];
  const host = slowly({
    steps: [step],
    find: () => step,
    check: async () => ({ step, parameters: {} }),
    load: () => ({ running: 0, waiting: 0 }),
    run: async ({ workFolder, owner }: { workFolder: string; owner: string }) => {
      owners.push(owner);
      await mkdir(join(workFolder, 'output'), { recursive: true });
      await process(workFolder, (attempts += 1));
      const path = join(workFolder, 'output', 'out.tif');
      await writeFile(path, 'pixels');
      return {
        outputs: [{ path, sizeBytes: 6, sha256: 'a'.repeat(64) }],
        result: null,
        provenance: null,
        usage: noUsage,
      };
    },
  }) as unknown as StepHost;
  const workDir = join(folder, 'work');
  const queue = slowly(new LocalRunQueue());
  const engine = createRunEngine({
    store,
    queue,
    progress: localProgress(),
    lease: new WorkerLease('tester', { isShared: false }),
    callsOf: () => approvingCalls,
    ownerOf: async () => 'u',
    steps: host,
    settings: {
      pollIntervalMs: 2_000,
      uploadPartBytes: 1_000,
      refusedFields: [],
      platformPatienceMs: patienceMs,
      limits: assumedLimits,
      stepConcurrency: 2,
      stepQueue: 100,
      runsPerUser: 100,
    },
    folders: new WorkFolders(workDir, store),
    now,
    log: logger,
  });
  await engine.work();
  cleanUpLater(() => engine.stop());
  const reach = (id: string, state: Run['state'], timeout = 25_000) =>
    vi.waitFor(async () => expect((await real.find(id))?.state).toBe(state), { timeout, interval: 50 });
  return { engine, store: real, workDir, logged, owners, reach };
}

describe.concurrent('what the world does makes no run FAILED, and holds none for ever', () => {
  test.each<keyof RunStore>(['claim', 'transition'])(
    'the database is away at a %s: the run goes on when it is back, without a restart',
    async (method) => {
      let [isAway, failures] = [false, 0];
      const { engine, reach } = await start({
        beforeStore: (called) => {
          if (!isAway || called !== method) return;
          failures += 1;
          throw new DatabaseUnavailableError(new Error('terminating connection due to administrator command'));
        },
      });
      isAway = true;
      const { id } = await engine.start('launch', wanted);
      await vi.waitFor(() => expect(failures).toBeGreaterThan(0), 300_000);
      isAway = false;
      await reach(id, 'COMPLETED');
    },
  );

  test('a database that was away once, and is again long after: the run is not FAILED for the time between', async () => {
    let failures = 0;
    const { engine, reach } = await start({
      patienceMs: 1,
      beforeStore: (called) => {
        if (called !== 'transition' || (failures += 1) > 2) return;
        throw new DatabaseUnavailableError(new Error('terminating connection due to administrator command'));
      },
    });
    await reach((await engine.start('launch', wanted)).id, 'COMPLETED');
    expect(failures).toBeGreaterThan(2);
  });

  test('a database that is away for all: one line at its beginning, one at its end, whatever waits', async () => {
    let [isAway, refusals] = [false, 0];
    const { engine, reach, logged } = await start({
      beforeStore: (called) => {
        if (!isAway || ['countUnfinishedOf', 'countByState', 'create'].includes(called)) return;
        refusals += 1;
        throw new DatabaseUnavailableError(new Error('terminating connection due to administrator command'));
      },
    });
    const earlier = await Promise.all(Array.from({ length: 60 }, () => engine.start('launch', wanted)));
    isAway = true;
    // These runs were committed just before, and the queue offers them while the database is away.
    const during = await Promise.all(Array.from({ length: 20 }, () => engine.start('launch', wanted)));
    // By now the 80 runs have met the outage twice on average.
    await vi.waitFor(() => expect(refusals).toBeGreaterThan(160), { timeout: 60_000, interval: 50 });
    isAway = false;
    for (const { id } of [...earlier, ...during]) await reach(id, 'COMPLETED', 120_000);
    const withStack = logged.filter(({ facts }) => facts['err'] instanceof DatabaseUnavailableError);
    expect(withStack.map(({ message }) => message)).toContain('the database does not answer; runs wait for it');
    // Other work of the worker meets it too, once or twice.
    expect(withStack.length).toBeLessThan(10);
    expect(logged.filter(({ level }) => level !== 'info').length).toBeLessThan(10);
    expect(logged.filter(({ message }) => message === 'the database answers again').length).toBeGreaterThanOrEqual(1);
  });

  test('a start whose commit was not answered: one run, and no error', async () => {
    let isLost = true;
    const { engine, reach, store } = await start({
      afterStore: (called) => {
        if (called !== 'create' || !isLost) return;
        isLost = false;
        throw new DatabaseUnavailableError(new Error('Connection terminated unexpectedly'));
      },
    });
    const { id } = await engine.start('launch', wanted);
    await reach(id, 'COMPLETED');
    expect(await store.listByLaunch('launch', { limit: 10 })).toHaveLength(1);
  });

  test('a start that was not committed is an error', async () => {
    const { engine, store } = await start({
      beforeStore: (called) => {
        if (called === 'create') throw new DatabaseUnavailableError(new Error('connect ECONNREFUSED'));
      },
    });
    await expect(engine.start('launch', wanted)).rejects.toMatchObject({ code: 'database_away' });
    expect(await store.listByLaunch('launch', { limit: 10 })).toEqual([]);
  });

  test('a full disk while a step runs: tried again until there is room', async () => {
    const { engine, reach, store } = await start({
      process: async (_folder, attempt) => {
        if (attempt === 1) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      },
    });
    const { id } = await engine.start('launch', wanted);
    await reach(id, 'COMPLETED');
    expect((await store.history(id)).map(({ state }) => state)).not.toContain('FAILED');
  });

  test("the same in the step's own process, told across its boundary", async () => {
    const { engine, reach } = await start({
      process: async (_folder, attempt) => {
        if (attempt === 1)
          throw new ChildJobError('job_failed', 'ENOSPC: no space left on device, write', { kind: 'transient' });
      },
    });
    await reach((await engine.start('launch', wanted)).id, 'COMPLETED');
  });

  test("a lack of room by other runs' files uses up no patience before another run has had the time to end", async () => {
    const { engine, reach } = await start({
      patienceMs: 1,
      process: async (_folder, attempt) => {
        if (attempt < 3) throw new ChildJobError('work_disk_full', 'too little room', { kind: 'transient' });
      },
    });
    await reach((await engine.start('launch', wanted)).id, 'COMPLETED');
  });

  test("a lack of room that stays: FAILED, for other runs' files excuse it once", async () => {
    const { engine, reach, store } = await start({
      patienceMs: 1,
      process: async () => {
        throw new ChildJobError('work_disk_full', 'too little room', { kind: 'transient' });
      },
    });
    const { id } = await engine.start('launch', wanted);
    await reach(id, 'FAILED');
    expect((await store.find(id))!.failure).toMatchObject({ code: 'work_disk_full' });
  });

  test('turns in steps go by user, and not by launch', async () => {
    const { engine, reach, owners } = await start();
    const { id } = await engine.start('launch', wanted);
    await reach(id, 'COMPLETED');
    expect(owners).toEqual(['u']);
  });

  test('a disk that stays full: FAILED when the patience is over, and not before', async () => {
    const { engine, reach, store } = await start({
      patienceMs: 1,
      process: async () => {
        throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      },
    });
    const { id } = await engine.start('launch', wanted);
    await reach(id, 'FAILED');
    expect((await store.find(id))!.failure).toMatchObject({ code: 'world_away' });
    expect((await store.stages(id)).filter(({ state }) => state === 'PROCESSING').length).toBeGreaterThan(1);
  });
});

test('a step that meets a full disk after a minute ends with the patience, and does not repeat forever', async () => {
  const [attemptMs, patienceMs] = [61_000, 180_000];
  let passedMs = 0;
  const { engine, reach, store } = await start({
    patienceMs,
    now: () => Date.now() + passedMs,
    process: async () => {
      passedMs += attemptMs;
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    },
  });
  const { id } = await engine.start('launch', wanted);
  await reach(id, 'FAILED', 60_000);
  expect((await store.find(id))!.failure).toMatchObject({ code: 'world_away' });
  // The first attempt starts the patience, and three more of 61 s exceed it.
  expect(passedMs).toBe(4 * attemptMs);
});

test("a defect of a step is told as one, and its stack is in the log; a damaged file is the user's", async () => {
  const { engine, reach, store, logged } = await start({
    process: async (_folder, attempt) => {
      if (attempt === 1)
        throw new ReportedJobError({
          kind: 'bug',
          code: 'job_failed',
          message: 'x is not a function',
          stack: 'TypeError: x is not a function\n    at run (ndvi/index.ts:1:1)',
        });
      throw new ReportedJobError({
        kind: 'input',
        code: 'not_a_raster',
        message: 'the file is no raster',
        stack: null,
      });
    },
  });
  const { id } = await engine.start('launch', wanted);
  await reach(id, 'FAILED');
  expect((await store.find(id))!.failure).toMatchObject({
    code: 'step_defect',
    message: expect.stringContaining('the app has a bug') as string,
  });
  expect(logged.filter(({ level }) => level === 'error').map(({ facts }) => facts['childStack'])).toEqual([
    expect.stringContaining('ndvi/index.ts') as string,
  ]);
  const second = await engine.start('launch', wanted);
  await reach(second.id, 'FAILED');
  expect((await store.find(second.id))!.failure).toMatchObject({
    code: 'not_a_raster',
    advice: expect.stringContaining('start a new run') as string,
  });
});

describe.concurrent('cancel', () => {
  test('what it answers is committed, even where the one who drives the run does not listen', async () => {
    const [begun, ended] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    const { engine, store, workDir } = await start({
      process: () => {
        begun.resolve(undefined);
        return ended.promise;
      },
    });
    const { id } = await engine.start('launch', wanted);
    await begun.promise;
    const cancelling = engine.cancel((await store.find(id))!);
    await vi.waitFor(async () => expect((await store.find(id))!.state).toBe('CANCELLED'), 300_000);
    ended.resolve(undefined);
    expect((await cancelling).state).toBe('CANCELLED');
    expect((await store.history(id)).at(-1)?.state).toBe('CANCELLED');
    expect(await readdir(workDir)).toEqual([]);
  });

  test('a move of the run just before is no reason to fail', async () => {
    const { engine, store } = await start();
    const run = await engine.start('launch', wanted);
    await vi.waitFor(async () => expect((await store.find(run.id))!.state).not.toBe('CREATED'), 300_000);
    // Cancels the run as the page knew it.
    expect((await engine.cancel(run)).state).toBe('CANCELLED');
  });
});

describe('executors', () => {
  const lost = (hasBegun: boolean) =>
    new ChildJobError('executor_lost', 'the engine lost the job', { kind: 'transient', data: { hasBegun } });

  test('the first loss of a job is shown, with the time of the next attempt', async () => {
    const { engine, store, reach } = await start({
      process: async (_, attempt) => {
        if (attempt === 1) throw lost(true);
      },
    });
    const { id } = await engine.start('launch', wanted);
    const noteOf = async () => (await engine.progress((await store.find(id))!)).note;
    await expect.poll(noteOf, { interval: 20 }).toMatch(/^the engine lost the job; trying again in \d/);
    await reach(id, 'COMPLETED');
  });

  test('a loss after the beginning uses up no patience', async () => {
    const { engine, store, reach } = await start({
      patienceMs: 1,
      process: async (_folder, attempt) => {
        if (attempt < 4) throw lost(true);
      },
    });
    const { id } = await engine.start('launch', wanted);
    await reach(id, 'COMPLETED');
    expect((await store.stages(id)).filter(({ state }) => state === 'PROCESSING')).toHaveLength(4);
  });

  test('a job that never begins uses it up', async () => {
    const { engine, store, reach } = await start({
      patienceMs: 1,
      process: async () => {
        throw lost(false);
      },
    });
    const { id } = await engine.start('launch', wanted);
    await reach(id, 'FAILED');
    expect((await store.find(id))!.failure?.code).toBe('executor_lost');
  });
});

describe('memory', () => {
  const outOfMemory = (limit: number) => {
    throw limitError('job_memory_exceeded', 'used more memory than', limit, 'bytes');
  };

  test('a step that ran out of it runs once more with twice as much', async () => {
    const { engine, store, reach } = await start({
      process: async (_folder, attempt) => void (attempt === 1 && outOfMemory(500)),
    });
    const { id } = await engine.start('launch', wanted);
    await reach(id, 'COMPLETED');
    const run = (await store.find(id))!;
    expect([run.memoryLimitBytes, run.needs.memoryBytes]).toEqual([1_000, 1_000]);
    expect((await store.stages(id)).filter(({ state }) => state === 'PROCESSING')).toHaveLength(2);
  });

  test('and no more than once', async () => {
    let limit = 500;
    const { engine, store, reach } = await start({
      process: async () => {
        limit *= 2;
        outOfMemory(limit / 2);
      },
    });
    const { id } = await engine.start('launch', wanted);
    await reach(id, 'FAILED');
    expect((await store.find(id))!.failure?.code).toBe('job_memory_exceeded');
    expect(limit).toBe(2_000);
  });
});

describe('folders', () => {
  test('go when nobody owns them: runs that ended, attempts that another has replaced; an output that is still needed stays', async () => {
    const ended = Promise.withResolvers<undefined>();
    const { store, engine, reach } = await start({ process: () => ended.promise });
    cleanUpLater(() => ended.resolve(undefined));
    const { id } = await engine.start('launch', wanted);
    await reach(id, 'PROCESSING');
    const root = await testFolder();
    const folders = new WorkFolders(root, store);
    const make = async (...path: string[]) => mkdir(join(root, ...path), { recursive: true });
    const run = (await store.find(id))!;
    await Promise.all([
      make(id, '0', 'step'),
      make(id, String(run.claim), 'step'),
      make('run-that-is-gone', '1'),
      make(randomBytes(4).toString('hex')),
    ]);
    await folders.tidy();
    expect([await readdir(root), await readdir(join(root, id))]).toEqual([[id], [String(run.claim)]]);

    await make(id, '0', 'output');
    await store.transition(run, 'UPLOADING', {
      outputs: [{ path: join(root, id, '0', 'output', 'a.tif'), sizeBytes: 1, sha256: '' }],
    });
    const next = (await store.claim(id, 'another'))!;
    await make(id, String(next.claim));
    await folders.tidy();
    expect((await readdir(join(root, id))).sort()).toEqual(['0', String(next.claim)].sort());
    await store.transition(next, 'CANCELLED');
    await folders.tidy();
    expect(await readdir(root)).toEqual([]);
  });
});
