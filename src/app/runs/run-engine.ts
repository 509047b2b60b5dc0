import { setTimeout as sleep } from 'node:timers/promises';
import { KitError } from '../../contract/index.ts';
import { abortableSleep, PlatformError, type LaunchCalls } from '../../platform-client/index.ts';
import { ChildJobError } from '../../raster/index.ts';
import type { RunInput } from '../processing/run-input.ts';
import type { StepHost } from '../processing/step-host.ts';
import { DatabaseAwayError } from '../database-away.ts';
import { describeFailure, failureKindOf, isSessionOver } from './run-failure.ts';
import { Repeats } from './repeats.ts';
import { createRunIntake } from './run-intake.ts';
import { noProgress, type ProgressBoard, type RunProgress } from './run-progress.ts';
import type { Lane, QueuedRun, RunQueue } from './run-queue.ts';
import { IllegalTransitionError, isFinal, type RunState } from './run-state.ts';
import type { Run, RunStore } from './run.ts';
import type { WorkerLease } from './worker-lease.ts';
import type { AttemptFolders } from './work-folders.ts';
import type { StageContext, StageLog } from './stages/stage.ts';
import { inTurns, stages } from './stages/stage-table.ts';

export interface NewRun {
  readonly stepId: string;
  readonly parameters: unknown;
  readonly input: RunInput;
}

export interface RunEngine {
  /** Commits a new run and queues it. Throws where step or parameters are wrong, `busy` where too many runs wait for processing, and `too_many_runs` where the user has too many. */
  start(launchId: string, wanted: NewRun): Promise<Run>;
  /** A new run, and so a new operation, for what an ended one asked (spec 3.1). Throws `run_not_ended`. */
  retry(run: Run): Promise<Run>;
  /** Ends the run where it is. An operation that waits in the platform is left to its user and its 30 minutes. */
  cancel(run: Run): Promise<Run>;
  /** What the run does at the moment, in whichever process. */
  progress(runId: string): Promise<RunProgress>;
  /** Another number where the progress of the launch's runs has changed and the launch itself does not say so. */
  progressChangesOf(launchId: string): number;
  /** Begins to take runs, those that an earlier process left unfinished among them; how many those were. */
  work(): Promise<number>;
  /** Stops where each run is, for a later process; resolves when nothing runs any more. */
  stop(): Promise<void>;
}

export interface RunEngineOptions {
  readonly store: RunStore;
  readonly queue: RunQueue;
  readonly progress: ProgressBoard;
  /** This process among those that take runs. */
  readonly lease: WorkerLease;
  readonly callsOf: (launchId: string) => LaunchCalls;
  /** Whose a launch is: turns are shared out between owners. */
  readonly ownerOf: (launchId: string) => Promise<string>;
  readonly steps: StepHost;
  readonly settings: StageContext['settings'] & {
    readonly stepConcurrency: number;
    /** Runs that may wait for processing or be in it; where there are so many no new one is taken. */
    readonly stepQueue: number;
    /** Runs of one user that have not ended; one more is refused. */
    readonly runsPerUser: number;
  };
  readonly folders: AttemptFolders;
  readonly now: () => number;
  /** Told of a launch whose token the platform refuses for good. */
  readonly onSessionOver?: (launchId: string) => Promise<void>;
  /** Told how long a run was in a state, when it leaves it. */
  readonly onStage?: (state: RunState, seconds: number) => void;
  readonly log: StageLog & {
    error(facts: object, message: string): void;
    child(facts: object): RunEngineOptions['log'];
  };
}

/** Runs that one worker looks after at once. */
const mostDriven = 10_000;
/** How often a worker says that it lives, and asks what it still has: where others may take it, and where nobody can. */
const renewEveryMs = { shared: 1_000, alone: 5_000 };
/** How often runs are looked for that no living worker has, and how long one may wait for its turn before it is queued again. */
const recoverEveryMs = 2_500;
const overlookedAfterMs = 10_000;
/** How often folders are looked for that nobody owns, and leases of workers that are long dead. */
const tidyEveryMs = 60_000;
const forgottenAfterMs = 3_600_000;
/** After what the world did to a run. */
const tryAgainMs = 1_000;
/** An attempt that lasted so long was kept from nothing. */
const wellAfterMs = 60_000;
/** How often launches whose approved runs wait for a worker have their tokens looked after. */
const keepAliveEveryMs = 60_000;
/** What stopping waits for a database that is away: others find the runs anyway. */
const releaseWithinMs = 3_000;

