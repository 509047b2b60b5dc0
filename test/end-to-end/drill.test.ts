/** The drill in small: kill -9 in every state, nothing lost and nothing twice; and it can fail. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { drill } from '../../drill/drill.ts';
import { killStates, type DrillPlan } from '../../drill/plan.ts';
import { testFolder } from '../support/folders.ts';
import { mutant, type Mutation } from '../support/mutant.ts';

const timeout = 280_000;

/** The kit's app with one mistake. */
const appOf = async (mutation: Mutation) => pathToFileURL(join(await mutant([mutation]), 'src/commands/app.ts'));

async function drillIn(plan: DrillPlan, appScript?: URL) {
  const folder = join(await testFolder(), 'drill');
  await mkdir(folder);
  return drill({ ...plan, folder, ...(appScript ? { appScript } : {}) });
}

describe('kill -9 at seeded times', () => {
  test('in every state: one operation and one file for each run, and the right bytes', { timeout }, async () => {
    const result = await drillIn({ kills: 12, leastInEach: 1, seed: 3 });
    expect(result.faults).toEqual([]);
    for (const state of killStates) expect(result.kills[state], state).toBeGreaterThan(0);
    expect(result.operations).toBe(result.runs);
    expect(result.files).toBe(result.states.COMPLETED);
    expect(result.bytesCompared).toBeGreaterThan(0);
  });

  test('an app that makes its idempotency key when it calls, and not before, is found out', { timeout }, async () => {
    const script = await appOf({ file: 'src/app/runs/stages/create-operation.ts', from: 'idempotencyKey: run.idempotencyKey', to: 'idempotencyKey: crypto.randomUUID()' });
    const { faults } = await drillIn({ kills: 6, leastInEach: 0, seed: 4, states: ['CREATED'], lose: 'operation.create' }, script);
    expect(faults.join('\n')).toMatch(/runs made \d+ operations/);
  });

  test('an app that forgets an upload it had begun is found out where it completes it twice', { timeout }, async () => {
    const script = await appOf({ file: 'src/app/runs/stages/upload.ts', from: 'sourceType, resume: upload },\n        {', to: 'sourceType, resume: null },\n        {' });
    const { faults } = await drillIn({ kills: 8, leastInEach: 0, seed: 5, states: ['UPLOADING'], lose: 'upload.complete' }, script);
    expect(faults.join('\n')).toMatch(/made 2 files|names file/);
  });
});
