import { randomBytes, randomUUID } from 'node:crypto';
import type { OperationRequest } from '../../contract/index.ts';
import type { OutputSummary, RunResult } from '../processing/output-summary.ts';
import type { Provenance } from '../processing/provenance.ts';
import type { RunOutput } from '../processing/take-outputs.ts';
import type { RasterSize } from '../processing/plan-tiles.ts';
import type { RunInput } from '../processing/run-input.ts';
import type { StepEstimate } from '../../steps/step.ts';
import type { StepParameters } from '../processing/step-parameters.ts';
import type { UploadProgress } from '../upload/uploader.ts';
import { noNeeds, type RunNeeds, type WorkerPlace } from './placement.ts';
import type { RunState } from './run-state.ts';

/** Reason for a run's failure, and advice for its user. Contains no secret. */
export interface RunFailure {
  readonly code: string;
  readonly message: string;
  readonly advice: string;
  /** The platform's request id, where the failure was an answer of the platform. */
  readonly requestId: string | null;
  /** `step` if the step's process reported the failure: its message is the step's own, and a file may have written it. */
  readonly reportedBy?: 'step';
  /** Stack of a defect, for authors of steps. Present only with `SHOW_DEFECTS`. */
  readonly stack?: string;
}

export type { RunOutput };

/** The platform's record of an uploaded file. `fileId` is null where the platform did not name it. */
export interface RunFile {
  readonly fileId: string | null;
  /** Name on the platform. */
  readonly fileName: string;
  /** Name of the output in the step's declaration. Default, in runs of earlier releases: `fileName`. */
  readonly output?: string;
  /** Digest of the uploaded bytes. An output that is made again and is the same needs no second upload. */
  readonly sha256: string;
  readonly sizeBytes: number;
}

/** Resources that a run has used. Sizes in bytes. */
export interface RunUsage {
  readonly cpuSeconds: number;
  /** Resident memory of the step's processes, at the peak. */
  readonly peakMemoryBytes: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Time between the approval and the start of the step. */
  readonly waitSeconds: number;
  /** Time of the step. */
  readonly stepSeconds: number;
  /** Name of the machine that did the step. */
  readonly place: string;
}