class Cancelled extends Error {}
/** The process is stopping, or the run is not this worker's any more. The run stays as it is. */
class GivenUp extends Error {}

interface Driven {
  readonly lane: Lane;
  readonly abort: AbortController;
  /** 0 until it is known. */
  claim: number;
  /** Null until it is known. */
  launchId: string | null;
  state: RunState;
  done: Promise<void>;
}

/** Drives each run from state to state, every state committed before what it allows is done. */
export function createRunEngine(options: RunEngineOptions): RunEngine {
  const { store, queue, progress, settings, now, lease, folders } = options;
  const { worker } = lease;
  const driven = new Map<string, Driven>();
  /** Those that were handed over among them. */
  const underWay = new Set<Promise<void>>();
  const repeats = new Repeats((error, what) => options.log.error({ err: error }, what));
  /** Since when the world has kept a run from going on, and when it last did, by run. */
  const away = new Map<string, { readonly sinceMs: number; readonly lastMs: number }>();
  let stopping = false;
  const takeIn = createRunIntake(options);

  /** From the queue: makes the run this worker's, and drives it from then on. */
  async function take({ runId, lane }: Pick<QueuedRun, 'runId' | 'lane'>): Promise<void> {
    if (stopping) throw new GivenUp('the worker is stopping');
    // It goes on here, whoever asks again: a second attempt beside the first would only take its work away.
    if (driven.has(runId)) return;
    const entry: Driven = {
      lane,
      abort: new AbortController(),
      claim: 0,
      launchId: null,
      state: 'CREATED',
      done: Promise.resolve(),
    };
    driven.set(runId, entry);
    try {
      const run = await store.claim(runId, worker);
      if (run === null) return leave(runId, entry);
      entry.claim = run.claim;
      entry.launchId = run.launchId;
      entry.done = drive(run, entry).finally(() => {
        leave(runId, entry);
        underWay.delete(entry.done);
      });
      underWay.add(entry.done);
    } catch (error) {
      leave(runId, entry);
      throw error;
    }
  }

  /** Handed from lane to lane it may be here again already. */
  function leave(runId: string, entry: Driven): void {
    if (driven.get(runId) !== entry) return;
    driven.delete(runId);
    away.delete(runId);
    if (entry.launchId !== null) progress.clear({ id: runId, launchId: entry.launchId });
  }

  /** Takes a run as far as this worker can, however often the world comes between. */
  async function drive(first: Run, entry: Driven): Promise<void> {
    for (let run: Run | null = first; run !== null; run = await claimAgain(run.id, entry)) {
      try {
        return await runStages(run, entry);
      } catch (error) {
        // Neither committed nor failed, as when the database is away: the run stays as it is.
        options.log.error({ err: error, runId: run.id }, 'run could not be taken further for now; it is tried again');
      }
    }
  }

  /** For another attempt. Null where the run has ended, or is not this worker's any more. */
  async function claimAgain(runId: string, entry: Driven): Promise<Run | null> {
    // Where it was handed over it is not this entry's any more; a hand-over that failed is found by whoever looks for such runs.
    while (!entry.abort.signal.aborted && driven.get(runId) === entry) {
      try {
        await abortableSleep(tryAgainMs, entry.abort.signal);
        const run = await store.claim(runId, worker);
        entry.claim = run?.claim ?? 0;
        return run;
      } catch (error) {
        if (!entry.abort.signal.aborted)
          options.log.warn({ err: error, runId }, 'run could not be claimed for now; it is tried again');
      }
    }
    return null;
  }

  async function runStages(claimed: Run, entry: Driven): Promise<void> {
    let run = claimed;
    const runId = run.id;
    const { signal } = entry.abort;
    const log = options.log.child({ runId });
    const workFolder = folders.of(runId, run.claim);
    const report = (now: RunProgress) => progress.report(claimed, now);
    const context: StageContext = {
      ...options,
      calls: options.callsOf(run.launchId),
      workFolder,
      madeHere: { sha256: null },
      signal,
      report,
      log,
    };
    try {
      for (let stage = stages[run.state]; stage; stage = stages[run.state]) {
        if (queue.isShared && stage.lane !== null && stage.lane !== entry.lane)
          return await handOver(run, stage.lane, entry);
        entry.state = run.state;
        report(noProgress);
        signal.throwIfAborted();
        const [{ state }, from]: [Run, number] = [run, performance.now()];
        run = await stage.work(run, context);
        away.delete(runId);
        options.onStage?.(state, (performance.now() - from) / 1000);
        log.info({ state: run.state, operationId: run.operationId }, 'run reached a state');
      }
    } catch (error) {
      // It may have been cancelled elsewhere. Whoever stops has no time to look: the next start does.
      if (signal.reason instanceof GivenUp) return stopping ? undefined : folders.tidyRun(runId);
      run = await end(run, error, log);
    }
    if (!isFinal(run.state)) return;
    await folders.tidyRun(runId);
  }

  /** To the lane where the next stage is done, and off this one. */
  async function handOver(run: Run, lane: Lane, entry: Driven): Promise<void> {
    const behind = lane === 'process' ? await store.countWaitingOf(run.owner) : 0;
    await store.giveBack(run);
    leave(run.id, entry);
    await queue.add([{ runId: run.id, lane, behind }]);
  }

  /** Ends a run whose stage threw, in the state it has by now; throws on what the world will mend. */
  async function end({ id, claim }: Run, error: unknown, log: RunEngineOptions['log']): Promise<Run> {
    const run = await findRun(id);
    // Another worker has it by now, and what this one met is no failure of the run.
    if (isFinal(run.state) || run.claim !== claim) return run;
    const failure = describeFailure(error);
    const kind = failureKindOf(error);
    // A database that is away is waited for as long as it is: nothing could be committed either.
    if (error instanceof DatabaseAwayError || (kind === 'world' && !(error instanceof PlatformError) && !isOverdue(id)))
      throw error;
    if (isSessionOver(error)) await options.onSessionOver?.(run.launchId);
    if (kind === 'defect')
      log.error(
        { err: error, childStack: error instanceof ChildJobError ? error.childStack : undefined, state: run.state },
        'run failed by a defect',
      );
    else
      log.warn(
        { state: run.state, code: failure.code, reason: failure.message, requestId: failure.requestId },
        'run failed',
      );
    return store.transition(run, 'FAILED', { failure });
  }

  /** What the platform's own calls have waited for is past its patience when it comes here; the rest of the world is waited for as long. */
  function isOverdue(runId: string): boolean {
    const before = away.get(runId);
    // What went well for so long in between has used up nothing.
    const sinceMs = before && now() - before.lastMs < wellAfterMs ? before.sinceMs : now();
    away.set(runId, { sinceMs, lastMs: now() });
    return now() - sinceMs >= settings.platformPatienceMs;
  }

  async function findRun(id: string): Promise<Run> {
    const run = await store.find(id);
    if (!run) throw new KitError('run_not_found', `there is no run ${id}`, { status: 404 });
    return run;
  }

  async function start(launchId: string, wanted: NewRun): Promise<Run> {
    if (stopping)
      throw new KitError('shutting_down', 'the app is about to stop and takes no new runs; try again in a moment', {
        status: 503,
        data: { isForUser: true },
      });
    return takeIn(launchId, wanted);
  }

  /** Queues what no living worker has. How many there were. */
  async function recover(forMs: number): Promise<number> {
    if (!lease.mayJudgeOthers) return 0;
    const orphans = (await store.listOrphans(worker, forMs)).filter(({ id }) => !driven.has(id));
    if (orphans.length > 0) await queue.add(inTurns(orphans));
    return orphans.length;
  }

  /** Of runs that nobody has: whoever has one looks after its token itself. */
  async function keepTokensAlive(): Promise<void> {
    for (const launchId of await store.listWaitingLaunches()) {
      await options
        .callsOf(launchId)
        .keepAlive()
        .catch((error: unknown) =>
          options.log.warn({ err: error, launchId }, 'the token of a waiting run could not be renewed for now'),
        );
    }
  }

  /** Says that this worker lives, lets go of what is not its own any more, and takes up what is and what it does not drive. */
  async function renewLease(): Promise<void> {
    const fromMs = lease.now();
    if (queue.isShared) await store.renewLease(worker);
    const before = [...driven].flatMap(([id, entry]) => (entry.claim > 0 ? [{ id, entry, claim: entry.claim }] : []));
    const held = await store.heldBy(worker);
    for (const { id, entry, claim } of before) {
      if (entry.claim === claim && held.get(id) !== claim)
        entry.abort.abort(new GivenUp('the run was ended, or taken, elsewhere'));
    }
    lease.renewed(fromMs);
    const idle = [...held.keys()].filter((id) => !driven.has(id));
    if (idle.length > 0) await queue.add(idle.map((runId) => ({ runId, lane: 'wait', behind: 0 })));
  }

  return {
    start,
    async retry(run) {
      if (!isFinal(run.state)) {
        throw new KitError('run_not_ended', `run ${run.id} is ${run.state}; cancel it first, or wait for its end`, {
          status: 409,
        });
      }
      return start(run.launchId, run);
    },
    async cancel(run) {
      if (isFinal(run.state)) throw new IllegalTransitionError(run.id, run.state, 'CANCELLED');
      const cancelled = await commitCancel(run);
      // Whoever drives it lets go: at once where that is here, else when it next asks what it has.
      const entry = driven.get(run.id);
      entry?.abort.abort(new Cancelled('cancelled by the user'));
      await entry?.done.catch(() => {});
      return cancelled;
    },
    progress: (runId) => progress.get(runId),
    progressChangesOf: (launchId) => progress.changesOf(launchId),
    async work() {
      await folders.tidy();
      await renewLease();
      await queue.work({ take, room, log: options.log });
      repeats.every(renewEveryMs[queue.isShared ? 'shared' : 'alone'], 'the lease could not be renewed', renewLease);
      repeats.every(recoverEveryMs, 'overlooked runs could not be looked for', () => recover(overlookedAfterMs));
      if (queue.isShared)
        repeats.every(keepAliveEveryMs, 'tokens of waiting runs could not be looked after', keepTokensAlive);
      repeats.every(tidyEveryMs, 'what nobody owns could not be looked for', async () => {
        await folders.tidy();
        await store.forgetWorkers(forgottenAfterMs);
      });
      return recover(0);
    },
    async stop() {
      stopping = true;
      repeats.stop();
      for (const { abort } of driven.values()) abort.abort(new GivenUp('the worker is stopping'));
      await queue.stop();
      await Promise.all(underWay);
      await Promise.race([release(), sleep(releaseWithinMs, undefined, { ref: false })]);
      await queue.close();
      await progress.close();
    },
  };

  /** So that others go on at once. Where the database is away they find the runs when the lease is over. */
  async function release(): Promise<void> {
    try {
      const released = await store.release(worker);
      if (queue.isShared && released.length > 0) await queue.add(inTurns(released));
    } catch (error) {
      options.log.warn({ err: error }, 'runs could not be handed over');
    }
  }

  /** Cancelled is what is committed. Whoever drives the run may move it meanwhile: then once more. */
  async function commitCancel(run: Run): Promise<Run> {
    try {
      return await store.transition(run, 'CANCELLED');
    } catch (error) {
      const current = await findRun(run.id);
      const hasMoved = current.state !== run.state || current.claim !== run.claim;
      if (!(error instanceof IllegalTransitionError) || isFinal(current.state) || !hasMoved) throw error;
      return commitCancel(current);
    }
  }

  function room(lane: Lane): number {
    if (lane === 'wait') return mostDriven - driven.size;
    const inSteps = [...driven.values()].filter((one) => one.lane === 'process' && one.state !== 'UPLOADING').length;
    return settings.stepConcurrency - inSteps;
  }
}
