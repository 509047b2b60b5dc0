/** A job for an engine: a process that runs `exec-step` with the two variables of `environment`. */
export interface EngineJob {
  readonly name: string;
  /** Address and one-time token of the job. The token is a secret: it belongs in no command line and no log. */
  readonly environment: { readonly STEP_JOB_URL: string; readonly STEP_JOB_TOKEN: string };
  /** Memory of the whole job, in bytes. */
  readonly memoryBytes: number;
  readonly cores: number;
  /** Longest time for which the job runs, in milliseconds. */
  readonly timeoutMs: number;
  readonly diskBytes: number;
  /** Kind of machine that the step needs, such as `gpu`. Null: every machine will do. */
  readonly label: string | null;
}

/** `unknown`: the engine has no such job, or has forgotten it. `ended`: it runs no more, whatever its exit code. */
export const engineStates = ['unknown', 'waiting', 'running', 'out-of-memory', 'ended'] as const;
export type EngineState = (typeof engineStates)[number];

/** An existing engine that gives jobs room. A job is known by its name alone. */
export interface StepEngine {
  /** For people: `Slurm`. */
  readonly title: string;
  /** Pause between two questions about a job, in milliseconds. */
  readonly pollMs: number;
  /** Rejects with `EngineError`. */
  submit(job: EngineJob): Promise<void>;
  /** Rejects with `EngineError` if the engine does not answer. */
  state(name: string): Promise<EngineState>;
  /** Ends the job. A job that does not exist is no error. */
  cancel(name: string): Promise<void>;
  /** The last lines that the job printed, for the log of an operator. Empty if the engine has none. */
  logs(name: string): Promise<string>;
  /** Default: there is nothing to close. */
  close?(): Promise<void>;
}

/** The engine refused a call, or did not answer. The message holds no secret. */
export class EngineError extends Error {}
