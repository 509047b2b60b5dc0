/** The battery can fail: mistakes of every step that it finds. All of them: `npm run lab -- lab/drill/mutate-steps.ts`. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { notYetBroken, stepMutants } from '../../lab/drill/step-mutants.ts';
import allSteps from '../support/all-steps.ts';
import { projectRoot } from '../support/folders.ts';
import { codePattern } from '../support/mutation.ts';

test('every step has twenty wrong versions, each of code that is there', async () => {
  const known = [...Object.keys(stepMutants), ...notYetBroken];
  expect(known.toSorted()).toEqual(allSteps.steps.map(({ id }) => id).toSorted());
  for (const [id, mutants] of Object.entries(stepMutants)) {
    expect(mutants.length, id).toBeGreaterThanOrEqual(20);
    expect(new Set(mutants.map(({ name }) => name)).size, id).toBe(mutants.length);
    for (const { name, mutations } of mutants)
      for (const { file, from } of mutations) {
        const source = await readFile(join(projectRoot, file), 'utf8');
        expect([...source.matchAll(codePattern(from))], `${id}: ${name}`).toHaveLength(1);
      }
  }
});
