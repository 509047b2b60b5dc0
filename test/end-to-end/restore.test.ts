// @module-tag all
/** Back-ups as docs/data-and-secrets.md says: a run that waited when the back-up was made is completed after the restore. */
import { execFile } from 'node:child_process';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { launchApp, smallRun, startApp, type TestApp } from '../support/app.ts';
import { testFolder } from '../support/folders.ts';
import { needing } from '../support/needs.ts';
import { startPostgres } from '../support/postgres.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

const run = promisify(execFile);

async function waitingRun(sandbox: TestSandbox, app: TestApp) {
  const { session, launchId } = await launchApp(sandbox, app);
  const { id } = await session.start(smallRun);
  const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
  return { id, operationId, launchId };
}

async function expectCompleted(
  sandbox: TestSandbox,
  { operationId, launchId }: { operationId: unknown; launchId: string },
) {
  await sandbox.control('POST', `operations/${String(operationId)}/approve`);
  const uploads = async () => (await sandbox.control('GET', `launches/${launchId}`)).uploads;
  await expect
    .poll(async () => (await uploads()).filter(({ fileId }) => fileId !== null).length, { timeout: 600_000 })
    .toBe(1);
  expect((await sandbox.control('GET', `launches/${launchId}`)).operations).toHaveLength(1);
}

test('SQLite: a copy of the data folder', async () => {
  const sandbox = await startSandbox();
  const dataDir = join(await testFolder(), 'data');
  const app = await startApp(sandbox.url, { dataDir });
  const waiting = await waitingRun(sandbox, app);
  await app.close();
  const copy = join(await testFolder(), 'copy');
  await cp(dataDir, copy, { recursive: true });
  await startApp(sandbox.url, { dataDir: copy });
  await expectCompleted(sandbox, waiting);
});

test('PostgreSQL: pg_dump and pg_restore', needing('postgresql'), async () => {
  const [sandbox, cluster] = [await startSandbox(), await startPostgres()];
  const env = (databaseUrl: string) => ({ DATABASE_URL: databaseUrl, STEP_CONFINEMENT: 'auto' });
  const [first, second] = [await cluster.create(), await cluster.create()];
  const app = await startApp(sandbox.url, { env: env(first) });
  const waiting = await waitingRun(sandbox, app);
  const dump = join(await testFolder(), 'app.dump');
  await run('pg_dump', ['--format=custom', `--file=${dump}`, first]);
  await app.close();
  await run('pg_restore', [`--dbname=${second}`, dump]);
  await startApp(sandbox.url, { env: env(second) });
  await expectCompleted(sandbox, waiting);
});
