import { setTimeout as sleep } from 'node:timers/promises';
import { KitError } from '../../contract/index.ts';
import { abortableSleep, PlatformError, type LaunchCalls } from '../../platform-client/index.ts';
import { ChildJobError, ReportedJobError } from '../../child/index.ts';
import { DatabaseUnavailableError } from '../database-unavailable.ts';
import { describeFailure, failureKindOf, isSessionOver } from './run-failure.ts';
import { Repeats } from './repeats.ts';
import type { CheckedStep } from '../processing/run-check.ts';
import { RunReleased } from '../processing/step-executor.ts';
import { createRunIntake, type NewRun, type RunIntakeOptions } from './run-intake.ts';
import { Outage } from './outage.ts';
import { noProgress, type ProgressBoard, type RunProgress } from './run-progress.ts';
import { NotTakenError, type QueueName, type QueuedRun } from './run-queue.ts';
import { newestMigration } from '../migrations.ts';
import { IllegalTransitionError, isFinal, type RunState } from './run-state.ts';
import {
  fits,
  NoFittingWorkerError,
  placeRun,
  unlimitedPlace,
  type PlacementSettings,
  type WorkerPlace,
} from './placement.ts';
import type { Run, RunToPlace, RunUsage } from './run.ts';
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
  /** Throws `NoFittingWorkerError` for a run that the app would refuse, as `start` does. */
  requirePlace(checked: Pick<CheckedStep, 'step' | 'estimate'>): void;
  /** Current progress of the run, in any process. */
  progress(run: Pick<Run, 'id' | 'state'>): Promise<RunProgress>;
  /** True if a living worker has the step and what the run needs. Always true for an app with one process. */
  canBeDone(run: RunToPlace): Promise<boolean>;
  /** A number that changes whenever the progress of the launch's runs has changed and the launch itself does not say so. */
  progressChangesOf(launchId: string): number;
  /** Starts to take runs, including those that an earlier process left unfinished, and returns how many those were. */
  work(): Promise<number>;
  /** Stops where each run is, for a later process; resolves when nothing runs any more. */
  stop(): Promise<void>;
}

