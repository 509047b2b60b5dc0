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
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** What a stage learns on the way; committed together with the state it leads to, or by itself. */
export type RunFacts = Partial<Pick<Run, 'operationId' | 'operationExpiresAtMs' | 'output' | 'upload' | 'file' | 'failure'>>;

export interface RunStateChange {
  readonly state: RunState;
  readonly atMs: number;
}

/** Where runs are kept. What a call has acknowledged is durable. */
export interface RunStore {
  create(run: Run): Promise<void>;
  find(id: string): Promise<Run | null>;
  listByLaunch(launchId: string): Promise<Run[]>;
  listUnfinished(): Promise<Run[]>;
  history(id: string): Promise<RunStateChange[]>;
  countByState(): Promise<Partial<Record<RunState, number>>>;
  /** Moves the run and keeps `facts` in one commit. Throws `IllegalTransitionError` where the run is not in `from` any more. */
  transition(run: Run, to: RunState, facts?: RunFacts): Promise<Run>;
  /** Keeps facts without a move. Throws `IllegalTransitionError` where the run has left its state meanwhile. */
  record(run: Run, facts: RunFacts): Promise<Run>;
}