/** A run, as the store keeps it. Times are in milliseconds since 1970. */
export interface Run {
  readonly id: string;
  /** Id of the user whose launch it belongs to. */
  readonly owner: string;
  readonly launchId: string;
  readonly state: RunState;
  readonly stepId: string;
  readonly stepVersion: string;
  readonly parameters: StepParameters;
  readonly input: RunInput;
  /** The estimate that its user saw before the approval; null without one. */
  readonly estimate: StepEstimate | null;
  /** Its worker must have all of them. */
  readonly needs: RunNeeds;
  /** Memory that its step may use, in bytes. Null: the limit of its worker. */
  readonly memoryLimitBytes: number | null;
  /** Size of the raster in pixels, for a step whose rows several jobs can compute. Null if it is not known. */
  readonly grid: RasterSize | null;
  /** Null until the step has ended. */
  readonly usage: RunUsage | null;
  /** Sent with the create call, so that a repeat makes no second operation. */
  readonly idempotencyKey: string;
  /** The body of the create call, so that a later version of the app repeats the same request. Null for runs older than this field. */
  readonly operation: OperationRequest | null;
  readonly operationId: string | null;
  readonly operationExpiresAtMs: number | null;
  /** Outputs of the step, in the order of their upload. Empty until they exist. */
  readonly outputs: readonly RunOutput[];
  /** Provenance of the outputs. Null until they exist. */
  readonly provenance: Provenance | null;
  /** Progress of the first output that is not a file on the platform yet. */
  readonly upload: UploadProgress | null;
  /** Files that the platform has. */
  readonly files: readonly RunFile[];
  readonly failure: RunFailure | null;
  /** Number of times that workers have claimed the run. The store rejects writes under an earlier claim. */
  readonly claim: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Facts of a new run, before its first stage. */
export const initialRun = {
  operationId: null,
  operationExpiresAtMs: null,
  outputs: [],
  provenance: null,
  upload: null,
  files: [],
  failure: null,
  needs: noNeeds,
  memoryLimitBytes: null,
  grid: null,
  usage: null,
  claim: 0,
} as const satisfies Partial<Run>;

/** A run that is about to begin. Its operation needs the approval of its user (spec 3.1). */
export function newRun(
  asked: Pick<
    Run,
    'owner' | 'launchId' | 'stepId' | 'stepVersion' | 'parameters' | 'input' | 'estimate' | 'operation'
  > &
    Partial<Pick<Run, 'needs' | 'grid' | 'memoryLimitBytes'>>,
  atMs: number,
): Run {
  return {
    ...initialRun,
    ...asked,
    id: randomBytes(16).toString('base64url'),
    state: 'CREATED',
    idempotencyKey: randomUUID(),
    createdAtMs: atMs,
    updatedAtMs: atMs,
  };
}

/** The same run once more, from the beginning. Its needs are those that the earlier attempts have shown. */
export function newRunLike(run: Run, atMs: number): Run {
  const { needs, grid, memoryLimitBytes } = run;
  return newRun({ ...run, ...initialRun, needs, grid, memoryLimitBytes }, atMs);
}

/** Facts that a stage learns on the way; committed together with the state it leads to, or by itself. */
export type RunFacts = Partial<
  Pick<
    Run,
    | 'operationId'
    | 'operationExpiresAtMs'
    | 'outputs'
    | 'provenance'
    | 'upload'
    | 'files'
    | 'failure'
    | 'needs'
    | 'memoryLimitBytes'
    | 'usage'
  >
> & {
  /** Kept beside the run, and found by `RunStore.summary` and `picture`. */
  readonly result?: RunResult | null;
};

/** A state that a run has reached, and the time. */
export interface RunStateChange {
  readonly state: RunState;
  readonly atMs: number;
}

/** One stage of a run, as one worker did it. */
export interface RunStage {
  readonly state: RunState;
  /** Number of the run's claim that the stage belongs to, from 1. */
  readonly attempt: number;
  readonly worker: string;
  readonly begunAtMs: number;
  readonly endedAtMs: number | null;
  /** The state that it led to; `given back` by a worker that stops, `abandoned` by one that died. */
  readonly outcome: string | null;
}

/** The part of a run that decides which workers can do it. */
export type RunToPlace = Pick<Run, 'stepId' | 'stepVersion' | 'needs'>;

/** Sizes of a worker, and how much of its memory is free at the moment. */
export interface WorkerRoom extends WorkerPlace {
  readonly freeMemoryBytes: number | null;
}

/** A run that has not ended. */
export interface UnfinishedRun {
  readonly id: string;
  readonly owner: string;
  readonly state: RunState;
}

/** A worker, as it last reported itself. */
export interface WorkerView {
  readonly name: string;
  readonly aliveAtMs: number;
  /** True while its lease holds. */
  readonly isAlive: boolean;
  /** Its steps, each as `id@version`. Null for a release that does not report them. */
  readonly can: readonly string[] | null;
  /** Its sizes, for one run. Null for a release that does not report it. */
  readonly place: WorkerPlace | null;
  /** True if an operator drains it. */
  readonly rests: boolean;
  /** Number of unfinished runs that it has. */
  readonly runs: number;
}

/** Conditions of an operator's search. An omitted condition matches every run. */
export interface RunFilter {
  readonly state?: RunState;
  /** Code of the failure. */
  readonly code?: string;
  readonly stepId?: string;
  readonly owner?: string;
  readonly worker?: string;
  /** Only runs that have changed since then, in epoch milliseconds. */
  readonly sinceMs?: number;
}

/** A page of a list of runs: its size, and the run before it. */
export interface RunPage {
  readonly limit: number;
  readonly before?: string | undefined;
}

/** The number and the time of the last change of a launch's runs, and whether one of them is unfinished. */
export interface LaunchChanges {
  readonly number: number;
  /** 0 where nothing has changed yet. */
  readonly lastAtMs: number;
  /** Some run of it has not ended. */
  readonly isUnderWay: boolean;
}

/** The store of runs. What a call has acknowledged is durable. */
export interface RunStore {
  create(run: Run): Promise<void>;
  find(id: string): Promise<Run | null>;
  /** Newest first: at most `limit`, of those that are older than the run `before` where there is one. */
  listByLaunch(launchId: string, page: RunPage): Promise<Run[]>;
  /** Lists one user's runs over all launches, like `listByLaunch`. If `states` is given, lists only runs in one of those states. */
  listByOwner(owner: string, page: RunPage & { readonly states?: readonly RunState[] | undefined }): Promise<Run[]>;
  countByOwner(owner: string, states?: readonly RunState[]): Promise<number>;
  /** When a run of the user last changed its state, over all launches; 0 where there is none. */
  lastChangeOf(owner: string): Promise<number>;
  /** Its number changes whenever a run of the launch changes. */
  changesOf(launchId: string): Promise<LaunchChanges>;
  /** Unfinished runs that neither `worker` nor another living worker has, oldest first. A run that nobody has taken is listed only if it has not moved for `forMs`, default 0. */
  listOrphans(worker: string, forMs?: number): Promise<UnfinishedRun[]>;
  /** Launches with approved runs that no worker has. */
  listWaitingLaunches(): Promise<string[]>;
  /**
   * Gives the run back with a place in the order of processing: after the other runs of its owner, and after the run that was begun last.
   * Owners therefore take turns, even if one owner has many runs. Returns the place.
   */
  handOver(run: Pick<Run, 'id' | 'owner' | 'claim'>): Promise<number>;
  /**
   * Claims the next waiting run in turn whose step (`id@version`) is in `can` and that fits in the room. Null if there is none, and also if the
   * next one fits only when the worker's other runs have ended: no later run overtakes it here. Default of `room`: unlimited.
   */
  claimNext(worker: string, can: readonly string[], room?: WorkerRoom): Promise<Run | null>;
  /** True if a run is waiting for processing, even if no worker has its step. */
  hasWaiting(): Promise<boolean>;
  /** Waiting runs that no worker could do during the last `forMs`. */
  listStranded(forMs: number): Promise<string[]>;
  /** True if a living worker has the step and what the run needs. `besides`: a worker that does not count. */
  canBeDone(run: RunToPlace, options?: { readonly besides?: string }): Promise<boolean>;
  /** Counts one user's unfinished runs over all launches. */
  countUnfinishedOf(owner: string): Promise<number>;
  /** Summary of the run's output, for people. Null if there is none. */
  summary(id: string): Promise<OutputSummary | null>;
  /** The picture beside it, a PNG. */
  picture(id: string): Promise<Uint8Array | null>;
  history(id: string): Promise<RunStateChange[]>;
  histories(ids: readonly string[]): Promise<Map<string, RunStateChange[]>>;
  stages(id: string): Promise<RunStage[]>;
  /** Gives the run to `worker`, under a claim that blocks every write of earlier workers. Null if it has ended, does not exist, or another living worker has it. */
  claim(id: string, worker: string): Promise<Run | null>;
  /** Steps and inputs of the runs that the same user began on the same day (UTC) before this one. */
  beganBefore(run: Pick<Run, 'id' | 'owner' | 'createdAtMs'>): Promise<Pick<Run, 'stepId' | 'input'>[]>;
  /** Notes that the worker leaves the run where it is. */
  giveBack(run: Pick<Run, 'id' | 'claim'>): Promise<void>;
  /** Renews the worker's lease and stores its steps and what it has: for `leaseMs` no other worker can claim its runs. Default of `can`: every step. Default of `place`: unlimited. Returns whether an operator drains it. */
  renewLease(worker: string, can?: readonly string[], place?: WorkerPlace): Promise<{ readonly rests: boolean }>;
  /** The claims of the unfinished runs that the worker has, by run. */
  heldBy(worker: string): Promise<Map<string, number>>;
  /** Gives back all runs that the worker has, ends its lease, and returns those runs. */
  release(worker: string): Promise<UnfinishedRun[]>;
  /** Takes away the leases of workers that have said nothing for so long. */
  forgetWorkers(deadForMs: number): Promise<void>;
  /** Removes everything about runs that ended before then. Returns how many there were. */
  forget(endedBeforeMs: number): Promise<number>;
  /** Returns the launches that have runs. With `unfinished`, only runs that have not ended count. */
  launchesWithRuns(
    launchIds: readonly string[],
    options?: { readonly unfinished?: boolean },
  ): Promise<ReadonlySet<string>>;
  /** Runs of all users, the last change first. */
  search(filter: RunFilter & { readonly limit: number }): Promise<Run[]>;
  /** Takes an unfinished run away from its worker, so that another worker continues. The store rejects later writes of the first one. False if the run has ended. */
  requeue(id: string): Promise<boolean>;
  /** Number of living workers, and of drained ones among them. */
  countWorkers(): Promise<{ readonly alive: number; readonly resting: number }>;
  /** Workers of the last hour, the living ones first. */
  listWorkers(): Promise<WorkerView[]>;
  /** Starts or ends the drain of a worker. False if there is no such worker. */
  setRest(worker: string, rests: boolean): Promise<boolean>;
  /** Time of the last change of the oldest run in each unfinished state, in epoch milliseconds. */
  oldestByState(): Promise<Partial<Record<RunState, number>>>;
  /** Codes of the runs that failed since then, in epoch milliseconds, the most frequent first. */
  failureCodes(sinceMs: number): Promise<{ readonly code: string; readonly number: number }[]>;
  /** True if the schema needs a newer release than the one whose newest migration is `migration`. */
  isNewerThan(migration: string): Promise<boolean>;
  /** Resolves where the store answers. */
  check(): Promise<void>;
  /** Default: runs of all states. */
  countByState(states?: readonly RunState[]): Promise<Partial<Record<RunState, number>>>;
  /** Moves the run and keeps `facts` in one commit. Throws `IllegalTransitionError` where the run is not in its state any more, or another worker has it. */
  transition(run: Run, to: RunState, facts?: RunFacts): Promise<Run>;
  /** Keeps facts without a move. Throws as `transition`. */
  record(run: Run, facts: RunFacts): Promise<Run>;
}
