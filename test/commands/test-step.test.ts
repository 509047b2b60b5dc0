/** `npx marketplace-app-kit test-step`: what it ran, and what it did not. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { batteryOf, casesOf } from '../../src/testing/step-battery/index.ts';
import { readCases } from '../../src/testing/step-battery/cases.ts';
import allSteps from '../support/all-steps.ts';
import faultySteps from '../support/faulty-steps.ts';
import { testFolder } from '../support/folders.ts';
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

test('a failed step shows the line of its code, and an estimate must be a number', async () => {
  const cases = readCases(
    await written({
      cases: [
        {
          name: 'bright',
          inputs: { input: [{ name: 'scene.tif', bands: [{ name: 'a', values: '81' }] }] },
          expect: { output: { value: 'a' } },
        },
      ],
    }),
  );
  const checks = batteryOf({ definition: faultySteps, stepId: 'faulty', confinement: testConfinement, cases });
  const of = (name: string) => checks.find((one) => one.name === name)!.run();
  await expect(of('case: bright')).rejects.toThrow(
    /^it failed by job_failed \(bug\): too bright: 81 \(faulty-steps\.ts:19:\d+\)$/,
  );
  await expect(of('its memory and its estimate')).rejects.toThrow(
    "its estimate failed: the estimate's outputBytes must be a number from 0, and is NaN",
  );
});

test('an error in the JSON of cases names their file', async () => {
  const file = await written({});
  await writeFile(file, '{ "cases": [}');
  expect(() => readCases(file)).toThrow(/cases\.json cannot be read: .*JSON/);
});

async function written(cases: object): Promise<URL> {
  const file = pathToFileURL(join(await testFolder(), 'cases.json'));
  await writeFile(file, JSON.stringify(cases));
  return file;
}
