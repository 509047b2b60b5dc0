/** Databases as each release left them, opened by this one. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { Kysely, PostgresDialect, sql, SqliteDialect } from 'kysely';
import pg from 'pg';
import { describe, expect, test, type TestOptions } from 'vitest';
import { Secret } from '../../src/app/config.ts';
import { openDatabase } from '../../src/app/database.ts';
import { createTokenSealer } from '../../src/app/launch/sealed-token.ts';
import { SqlLaunchStore } from '../../src/app/launch/sql-launch-store.ts';
import { appTables, LocklessPostgresDialect, migrate, migrations } from '../../src/app/migrations.ts';
import { SqlRunStore } from '../../src/app/runs/sql-run-store.ts';
import { migrateSandbox, openSandboxDatabase } from '../../src/sandbox/database.ts';
import { Catalog } from '../../src/sandbox/stac/catalog.ts';
import { search } from '../../src/sandbox/stac/search.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { query, startPostgres } from '../support/postgres.ts';
import { needing } from '../support/needs.ts';

interface Release {
  readonly version: string;
  readonly lastMigration: string;
}
const folder = join(projectRoot, 'lab/releases');
const releases = readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Release);

const sealer = createTokenSealer([new Secret('x'.repeat(32))]);
const isUnder = (release: Release, name: string) => name <= release.lastMigration;

/** A summary in the format of 0.1.0. */
const keptSummary = {
  width: 3,
  height: 2,
  corners: null,
  values: null,
  bands: [
    {
      name: 'ndvi',
      unit: null,
      min: 0,
      mean: 0.5,
      max: 1,
      stdDev: 0.1,
      validShare: 1,
      histogram: { low: 0, high: 1, counts: [3, 3] },
      colors: null,
      classes: null,
    },
  ],
};

async function fill(database: Kysely<unknown>, release: Release): Promise<void> {
  const token = await sealer.seal('launch', 'the-token');
  const hasChanges = !isUnder(release, '009-apart');
  const launch = hasChanges ? sql`, changes, changed_at` : sql``;
  const launchValues = hasChanges ? sql`, 7, 1700000000500` : sql``;
  await sql`insert into launches (id, first_token_hash, sealed_token, token_expires_at, "user", created_at ${launch})
    values ('launch', 'hash', ${token}, 1700003600000, '{"id":"u","name":"Ünï"}', 1700000000000 ${launchValues})`.execute(
    database,
  );
  await sql`insert into runs (id, owner, launch_id, state, step_id, step_version, parameters, input, idempotency_key, operation_id, created_at, updated_at, claim, worker)
    values ('waits', 'u', 'launch', 'AWAITING_APPROVAL', 'ndvi', '1.0.0', '{"bandA":"nir"}', '{"type":"synthetic","size":64}', 'key', 'op', 1700000000001, 1700000000400, 2, 'gone:1'),
           ('done', 'u', 'launch', 'COMPLETED', 'cog', '1.0.0', '{}', '{"type":"synthetic","size":64}', 'key2', 'op2', 1700000000002, 1700000000500, 1, null)`.execute(
    database,
  );
  await sql`insert into run_states (run_id, seq, state, at) values ('waits', 1, 'CREATED', 1700000000001), ('waits', 2, 'AWAITING_APPROVAL', 1700000000400)`.execute(
    database,
  );
  await sql`insert into run_stages (run_id, seq, state, attempt, worker, begun_at) values ('waits', 1, 'AWAITING_APPROVAL', 2, 'gone:1', 1700000000400)`.execute(
    database,
  );
  await sql`insert into run_progress (run_id, progress) values ('waits', '{}')`.execute(database);
  await sql`insert into run_results (run_id, summary, picture) values ('done', ${JSON.stringify(keptSummary)}, 'AAEC')`.execute(
    database,
  );
}

