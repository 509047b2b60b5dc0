import type { AppDefinition } from '../../app/definition/app-definition.ts';
import type { StepParameters } from '../../app/processing/step-parameters.ts';
import type { Confinement } from '../../child/index.ts';
import type { BatteryAnswer } from './battery-job.ts';
import type { FileRecipe, StepCases } from './cases.ts';
import type { Gap } from './recipe.ts';

/** One thing that a step must do. `run` rejects with what it did in its place. */
export interface BatteryCheck {
  readonly name: string;
  readonly run: () => Promise<void>;
  /** Time that the step took on this check's input, known after `run`. Default: the time of `run`. */
  readonly tookMs?: () => number | undefined;
  /** Reason why the step's cases exempt this check. Callers must not run exempt checks. */
  readonly exempt?: string;
}

export interface BatteryOptions {
  /** The app, or a definition of your own that lists the step; children load it from its module. */
  readonly definition: Pick<AppDefinition, 'module' | 'steps'>;
  readonly stepId: string;
  readonly cases: StepCases;
  /** Asked for when the first check runs. */
  readonly confinement: () => Promise<Confinement>;
  /** Only the step's own cases, without what is asked of every step. Default false. */
  readonly onlyCases?: boolean;
  /** Pixels a side of the large input, 64 times those of the small one. Default 4096. */
  readonly largeSide?: number;
}

/** A difference between the step's behaviour and the expected behaviour. */
export class BatteryError extends Error {}

export const fail = (what: string): never => {
  throw new BatteryError(what);
};

/** Time limit of a check with a large input. */
export const childTimeoutMs = 300_000;
/** Time limit of a check with a small input. */
export const smallTimeoutMs = 100_000;

export type Inputs = Readonly<Record<string, readonly FileRecipe[]>>;

export interface Variant {
  readonly name: string;
  readonly inputs: Inputs;
  readonly gap?: Gap;
  readonly stripPixels?: number;
  readonly cancelAt?: number;
  readonly readsOutputs?: boolean;
  readonly parameters?: StepParameters;
  readonly holds: (answer: BatteryAnswer, variant: Variant) => void;
}
