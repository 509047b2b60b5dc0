import type { WireLimits, WireProfile } from '../../../contract/index.ts';
import type { FileIdentity } from '../../../files/index.ts';
import type { LaunchCalls } from '../../../platform-client/index.ts';
import type { StepHost } from '../../processing/step-host.ts';
import type { RunProgress } from '../run-progress.ts';
import type { Run, RunStore, RunUsage } from '../run.ts';
import type { AttemptFolders } from '../work-folders.ts';
import type { Patience } from '../patience.ts';

export interface StageLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

/** Context that every stage receives. */
export interface StageContext {
  readonly store: RunStore;
  /** Calls of the run's launch. They are repeated while the platform is away. */
  readonly calls: LaunchCalls;
  readonly steps: StepHost;
  /** Returns the owner of a launch. */
  readonly ownerOf: (launchId: string) => Promise<string>;
  readonly settings: {
    readonly pollIntervalMs: number;
    readonly uploadPartBytes: number;
    /** The platform's. */
    readonly limits: WireLimits;
    readonly refusedFields: WireProfile['refusedFields'];
  };
  /** Outputs, by path, that this process has made itself and need not read again; none where another one did. */
  readonly madeHere: { identities: ReadonlyMap<string, FileIdentity> };
  readonly folders: AttemptFolders;
  /** The attempt's own folder. */
  readonly workFolder: string;
  readonly signal: AbortSignal;
  readonly now: () => number;
  readonly report: (progress: RunProgress) => void;
  readonly patience: Patience;
  /** Receives what the step of a run has used. */
  readonly onUsage: (usage: RunUsage) => void;
  /** Receives the seconds between two polls of the run. */
  readonly onPollInterval: (seconds: number) => void;
  /** True if `error` says that the database is away; the worker then waits for it, and logs it once. */
  readonly isAway: (error: unknown) => boolean;
  /** Resolves when the database is back. Rejects with the signal's reason. */
  readonly untilBack: () => Promise<void>;
  readonly log: StageLog;
}

/** Takes a run from one state to the next, and gives it back as committed. Begins again after a crash: it must bear that. */
export type Stage = (run: Run, context: StageContext) => Promise<Run>;
