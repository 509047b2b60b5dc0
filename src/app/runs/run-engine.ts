import { setTimeout as sleep } from 'node:timers/promises';
import { KitError } from '../../contract/index.ts';
import { abortableSleep, PlatformError, type LaunchCalls } from '../../platform-client/index.ts';
import { ReportedJobError } from '../../child/index.ts';
import { DatabaseUnavailableError } from '../database-unavailable.ts';
import { describeFailure, failureKindOf, isSessionOver } from './run-failure.ts';
import { Repeats } from './repeats.ts';
import { createRunIntake, type NewRun, type RunIntakeOptions } from './run-intake.ts';
import { Outage } from './outage.ts';
import { noProgress, type ProgressBoard, type RunProgress } from './run-progress.ts';
import { LeftToOthersError, type QueueName, type QueuedRun } from './run-queue.ts';
import { newestMigration } from '../migrations.ts';
import { IllegalTransitionError, isFinal, type RunState } from './run-state.ts';
import type { Run } from './run.ts';
import { renewEveryMs, type WorkerLease } from './worker-lease.ts';
import type { AttemptFolders } from './work-folders.ts';
import { Patience } from './patience.ts';
import { patientCalls } from './stages/retry.ts';
import type { StageContext, StageLog } from './stages/stage.ts';
import { queuedRun, stageOf } from './stages/stage-table.ts';

export interface RunEngine {
  /** Commits a new run and queues it. Throws where step or parameters are wrong, `busy` where too many runs wait for processing, and `too_many_runs` where the user has too many. */
  start(launchId: string, wanted: NewRun, signal?: AbortSignal): Promise<Run>;
  /** Starts a new run, and so a new operation, with what an ended run asked for (spec 3.1). Throws `run_not_ended`. */
  retry(run: Run, signal?: AbortSignal): Promise<Run>;
  /** Ends the run where it is. An operation that waits in the platform is left to its user and its 30 minutes. */
  cancel(run: Run): Promise<Run>;
  /** Current progress of the run, in any process. */
  progress(runId: string): Promise<RunProgress>;
  /** True if a living worker has the step. Always true for an app with one process. */
  canBeDone(step: Pick<Run, 'stepId' | 'stepVersion'>): Promise<boolean>;
  /** A number that changes whenever the progress of the launch's runs has changed and the launch itself does not say so. */
  progressChangesOf(launchId: string): number;
  /** Starts to take runs, including those that an earlier process left unfinished, and returns how many those were. */
  work(): Promise<number>;
  /** Stops where each run is, for a later process; resolves when nothing runs any more. */
  stop(): Promise<void>;
}

export interface RunEngineOptions extends RunIntakeOptions {
  readonly progress: ProgressBoard;
  /** Identifies this process among the workers, and says whether its lease holds. */
  readonly lease: WorkerLease;
  readonly callsOf: (launchId: string) => LaunchCalls;
  readonly settings: RunIntakeOptions['settings'] &
    StageContext['settings'] & {
      readonly stepConcurrency: number;
      /** Longest time for which a run waits for a platform or a machine that is out of order. */
      readonly platformPatienceMs: number;
      /** Longest time for which steps and uploads go on after `stop`. Default: 0. */
      readonly drainMs?: number;
      /** Time after which an approved run fails if no worker could do its step. Default: 10 minutes. */
      readonly strandedAfterMs?: number;
      /** A failure shows the stack of a defect. Default false. */
      readonly showDefects?: boolean;
    };
  readonly folders: AttemptFolders;
  /** False while this machine cannot run steps: its disk is full, or no process can start. Default: true. */
  readonly isMachineWell?: () => Promise<boolean>;
  /** Called once if a newer release has changed the database so that this one cannot work with it. The engine then stops. */
  readonly onOutdated?: () => void;
  /** Called with a launch whose token the platform refuses for good. */
  readonly onSessionOver?: (launchId: string) => Promise<void>;
  /** Runs the work of a state. Default: only that. */
  readonly traceStage?: <T>(run: Run, work: () => Promise<T>) => Promise<T>;
  /** Called when a run has failed, with the code of its failure. */
  readonly onFailed?: (code: string) => void;
  /** Called when a run has ended in this process, with its last state. */
  readonly onEnded?: (state: RunState) => void;
  /** Called with the time between two polls of one run. */
  readonly onPollInterval?: (seconds: number) => void;
  /** Called when this machine could not process a run and passed it on. */
  readonly onPassedOn?: () => void;
  /** Called if the lease ended before its renewal, so that others may have taken the runs. */
  readonly onLeaseLost?: () => void;
  /** Called when a run leaves a state, with how long it was in it. */
  readonly onStage?: (state: RunState, seconds: number) => void;
  readonly log: StageLog & {
    error(facts: object, message: string): void;
    child(facts: object): RunEngineOptions['log'];
  };
}

