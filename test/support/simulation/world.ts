import { createHash } from 'node:crypto';
import Sqlite from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import { noUsage } from '../usage.ts';
import { assumedLimits } from '../../../src/contract/index.ts';
import { asDatabaseError } from '../../../src/app/database-unavailable.ts';
import type { AppTables } from '../../../src/app/database.ts';
import { SqlLaunchStore } from '../../../src/app/launch/sql-launch-store.ts';
import { migrate } from '../../../src/app/migrations.ts';
import type { Provenance } from '../../../src/app/processing/provenance.ts';
import type { StepHost } from '../../../src/app/processing/step-host.ts';
import { PgBossRunQueue, type Boss } from '../../../src/app/runs/pg-boss-run-queue.ts';
import { createRunEngine, type RunEngine, type RunEngineOptions } from '../../../src/app/runs/run-engine.ts';
import { localProgress } from '../../../src/app/runs/run-progress.ts';
import { LocalRunQueue } from '../../../src/app/runs/run-queue.ts';
import { isFinal, type RunState } from '../../../src/app/runs/run-state.ts';
import type { Run, RunStore } from '../../../src/app/runs/run.ts';
import { SqlRunStore } from '../../../src/app/runs/sql-run-store.ts';
import { leaseMs, WorkerLease } from '../../../src/app/runs/worker-lease.ts';
import { WorkFolders, type AttemptFolders } from '../../../src/app/runs/work-folders.ts';
import { abortableSleep, type IdentityTokenStore } from '../../../src/platform-client/index.ts';
import type { AnyStep } from '../../../src/steps/step.ts';
import { seeded } from '../../../lab/models/seeded.ts';
import { SimPlatform } from './platform.ts';
import { VirtualClock, type SimProcess } from './virtual-clock.ts';
import { virtualDisk } from './virtual-disk.ts';

export interface SimRun {
  readonly atMs: number;
  readonly decision: 'APPROVED' | 'REJECTED';
  readonly decideAfterMs: number;
  readonly stepMs: number;
  readonly cancelAtMs: number | null;
  /** Files that its step leaves. */
  readonly outputs: number;
}

/** Every call of an engine that leaves its process. */
export const simCalls = [
  ...(
    [
      'create',
      'find',
      'countUnfinishedOf',
      'countByState',
      'claim',
      'giveBack',
      'renewLease',
      'heldBy',
      'release',
      'listOrphans',
      'handOver',
      'claimNext',
      'hasWaiting',
      'listStranded',
      'canBeDone',
      'isNewerThan',
      'transition',
      'record',
    ] as const
  ).map((name) => `store.${name}` as const),
  ...(['insert', 'fetch', 'complete', 'fail'] as const).map((name) => `queue.${name}` as const),
  ...(['tokens.read', 'tokens.write', 'token.renew'] as const),
  ...(['operation.create', 'operation.status', 'upload.initiate', 'upload.chunk', 'upload.complete'] as const),
] as const;

/**
 * A fault. A fault of a call has the name and number of the call, so that plans reach every await. The others have a time. `refused` refuses the caller's
 * credentials once, `stopped` stops the caller for longer than its lease, and `slow` delays the response. A clock jump affects all machines. A deployment ends all processes and starts them with the next version.
 */
export type SimFault =
  | {
      readonly kind: 'call';
      readonly name: (typeof simCalls)[number];
      readonly nth: number;
      readonly what:
        | 'not done'
        | 'refused'
        | 'done, answer lost'
        | 'killed before'
        | 'killed after'
        | 'stopped'
        | 'slow';
    }
  | { readonly kind: 'kill'; readonly atMs: number; readonly process: number }
  | { readonly kind: 'terminate'; readonly atMs: number; readonly process: number }
  | { readonly kind: 'pause'; readonly atMs: number; readonly process: number; readonly forMs: number }
  | {
      readonly kind: 'database away' | 'database refuses' | 'platform away';
      readonly atMs: number;
      readonly forMs: number;
    }
  | { readonly kind: 'deployment'; readonly atMs: number }
  | { readonly kind: 'clock jump'; readonly atMs: number; readonly byMs: number };

