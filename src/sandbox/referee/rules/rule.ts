import type { TracedCall } from '../traced-call.ts';

export interface Violation {
  readonly severity: 'failed' | 'warning';
  /** The calls that show it, in order. */
  readonly calls: readonly TracedCall[];
  /** What was seen. */
  readonly seen: string;
  /** What the clause wants instead. */
  readonly expected: string;
}

export interface Finding {
  /** False where nothing came that the rule could judge: no verdict then. */
  readonly isExercised: boolean;
  /** Explains which checks were left out. */
  readonly note?: string;
  readonly violations: readonly Violation[];
}

/** One rule of the protocol, as a pure function of a launch's calls, oldest first. */
export interface Rule {
  readonly id: string;
  /** Where the platform's interface says so. */
  readonly clause: string;
  /** What an app does that keeps it. */
  readonly holds: string;
  /** What to change in an app that does not. */
  readonly advice: string;
  /** It judges a call by those before it: where some of them may be missing it cannot. */
  readonly needsAllBefore?: true;
  judge(calls: readonly TracedCall[]): Finding;
}