export interface RunEngineOptions extends Omit<RunIntakeOptions, 'placement'> {
  readonly progress: ProgressBoard;
  /** Identifies this process among the workers, and says whether its lease holds. */
  readonly lease: WorkerLease;
  readonly callsOf: (launchId: string) => LaunchCalls;
  readonly settings: RunIntakeOptions['settings'] &
    StageContext['settings'] & {
      readonly stepConcurrency: number;
      /** Memory limit of a step, in bytes. Default: none. */
      readonly stepMemoryBytes?: number;
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
  /** Sizes of this worker, for one run. Its memory is also the limit for all runs that it processes at once, unless `isElastic`. Default: unlimited. */
  readonly place?: WorkerPlace;
  /** True if an engine outside this machine gives runs their room. Default false. */
  readonly isElastic?: boolean;
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
  /** Called with what the step of a run has used. */
  readonly onUsage?: (usage: RunUsage) => void;
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
/** Attempts of one run whose executor may be lost after it has begun. */
const maxLostExecutors = 20;
const strandedAfterMs = 10 * 60_000;
const strandedEveryMs = 30_000;
/** Pause before another attempt, after something outside stopped a run, and the longest pause while an engine refuses it. */
const tryAgainMs = 1_000;
const maxPauseMs = 60_000;
/** Interval at which a worker renews the tokens of launches whose approved runs wait for a worker. */
const keepAliveEveryMs = 60_000;
/** Maximum wait, when stopping, for a database that is away. Other workers find the runs anyway. */
const releaseWithinMs = 3_000;

/** True for a failure of an engine, or of an executor elsewhere. */
const isOfExecutor = (error: unknown): error is KitError =>
  error instanceof KitError && error.code.startsWith('executor_');

class Cancelled extends Error {}

interface ActiveRun {
  readonly queueName: QueueName;
  readonly abort: AbortController;
  /** 0 until it is known. */
  claim: number;
  /** Null until it is known. */
  launchId: string | null;
  state: RunState;
  needsMemoryBytes: number;
  /** Pause before the next attempt. It grows while an engine refuses the run. */
  pauseMs: number;
  readonly patience: Patience;
  /** Number of runs that had ended when the work folders of others left this run no room. */
  endedBefore: number;
  done: Promise<void>;
}

/** Drives each run from state to state, every state committed before what it allows is done. */
export function createRunEngine(options: RunEngineOptions): RunEngine {
  return new Engine(options);
}

class Engine implements RunEngine {
  readonly #options: RunEngineOptions;
  readonly #store: RunEngineOptions['store'];
  readonly #queue: RunEngineOptions['queue'];
  readonly #progress: ProgressBoard;
  readonly #settings: RunEngineOptions['settings'];
  readonly #now: () => number;
  readonly #lease: WorkerLease;
  readonly #folders: AttemptFolders;
  readonly #worker: string;
  readonly #activeRuns = new Map<string, ActiveRun>();
  /** Includes runs that were handed over. */
  readonly #underWay = new Set<Promise<void>>();
  // An outage of the database has its own lines.
  readonly #repeats = new Repeats((error, what) => {
    if (!this.#isAway(error)) this.#options.log.error({ err: error }, what);
  });
  #stopping = false;
  #ending: Promise<void> | null = null;
  /** Number of runs of this worker that have ended, and freed their folders. */
  #ended = 0;
  /** Start of the current lease without a gap. */
  #heldSinceMs = Infinity;
  /** False while this machine cannot run steps. */
  #isWell = true;
  /** True if an operator drains this worker. */
  #rests = false;
  /** Time until which this worker leaves the queue `process` to others. */
  #restUntilMs = -Infinity;
  /** The steps of this worker, as `id@version`. */
  readonly #can: readonly string[];
  readonly #place: WorkerPlace;
  readonly #placement: PlacementSettings;
  readonly #stopped = new AbortController();
  readonly #outage: Outage;
  readonly #takeIn: ReturnType<typeof createRunIntake>;

  constructor(options: RunEngineOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#queue = options.queue;
    this.#progress = options.progress;
    this.#settings = options.settings;
    this.#now = options.now;
    this.#lease = options.lease;
    this.#folders = options.folders;
    this.#worker = options.lease.worker;
    this.#place = options.place ?? unlimitedPlace;
    this.#can = options.steps.steps.map(({ id, version }) => `${id}@${version}`);
    this.#outage = new Outage(options.log, () => this.#lease.now());
    this.#placement = {
      ...{ isShared: options.queue.isShared, place: this.#place },
      limitBytes: options.settings.stepMemoryBytes ?? Infinity,
    };
    this.#takeIn = createRunIntake({ ...options, placement: this.#placement });
  }

  #trace<T>(run: Run, work: () => Promise<T>): Promise<T> {
    return this.#options.traceStage ? this.#options.traceStage(run, work) : work();
  }

  /** Returns true if the database is away. The lease is then renewed at once, and runs wait for that renewal. */
  #isAway(error: unknown): boolean {
    if (!this.#outage.isCause(error)) return false;
    this.#lease.doubt();
    return true;
  }

