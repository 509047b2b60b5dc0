import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { KitError } from '../../contract/index.ts';
import type { LaunchCalls } from '../../platform-client/index.ts';
import type { RunInput } from '../processing/run-input.ts';
import type { StepHost } from '../processing/step-host.ts';
import { describeFailure, isSessionOver } from './run-failure.ts';
import { noProgress, type RunProgress } from './run-progress.ts';
import { IllegalTransitionError, isFinal, type RunState } from './run-state.ts';
import type { Run, RunStore } from './run.ts';
import { awaitDecision } from './stages/await-decision.ts';
import { createOperation } from './stages/create-operation.ts';
import { beginProcessing, processInput } from './stages/process.ts';
import type { Stage, StageContext, StageLog } from './stages/stage.ts';
import { uploadOutput } from './stages/upload.ts';

/** What is done in each state. States that are not here are final. */
const stages: Partial<Record<RunState, Stage>> = {
  CREATED: createOperation,
  AWAITING_APPROVAL: awaitDecision,
  APPROVED: beginProcessing,
  PROCESSING: processInput,
  UPLOADING: uploadOutput,
};

export interface NewRun {
  readonly stepId: string;
  readonly parameters: unknown;
  readonly input: RunInput;
}

export interface RunEngine {
  /** Commits a new run and begins it. Throws where step or parameters are wrong. */
  start(launchId: string, wanted: NewRun): Promise<Run>;
  /** A new run, and so a new operation, for what an ended one asked (spec 3.1). Throws `run_not_ended`. */
  retry(run: Run): Promise<Run>;
  /** Ends the run where it is. An operation that waits in the platform is left to its user and its 30 minutes. */
  cancel(run: Run): Promise<Run>;
  /** What the run does at the moment, in this process. */
  progress(runId: string): RunProgress;
  /** Goes on with every run that an earlier process left unfinished. */
  resume(): Promise<number>;
  /** Stops where each run is, for a later `resume`; resolves when nothing runs any more. */
  stop(): Promise<void>;
}

export interface RunEngineOptions {
  readonly store: RunStore;
  readonly callsOf: (launchId: string) => LaunchCalls;
  readonly steps: StepHost;
  readonly settings: StageContext['settings'];
  readonly workDir: string;
  readonly now: () => number;
  /** Told of a launch whose token the platform refuses for good. */
  readonly onSessionOver?: (launchId: string) => Promise<void>;
  /** Told how long a run was in a state, when it leaves it. */
  readonly onStage?: (state: RunState, seconds: number) => void;
  readonly log: StageLog & { error(facts: object, message: string): void; child(facts: object): RunEngineOptions['log'] };
}

class Cancelled extends Error {}
class ShuttingDown extends Error {}

