import * as kit from '../../src/steps/index.ts';
import type { AnyStep } from '../../src/steps/step.ts';

/** By the names under which the package exports them. */
export const kitSteps: Readonly<Record<string, AnyStep>> = Object.fromEntries(
  Object.entries(kit).flatMap(([name, one]) =>
    typeof one === 'object' && 'run' in one && 'parameters' in one ? [[name, one]] : [],
  ),
);
