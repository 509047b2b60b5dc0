import type { RunInput } from '../processing/run-input.ts';
import type { StepParameters } from '../processing/step-parameters.ts';
import type { UploadProgress } from '../upload/uploader.ts';
import type { RunState } from './run-state.ts';

/** Why a run failed, and what its user can do. Holds no secret. */
export interface RunFailure {
  readonly code: string;
  readonly message: string;
  readonly advice: string;
  /** The platform's request id, where the failure was an answer of the platform. */
  readonly requestId: string | null;
}

export interface RunOutput {
  readonly path: string;
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** The platform's record of the uploaded file. `fileId` is null where the platform did not name it. */
export interface RunFile {
  readonly fileId: string | null;
  readonly sizeBytes: number;
}

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
  /** Sent with the create call, so that a repeat makes no second operation. */
  readonly idempotencyKey: string;
  readonly operationId: string | null;
  readonly operationExpiresAtMs: number | null;
  readonly output: RunOutput | null;
  readonly upload: UploadProgress | null;
  readonly file: RunFile | null;
  readonly failure: RunFailure | null;
  /** How often a worker has taken the run: what an earlier one still writes is refused. */
  readonly claim: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** What a stage learns on the way; committed together with the state it leads to, or by itself. */
export type RunFacts = Partial<Pick<Run, 'operationId' | 'operationExpiresAtMs' | 'output' | 'upload' | 'file' | 'failure'>>;

export interface RunStateChange {
  readonly state: RunState;
  readonly atMs: number;
}

/** One stage of a run, as one worker did it. */
export interface RunStage {
  readonly state: RunState;
  /** Which claim of the run it belongs to, from 1. */
  readonly attempt: number;
  readonly worker: string;
  readonly begunAtMs: number;
  readonly endedAtMs: number | null;
  /** The state that it led to; `given back` by a worker that stops, `abandoned` by one that died. */
  readonly outcome: string | null;
}

/** Where runs are kept. What a call has acknowledged is durable. */
export interface RunStore {
  create(run: Run): Promise<void>;
  find(id: string): Promise<Run | null>;
  listByLaunch(launchId: string): Promise<Run[]>;
  /** Ids; with `unclaimedBeforeMs` only of those that are older and that no worker has taken yet. */
  listUnfinished(unclaimedBeforeMs?: number): Promise<{ id: string; launchId: string; state: RunState }[]>;
  /** Of all launches of one user. */
  countUnfinishedOf(owner: string): Promise<number>;
  history(id: string): Promise<RunStateChange[]>;
  stages(id: string): Promise<RunStage[]>;
  /** Gives the run to `worker`, and takes it from whoever had it. Null where it has ended or is not there. */
  claim(id: string, worker: string): Promise<Run | null>;
  /** Notes that the worker leaves the run where it is. */
  giveBack(run: Pick<Run, 'id' | 'claim'>): Promise<void>;
  /** Of these, those that have ended, or that another worker has taken since. */
  lost(held: readonly { id: string; claim: number }[]): Promise<string[]>;
  countByState(): Promise<Partial<Record<RunState, number>>>;
  /** Moves the run and keeps `facts` in one commit. Throws `IllegalTransitionError` where the run is not in its state any more, or another worker has it. */
  transition(run: Run, to: RunState, facts?: RunFacts): Promise<Run>;
  /** Keeps facts without a move. Throws as `transition`. */
  record(run: Run, facts: RunFacts): Promise<Run>;
}
