import { describe, test } from 'vitest';
import { isCommand } from '../../src/steps/command.ts';
import { testStep } from '../../src/testing/step-battery/index.ts';
import allSteps from './all-steps.ts';
import { testConfinement } from './confinement.ts';
import { skipAloud } from './skipped.ts';

/** Files that the battery is spread over: each runs beside the others. */
const parts = 3;

/** Every step of the kit does what is asked of every step: this part of them, from 0 on. */
export async function batteryOf(part: number): Promise<void> {
  const isConfined = (await testConfinement()).kind === 'bubblewrap';
  const ids = allSteps.steps.map(({ id }) => id).filter((_, i) => i % parts === part);
  describe.each(ids)('%s', (id) => {
    const step = allSteps.steps.find((one) => one.id === id)!;
    if (isCommand(step) && !isConfined) return skipAloud(id, 'programs run only under bubblewrap');
    testStep(allSteps, id, { test }, { confinement: testConfinement, largeSide: 2_048 });
  });
}