const adapters: [
  string,
  TestOptions,
  () => Promise<{ old: () => Kysely<unknown>; open: () => ReturnType<typeof openDatabase> }>,
][] = [
  [
    'SQLite',
    {},
    async () => {
      const dataDir = await testFolder();
      return {
        old: () => new Kysely({ dialect: new SqliteDialect({ database: new Sqlite(join(dataDir, 'app.db')) }) }),
        open: () => openDatabase({ dataDir, databaseUrl: null }),
      };
    },
  ],
  [
    'PostgreSQL',
    needing('postgresql'),
    async () => {
      const databaseUrl = await (await startPostgres()).create();
      return {
        old: () =>
          new Kysely({
            dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: databaseUrl, max: 1 }) }),
          }),
        open: () => openDatabase({ dataDir: '', databaseUrl }),
      };
    },
  ],
];

test("the sandbox's items of 0.2.0 are found, with their footprints and properties", async () => {
  const dataDir = await testFolder();
  const old = new Sqlite(join(dataDir, 'sandbox.db'));
  migrateSandbox(old, 12);
  old.exec(`
    insert into catalogs values ('root', null, 'root', 'root', 0);
    insert into collections values ('a', 'root', 'a', 'a', 'proprietary', '[]', 0, 0)`);
  const ring = [[20, 0], [25, 5], [20, 10], [20, 0]]; // oxfmt-ignore
  const parts = { type: 'MultiPolygon', coordinates: [[[[60, 0], [61, 0], [61, 1], [60, 0]]], [[[70, 0], [71, 0], [71, 1], [70, 0]]]] }; // oxfmt-ignore
  const insert = old.prepare(
    `insert into items (id, collection_id, title, datetime_ms, west, south, east, north, outline, geometry, properties, source)
     values (?, 'a', 't', 0, ?, ?, ?, ?, ?, ?, ?, '{"kind":"none"}')`,
  );
  insert.run('box', 0, 0, 10, 10, null, null, '{"n":1}');
  insert.run('across', 178, -1, -178, 1, null, null, '{"n":2}');
  insert.run('ring', 20, 0, 25, 10, Buffer.from(Float64Array.from(ring.flat()).buffer), null, '{"n":3,"name":"x"}');
  insert.run('parts', 60, 0, 71, 1, Buffer.alloc(0), JSON.stringify(parts), '{"n":4}');
  old.close();

  const database = openSandboxDatabase(dataDir);
  const catalog = new Catalog(database);
  try {
    const idsOf = async (request: Parameters<typeof search>[1]) =>
      (await search(catalog, { sortby: [{ field: 'properties.n', direction: 'asc' }], ...request })).items.map(({ id }) => id); // oxfmt-ignore
    expect(await idsOf({})).toEqual(['box', 'across', 'ring', 'parts']);
    expect(await idsOf({ bbox: [24, 0, 30, 1] })).toEqual([]);
    expect(await idsOf({ bbox: [24, 4, 30, 6] })).toEqual(['ring']);
    expect(await idsOf({ bbox: [-179, 0, 70.5, 0] })).toEqual(['box', 'across', 'ring', 'parts']);
    expect(await idsOf({ filter: { op: 'like', args: [{ property: 'name' }, '_'] } })).toEqual(['ring']);
    expect((await search(catalog, { ids: ['ring'] })).items[0]).toMatchObject({
      footprint: { type: 'Polygon', coordinates: [ring] },
      properties: { n: 3, name: 'x' },
    });
    expect((await search(catalog, { ids: ['parts'] })).items[0]?.footprint).toEqual(parts);
  } finally {
    await catalog.close();
    database.close();
  }
});

