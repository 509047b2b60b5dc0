/** Promises of the stores in each database. Any store of a fork's can run the same suites. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { sql, type Kysely } from 'kysely';
import { describe, expect, test, type TestOptions } from 'vitest';
import { DatabaseUnavailableError } from '../../src/app/database-unavailable.ts';
import { openDatabase, type AppDatabase, type AppTables } from '../../src/app/database.ts';
import { createTokenSealer } from '../../src/app/launch/sealed-token.ts';
import { SqlLaunchStore } from '../../src/app/launch/sql-launch-store.ts';
import { SqlSessionStore } from '../../src/app/launch/session-store.ts';
import { Secret } from '../../src/app/config.ts';
import { localProgress, sharedProgress } from '../../src/app/runs/run-progress.ts';
import { SqlRunStore } from '../../src/app/runs/sql-run-store.ts';
import { sweep } from '../../src/app/sweep.ts';
import { assumedLimits } from '../../src/contract/index.ts';
import { launchStoreSuite } from '../support/suites/launch-store-suite.ts';
import { progressSuite } from '../support/suites/progress-suite.ts';
import { newRun, runStoreSuite } from '../support/suites/run-store-suite.ts';
import { sessionStoreSuite } from '../support/suites/session-store-suite.ts';
import { cleanUpAfterFile, cleanUpLater } from '../support/cleanup.ts';
import { sharedFolder, testFolder } from '../support/folders.ts';
import { needing } from '../support/needs.ts';
import { startPostgres } from '../support/postgres.ts';

const adapters: [string, TestOptions, () => Promise<AppDatabase>][] = [
  ['SQLite', {}, async () => openDatabase({ dataDir: await sharedFolder(), databaseUrl: null })],
  [
    'PostgreSQL',
    needing('postgresql'),
    async () => openDatabase({ dataDir: '', databaseUrl: await (await startPostgres()).create() }),
  ],
];

test('a SQLite file that another has locked for too long, or that has no room, is a database that is away', async () => {
  const dataDir = await testFolder();
  const database = await openDatabase({ dataDir, databaseUrl: null });
  cleanUpLater(() => database.destroy());
  const other = new Sqlite(join(dataDir, 'app.db'));
  cleanUpLater(async () => void other.close());
  const store = new SqlRunStore(database, Date.now);
  other.exec('begin immediate');
  await expect(store.release('nobody')).rejects.toBeInstanceOf(DatabaseUnavailableError);
  other.exec('rollback');
  await store.release('nobody');
  // No page more than there are.
  await sql`pragma max_page_count = 1`.execute(database);
  const fill = async (into: Kysely<AppTables>) => {
    for (let i = 0; i < 200; i++)
      await into
        .insertInto('workers')
        .values({ name: `${i}${'x'.repeat(2_000)}`, rests: 0, alive_at: 0 })
        .execute();
  };
  await expect(database.transaction().execute(fill)).rejects.toBeInstanceOf(DatabaseUnavailableError);
  await expect(fill(database)).rejects.toBeInstanceOf(DatabaseUnavailableError);
  await expect(sql`select nonsense from nothing`.execute(database)).rejects.not.toBeInstanceOf(
    DatabaseUnavailableError,
  );
});

for (const [name, options, open] of adapters) describe(name, options, () => suites(name, open));

function suites(name: string, open: () => Promise<AppDatabase>): void {
  const tools = { test, expect };
  const opened = async () => {
    const database = await open();
    // A suite's tests share it.
    cleanUpAfterFile(() => database.destroy());
    return database;
  };
  const isShared = name === 'PostgreSQL';
  const sealer = createTokenSealer([new Secret('x'.repeat(32))]);

  describe('runs', () =>
    runStoreSuite(tools, async (now) => {
      const database = await opened();
      return {
        store: new SqlRunStore(database, now, { isShared }),
        silence: (worker) =>
          database
            .updateTable('workers')
            .set((of) => ({ alive_at: of('alive_at', '-', 3_600_000) }))
            .where('name', '=', worker)
            .execute(),
      };
    }));

  describe('launches', () =>
    launchStoreSuite(tools, async () => {
      const database = await opened();
      return {
        store: new SqlLaunchStore(database, sealer, { isShared }),
        reopen: async () => new SqlLaunchStore(database, sealer),
        dump: async () => JSON.stringify(await database.selectFrom('launches').selectAll().execute()),
      };
    }));

  describe('sessions', () =>
    sessionStoreSuite(tools, async (now) => {
      const database = await opened();
      const rows = () => database.selectFrom('sessions').selectAll().execute();
      return {
        store: new SqlSessionStore(database, now),
        count: async () => (await rows()).length,
        dump: async () => JSON.stringify(await rows()),
      };
    }));

  describe('progress', () =>
    progressSuite(tools, async () => {
      const database = await opened();
      const runs = new SqlRunStore(database, Date.now, { isShared });
      const run = newRun({ id: 'r', launchId: 'l' });
      await runs.create(run);
      return {
        writer: sharedProgress(database, { failed: () => {}, succeeded: () => {} }),
        reader: sharedProgress(database, { failed: () => {}, succeeded: () => {} }),
        run,
        changes: async () => (await runs.changesOf('l')).number,
      };
    }));

  test('a sweep forgets what is old, and leaves what is under way', async () => {
    const database = await opened();
    const [launches, runs] = [new SqlLaunchStore(database, sealer), new SqlRunStore(database, Date.now, { isShared })];
    const hour = 3_600_000;
    const nowMs = 1_000 * hour;
    for (const [id, atMs] of [
      ['empty', 0],
      ['used', 0],
      ['busy', 0],
      ['new', nowMs],
    ] as const)
      await launches.begin({ id, user: { id: 'u' }, createdAtMs: atMs }, id, { token: id, expiresAtMs: null });
    await runs.create(newRun({ launchId: 'used', state: 'REJECTED', createdAtMs: 1, updatedAtMs: nowMs }));
    await runs.create(newRun({ launchId: 'busy', createdAtMs: 1, updatedAtMs: 1 }));
    const stores = { runs, launches, sessions: new SqlSessionStore(database, () => nowMs) };
    const options = { nowMs, keepMs: 24 * hour, limits: assumedLimits };
    expect(await sweep(stores, options)).toEqual({ runs: 0, launches: 1 });
    const isThere = async (id: string) => (await launches.find(id)) !== null;
    expect(await Promise.all(['empty', 'used', 'busy', 'new'].map(isThere))).toEqual([false, true, true, true]);
    await expect(launches.tokens('used').read()).rejects.toMatchObject({ code: 'token_erased' });
    expect([await launches.tokens('busy').read(), await launches.tokens('new').read()]).toMatchObject([
      { token: 'busy' },
      { token: 'new' },
    ]);
  });
}

describe('progress in one process', () =>
  progressSuite({ test, expect }, async () => {
    const board = localProgress();
    return { writer: board, reader: board, run: { id: 'r', launchId: 'l', state: 'UPLOADING' } };
  }));