export interface SimPlan {
  readonly seed: number;
  /** 0: one process with SQLite's queue. Else so many workers, and a web process, over a shared one. */
  readonly workers: number;
  /** Workers see each other's files. */
  readonly sharesDisk: boolean;
  /** Each attempt of a step makes other bytes. */
  readonly isInexact?: boolean;
  readonly runs: readonly SimRun[];
  readonly faults: readonly SimFault[];
}

export interface SimResult {
  /** Events that must not happen; empty if none happened. */
  readonly faults: string[];
  readonly history: string[];
  /** Attempts that began to process, by run. */
  readonly attempts: readonly number[];
}

/** Long enough for every lease, every pause between two tries and every step after the last fault. */
const endsWithinMs = 150_000;
/** Time after the end of every run, in milliseconds. Any event in it would be wrong. */
const afterMs = 65_000;
const restartAfterMs = 1_500;
const stoppedForMs = 18_000;
const slowMs = 9_000;
/** Until what was asked for last is there, or refused. */
const settleMs = 2_000;
/** Provenance of nothing: no step makes an output here. */
const noProvenance: Provenance = {
  step: { id: 'simulated', version: '1.0.0', code: '0'.repeat(64) },
  parameters: {},
  input: { type: 'synthetic', size: 64 },
  inputs: [],
  operationId: null,
  software: {},
  digest: '0'.repeat(64),
};
const stepOf = (deployment: number) =>
  ({
    id: 'step',
    version: `1.0.${deployment}`,
    title: `Step ${deployment}`,
    description: '',
    output: { sourceType: 'RASTER', fileName: 'out.tif' },
  }) as unknown as AnyStep;
const outputBytes = 25;
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
/** Reason for a failed call: there is no response, or the caller's credentials are refused. */
export type Failure = 'lost' | 'refused';
/** PostgreSQL's errors. */
const databaseError = (why: Failure): Error =>
  why === 'lost'
    ? Object.assign(new Error('connection terminated'), { code: '57P01' })
    : Object.assign(new Error('password authentication failed'), { code: '28P01' });
const emptyDatabase = await (async () => {
  const file = new Sqlite(':memory:');
  const database = new Kysely<AppTables>({ dialect: new SqliteDialect({ database: file }) });
  await migrate(database);
  await database
    .insertInto('launches')
    .values({
      id: 'launch',
      first_token_hash: '',
      latest_token_hash: null,
      sealed_token: 'token-0',
      token_expires_at: null,
      user: '{"id":"u"}',
      created_at: 0,
    })
    .execute();
  const bytes = file.serialize();
  await database.destroy();
  return bytes;
})();

/** Runs the real engine, store and queue adapter over a database, a platform and processes of a plan, in virtual time. */
export async function simulate(plan: SimPlan): Promise<SimResult> {
  const clock = new VirtualClock();
  const uninstall = clock.install(seeded(plan.seed + 1));
  try {
    return await new World(plan, clock).run();
  } finally {
    uninstall();
  }
}

interface SimWorker {
  process: SimProcess;
  engine: RunEngine | null;
  readonly name: string;
}

class World {
  #plan: SimPlan;
  #clock: VirtualClock;
  #random: () => number;
  #calls = new Map<string, number>();
  #away = { database: 0, platform: 0 };
  #databaseRefusesUntilMs = 0;
  #deployments = 0;
  #databaseAway: { fromMs: number; toMs: number }[] = [];
  #file = new Sqlite(emptyDatabase);
  #database = new Kysely<AppTables>({ dialect: new SqliteDialect({ database: this.#file }) });
  #jobs = new Map<
    string,
    {
      id: string;
      runId: string;
      queueName: string;
      order: number;
      activeUntilMs: number;
      notBeforeMs: number;
    }
  >();
  #jobIds = 0;
  #disk = new Map<string, Buffer>();
  #platform: SimPlatform;
  #workers: SimWorker[];
  #history: string[] = [];
  #faults: string[] = [];
  #cancelled = new Map<string, number>();
  /** Runs for which each process has children. The children die with it. */
  #stepping = new WeakMap<SimProcess, string[]>();
  #attempts = new Map<string, number>();

