/** Every step of the kit does what is asked of every step. */
import { describe, test } from 'vitest';
import { isCommand } from '../../src/steps/command.ts';
import { testStep } from '../../src/testing/step-battery/index.ts';
import allSteps from '../support/all-steps.ts';
import { testConfinement } from '../support/confinement.ts';
import { skipAloud } from '../support/skipped.ts';

const isConfined = (await testConfinement()).kind === 'bubblewrap';

describe.each(allSteps.steps.map(({ id }) => id))('%s', (id) => {
  const step = allSteps.steps.find((one) => one.id === id)!;
  if (isCommand(step) && !isConfined) return skipAloud(id, 'programs run only under bubblewrap');
  testStep(allSteps, id, { test }, { confinement: testConfinement, largeSide: 2_048 });
});
