import { expect, test } from 'vitest';
import { inOneChild } from '../../src/testing/step-battery/in-child.ts';
import badSteps from '../support/bad-steps.ts';
import { testConfinement } from '../support/confinement.ts';

test('a check that never ends, or that ends the process, fails alone', async () => {
  const step = badSteps.steps.find(({ id }) => id === 'as-its-first-pixel-says')!;
  const file = { name: 'a.tif', width: 4, height: 4, epsg: 32_633, type: 'Float32' as const };
  const geoTransform = [500_000, 30, 0, 5_400_000, 0, -30];
  const firstPixels = [1, 2, 1, 3, 1];
  const answers = await inOneChild(
    { definition: badSteps, stepId: step.id, confinement: () => testConfinement() },
    firstPixels.map((value) => ({
      name: String(value),
      inputs: { input: [{ ...file, geoTransform, bands: [{ name: 'a', values: `x * 0 + ${value}` }] }] },
      holds: () => {},
    })),
    step,
    // Long enough for a process to begin on a busy machine.
    40_000,
  );
  expect(answers.map(({ failure }) => failure?.code)).toEqual([
    undefined,
    'check_timeout',
    undefined,
    'job_crashed',
    undefined,
    undefined,
  ]);
});