/** Runs that one worker looks after at once. */
const maxActive = 10_000;
/**
 * Interval between searches for runs that no living worker has. `overlookedAfterMs`: the time that a run may wait for
 * its turn before it is queued again.
 */
const recoverEveryMs = 2_500;
const overlookedAfterMs = 10_000;
/** Interval between removals of folders that nobody owns, and of leases of workers that died long ago. */
const tidyEveryMs = 60_000;
const forgottenAfterMs = 3_600_000;
/** A claim that takes this long is checked by a read, because the run may have ended in the meantime. */
const lateClaimMs = 2_000;
/** Interval between checks of this machine. */
const machineEveryMs = 2_000;
/** Number of attempts of one run on this machine before the run's patience applies. */
const maxTriesHere = 3;
/** Pause of a worker that can process none of the waiting runs. Other workers can take them meanwhile. */
const restMs = 2_000;
const strandedAfterMs = 10 * 60_000;
const strandedEveryMs = 30_000;
/** Pause before another attempt, after something outside stopped a run. */
const tryAgainMs = 1_000;
/** Interval at which a worker renews the tokens of launches whose approved runs wait for a worker. */
const keepAliveEveryMs = 60_000;
/** Maximum wait, when stopping, for a database that is away. Other workers find the runs anyway. */
const releaseWithinMs = 3_000;

class Cancelled extends Error {}
/** The process is stopping, or the run is not this worker's any more. The run stays as it is. */
class Released extends Error {}

interface ActiveRun {
  readonly queueName: QueueName;
  readonly abort: AbortController;
  /** 0 until it is known. */
  claim: number;
  /** Null until it is known. */
  launchId: string | null;
  state: RunState;
  readonly patience: Patience;
  /** Number of runs that had ended when the work folders of others left this run no room. */
  endedBefore: number;
  done: Promise<void>;
}

