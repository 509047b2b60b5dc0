/** Progress of many runs, of which one was removed: the others keep theirs. */
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/app/database.ts';
import { sharedProgress } from '../../src/app/runs/run-progress.ts';
import { initialRun, type Run } from '../../src/app/runs/run.ts';
import { SqlRunStore } from '../../src/app/runs/sql-run-store.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testFolder } from '../support/folders.ts';
import { needing } from '../support/needs.ts';
import { startPostgres } from '../support/postgres.ts';

test('a run that is gone costs no other run its progress', needing('postgresql'), async () => {
  const cluster = await startPostgres();
  const database = await openDatabase({ dataDir: await testFolder(), databaseUrl: await cluster.create() });
  const errors: unknown[] = [];
  const board = sharedProgress(database, { failed: (error) => void errors.push(error), succeeded: () => {} });
  cleanUpLater(async () => {
    await board.close();
    await database.destroy();
  });
  const run: Run = {
    ...initialRun,
    ...{ id: 'there', owner: 'u', launchId: 'l', state: 'CREATED', stepId: 's', stepVersion: '1.0.0' },
    ...{ input: { type: 'synthetic', size: 64 }, parameters: {}, estimate: null, idempotencyKey: 'k', operation: null },
    ...{ createdAtMs: 0, updatedAtMs: 0 },
  };
  await new SqlRunStore(database, Date.now, { isShared: true }).create(run);
  const half = { fraction: 0.5, note: 'half', bytes: null };
  board.report({ id: 'gone', launchId: 'l', state: 'CREATED' }, half);
  board.report(run, half);
  await expect.poll(() => board.get(run), { timeout: 60_000 }).toEqual(half);
  expect(errors).toEqual([]);
});
