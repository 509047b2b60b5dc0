/** `npx marketplace-app-kit test-step`: what it ran, and what it did not. */
import { expect, test } from 'vitest';
import { batteryOf, casesOf } from '../../src/testing/step-battery/index.ts';
import allSteps from '../support/all-steps.ts';
import { testConfinement } from '../support/confinement.ts';

const step = allSteps.steps.find(({ id }) => id === 'slope')!;
const checksWith = (exempt: Record<string, string>) =>
  batteryOf({
    definition: allSteps,
    stepId: 'slope',
    confinement: testConfinement,
    cases: { ...casesOf(step), exempt },
  });

test('what the cases exempt is no check that passed', () => {
  const why = 'only for the sake of this test';
  expect(checksWith({ 'one pixel': why }).filter(({ exempt }) => exempt !== undefined)).toMatchObject([
    { name: 'one pixel', exempt: why },
  ]);
});

test.each(['one pixle', 'case: a tilted plane'])('%s cannot be exempted', (name) => {
  expect(() => checksWith({ [name]: 'only for the sake of this test' })).toThrow(
    `cases.json exempts "${name}": exempt is for what every step must do, by its name (one pixel; `,
  );
});
