// @module-tag all
/** The command `ops`, with a running app on SQLite. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import { expect, test, vi } from 'vitest';
import { migrate } from '../../src/app/migrations.ts';
import { readFilter } from '../../src/app/runs/run-filter.ts';
import { launchApp, smallRun, startApp } from '../support/app.ts';
import { testFolder } from '../support/folders.ts';
import { startCommand } from '../support/processes.ts';
import { startSandbox } from '../support/sandbox.ts';

async function ops(args: readonly string[], dataDir: string): Promise<{ code: unknown; text: string }> {
  const { output, exited } = startCommand('ops', args, { DATA_DIR: dataDir });
  return { code: await exited, text: output() };
}
const json = async (args: readonly string[], dataDir: string) =>
  JSON.parse((await ops([...args, '--json'], dataDir)).text) as unknown;

test('with SQLite: status, runs, why, cancel and retry', async () => {
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url, { dataDir: await testFolder() });
  const { session } = await launchApp(sandbox, app, { userId: 'amina' });
  const { id } = await session.start(smallRun);
  const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');

  expect(await json(['status'], app.dataDir)).toMatchObject({
    runs: [{ state: 'AWAITING_APPROVAL', number: 1, oldestSeconds: expect.any(Number) as number }],
    stranded: [],
  });
  expect(await json(['runs', '--where', 'state=AWAITING_APPROVAL,since=1h,owner=amina'], app.dataDir)).toMatchObject([
    { id, state: 'AWAITING_APPROVAL', owner: 'amina', code: null },
  ]);
  expect(await json(['runs', '--where', 'state=FAILED'], app.dataDir)).toEqual([]);
  const why = await ops(['why', id], app.dataDir);
  expect(why).toMatchObject({ code: 0 });
  expect(why.text).toMatch(new RegExp(`^run ${id}: AWAITING_APPROVAL, \\S+@\\S+, user amina`));
  expect(why.text).toMatch(/states:\n {2}\S+ {2}CREATED\n {2}\S+ {2}AWAITING_APPROVAL\n/);
  // A retry creates a new run with a new operation.
  expect(await ops(['retry', id], app.dataDir)).toEqual({
    code: 1,
    text: `${id}  is AWAITING_APPROVAL; only a run that has ended can be retried\n`,
  });
  expect(await ops(['cancel', '--where', 'state=AWAITING_APPROVAL'], app.dataDir)).toEqual({
    code: 0,
    text: `${id}  is CANCELLED\n`,
  });
  await vi.waitFor(async () => expect((await session.run(id)).state).toBe('CANCELLED'));
  const [again] = (await json(['retry', id], app.dataDir)) as { note: string }[];
  const newId = again!.note.split(' ').at(-1)!;
  const begun = await session.waitFor(newId, 'AWAITING_APPROVAL');
  expect(begun.operationId).not.toBe(operationId);
  await sandbox.control('POST', `operations/${begun.operationId}/approve`);
  expect((await session.waitFor(newId, 'COMPLETED')).parameters).toEqual((await session.run(id)).parameters);
  expect(await ops(['cancel', newId], app.dataDir)).toEqual({ code: 1, text: `${newId}  is COMPLETED already\n` });
  expect((await ops(['why', 'nobody'], app.dataDir)).text).toBe('there is no run nobody\n');
}, 90_000);

test.each([
  [[], /usage: marketplace-app-kit ops/],
  [['statsu'], /there is no command statsu\. Did you mean status\?/],
  [['runs', '--where', 'stat=FAILED'], /Did you mean state\?/],
  [['runs', '--where', 'state=BROKEN'], /it is one of CREATED/],
  [['runs', '--limit', '0'], /whole number from 1/],
  [['status'], /holds no database of an app/],
])('%j is refused', async (args, message) => {
  const { code, text } = await ops(args, await testFolder());
  expect([code, text]).toEqual([1, expect.stringMatching(message)]);
});

test('a database of an earlier release stays as it is', async () => {
  const dataDir = await testFolder();
  const file = new Sqlite(join(dataDir, 'app.db'));
  const database = new Kysely<unknown>({ dialect: new SqliteDialect({ database: file }) });
  await migrate(database, '015-turns');
  expect(await ops(['status'], dataDir)).toEqual({
    code: 1,
    text: expect.stringMatching(/^the database is from an earlier version of the app: use that version/) as string,
  });
  expect(file.prepare("select name from sqlite_master where name = 'turns'").get()).toBeUndefined();
  await database.destroy();
});

test('a filter is read', () => {
  expect(readFilter('state=FAILED,code=disk_full,step=ndvi,worker=a:1,since=2h', 10_000_000)).toEqual({
    ...{ state: 'FAILED', code: 'disk_full', stepId: 'ndvi', worker: 'a:1', sinceMs: 2_800_000 },
  });
  for (const text of ['since=2', 'since=h', 'state', '']) expect(() => readFilter(text, 0), text).toThrow();
});
