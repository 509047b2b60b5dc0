import type { ChildLimits } from '../../child/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import type { Source } from './fetch-sources.ts';
import type { UnhashedInputs } from './input-digests.ts';
import type { ProvenanceKnown } from './provenance.ts';
import type { StepParameters } from './step-parameters.ts';

/** One attempt to run a step on inputs that lie on this machine. */
export interface ExecutorTask {
  /** The run and its attempt. Null for a run that no store knows, as in a test. */
  readonly run: { readonly id: string; readonly claim: number } | null;
  readonly step: AnyStep;
  readonly parameters: StepParameters;
  readonly provenance: { readonly known: ProvenanceKnown; readonly inputs: UnhashedInputs };
  readonly sources: readonly Source[];
  /** SHA-256 of each input file, in the order of the sources. The owner of the run computes them meanwhile. */
  readonly inputDigests: Promise<readonly string[]>;
  readonly limits: ChildLimits | undefined;
  /** The tile of a run whose rows several jobs compute. Default: the job computes all rows. */
  readonly tile?: TaskTile;
  /** The attempt's own folder. The outputs come to lie in `step` below it, by the names of the step's declaration. */
  readonly workFolder: string;
}

/** One tile of a run, by its rows, or the parts that its jobs have left, each file by its name. */
export type TaskTile =
  | { readonly type: 'part'; readonly number: number; readonly from: number; readonly to: number | null }
  | {
      readonly type: 'whole';
      readonly parts: readonly { readonly from: number; readonly paths: ReadonlyMap<string, string> }[];
    };

export interface ExecutorOptions {
  /** Aborted with `RunReleased` if the run continues elsewhere: work outside this process then goes on. Any other reason ends the work. */
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number, note: string | null) => void;
  /** Called when the work begins at its place. */
  readonly onBegun?: (() => void) | undefined;
  readonly onPrinted?: ((line: string) => void) | undefined;
}

/** An executor's report about its work. The files are in the task's folder, and their owner measures them itself. */
export interface ExecutedStep {
  /** Answer of the step's process, not checked. */
  readonly answer: unknown;
  /** Version of the GDAL that did the work. */
  readonly gdalVersion: string;
  readonly usage: StepUsage;
  /** SHA-256 of each output as it was sent, by file name. Empty if nothing was sent. */
  readonly sent: ReadonlyMap<string, string>;
}

/** Resources that the processes of one step have used, as sampled by their host. */
export interface StepUsage {
  readonly cpuSeconds: number;
  /** Resident, at the peak. */
  readonly peakMemoryBytes: number;
  /** Name of the machine that did the work. */
  readonly place: string;
}

/** Gives the work of a step room: on this machine, or by an engine that exists. */
export interface StepExecutor {
  /**
   * Runs the step. Rejects with `ChildJobError` or `ReportedJobError`, or with the signal's reason. A repeat for the same run
   * continues work that an earlier process has begun, if the executor can.
   */
  run(task: ExecutorTask, options: ExecutorOptions): Promise<ExecutedStep>;
  close(): Promise<void>;
}

/** The run continues in another process, so this one leaves it as it is. */
export class RunReleased extends Error {}
