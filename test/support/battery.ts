import { describe, test } from 'vitest';
import { programOf } from '../../src/steps/command.ts';
import { batteryOf as checksOf, casesOf } from '../../src/testing/step-battery/index.ts';
import allSteps from './all-steps.ts';
import { testConfinement } from './confinement.ts';
import { confined, needing } from './needs.ts';
import { isAll, onlyInAll } from './tags.ts';
import { needs, type NeedName } from '../../scripts/needs.mjs';

/** Files that the battery is spread over: each runs beside the others. */
const parts = 3;
/**
 * Time limit of one check, in milliseconds. The first check runs many small inputs, and the large inputs are slow on a busy
 * machine.
 */
const timeout = 900_000;

/** Software that steps in other languages need on the machine. */
const needsOfSteps: readonly NeedName[] = ['gdal-programs', 'python-gdal'];
const provides = (name: NeedName, program: string) => needs[name].programs.some((names) => names.includes(program));

/** Every step of the kit does what is asked of every step: this part of them, from 0 on. `npm test` runs their cases alone. */
export async function batteryOf(part: number): Promise<void> {
  const isConfined = await confined();
  const ids = allSteps.steps.map(({ id }) => id).filter((_, i) => i % parts === part);
  for (const id of ids) {
    const step = allSteps.steps.find((one) => one.id === id)!;
    const program = programOf(step);
    const wanted = program === null ? [] : [isConfined, ...needsOfSteps.filter((need) => provides(need, program))];
    describe(id, needing(...wanted), () => {
      const options = {
        ...{ definition: allSteps, stepId: id, confinement: testConfinement, largeSide: 2_048 },
        onlyCases: !isAll,
      };
      const tags = isAll ? [onlyInAll] : [];
      for (const { name, run, exempt } of checksOf({ ...options, cases: casesOf(step) }))
        if (exempt === undefined) test(name, { timeout, tags }, run);
    });
  }
}