/** Drives each run from state to state, every state committed before what it allows is done. */
export function createRunEngine(options: RunEngineOptions): RunEngine {
  const { store, steps, now } = options;
  const driven = new Map<string, { abort: AbortController; done: Promise<void>; progress: RunProgress }>();
  let stopping = false;

  function drive(run: Run): void {
    if (stopping) return;
    const abort = new AbortController();
    const entry = { abort, progress: noProgress, done: Promise.resolve() };
    driven.set(run.id, entry);
    entry.done = runStages(run, abort.signal, (progress) => (entry.progress = progress))
      // Neither committed nor failed, as when the disk is full: the run stays as it is for the next start.
      .catch((error: unknown) => options.log.error({ err: error, runId: run.id }, 'run could not be taken further'))
      .finally(() => driven.delete(run.id));
  }

  async function runStages(first: Run, signal: AbortSignal, report: (progress: RunProgress) => void): Promise<void> {
    const log = options.log.child({ runId: first.id });
    const workFolder = join(options.workDir, first.id);
    const context: StageContext = { ...options, calls: options.callsOf(first.launchId), workFolder, madeHere: { sha256: null }, signal, report, log };
    let run = first;
    try {
      for (let stage = stages[run.state]; stage; stage = stages[run.state]) {
        report(noProgress);
        signal.throwIfAborted();
        const [{ state }, from] = [run, performance.now()];
        run = await stage(run, context);
        options.onStage?.(state, (performance.now() - from) / 1000);
        log.info({ state: run.state, operationId: run.operationId }, 'run reached a state');
      }
    } catch (error) {
      if (signal.reason instanceof ShuttingDown) return;
      run = await end(first.id, error, signal, log);
    }
    if (isFinal(run.state)) await rm(workFolder, { recursive: true, force: true });
  }

  /** Ends a run whose stage threw: cancelled or failed, in the state it has by now. */
  async function end(runId: string, error: unknown, signal: AbortSignal, log: RunEngineOptions['log']): Promise<Run> {
    const run = await findRun(runId);
    if (isFinal(run.state)) return run;
    if (signal.reason instanceof Cancelled) return store.transition(run, 'CANCELLED');
    const failure = describeFailure(error);
    if (isSessionOver(failure)) await options.onSessionOver?.(run.launchId);
    const isDefect = !(error instanceof KitError);
    if (isDefect) log.error({ err: error, state: run.state }, 'run failed by a defect');
    else log.warn({ state: run.state, code: failure.code, reason: failure.message, requestId: failure.requestId }, 'run failed');
    return store.transition(run, 'FAILED', { failure });
  }

  async function findRun(id: string): Promise<Run> {
    const run = await store.find(id);
    if (!run) throw new KitError('run_not_found', `there is no run ${id}`, { status: 404 });
    return run;
  }

  async function start(launchId: string, wanted: NewRun): Promise<Run> {
    if (stopping) throw new KitError('shutting_down', 'the app is about to stop and takes no new runs; try again in a moment', { status: 503 });
    const { step, parameters } = await steps.check(wanted.stepId, wanted.parameters, wanted.input);
    const atMs = now();
    const run: Run = {
      id: randomBytes(16).toString('base64url'),
      launchId,
      state: 'CREATED',
      stepId: step.id,
      stepVersion: step.version,
      parameters,
      input: wanted.input,
      idempotencyKey: randomUUID(),
      operationId: null,
      operationExpiresAtMs: null,
      output: null,
      upload: null,
      file: null,
      failure: null,
      createdAtMs: atMs,
      updatedAtMs: atMs,
    };
    await store.create(run);
    drive(run);
    return run;
  }

  return {
    start,
    async retry(run) {
      if (!isFinal(run.state)) {
        throw new KitError('run_not_ended', `run ${run.id} is ${run.state}; cancel it first, or wait for its end`, { status: 409 });
      }
      return start(run.launchId, run);
    },
    async cancel(run) {
      if (isFinal(run.state)) throw new IllegalTransitionError(run.id, run.state, 'CANCELLED');
      const entry = driven.get(run.id);
      if (!entry) return store.transition(run, 'CANCELLED');
      entry.abort.abort(new Cancelled('cancelled by the user'));
      await entry.done;
      return findRun(run.id);
    },
    progress: (runId) => driven.get(runId)?.progress ?? noProgress,
    async resume() {
      await mkdir(options.workDir, { recursive: true });
      const runs = await store.listUnfinished();
      await removeOrphans(options.workDir, new Set(runs.map(({ id }) => id)));
      runs.forEach(drive);
      return runs.length;
    },
    async stop() {
      stopping = true;
      for (const { abort } of driven.values()) abort.abort(new ShuttingDown('the app is stopping'));
      await Promise.all([...driven.values()].map(({ done }) => done));
    },
  };
}

/** Work folders that a kill left behind, of runs that have ended. */
async function removeOrphans(workDir: string, unfinished: ReadonlySet<string>): Promise<void> {
  for (const name of await readdir(workDir)) {
    if (!unfinished.has(name)) await rm(join(workDir, name), { recursive: true, force: true });
  }
}