for (const [name, options, make] of adapters)
  describe(name, options, () => {
    test.each(releases)('what $version kept is there, to the letter, and goes on', async (release) => {
      const place = await make();
      const old = place.old();
      await migrate(old, release.lastMigration);
      await fill(old, release);
      await old.destroy();

      const database = await place.open();
      cleanUpLater(() => database.destroy());
      const runs = new SqlRunStore(database, Date.now, { isShared: name === 'PostgreSQL' });
      const launches = new SqlLaunchStore(database, sealer);
      expect(await launches.find('launch')).toEqual({
        id: 'launch',
        user: { id: 'u', name: 'Ünï' },
        createdAtMs: 1_700_000_000_000,
      });
      expect(await launches.tokens('launch').read()).toEqual({ token: 'the-token', expiresAtMs: 1_700_003_600_000 });
      expect(await runs.find('waits')).toMatchObject({
        state: 'AWAITING_APPROVAL',
        parameters: { bandA: 'nir' },
        operationId: 'op',
        claim: 2,
        owner: 'u',
      });
      expect((await runs.history('waits')).map(({ state }) => state)).toEqual(['CREATED', 'AWAITING_APPROVAL']);
      expect((await runs.stages('waits')).map(({ worker }) => worker)).toEqual(['gone:1']);
      // Newer values are filled in.
      expect(await runs.summary('done')).toEqual({ ...keptSummary, features: null, readings: [] });
      expect([...(await runs.picture('done'))!]).toEqual([0, 1, 2]);
      await sql`update run_results set summary = '{"width":3}'`.execute(database);
      expect(await runs.summary('done')).toBeNull();
      if (!isUnder(release, '009-apart'))
        expect(await runs.changesOf('launch')).toEqual({ number: 7, lastAtMs: 1_700_000_000_500, isUnderWay: true });
      // It goes on: claimed by a worker of today, and moved; nothing refers to what is not there.
      const claimed = (await runs.claim('waits', 'me'))!;
      await runs.transition(claimed, 'APPROVED');
      expect(await runs.forget(Date.now())).toBe(1);
      expect(await runs.find('done')).toBeNull();
      if (name === 'SQLite') expect((await sql`pragma foreign_key_check`.execute(database)).rows).toEqual([]);
      if (name === 'SQLite')
        expect((await sql`pragma foreign_keys`.execute(database)).rows).toEqual([{ foreign_keys: 1 }]);
      const { rows } = await sql<{ worker: string }>`select worker from runs where id = 'waits'`.execute(database);
      expect(rows).toEqual([{ worker: 'me' }]);
    });
  });

test('the last migration of each release is still there', () => {
  for (const { lastMigration } of releases) expect(Object.keys(migrations)).toContain(lastMigration);
});

test('a migration waits for requests of the last release, and blocks none', needing('postgresql'), async () => {
  const connectionString = await (await startPostgres()).create();
  const pool = new pg.Pool({ connectionString, max: 2 });
  const database = new Kysely<unknown>({ dialect: new LocklessPostgresDialect({ pool }) });
  const other = new pg.Client({ connectionString });
  // Its queries fail if they have to wait for the other transaction.
  const page = new pg.Client({ connectionString, statement_timeout: 3_000 });
  cleanUpLater(() => Promise.all([other.end(), page.end(), database.destroy()]));
  await Promise.all([other.connect(), page.connect()]);
  await migrate(database, '015-turns');

  await other.query('begin; update runs set turn = turn');
  let hasEnded = false;
  const migrating = migrate(database).finally(() => (hasEnded = true));
  migrating.catch(() => {});
  // The migration also changes `workers`. It makes several attempts meanwhile.
  for (let i = 0; i < 50; i++) {
    await page.query('select from workers');
    await page.query('select from runs');
    await sleep(20);
  }
  expect(hasEnded).toBe(false);
  await other.query('update workers set alive_at = 1; commit');
  expect(await migrating).toBe(true);
  expect((await page.query('select from step_jobs')).rowCount).toBe(0);
});

test('a migration locks every table of the app', needing('postgresql'), async () => {
  const connectionString = await (await startPostgres()).create();
  await (await openDatabase({ dataDir: '', databaseUrl: connectionString })).destroy();
  const rows = await query(connectionString, "select tablename as name from pg_tables where schemaname = 'public'");
  const names = rows.map(({ name }) => String(name)).filter((name) => !name.startsWith('kysely_'));
  expect(names.toSorted()).toEqual(appTables.toSorted());
});
