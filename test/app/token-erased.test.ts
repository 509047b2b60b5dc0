/** A token that nobody can use any more is not kept. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { launchApp, smallRun, startApp } from '../support/app.ts';
import { testFolder } from '../support/folders.ts';
import { startSandbox } from '../support/sandbox.ts';

const hour = 3_600_000;

function sealedTokens(dataDir: string): string[] {
  const database = new Sqlite(join(dataDir, 'app.db'), { readonly: true });
  try {
    return database
      .prepare<[], { sealed_token: string }>('select sealed_token from launches order by created_at')
      .all()
      .map((row) => row.sealed_token);
  } finally {
    database.close();
  }
}

test("revoked by the platform: erased with the run's end; a later run says what to do", async () => {
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url);
  const { launchId, session } = await launchApp(sandbox, app);
  const { id } = await session.start(smallRun);
  await session.waitFor(id, 'AWAITING_APPROVAL');
  expect(sealedTokens(app.dataDir)[0]).not.toBe('');
  await sandbox.control('POST', `launches/${launchId}/revoke`);
  await session.waitFor(id, 'FAILED');
  expect(sealedTokens(app.dataDir)).toEqual(['']);
  const again = await session.start(smallRun);
  expect((await session.waitFor(again.id, 'FAILED')).failure).toMatchObject({
    code: 'token_erased',
    advice: expect.stringContaining('Launch the app again') as string,
  });
});

test('past its life: erased at the next start, but not while a run is under way', async () => {
  const sandbox = await startSandbox();
  const dataDir = await testFolder();
  const app = await startApp(sandbox.url, { dataDir });
  const ended = await launchApp(sandbox, app);
  const { id } = await ended.session.start(smallRun);
  const waiting = await ended.session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${waiting.operationId}/reject`);
  await ended.session.waitFor(id, 'REJECTED');
  const busy = await launchApp(sandbox, app);
  const { id: other } = await busy.session.start(smallRun);
  await busy.session.waitFor(other, 'AWAITING_APPROVAL');
  await app.close();
  expect(sealedTokens(dataDir).map((one) => one !== '')).toEqual([true, true]);
  const early = await startApp(sandbox.url, { dataDir, clock: { now: () => Date.now() + 11 * hour } });
  await early.close();
  expect(sealedTokens(dataDir).map((one) => one !== '')).toEqual([true, true]);
  const late = await startApp(sandbox.url, { dataDir, clock: { now: () => Date.now() + 13 * hour } });
  await late.close();
  expect(sealedTokens(dataDir).map((one) => one !== '')).toEqual([false, true]);
});