  constructor(plan: SimPlan, clock: VirtualClock) {
    this.#plan = plan;
    this.#clock = clock;
    this.#random = seeded(plan.seed);
    this.#file.pragma('journal_mode = MEMORY');
    this.#platform = new SimPlatform(
      clock,
      (key) => this.#runOf(key),
      (what) => this.#note(what),
      (fault) => this.#faults.push(fault),
    );
    const names =
      plan.workers === 0 ? ['alone'] : ['web', ...Array.from({ length: plan.workers }, (_, i) => `worker-${i + 1}`)];
    virtualDisk.read = (path) =>
      path.startsWith(`${this.#rootOf(clock.process()!.name)}/`) ? this.#disk.get(path) : undefined;
    this.#workers = names.map((name) => ({ name, process: { name, isDead: true, pausedUntilMs: 0 }, engine: null }));
  }

  async run(): Promise<SimResult> {
    const { runs, faults } = this.#plan;
    for (const worker of this.#workers) this.#start(worker);
    for (const fault of faults)
      if (fault.kind !== 'call') this.#clock.schedule(fault.atMs, undefined, () => this.#strike(fault));
    runs.forEach((run, i) => this.#clock.schedule(run.atMs, undefined, () => this.#submit(run, i)));
    await this.#clock.pass(
      Math.max(
        0,
        ...runs.flatMap((run) => [run.atMs, run.cancelAtMs ?? 0]),
        ...faults.map((fault) => ('atMs' in fault ? fault.atMs + ('forMs' in fault ? fault.forMs : 0) : 0)),
      ) + settleMs,
    );
    while (this.#workers.some(({ process }) => process.pausedUntilMs + settleMs > this.#clock.nowMs))
      await this.#clock.pass(settleMs);
    this.#note('all has been asked for');
    let left = 1;
    const look = () => {
      left = (
        this.#file
          .prepare(
            "select count(*) as n from runs where state not in ('COMPLETED', 'REJECTED', 'EXPIRED', 'CANCELLED', 'FAILED')",
          )
          .get() as { n: number }
      ).n;
      if (left > 0) this.#clock.schedule(250, undefined, look);
    };
    look();
    await this.#clock.pass(endsWithinMs, () => left === 0);
    await this.#judge();
    for (const { process } of this.#workers) process.isDead = true;
    await this.#database.destroy();
    return { faults: this.#faults, history: this.#history, attempts: [...this.#attempts.values()] };
  }

  #note(what: string, process = this.#clock.process()): void {
    this.#history.push(
      `${(this.#clock.elapsedMs / 1000).toFixed(3).padStart(8)} ${(process?.name ?? '').padEnd(8)} ${what}`,
    );
  }

  /** A call to somebody else: it travels, is answered, and either may fail; the caller may be gone meanwhile. */
  #call<T>(
    what: string,
    to: 'database' | 'platform' | null,
    failed: (why: Failure) => Error,
    effect: () => Promise<T> | T,
  ): Promise<T> {
    const process = this.#clock.process()!;
    const nth = this.#calls.get(what) ?? 0;
    this.#calls.set(what, nth + 1);
    const fault = this.#plan.faults.find((one) => one.kind === 'call' && one.name === what && one.nth === nth);
    const strike = fault?.kind === 'call' ? fault.what : null;
    const latency = () => 1 + Math.floor(this.#random() * (to === 'platform' ? 40 : 6));
    return new Promise<T>((resolve, reject) => {
      const answer = (tell: () => void) => this.#clock.schedule(strike === 'slow' ? slowMs : latency(), process, tell);
      const arrive = async () => {
        if (strike) this.#note(`${what} (${nth}): ${strike}`, process);
        // A worker asks anew a second later.
        if (strike && ['store.heldBy', 'store.renewLease'].includes(what))
          this.#databaseAway.push({ fromMs: this.#clock.nowMs, toMs: this.#clock.nowMs + 1_000 });
        if (strike === 'stopped') process.pausedUntilMs = this.#clock.nowMs + stoppedForMs;
        if (strike === 'killed before') return this.#kill(process);
        if (strike === 'not done' || (to && this.#away[to] > this.#clock.nowMs))
          return void answer(() => reject(failed('lost')));
        if (strike === 'refused' && to === 'platform') this.#platform.endToken();
        if (to === 'database' && (strike === 'refused' || this.#databaseRefusesUntilMs > this.#clock.nowMs))
          return void answer(() => reject(failed('refused')));
        let tell: () => void;
        try {
          const value = await effect();
          tell = () => resolve(value);
        } catch (error) {
          tell = () => reject(error);
        }
        if (strike === 'killed after') return this.#kill(process);
        answer(strike === 'done, answer lost' ? () => reject(failed('lost')) : tell);
      };
      this.#clock.schedule(latency(), undefined, () => void arrive());
    });
  }

  #strike(fault: Exclude<SimFault, { kind: 'call' }>): void {
    if (fault.kind === 'clock jump') {
      this.#clock.aheadMs += fault.byMs;
      return this.#note(`the clocks jump by ${fault.byMs} ms`);
    }
    if (fault.kind === 'deployment') {
      this.#deployments += 1;
      this.#note('the next version is deployed');
      for (const worker of this.#workers) this.#terminate(worker);
      return;
    }
    if (!('process' in fault)) {
      const fromMs = this.#clock.nowMs;
      const toMs = fromMs + fault.forMs;
      if (fault.kind === 'platform away') this.#away.platform = Math.max(this.#away.platform, toMs);
      else this.#databaseAway.push({ fromMs, toMs });
      if (fault.kind === 'database away') this.#away.database = Math.max(this.#away.database, toMs);
      if (fault.kind === 'database refuses')
        this.#databaseRefusesUntilMs = Math.max(this.#databaseRefusesUntilMs, toMs);
      return this.#note(`${fault.kind} for ${fault.forMs} ms`);
    }
    const worker = this.#workers[fault.process % this.#workers.length]!;
    if (worker.process.isDead) return;
    if (fault.kind === 'kill') return this.#kill(worker.process);
    if (fault.kind === 'pause') {
      worker.process.pausedUntilMs = this.#clock.nowMs + fault.forMs;
      return this.#note(`is stopped for ${fault.forMs} ms`, worker.process);
    }
    this.#terminate(worker);
  }

  #terminate({ process, engine }: SimWorker): void {
    if (process.isDead) return;
    this.#note('is asked to end', process);
    this.#clock.as(process, () => void engine?.stop().then(() => this.#kill(process)));
  }

  #kill(process: SimProcess): void {
    if (process.isDead) return;
    process.isDead = true;
    this.#note('is gone', process);
    const worker = this.#workers.find((one) => one.process === process)!;
    this.#clock.schedule(restartAfterMs, undefined, () => this.#start(worker));
  }

  #start(worker: SimWorker): void {
    const process: SimProcess = { name: worker.name, isDead: false, pausedUntilMs: 0 };
    worker.process = process;
    this.#note('starts', process);
    this.#clock.as(process, () => {
      worker.engine = this.#engine(worker.name, `${worker.name}#${this.#clock.nowMs}`);
      if (worker.name === 'web') return;
      // Works as the command does: a process that cannot start ends, and is started again.
      worker.engine.work().catch(() => this.#kill(process));
    });
  }

  #engine(machine: string, name: string): RunEngine {
    const isShared = machine !== 'alone';
    const lease = new WorkerLease(name, { isShared });
    const inDatabase = <T>(what: string, effect: () => Promise<T> | T) =>
      this.#call(what, 'database', (why) => asDatabaseError(databaseError(why)) as Error, effect);
    const real = new SqlRunStore(this.#database, Date.now);
    const store = new Proxy(real, {
      get:
        (target, method: keyof RunStore) =>
        (...args: unknown[]) =>
          inDatabase(`store.${method}`, () =>
            Reflect.apply(target[method] as (...given: unknown[]) => unknown, target, args),
          ),
    }) as RunStore;
    const plain = {
      seal: async (_launch: string, token: string) => token,
      open: async (_launch: string, token: string) => token,
    };
    const held = new SqlLaunchStore(this.#database, plain, { isShared }).tokens('launch');
    const tokens: IdentityTokenStore = {
      read: () => inDatabase('tokens.read', () => held.read()),
      write: (token) => inDatabase('tokens.write', () => held.write(token)),
    };
    const log = (level: string) => (facts: object, message: string) => {
      if (level !== 'info' || 'state' in facts)
        this.#note(
          `${level} ${message} ${JSON.stringify(facts, (_key, value: unknown) => (value instanceof Error ? value.message : value))}`,
        );
    };
    const logger: RunEngineOptions['log'] = {
      info: log('info'),
      warn: log('warn'),
      error: log('error'),
      child: () => logger,
    };
    const calls = this.#platform.calls(
      (signal) => lease.held(signal),
      (what, failed, effect) => this.#call(what, 'platform', failed, effect),
      tokens,
    );
    return createRunEngine({
      store,
      queue: isShared ? new PgBossRunQueue(this.#boss()) : new LocalRunQueue(),
      progress: localProgress(),
      lease,
      callsOf: () => calls,
      ownerOf: async () => 'u',
      steps: this.#steps(),
      settings: {
        pollIntervalMs: 2_000,
        uploadPartBytes: 10,
        refusedFields: [],
        platformPatienceMs: 15 * 60_000,
        strandedAfterMs: 20_000,
        limits: assumedLimits,
        stepConcurrency: 2,
        stepQueue: 1_000,
        runsPerUser: 1_000,
      },
      folders: this.#folders(machine, store),
      now: Date.now,
      log: logger,
    });
  }

  #rootOf(machine: string): string {
    return this.#plan.sharesDisk ? 'disk' : machine;
  }

  #folders(machine: string, store: RunStore): AttemptFolders {
    const root = this.#rootOf(machine);
    return new WorkFolders(root, store, {
      names: async (folder) => [
        ...new Set(
          [...this.#disk.keys()]
            .filter((path) => path.startsWith(`${folder}/`))
            .map((path) => path.slice(folder.length + 1).split('/')[0]!),
        ),
      ],
      remove: async (folder) => this.#remove(folder),
    });
  }

  #remove(folder: string): void {
    const [, runId, claim] = folder.split('/');
    const run = this.#file.prepare('select state, claim, outputs from runs where id = ?').get(runId) as
      | { state: RunState; claim: number; outputs: string | null }
      | undefined;
    const isOwned =
      run &&
      !isFinal(run.state) &&
      (claim === undefined || claim === String(run.claim) || run.outputs?.includes(`"${folder}/`));
    // Claims of another machine with its own disk are not in this folder.
    if (isOwned && [...this.#disk.keys()].some((path) => path.startsWith(`${folder}/`)))
      this.#faults.push(`${folder} was removed, and ${runId} is ${run.state} with claim ${run.claim}`);
    for (const path of this.#disk.keys()) if (path.startsWith(`${folder}/`)) this.#disk.delete(path);
  }

  #steps(): StepHost {
    const step = stepOf(this.#deployments);
    return {
      steps: [step],
      find: () => step,
      check: async () => ({ step, parameters: {}, estimate: null, subject: '', warnings: [] }),
      load: () => ({ running: 0, waiting: 0 }),
      canStartChildren: () => true,
      run: async (
        { workFolder, input }: { workFolder: string; input: Run['input'] },
        { signal }: { signal: AbortSignal },
      ) => {
        const runId = workFolder.split('/')[1]!;
        const process = this.#clock.process()!;
        const mine = this.#stepping.get(process) ?? [];
        this.#stepping.set(process, mine);
        if (mine.includes(runId)) this.#faults.push(`${process.name} processes ${runId} twice at a time`);
        mine.push(runId);
        const attempt = (this.#attempts.get(runId) ?? 0) + 1;
        this.#attempts.set(runId, attempt);
        this.#note(`processes ${runId}`);
        this.#disk.set(`${workFolder}/input.tif`, Buffer.alloc(0));
        try {
          await abortableSleep((input as { size: number }).size, signal);
        } finally {
          mine.splice(mine.indexOf(runId), 1);
        }
        if (!this.#platform.isApproved(runId)) this.#faults.push(`${runId} was processed without an approval`);
        const outputs = Array.from({ length: this.#platform.wanted.get(runId)?.outputs ?? 1 }, (_, i) => {
          const path = `${workFolder}/out-${i + 1}.tif`;
          const made = `${runId} ${i + 1} ${this.#plan.isInexact ? attempt : ''}`;
          const bytes = createHash('sha256').update(made).digest().subarray(0, outputBytes);
          this.#disk.set(path, bytes);
          return { path, sizeBytes: bytes.length, sha256: sha256(bytes) };
        });
        const usage = { ...noUsage, place: process.name };
        return { outputs, result: null, provenance: noProvenance, usage };
      },
    };
  }

  /** Calls of pg-boss that the adapter makes, with its policy `exclusive`, its retries and its heartbeat. */
  #boss(): Boss {
    const call = <T>(what: string, effect: () => T) => this.#call(`queue.${what}`, 'database', databaseError, effect);
    const settle = (ids: unknown, end: (key: string) => void) => {
      for (const [key, { id }] of this.#jobs) if ((ids as string[]).includes(id)) end(key);
    };
    return {
      insert: (queueName: string, jobs: { data: { runId: string } }[]) =>
        call('insert', () => {
          for (const { data } of jobs) {
            const key = `${queueName} ${data.runId}`;
            const id = String((this.#jobIds += 1));
            if (!this.#jobs.has(key))
              this.#jobs.set(key, {
                id,
                runId: data.runId,
                queueName,
                order: this.#jobIds,
                activeUntilMs: 0,
                notBeforeMs: 0,
              });
          }
        }),
      fetch: (queueName: string, { batchSize }: { batchSize: number }) =>
        call('fetch', () => {
          const now = this.#clock.nowMs;
          const ready = [...this.#jobs.values()]
            .filter((job) => job.queueName === queueName && job.activeUntilMs <= now && job.notBeforeMs <= now)
            .toSorted((a, b) => a.order - b.order);
          return ready.slice(0, batchSize).map((job) => {
            job.activeUntilMs = now + 11_000;
            return { id: job.id, data: { runId: job.runId } };
          });
        }),
      complete: (_lane: string, ids: unknown) => call('complete', () => settle(ids, (key) => this.#jobs.delete(key))),
      fail: (_lane: string, ids: unknown) =>
        call('fail', () =>
          settle(ids, (key) =>
            Object.assign(this.#jobs.get(key)!, { activeUntilMs: 0, notBeforeMs: this.#clock.nowMs + 1_000 }),
          ),
        ),
      stop: async () => {},
    } as unknown as Boss;
  }

  #submit(wanted: SimRun, i: number): void {
    const { engine, process } = this.#workers[0]!;
    if (process.isDead || !engine) return this.#note(`run ${i} finds nobody`);
    this.#clock.as(process, () => {
      const before = new Set(this.#runIds());
      engine
        .start('launch', { stepId: 'step', parameters: {}, input: { type: 'synthetic', size: wanted.stepMs } })
        .catch((error: unknown) => this.#note(`run ${i} is refused: ${String(error)}`));
      const see = () => {
        const id = this.#runIds().find((one) => !before.has(one) && !this.#platform.wanted.has(one));
        if (id) {
          this.#platform.wanted.set(id, wanted);
          this.#note(`run ${i} is ${id}`);
          if (wanted.cancelAtMs !== null) this.#clock.schedule(wanted.cancelAtMs, undefined, () => this.#cancel(id));
        }
        if (!id) this.#clock.schedule(1, undefined, see);
      };
      this.#clock.schedule(1, undefined, see);
    });
  }

  #runOf(idempotencyKey: string): string {
    const row = this.#file.prepare("select id from runs where ? like idempotency_key || '%'").get(idempotencyKey);
    return (row as { id: string }).id;
  }

  #runIds(): string[] {
    return (this.#file.prepare('select id from runs').all() as { id: string }[]).map(({ id }) => id);
  }

  #cancel(id: string): void {
    const { engine, process } = this.#workers[0]!;
    if (process.isDead || !engine) return;
    this.#clock.as(process, () => {
      const cancel = async () => {
        const run = await new SqlRunStore(this.#database, Date.now).find(id);
        if (!run || isFinal(run.state)) return;
        this.#note(`cancel ${id}, which is ${run.state}`);
        const { state } = await engine.cancel(run);
        this.#note(`cancel of ${id} is answered ${state}`);
        if (state === 'CANCELLED') this.#cancelled.set(id, this.#clock.nowMs);
      };
      cancel().catch((error: unknown) => this.#note(`cancel of ${id} is refused: ${String(error)}`));
    });
  }

  async #judge(): Promise<void> {
    const store = new SqlRunStore(this.#database, Date.now);
    await this.#clock.pass(afterMs);
    for (const id of this.#runIds()) {
      const run = (await store.find(id))!;
      const operations = this.#platform.operationsOf(id);
      const files = operations.flatMap(({ files }) => files);
      const tell = (fault: string) => this.#faults.push(`${id} ${fault}`);
      if (!isFinal(run.state)) tell(`is still ${run.state}`);
      if (this.#cancelled.has(id) && run.state !== 'CANCELLED') tell(`was answered as cancelled, and is ${run.state}`);
      if (run.state === 'FAILED') tell(`is FAILED: ${JSON.stringify(run.failure)}`);
      if (operations.length > 1) tell(`has ${operations.length} operations`);
      const wanted = this.#platform.wanted.get(id)?.outputs ?? 1;
      // A step that runs again may write other bytes: the platform then has another file.
      const inPlatform = this.#plan.isInexact
        ? files.filter((file) => run.files.some(({ fileId }) => fileId === file.id))
        : files;
      if (run.state === 'COMPLETED' && inPlatform.length !== wanted)
        tell(`has ${inPlatform.length} files, not ${wanted}`);
      const named = run.files.map(({ fileId }) => fileId).join();
      const present = inPlatform.map((file) => file.id).join();
      if (run.state === 'COMPLETED' && named !== present) tell(`names file ${named}, the platform has ${present}`);
      for (const { fileId, sha256: digest } of run.files) {
        const file = files.find((one) => one.id === fileId);
        if (file && sha256(file.bytes) !== digest) tell(`says what ${fileId} contains, and it contains other bytes`);
      }
      if (run.state === 'REJECTED' && this.#platform.wanted.get(id)?.decision !== 'REJECTED')
        tell('is REJECTED, and was approved');
      if (run.state === 'COMPLETED' && this.#platform.wanted.get(id)?.decision === 'REJECTED')
        tell('is COMPLETED, and was rejected');
      const states = (await store.history(id)).map(({ state }) => state);
      if (states.includes('PROCESSING') && states.indexOf('APPROVED') > states.indexOf('PROCESSING'))
        tell(`was processed before it was approved: ${states.join(' ')}`);
      const left = [...this.#disk.keys()].filter((path) => path.includes(`/${id}/`));
      if (isFinal(run.state) && left.length > 0) tell(`ended, and ${left.join(', ')} is still there`);
      if (states.at(-1) !== run.state) tell(`is ${run.state}, and its history ends ${states.at(-1)}`);
      // The times in a run come from a clock that may have jumped.
      const hasJumped = this.#plan.faults.some(({ kind }) => kind === 'clock jump');
      const endMs = this.#cancelled.get(id) ?? (hasJumped ? Infinity : run.updatedAtMs);
      // A worker hears of an end from the database: what that was away for, or answered in vain, does not count, up to the lease, after which it calls no more.
      const deaf = (atMs: number) =>
        Math.min(
          leaseMs,
          this.#databaseAway.reduce(
            (sum, { fromMs, toMs }) => sum + Math.max(0, Math.min(toMs, atMs) - Math.max(fromMs, endMs)),
            0,
          ),
        );
      const late = this.#platform
        .callsOf(id)
        .filter(({ atMs, process }) => atMs > endMs + 2_500 + deaf(atMs) && process.pausedUntilMs < endMs);
      if (isFinal(run.state) && late.length > 0)
        tell(`ended, and ${late[0]!.what} was called ${late[0]!.atMs - endMs} ms later`);
    }
  }
}
