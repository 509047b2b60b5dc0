import type { TracedCall } from '../traced-call.ts';

export interface Violation {
  readonly severity: 'failed' | 'warning';
  /** The calls that show it, in order. */
  readonly calls: readonly TracedCall[];
  /** Observed behaviour. */
  readonly seen: string;
  /** Behaviour that the clause requires. */
  readonly expected: string;
  /** Change that corrects this violation. Default: the advice of the rule. */
  readonly advice?: string;
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
  /** Section of the platform's interface that states the rule. */
  readonly clause: string;
  /** Behaviour of an app that keeps the rule. */
  readonly holds: string;
  /** Change for an app that breaks the rule. */
  readonly advice: string;
  /** It judges a call by those before it: where some of them may be missing it cannot. */
  readonly needsAllBefore?: true;
  judge(calls: readonly TracedCall[]): Finding;
}
