import type { AppDefinition } from '../../app/definition/app-definition.ts';
import { KitError } from '../../contract/index.ts';
import { establishConfinement, type Confinement } from '../../child/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import { batteryOf } from './battery.ts';
import type { BatteryOptions } from './check.ts';
import { readCases, type StepCases } from './cases.ts';

export { batteryOf } from './battery.ts';
export { BatteryError, type BatteryCheck, type BatteryOptions } from './check.ts';
export { readCases, type StepCases } from './cases.ts';

/** A step's own cases. Throws `KitError` where it has none. */
export function casesOf(step: AnyStep): StepCases {
  if (step.cases) return readCases(step.cases);
  throw new KitError(
    'no_cases',
    `step ${step.id} has no cases: write cases.json beside it, and name it in its declaration: cases: new URL('./cases.json', import.meta.url)`,
  );
}

/** Time limit of one test, in milliseconds. The first test runs all small inputs, each with its own limit. */
const timeoutMs = 900_000;

/** Functions of a test runner that the step tests need. */
export interface StepTestTools {
  /** Vitest's, or what is like it. */
  readonly test: (name: string, run: () => Promise<void>, timeoutMs?: number) => unknown;
}

/**
 * Makes tests of all that a step must do: its own cases and the common checks, without those that the cases exempt. Children are confined where that
 * works, unless the options say how. Throws `KitError` for a step that is not there, or whose cases cannot be used.
 */
export function testStep(
  definition: Pick<AppDefinition, 'module' | 'steps'>,
  stepId: string,
  { test }: StepTestTools,
  options: Pick<Partial<BatteryOptions>, 'confinement' | 'largeSide'> = {},
): void {
  const step = definition.steps.find(({ id }) => id === stepId);
  if (!step) throw new KitError('unknown_step', `the app has no step ${stepId}`);
  let found: Promise<Confinement> | undefined;
  const checks = batteryOf({
    definition,
    stepId,
    cases: casesOf(step),
    confinement: () => (found ??= establishConfinement({ mode: 'auto', warn: () => {} })),
    ...options,
  });
  for (const { name, run, exempt } of checks) if (exempt === undefined) test(name, run, timeoutMs);
}