  /** Takes a run from the queue: claims it for this worker, then drives it. */
  async #take({ runId, queueName }: Pick<QueuedRun, 'runId' | 'queueName'>): Promise<void> {
    if (this.#stopping) throw new NotTakenError('the worker is stopping');
    try {
      if (this.#queue.isShared && queueName === 'process') await this.#takeNext();
      else await this.#takeRun(runId, queueName);
    } catch (error) {
      throw this.#isAway(error) ? new NotTakenError('the database is away', { cause: error }) : error;
    }
  }

  /** Takes the next run in turn whose step this worker has. */
  async #takeNext(): Promise<void> {
    const fromMs = this.#lease.now();
    const claimed = await this.#store.claimNext(this.#worker, this.#can, {
      ...this.#place,
      freeMemoryBytes: this.#freeMemoryBytes(),
    });
    const run = claimed && (await this.#confirmed(claimed, fromMs));
    if (run && this.#stopping) {
      await this.#store.giveBack(run);
      throw new NotTakenError('the worker is stopping');
    }
    if (run) return this.#begin(run, this.#newEntry('process'));
    if (claimed || !(await this.#store.hasWaiting())) return;
    this.#restUntilMs = this.#lease.now() + restMs;
    throw new NotTakenError('this worker can process none of the waiting runs');
  }

  /** Memory that the runs in steps leave. Null: as much as a run needs. A run may always use the memory of a worker that has no other. */
  #freeMemoryBytes(): number | null {
    const inSteps = this.#inSteps();
    if (this.#options.isElastic || this.#place.memoryBytes === null || inSteps.length === 0) return null;
    return inSteps.reduce((left, { needsMemoryBytes }) => left - needsMemoryBytes, this.#place.memoryBytes);
  }

  /** Runs that take a place of this worker. */
  #inSteps(): ActiveRun[] {
    return [...this.#activeRuns.values()].filter(
      ({ queueName, state }) => queueName === 'process' && state !== 'UPLOADING',
    );
  }

  async #takeRun(runId: string, queueName: QueueName): Promise<void> {
    // This worker already drives it: a second attempt beside the first would only take its work away.
    if (this.#activeRuns.has(runId)) return;
    const entry = this.#newEntry(queueName);
    this.#activeRuns.set(runId, entry);
    try {
      const run = await this.#claim(runId);
      if (run === null) return this.#leave(runId, entry);
      this.#begin(run, entry);
    } catch (error) {
      this.#leave(runId, entry);
      throw error;
    }
  }

  #newEntry(queueName: QueueName): ActiveRun {
    return {
      queueName,
      abort: new AbortController(),
      claim: 0,
      launchId: null,
      state: 'CREATED',
      needsMemoryBytes: 0,
      pauseMs: tryAgainMs,
      patience: new Patience(this.#settings.platformPatienceMs, this.#now),
      endedBefore: -1,
      done: Promise.resolve(),
    };
  }

  #begin(run: Run, entry: ActiveRun): void {
    const earlier = this.#activeRuns.get(run.id);
    if (earlier && earlier !== entry) earlier.abort.abort(new RunReleased('the run was taken again'));
    this.#activeRuns.set(run.id, entry);
    entry.claim = run.claim;
    entry.launchId = run.launchId;
    entry.state = run.state;
    entry.needsMemoryBytes = run.needs.memoryBytes;
    entry.done = this.#drive(run, entry).finally(() => {
      this.#leave(run.id, entry);
      this.#underWay.delete(entry.done);
    });
    this.#underWay.add(entry.done);
  }

  async #claim(runId: string): Promise<Run | null> {
    const fromMs = this.#lease.now();
    const run = await this.#store.claim(runId, this.#worker);
    return run && this.#confirmed(run, fromMs);
  }

  /** Checks a claim that began at `fromMs`. Null if the response was late and the run is no longer this worker's. */
  async #confirmed(run: Run, fromMs: number): Promise<Run | null> {
    if (this.#lease.now() - fromMs < lateClaimMs) return run;
    const current = await this.#store.find(run.id);
    return current && current.claim === run.claim && !isFinal(current.state) ? run : null;
  }

  /** After a hand-over from queue to queue this worker may already have the run again. */
  #leave(runId: string, entry: ActiveRun): void {
    if (this.#activeRuns.get(runId) !== entry) return;
    this.#activeRuns.delete(runId);
    if (entry.launchId !== null) this.#progress.clear({ id: runId, launchId: entry.launchId });
  }

  /** Drives a run as far as this worker can, however often something outside interrupts it. */
  async #drive(first: Run, entry: ActiveRun): Promise<void> {
    for (let run: Run | null = first; run !== null; run = await this.#claimAgain(run.id, entry)) {
      try {
        return await this.#runStages(run, entry);
      } catch (error) {
        // Neither committed nor failed, as when the database is away: the run stays as it is.
        if (isOfExecutor(error)) this.#postpone(run, error, entry);
        else if (!this.#isAway(error))
          this.#options.log.error({ err: error, runId: run.id }, 'could not take the run further; trying again');
      }
    }
  }

  /** Waits longer after each failure of an engine or an executor, and shows it. */
  #postpone(run: Run, error: KitError, entry: ActiveRun): void {
    entry.pauseMs = error.data['hasBegun'] === true ? tryAgainMs : Math.min(2 * entry.pauseMs, maxPauseMs);
    const { code, message, data } = error;
    this.#options.log.warn(
      { runId: run.id, code, reason: message, ...data },
      'an executor failed; the run gets another attempt',
    );
    // `run` has the state at the claim, which the stages may have changed since.
    const current = { ...run, state: entry.state };
    this.#progress.report(current, { ...noProgress, note: `${message}; trying again in ${entry.pauseMs / 1_000} s` });
  }

  /** Claims the run for another attempt. Null if it has ended, or this worker no longer has it. */
  async #claimAgain(runId: string, entry: ActiveRun): Promise<Run | null> {
    // After a hand-over the run no longer belongs to this entry. If a hand-over failed, `recover` finds the run.
    while (!entry.abort.signal.aborted && this.#activeRuns.get(runId) === entry) {
      try {
        await abortableSleep(entry.pauseMs, entry.abort.signal);
        await this.#outage.over(entry.abort.signal);
        if (this.#activeRuns.get(runId) !== entry) return null;
        const run = await this.#claim(runId);
        entry.claim = run?.claim ?? 0;
        return run;
      } catch (error) {
        // oxlint-disable-next-line typescript/no-unnecessary-condition -- it may be aborted during an await
        if (!entry.abort.signal.aborted && !this.#isAway(error))
          this.#options.log.warn({ err: error, runId }, 'could not claim the run; trying again');
      }
    }
    return null;
  }

  async #runStages(claimed: Run, entry: ActiveRun): Promise<void> {
    let run = claimed;
    const runId = run.id;
    const { patience } = entry;
    const { signal } = entry.abort;
    const log = this.#options.log.child({ runId });
    const workFolder = this.#folders.of(runId, run.claim);
    const report = (now: RunProgress) => this.#progress.report(run, now);
    const calling = { patience, now: this.#now, signal, report, log };
    const context: StageContext = {
      ...calling,
      store: this.#store,
      steps: this.#options.steps,
      ownerOf: this.#options.ownerOf,
      settings: this.#options.settings,
      folders: this.#folders,
      calls: patientCalls(this.#options.callsOf(run.launchId), calling),
      workFolder,
      madeHere: { identities: new Map() },
      onPollInterval: this.#options.onPollInterval ?? (() => {}),
      onUsage: this.#options.onUsage ?? (() => {}),
      isAway: (error) => this.#isAway(error),
      untilBack: () => this.#outage.over(signal),
    };
    try {
      for (let stage = stageOf(run.state); stage; stage = stageOf(run.state)) {
        if (this.#queue.isShared && stage.queueName !== null && stage.queueName !== entry.queueName)
          return await this.#handOver(run, stage.queueName, entry);
        entry.state = run.state;
        report(noProgress);
        signal.throwIfAborted();
        if (stage.queueName === 'process' && !fits(run.needs, this.#place)) throw new NoFittingWorkerError(run.needs);
        const [{ work }, current, from]: [typeof stage, Run, number] = [stage, run, performance.now()];
        run = await this.#trace(current, () => work(current, context));
        patience.progressed();
        this.#options.onStage?.(current.state, (performance.now() - from) / 1000);
        log.info({ state: run.state, operationId: run.operationId }, 'run reached a state');
      }
    } catch (error) {
      // It may have been cancelled elsewhere. Whoever stops has no time to look: the next start does.
      if (signal.reason instanceof RunReleased) return this.#stopping ? undefined : this.#folders.tidyRun(runId);
      const after = await this.#end(run, error, entry, log);
      // `forget-user` has removed the run.
      if (after === null) return this.#folders.tidyRun(runId);
      run = after;
    }
    if (!isFinal(run.state)) return;
    this.#options.onEnded?.(run.state);
    await this.#folders.tidyRun(runId);
    this.#ended += 1;
  }

  /** Moves the run from this queue to the queue of its next stage. */
  async #handOver(run: Run, queueName: QueueName, entry: ActiveRun): Promise<void> {
    await (queueName === 'process' ? this.#store.handOver(run) : this.#store.giveBack(run));
    this.#leave(run.id, entry);
    await this.#queue.add([{ runId: run.id, queueName }]);
  }

  /** Ends a run whose stage threw, in the state that it has by now; rethrows errors of the outside world that may pass. */
  async #end({ id, claim }: Run, error: unknown, entry: ActiveRun, log: RunEngineOptions['log']): Promise<Run | null> {
    const run = await this.#store.find(id);
    if (run === null) return null;
    // Either the run has ended or another worker has it by now, so this error is no failure of the run.
    if (isFinal(run.state) || run.claim !== claim) return run;
    if (await this.#giveMoreMemory(run, error, entry)) return run;
    if (await this.#passOn(run, error, entry)) return run;
    if (error instanceof ChildJobError && error.data['hasBegun'] === true && (await this.#isWorthAnother(id)))
      entry.patience.progressed();
    const failure = describeFailure(error, { withStack: this.#settings.showDefects ?? false });
    const kind = failureKindOf(error);
    // Waits for a database without limit: while it is away, nothing can be committed either. Calls of the platform have used up their patience when they throw.
    if (
      error instanceof DatabaseUnavailableError ||
      (kind === 'transient' &&
        !(error instanceof PlatformError) &&
        (this.#excuseCrowding(error, entry) || !entry.patience.machineFailed()))
    )
      throw error;
    if (isSessionOver(error)) await this.#options.onSessionOver?.(run.launchId);
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
    const failed = await this.#store.transition(run, 'FAILED', { failure });
    this.#options.onFailed?.(failure.code);
    return failed;
  }

  /** True for a run that has lost few executors which had begun. Such a loss uses up no patience, because a long step may meet several. */
  async #isWorthAnother(id: string): Promise<boolean> {
    const attempts = (await this.#store.stages(id)).filter(({ state }) => state === 'PROCESSING');
    return attempts.length <= maxLostExecutors;
  }

  /** A step that ran out of memory gets one more attempt with twice the memory, if a worker has that. True if it does. */
  async #giveMoreMemory(run: Run, error: unknown, entry: ActiveRun): Promise<boolean> {
    if (!(error instanceof ChildJobError) || error.code !== 'job_memory_exceeded') return false;
    const limitBytes = Number(error.data['limit']);
    if (run.memoryLimitBytes !== null || !Number.isSafeInteger(limitBytes)) return false;
    const memoryLimitBytes = 2 * limitBytes;
    const needs = { ...run.needs, memoryBytes: Math.max(run.needs.memoryBytes, memoryLimitBytes) };
    const canBeDone =
      fits(needs, this.#place) || (this.#queue.isShared && (await this.#store.canBeDone({ ...run, needs })));
    if (!canBeDone) return false;
    const withMore = await this.#store.record(run, { memoryLimitBytes, needs });
    this.#options.log.warn(
      { runId: run.id, limitBytes, memoryLimitBytes },
      'a step ran out of memory and gets twice as much',
    );
    await this.#leaveToQueue(withMore, entry);
    return true;
  }

  /** Gives the run back, so that this worker or another takes it again. */
  async #leaveToQueue(run: Run, entry: ActiveRun): Promise<void> {
    await this.#folders.tidyRun(run.id).catch(() => {});
    await this.#store.giveBack(run);
    this.#leave(run.id, entry);
    await this.#queue.add([{ runId: run.id, queueName: 'process' }]);
  }

  /** True if this machine caused the error, for example by a full disk. False for errors of the platform, the database or the run. */
  #isOfMachine(error: unknown): boolean {
    return (
      failureKindOf(error) === 'transient' &&
      !(error instanceof PlatformError) &&
      !(error instanceof DatabaseUnavailableError) &&
      !(error instanceof KitError && (error.code === 'work_disk_full' || isOfExecutor(error)))
    );
  }

  /** If this machine cannot process the run, gives the run back for another worker, and takes no runs until the machine has recovered. */
  async #passOn(run: Run, error: unknown, entry: ActiveRun): Promise<boolean> {
    if (!this.#queue.isShared || !this.#isOfMachine(error) || stageOf(run.state)?.queueName !== 'process') return false;
    this.#noteMachine(false, error);
    if (!(await this.#store.canBeDone(run, { besides: this.#worker }))) return false;
    const triedHere = (await this.#store.stages(run.id)).filter(
      (stage) => stage.worker === this.#worker && stage.state === run.state,
    );
    // A run that is too large for every machine must not move between workers forever.
    if (triedHere.length > maxTriesHere) return false;
    await this.#leaveToQueue(run, entry);
    this.#options.onPassedOn?.();
    return true;
  }

  #noteMachine(isWellNow: boolean, error?: unknown): void {
    if (this.#isWell && !isWellNow)
      this.#options.log.warn(
        { ...(error !== undefined && { err: error }) },
        'this machine cannot run steps, so other workers get its runs',
      );
    if (!this.#isWell && isWellNow) this.#options.log.info({}, 'this machine can run steps again');
    this.#isWell = isWellNow;
  }

  /** Takes runs whose step no worker has, so that they fail with that reason. */
  async #takeStranded(): Promise<void> {
    const forMs = this.#settings.strandedAfterMs ?? strandedAfterMs;
    // After an outage of all workers, those with the step need time to start.
    if (!this.#lease.mayJudgeOthers || this.#lease.now() - this.#heldSinceMs < forMs) return;
    for (const runId of await this.#store.listStranded(forMs)) {
      if (this.#stopping) return;
      await this.#takeRun(runId, 'process');
    }
  }

  /**
   * Excuses a failure by the disk space of other runs, once for each run that ends: its space makes the next turn better.
   * Returns true if the failure uses up no patience.
   */
  #excuseCrowding(error: unknown, entry: ActiveRun): boolean {
    if (!(error instanceof KitError) || error.code !== 'work_disk_full' || entry.endedBefore === this.#ended)
      return false;
    entry.endedBefore = this.#ended;
    return true;
  }

  async #findRun(id: string): Promise<Run> {
    const run = await this.#store.find(id);
    if (!run) throw new KitError('run_not_found', `there is no run ${id}`, { status: 404 });
    return run;
  }

  async start(launchId: string, wanted: NewRun, signal?: AbortSignal): Promise<Run> {
    if (this.#stopping)
      throw new KitError('shutting_down', 'the app is about to stop and takes no new runs; try again in a moment', {
        status: 503,
        data: { isForUser: true },
      });
    return this.#takeIn(launchId, wanted, signal);
  }

  /** Queues the runs that no living worker has. Returns how many there were. */
  async #recover(forMs: number): Promise<number> {
    if (!this.#lease.mayJudgeOthers) return 0;
    const orphans = (await this.#store.listOrphans(this.#worker, forMs)).filter(({ id }) => !this.#activeRuns.has(id));
    if (orphans.length > 0) await this.#queue.add(orphans.map(queuedRun));
    return orphans.length;
  }

  /** Renews the tokens of runs that nobody has; a worker that has a run looks after its token itself. */
  async #keepTokensAlive(): Promise<void> {
    for (const launchId of await this.#store.listWaitingLaunches()) {
      if (this.#stopped.signal.aborted) return;
      await this.#options
        .callsOf(launchId)
        .keepAlive({ signal: this.#stopped.signal })
        .catch((error: unknown) =>
          this.#options.log.warn({ err: error, launchId }, 'could not renew the token of a waiting run this time'),
        );
    }
  }

  /** Renews this worker's lease, lets go of runs that it no longer has, and takes up runs that it has but does not drive. */
  async #renewLease(): Promise<void> {
    try {
      await this.#renew();
    } catch (error) {
      if (!this.#isAway(error)) throw error;
    }
  }

  async #renew(): Promise<void> {
    const fromMs = this.#lease.now();
    if (this.#queue.isShared && !this.#stopping && (await this.#store.isNewerThan(newestMigration))) {
      this.#options.onOutdated?.();
      void this.stop().catch((error: unknown) =>
        this.#options.log.error({ err: error }, 'could not hand over all runs'),
      );
      return;
    }
    // Only a write proves that the database works again, because reads also work on a full disk.
    if (this.#queue.isShared || this.#outage.isOn)
      ({ rests: this.#rests } = await this.#store.renewLease(this.#worker, this.#can, this.#place));
    const before = [...this.#activeRuns].flatMap(([id, entry]) =>
      entry.claim > 0 ? [{ id, entry, claim: entry.claim }] : [],
    );
    const held = await this.#store.heldBy(this.#worker);
    for (const { id, entry, claim } of before) {
      if (entry.claim === claim && held.get(id) !== claim)
        entry.abort.abort(new RunReleased('another process ended the run, or took it'));
    }
    if (this.#lease.isOver) this.#options.onLeaseLost?.();
    if (this.#lease.isOver || this.#heldSinceMs === Infinity) this.#heldSinceMs = fromMs;
    this.#lease.renewed(fromMs);
    this.#outage.ended();
    const idle = [...held.keys()].filter((id) => !this.#activeRuns.has(id));
    if (idle.length === 0 || (this.#stopping && !this.#queue.isShared)) return;
    // A worker that takes no more runs gives back those that it holds but does not drive.
    if (this.#stopping || this.#rests)
      for (const id of idle) await this.#store.giveBack({ id, claim: held.get(id) ?? 0 });
    await this.#queue.add(idle.map((runId) => ({ runId, queueName: 'wait' })));
  }

  requirePlace(checked: Pick<CheckedStep, 'step' | 'estimate'>): void {
    placeRun(checked, this.#placement);
  }

  async retry(run: Run, signal?: AbortSignal): Promise<Run> {
    if (!isFinal(run.state)) {
      throw new KitError('run_not_ended', `run ${run.id} is ${run.state}; cancel it first, or wait for its end`, {
        status: 409,
      });
    }
    return this.start(run.launchId, run, signal);
  }

  async cancel(run: Run): Promise<Run> {
    if (isFinal(run.state)) throw new IllegalTransitionError(run.id, run.state, 'CANCELLED');
    const cancelled = await this.#commitCancel(run);
    // The worker that drives it lets go: at once if that is this one, else when it next checks which runs it has.
    const entry = this.#activeRuns.get(run.id);
    if (!entry) this.#options.onEnded?.('CANCELLED');
    entry?.abort.abort(new Cancelled('cancelled by the user'));
    await entry?.done.catch(() => {});
    return cancelled;
  }

  progress(run: Pick<Run, 'id' | 'state'>): Promise<RunProgress> {
    return this.#progress.get(run);
  }

  async canBeDone(run: RunToPlace): Promise<boolean> {
    return !this.#queue.isShared || this.#store.canBeDone(run);
  }

  progressChangesOf(launchId: string): number {
    return this.#progress.changesOf(launchId);
  }

  async work(): Promise<number> {
    await this.#folders.tidy();
    await this.#renew();
    if (this.#stopping) return 0;
    await this.#queue.work({
      take: (queued) => this.#take(queued),
      capacity: (queueName) => this.#capacity(queueName),
      log: this.#options.log,
    });
    // oxlint-disable-next-line typescript/no-unnecessary-condition -- `stop` may run during an await
    if (this.#stopping) return 0;
    this.#repeats.every(renewEveryMs, 'could not renew the lease', async () => this.#lease.isDue && this.#renewLease());
    this.#repeats.every(recoverEveryMs, 'could not look for overlooked runs', () => this.#recover(overlookedAfterMs));
    if (this.#queue.isShared) {
      this.#repeats.every(keepAliveEveryMs, 'could not keep the tokens of waiting runs alive', () =>
        this.#keepTokensAlive(),
      );
      this.#repeats.every(
        Math.min(strandedEveryMs, (this.#settings.strandedAfterMs ?? strandedAfterMs) / 4),
        'could not look for runs that no worker can do',
        () => this.#takeStranded(),
      );
      this.#repeats.every(machineEveryMs, 'could not check this machine', async () => {
        if (!this.#isWell) this.#noteMachine((await this.#options.isMachineWell?.()) ?? true);
      });
    }
    this.#repeats.every(tidyEveryMs, 'could not remove abandoned work folders and workers', async () => {
      await this.#folders.tidy();
      await this.#store.forgetWorkers(forgottenAfterMs);
    });
    return this.#recover(0);
  }

  stop(): Promise<void> {
    return (this.#ending ??= this.#endWork());
  }

  async #endWork(): Promise<void> {
    this.#stopping = true;
    if (this.#settings.drainMs) await this.#drain(this.#settings.drainMs);
    this.#stopped.abort(new RunReleased('the worker is stopping'));
    const ended = this.#repeats.stop();
    for (const { abort } of this.#activeRuns.values()) abort.abort(new RunReleased('the worker is stopping'));
    await this.#queue.stop();
    await Promise.race([ended, sleep(releaseWithinMs, undefined, { ref: false })]);
    await Promise.all(this.#underWay);
    await Promise.race([this.#release(), sleep(releaseWithinMs, undefined, { ref: false })]);
    await this.#queue.close();
    await this.#progress.close();
  }

  /** Hands over runs that wait, and lets steps and uploads end within `drainMs`. Resolves early if nothing is left. */
  async #drain(drainMs: number): Promise<void> {
    const working: Promise<void>[] = [];
    for (const [id, entry] of this.#activeRuns) {
      if (stageOf(entry.state)?.queueName !== 'wait') {
        working.push(entry.done);
        continue;
      }
      entry.abort.abort(new RunReleased('the worker is stopping'));
      if (!this.#queue.isShared) continue;
      void entry.done
        .then(() => this.#store.giveBack({ id, claim: entry.claim }))
        .then(() => this.#queue.add([{ runId: id, queueName: 'wait' }]))
        .catch((error: unknown) => this.#options.log.warn({ err: error, runId: id }, 'could not hand over a run'));
    }
    if (working.length > 0)
      this.#options.log.info({ runs: working.length, drainMs }, 'the worker stops after its steps and uploads');
    const late = new AbortController();
    await Promise.race([
      Promise.allSettled(working),
      sleep(drainMs, undefined, { signal: late.signal }).catch(() => {}),
    ]);
    late.abort();
  }

  /** Other workers then go on at once. Without the database they find the runs when the lease is over. */
  async #release(): Promise<void> {
    try {
      const released = await this.#store.release(this.#worker);
      if (this.#queue.isShared && released.length > 0) await this.#queue.add(released.map(queuedRun));
    } catch (error) {
      this.#options.log.warn({ err: error }, 'could not hand over runs to other workers');
    }
  }

  /** Only a commit cancels a run. Its worker may move it meanwhile: then this tries once more. */
  async #commitCancel(run: Run): Promise<Run> {
    try {
      return await this.#store.transition(run, 'CANCELLED');
    } catch (error) {
      if (error instanceof DatabaseUnavailableError) this.#lease.doubt();
      const current = await this.#findRun(run.id);
      // It was committed, and the answer was lost.
      if (error instanceof DatabaseUnavailableError && current.state === 'CANCELLED') return current;
      const hasMoved = current.state !== run.state || current.claim !== run.claim;
      if (!(error instanceof IllegalTransitionError) || isFinal(current.state) || !hasMoved) throw error;
      return this.#commitCancel(current);
    }
  }

  #capacity(queueName: QueueName): number {
    if (this.#stopping || this.#rests) return 0;
    if (queueName === 'wait') return maxActive - this.#activeRuns.size;
    if (this.#queue.isShared && (!this.#isWell || this.#lease.now() < this.#restUntilMs)) return 0;
    return this.#settings.stepConcurrency - this.#inSteps().length;
  }
}