/** Drives each run from state to state, every state committed before what it allows is done. */
export function createRunEngine(options: RunEngineOptions): RunEngine {
  const { store, queue, progress, settings, now, lease, folders } = options;
  const { worker } = lease;
  const traceStage = options.traceStage ?? ((_run, work) => work());
  const activeRuns = new Map<string, ActiveRun>();
  /** Includes runs that were handed over. */
  const underWay = new Set<Promise<void>>();
  // An outage of the database has its own lines.
  const repeats = new Repeats((error, what) => {
    if (!isAway(error)) options.log.error({ err: error }, what);
  });
  let stopping = false;
  let ending: Promise<void> | null = null;
  /** Number of runs of this worker that have ended, and freed their folders. */
  let ended = 0;
  /** Start of the current lease without a gap. */
  let heldSinceMs = Infinity;
  /** False while this machine cannot run steps. */
  let isWell = true;
  /** True if an operator drains this worker. */
  let rests = false;
  /** Time until which this worker leaves the queue `process` to others. */
  let restUntilMs = -Infinity;
  const can = options.steps.steps.map(({ id, version }) => `${id}@${version}`);
  const stopped = new AbortController();
  const outage = new Outage(options.log, () => lease.now());
  /** Returns true if the database is away. The lease is then renewed at once, and runs wait for that renewal. */
  const isAway = (error: unknown): boolean => {
    if (!outage.isCause(error)) return false;
    lease.doubt();
    return true;
  };
  const takeIn = createRunIntake(options);

  /** Takes a run from the queue: claims it for this worker, then drives it. */
  async function take({ runId, queueName }: Pick<QueuedRun, 'runId' | 'queueName'>): Promise<void> {
    if (stopping) throw new Released('the worker is stopping');
    if (queue.isShared && queueName === 'process') return takeNext();
    await takeRun(runId, queueName);
  }

  /** Takes the next run in turn whose step this worker has. */
  async function takeNext(): Promise<void> {
    const fromMs = lease.now();
    const claimed = await store.claimNext(worker, can);
    const run = claimed && (await confirmed(claimed, fromMs));
    if (run && stopping) {
      await store.giveBack(run);
      throw new Released('the worker is stopping');
    }
    if (run) return begin(run, newEntry('process'));
    if (claimed || !(await store.hasWaiting())) return;
    restUntilMs = lease.now() + restMs;
    throw new LeftToOthersError();
  }

  async function takeRun(runId: string, queueName: QueueName): Promise<void> {
    // This worker already drives it: a second attempt beside the first would only take its work away.
    if (activeRuns.has(runId)) return;
    const entry = newEntry(queueName);
    activeRuns.set(runId, entry);
    try {
      const run = await claim(runId);
      if (run === null) return leave(runId, entry);
      begin(run, entry);
    } catch (error) {
      leave(runId, entry);
      throw error;
    }
  }

  function newEntry(queueName: QueueName): ActiveRun {
    return {
      queueName,
      abort: new AbortController(),
      claim: 0,
      launchId: null,
      state: 'CREATED',
      patience: new Patience(settings.platformPatienceMs, now),
      endedBefore: -1,
      done: Promise.resolve(),
    };
  }

  function begin(run: Run, entry: ActiveRun): void {
    const earlier = activeRuns.get(run.id);
    if (earlier && earlier !== entry) earlier.abort.abort(new Released('the run was taken again'));
    activeRuns.set(run.id, entry);
    entry.claim = run.claim;
    entry.launchId = run.launchId;
    entry.state = run.state;
    entry.done = drive(run, entry).finally(() => {
      leave(run.id, entry);
      underWay.delete(entry.done);
    });
    underWay.add(entry.done);
  }

  async function claim(runId: string): Promise<Run | null> {
    const fromMs = lease.now();
    const run = await store.claim(runId, worker);
    return run && confirmed(run, fromMs);
  }

  /** Checks a claim that began at `fromMs`. Null if the response was late and the run is no longer this worker's. */
  async function confirmed(run: Run, fromMs: number): Promise<Run | null> {
    if (lease.now() - fromMs < lateClaimMs) return run;
    const current = await store.find(run.id);
    return current && current.claim === run.claim && !isFinal(current.state) ? run : null;
  }

  /** After a hand-over from queue to queue this worker may already have the run again. */
  function leave(runId: string, entry: ActiveRun): void {
    if (activeRuns.get(runId) !== entry) return;
    activeRuns.delete(runId);
    if (entry.launchId !== null) progress.clear({ id: runId, launchId: entry.launchId });
  }

  /** Drives a run as far as this worker can, however often something outside interrupts it. */
  async function drive(first: Run, entry: ActiveRun): Promise<void> {
    for (let run: Run | null = first; run !== null; run = await claimAgain(run.id, entry)) {
      try {
        return await runStages(run, entry);
      } catch (error) {
        // Neither committed nor failed, as when the database is away: the run stays as it is.
        if (!isAway(error))
          options.log.error({ err: error, runId: run.id }, 'could not take the run further; trying again');
      }
    }
  }

  /** Claims the run for another attempt. Null if it has ended, or this worker no longer has it. */
  async function claimAgain(runId: string, entry: ActiveRun): Promise<Run | null> {
    // After a hand-over the run no longer belongs to this entry. If a hand-over failed, `recover` finds the run.
    while (!entry.abort.signal.aborted && activeRuns.get(runId) === entry) {
      try {
        await abortableSleep(tryAgainMs, entry.abort.signal);
        await outage.over(entry.abort.signal);
        if (activeRuns.get(runId) !== entry) return null;
        const run = await claim(runId);
        entry.claim = run?.claim ?? 0;
        return run;
      } catch (error) {
        // oxlint-disable-next-line typescript/no-unnecessary-condition -- it may be aborted during an await
        if (!entry.abort.signal.aborted && !isAway(error))
          options.log.warn({ err: error, runId }, 'could not claim the run; trying again');
      }
    }
    return null;
  }

  async function runStages(claimed: Run, entry: ActiveRun): Promise<void> {
    let run = claimed;
    const runId = run.id;
    const { patience } = entry;
    const { signal } = entry.abort;
    const log = options.log.child({ runId });
    const workFolder = folders.of(runId, run.claim);
    const report = (now: RunProgress) => progress.report(claimed, now);
    const calling = { patience, now, signal, report, log };
    const context: StageContext = {
      ...calling,
      store,
      steps: options.steps,
      ownerOf: options.ownerOf,
      settings: options.settings,
      folders,
      calls: patientCalls(options.callsOf(run.launchId), calling),
      workFolder,
      madeHere: { identities: new Map() },
      onPollInterval: options.onPollInterval ?? (() => {}),
      isAway,
      untilBack: () => outage.over(signal),
    };
    try {
      for (let stage = stageOf(run.state); stage; stage = stageOf(run.state)) {
        if (queue.isShared && stage.queueName !== null && stage.queueName !== entry.queueName)
          return await handOver(run, stage.queueName, entry);
        entry.state = run.state;
        report(noProgress);
        signal.throwIfAborted();
        const [{ work }, current, from]: [typeof stage, Run, number] = [stage, run, performance.now()];
        run = await traceStage(current, () => work(current, context));
        patience.progressed();
        options.onStage?.(current.state, (performance.now() - from) / 1000);
        log.info({ state: run.state, operationId: run.operationId }, 'run reached a state');
      }
    } catch (error) {
      // It may have been cancelled elsewhere. Whoever stops has no time to look: the next start does.
      if (signal.reason instanceof Released) return stopping ? undefined : folders.tidyRun(runId);
      const after = await end(run, error, entry, log);
      // `forget-user` has removed the run.
      if (after === null) return folders.tidyRun(runId);
      run = after;
    }
    if (!isFinal(run.state)) return;
    options.onEnded?.(run.state);
    await folders.tidyRun(runId);
    ended += 1;
  }

  /** Moves the run from this queue to the queue of its next stage. */
  async function handOver(run: Run, queueName: QueueName, entry: ActiveRun): Promise<void> {
    await (queueName === 'process' ? store.handOver(run) : store.giveBack(run));
    leave(run.id, entry);
    await queue.add([{ runId: run.id, queueName }]);
  }

  /** Ends a run whose stage threw, in the state that it has by now; rethrows errors of the outside world that may pass. */
  async function end(
    { id, claim }: Run,
    error: unknown,
    entry: ActiveRun,
    log: RunEngineOptions['log'],
  ): Promise<Run | null> {
    const run = await store.find(id);
    if (run === null) return null;
    // Either the run has ended or another worker has it by now, so this error is no failure of the run.
    if (isFinal(run.state) || run.claim !== claim) return run;
    if (await passOn(run, error, entry)) return run;
    const failure = describeFailure(error, { withStack: settings.showDefects ?? false });
    const kind = failureKindOf(error);
    // Waits for a database without limit: while it is away, nothing can be committed either. Calls of the platform have used up their patience when they throw.
    if (
      error instanceof DatabaseUnavailableError ||
      (kind === 'transient' &&
        !(error instanceof PlatformError) &&
        (excuseCrowding(error, entry) || !entry.patience.machineFailed()))
    )
      throw error;
    if (isSessionOver(error)) await options.onSessionOver?.(run.launchId);
    if (kind === 'bug')
      log.error(
        { err: error, childStack: error instanceof ReportedJobError ? error.childStack : undefined, state: run.state },
        'a defect made the run fail',
      );
    else
      log.warn(
        { state: run.state, code: failure.code, reason: failure.message, requestId: failure.requestId },
        'run failed',
      );
    const failed = await store.transition(run, 'FAILED', { failure });
    options.onFailed?.(failure.code);
    return failed;
  }

  /** True if this machine caused the error, for example by a full disk. False for errors of the platform, the database or the run. */
  const isOfMachine = (error: unknown) =>
    failureKindOf(error) === 'transient' &&
    !(error instanceof PlatformError) &&
    !(error instanceof DatabaseUnavailableError) &&
    !(error instanceof KitError && error.code === 'work_disk_full');

  /** If this machine cannot process the run, gives the run back for another worker, and takes no runs until the machine has recovered. */
  async function passOn(run: Run, error: unknown, entry: ActiveRun): Promise<boolean> {
    if (!queue.isShared || !isOfMachine(error) || stageOf(run.state)?.queueName !== 'process') return false;
    noteMachine(false, error);
    if (!(await store.canBeDone(run, { besides: worker }))) return false;
    const triedHere = (await store.stages(run.id)).filter(
      (stage) => stage.worker === worker && stage.state === run.state,
    );
    // A run that is too large for every machine must not move between workers forever.
    if (triedHere.length > maxTriesHere) return false;
    await folders.tidyRun(run.id).catch(() => {});
    await store.giveBack(run);
    leave(run.id, entry);
    await queue.add([{ runId: run.id, queueName: 'process' }]);
    options.onPassedOn?.();
    return true;
  }

  function noteMachine(isWellNow: boolean, error?: unknown): void {
    if (isWell && !isWellNow)
      options.log.warn(
        { ...(error !== undefined && { err: error }) },
        'this machine cannot run steps, so other workers get its runs',
      );
    if (!isWell && isWellNow) options.log.info({}, 'this machine can run steps again');
    isWell = isWellNow;
  }

  /** Takes runs whose step no worker has, so that they fail with that reason. */
  async function takeStranded(): Promise<void> {
    const forMs = settings.strandedAfterMs ?? strandedAfterMs;
    // After an outage of all workers, those with the step need time to start.
    if (!lease.mayJudgeOthers || lease.now() - heldSinceMs < forMs) return;
    for (const runId of await store.listStranded(forMs)) {
      if (stopping) return;
      await takeRun(runId, 'process');
    }
  }

  /**
   * Excuses a failure by the disk space of other runs, once for each run that ends: its space makes the next turn better.
   * Returns true if the failure uses up no patience.
   */
  function excuseCrowding(error: unknown, entry: ActiveRun): boolean {
    if (!(error instanceof KitError) || error.code !== 'work_disk_full' || entry.endedBefore === ended) return false;
    entry.endedBefore = ended;
    return true;
  }

  async function findRun(id: string): Promise<Run> {
    const run = await store.find(id);
    if (!run) throw new KitError('run_not_found', `there is no run ${id}`, { status: 404 });
    return run;
  }

  async function start(launchId: string, wanted: NewRun, signal?: AbortSignal): Promise<Run> {
    if (stopping)
      throw new KitError('shutting_down', 'the app is about to stop and takes no new runs; try again in a moment', {
        status: 503,
        data: { isForUser: true },
      });
    return takeIn(launchId, wanted, signal);
  }

  /** Queues the runs that no living worker has. Returns how many there were. */
  async function recover(forMs: number): Promise<number> {
    if (!lease.mayJudgeOthers) return 0;
    const orphans = (await store.listOrphans(worker, forMs)).filter(({ id }) => !activeRuns.has(id));
    if (orphans.length > 0) await queue.add(orphans.map(queuedRun));
    return orphans.length;
  }

  /** Renews the tokens of runs that nobody has; a worker that has a run looks after its token itself. */
  async function keepTokensAlive(): Promise<void> {
    for (const launchId of await store.listWaitingLaunches()) {
      if (stopped.signal.aborted) return;
      await options
        .callsOf(launchId)
        .keepAlive({ signal: stopped.signal })
        .catch((error: unknown) =>
          options.log.warn({ err: error, launchId }, 'could not renew the token of a waiting run this time'),
        );
    }
  }

  /** Renews this worker's lease, lets go of runs that it no longer has, and takes up runs that it has but does not drive. */
  async function renewLease(): Promise<void> {
    try {
      await renew();
    } catch (error) {
      if (!isAway(error)) throw error;
    }
  }

  async function renew(): Promise<void> {
    const fromMs = lease.now();
    if (queue.isShared && !stopping && (await store.isNewerThan(newestMigration))) {
      options.onOutdated?.();
      void stop().catch((error: unknown) => options.log.error({ err: error }, 'could not hand over all runs'));
      return;
    }
    // Only a write proves that the database works again, because reads also work on a full disk.
    if (queue.isShared || outage.isOn) ({ rests } = await store.renewLease(worker, can));
    const before = [...activeRuns].flatMap(([id, entry]) =>
      entry.claim > 0 ? [{ id, entry, claim: entry.claim }] : [],
    );
    const held = await store.heldBy(worker);
    for (const { id, entry, claim } of before) {
      if (entry.claim === claim && held.get(id) !== claim)
        entry.abort.abort(new Released('another process ended the run, or took it'));
    }
    if (lease.isOver) options.onLeaseLost?.();
    if (lease.isOver || heldSinceMs === Infinity) heldSinceMs = fromMs;
    lease.renewed(fromMs);
    outage.ended();
    const idle = [...held.keys()].filter((id) => !activeRuns.has(id));
    if (idle.length === 0 || (stopping && !queue.isShared)) return;
    // A worker that takes no more runs gives back those that it holds but does not drive.
    if (stopping || rests) for (const id of idle) await store.giveBack({ id, claim: held.get(id) ?? 0 });
    await queue.add(idle.map((runId) => ({ runId, queueName: 'wait' })));
  }

  return {
    start,
    async retry(run, signal) {
      if (!isFinal(run.state)) {
        throw new KitError('run_not_ended', `run ${run.id} is ${run.state}; cancel it first, or wait for its end`, {
          status: 409,
        });
      }
      return start(run.launchId, run, signal);
    },
    async cancel(run) {
      if (isFinal(run.state)) throw new IllegalTransitionError(run.id, run.state, 'CANCELLED');
      const cancelled = await commitCancel(run);
      // The worker that drives it lets go: at once if that is this one, else when it next checks which runs it has.
      const entry = activeRuns.get(run.id);
      if (!entry) options.onEnded?.('CANCELLED');
      entry?.abort.abort(new Cancelled('cancelled by the user'));
      await entry?.done.catch(() => {});
      return cancelled;
    },
    progress: (runId) => progress.get(runId),
    canBeDone: async (step) => !queue.isShared || store.canBeDone(step),
    progressChangesOf: (launchId) => progress.changesOf(launchId),
    async work() {
      await folders.tidy();
      await renew();
      if (stopping) return 0;
      await queue.work({ take, capacity, log: options.log });
      // oxlint-disable-next-line typescript/no-unnecessary-condition -- `stop` may run during an await
      if (stopping) return 0;
      repeats.every(renewEveryMs, 'could not renew the lease', async () => lease.isDue && renewLease());
      repeats.every(recoverEveryMs, 'could not look for overlooked runs', () => recover(overlookedAfterMs));
      if (queue.isShared) {
        repeats.every(keepAliveEveryMs, 'could not keep the tokens of waiting runs alive', keepTokensAlive);
        repeats.every(
          Math.min(strandedEveryMs, (settings.strandedAfterMs ?? strandedAfterMs) / 4),
          'could not look for runs that no worker can do',
          takeStranded,
        );
        repeats.every(machineEveryMs, 'could not check this machine', async () => {
          if (!isWell) noteMachine((await options.isMachineWell?.()) ?? true);
        });
      }
      repeats.every(tidyEveryMs, 'could not remove abandoned work folders and workers', async () => {
        await folders.tidy();
        await store.forgetWorkers(forgottenAfterMs);
      });
      return recover(0);
    },
    stop,
  };

  function stop(): Promise<void> {
    return (ending ??= endWork());

    async function endWork(): Promise<void> {
      stopping = true;
      if (settings.drainMs) await drain(settings.drainMs);
      stopped.abort(new Released('the worker is stopping'));
      const ended = repeats.stop();
      for (const { abort } of activeRuns.values()) abort.abort(new Released('the worker is stopping'));
      await queue.stop();
      await Promise.race([ended, sleep(releaseWithinMs, undefined, { ref: false })]);
      await Promise.all(underWay);
      await Promise.race([release(), sleep(releaseWithinMs, undefined, { ref: false })]);
      await queue.close();
      await progress.close();
    }
  }

  /** Hands over runs that wait, and lets steps and uploads end within `drainMs`. Resolves early if nothing is left. */
  async function drain(drainMs: number): Promise<void> {
    const working: Promise<void>[] = [];
    for (const [id, entry] of activeRuns) {
      if (stageOf(entry.state)?.queueName !== 'wait') {
        working.push(entry.done);
        continue;
      }
      entry.abort.abort(new Released('the worker is stopping'));
      if (!queue.isShared) continue;
      void entry.done
        .then(() => store.giveBack({ id, claim: entry.claim }))
        .then(() => queue.add([{ runId: id, queueName: 'wait' }]))
        .catch((error: unknown) => options.log.warn({ err: error, runId: id }, 'could not hand over a run'));
    }
    if (working.length > 0)
      options.log.info({ runs: working.length, drainMs }, 'the worker stops after its steps and uploads');
    const late = new AbortController();
    await Promise.race([
      Promise.allSettled(working),
      sleep(drainMs, undefined, { signal: late.signal }).catch(() => {}),
    ]);
    late.abort();
  }

  /** Other workers then go on at once. Without the database they find the runs when the lease is over. */
  async function release(): Promise<void> {
    try {
      const released = await store.release(worker);
      if (queue.isShared && released.length > 0) await queue.add(released.map(queuedRun));
    } catch (error) {
      options.log.warn({ err: error }, 'could not hand over runs to other workers');
    }
  }

  /** Only a commit cancels a run. Its worker may move it meanwhile: then this tries once more. */
  async function commitCancel(run: Run): Promise<Run> {
    try {
      return await store.transition(run, 'CANCELLED');
    } catch (error) {
      if (error instanceof DatabaseUnavailableError) lease.doubt();
      const current = await findRun(run.id);
      // It was committed, and the answer was lost.
      if (error instanceof DatabaseUnavailableError && current.state === 'CANCELLED') return current;
      const hasMoved = current.state !== run.state || current.claim !== run.claim;
      if (!(error instanceof IllegalTransitionError) || isFinal(current.state) || !hasMoved) throw error;
      return commitCancel(current);
    }
  }

  function capacity(queueName: QueueName): number {
    if (stopping || rests) return 0;
    if (queueName === 'wait') return maxActive - activeRuns.size;
    if (queue.isShared && (!isWell || lease.now() < restUntilMs)) return 0;
    const inSteps = [...activeRuns.values()].filter(
      (activeRun) => activeRun.queueName === 'process' && activeRun.state !== 'UPLOADING',
    ).length;
    return settings.stepConcurrency - inSteps;
  }
}
