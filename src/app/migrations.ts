import { setTimeout as sleep } from 'node:timers/promises';
import { PostgresAdapter, PostgresDialect, sql, SqliteAdapter, type Kysely } from 'kysely';
import { Migrator, type Migration } from 'kysely/migration';
import { KitError } from '../contract/index.ts';
import { codeOf, messageOf } from '../files/index.ts';
import { DatabaseUnavailableError } from './database-unavailable.ts';

/** SQL that runs once. `texts` are what a release holds: they never change afterwards. */
interface SqlMigration extends Migration {
  readonly texts: readonly string[];
}

const statements = (...texts: string[]): SqlMigration => ({
  texts,
  async up(database: Kysely<unknown>) {
    for (const text of texts) await sql.raw(text).execute(database);
  },
});

const isSqlite = (database: Kysely<unknown>) => database.getExecutor().adapter instanceof SqliteAdapter;

const withoutLaunches = statements(`alter table runs drop constraint if exists runs_launch_id_fkey`);

/** SQLite cannot drop a constraint, so this rebuilds the table. `openDatabase` turns foreign keys off meanwhile. */
const withoutLaunchesInSqlite = statements(
  `create table runs_before as select * from runs`,
  `drop table runs`,
  `create table runs (
    id text primary key, launch_id text not null, state text not null,
    step_id text not null, step_version text not null, parameters text not null, input text not null,
    idempotency_key text not null, operation_id text, operation_expires_at bigint, output text, upload text,
    file text, failure text, created_at bigint not null, updated_at bigint not null,
    claim bigint not null default 0, worker text, owner text not null default '')`,
  `insert into runs select * from runs_before`,
  `drop table runs_before`,
  `create index runs_by_launch on runs (launch_id, created_at)`,
  `create index runs_by_state on runs (state)`,
  `create index runs_by_owner on runs (owner, state)`,
  `create index runs_by_worker on runs (worker)`,
  `create index runs_by_launch_and_state on runs (launch_id, state)`,
  `create index runs_by_change on runs (updated_at)`,
  `create index runs_by_owner_and_time on runs (owner, created_at)`,
  `create index runs_by_owner_and_change on runs (owner, updated_at)`,
);

const apartTables = statements(
  `create table launch_changes (launch_id text primary key, changes bigint not null, changed_at bigint not null)`,
  `insert into launch_changes select id, changes, changed_at from launches where changes > 0`,
  `alter table launches drop column changes`,
  `alter table launches drop column changed_at`,
);
const apart: SqlMigration = {
  texts: [...apartTables.texts, ...withoutLaunches.texts, ...withoutLaunchesInSqlite.texts],
  async up(database: Kysely<unknown>) {
    await apartTables.up(database);
    await (isSqlite(database) ? withoutLaunchesInSqlite : withoutLaunches).up(database);
  },
};

const fleetTables = statements(
  `alter table workers add column can text`,
  `alter table workers add column rests bigint not null default 0`,
  `create table turns (id bigint primary key, served bigint not null)`,
  `insert into turns
    select 1, coalesce(min(turn), 0) from runs where worker is null and state in ('APPROVED', 'PROCESSING')`,
  `create index runs_without_worker on runs (updated_at) where worker is null
    and state in ('CREATED', 'AWAITING_APPROVAL', 'APPROVED', 'PROCESSING', 'UPLOADING')`,
  `create index runs_by_turn on runs (turn, updated_at) where worker is null and state in ('APPROVED', 'PROCESSING')`,
  `create table schema_floor (id bigint primary key, oldest text not null)`,
  `insert into schema_floor values (1, '015-turns')`,
);

/**
 * Workers of 1.0.0 fail runs whose step they do not have. While a worker that records its steps has the step, they cannot claim such a run. The release after
 * this one removes the trigger.
 */
const leaveToNewer = statements(
  `create function leave_to_newer() returns trigger language plpgsql as $$
  begin
    if exists (select from workers where name = new.worker and can is null) and exists (
      select from workers where can like '%"' || new.step_id || '@' || new.step_version || '"%'
        and alive_at > extract(epoch from clock_timestamp()) * 1000 - 10000)
    then return null; end if;
    return new;
  end $$`,
  `create trigger leave_to_newer before update of worker on runs for each row
    when (new.worker is not null and new.worker is distinct from old.worker and new.state in ('APPROVED', 'PROCESSING'))
    execute function leave_to_newer()`,
);
const fleet: SqlMigration = {
  texts: [...fleetTables.texts, ...leaveToNewer.texts],
  async up(database: Kysely<unknown>) {
    await fleetTables.up(database);
    if (!isSqlite(database)) await leaveToNewer.up(database);
  },
};

/** Each runs once, in the order of the names; SQL that SQLite and PostgreSQL both take. Never change one that was released. */
export const migrations: Readonly<Record<string, SqlMigration>> = {
  '001-runs': statements(
    `create table if not exists launches (
      id text primary key, first_token_hash text not null unique, sealed_token text not null,
      token_expires_at bigint, "user" text not null, created_at bigint not null)`,
    `create table if not exists runs (
      id text primary key, launch_id text not null references launches (id), state text not null,
      step_id text not null, step_version text not null, parameters text not null, input text not null,
      idempotency_key text not null, operation_id text, operation_expires_at bigint, output text, upload text,
      file text, failure text, created_at bigint not null, updated_at bigint not null)`,
    `create index if not exists runs_by_launch on runs (launch_id, created_at)`,
    `create table if not exists run_states (
      run_id text not null references runs (id), state text not null, at bigint not null)`,
    `create index if not exists run_states_by_run on run_states (run_id)`,
    `create table if not exists sessions (id text primary key, data text not null, expires_at bigint not null)`,
  ),
  '002-workers': statements(
    `alter table runs add column claim bigint not null default 0`,
    `alter table runs add column worker text`,
    `create index runs_by_state on runs (state)`,
    `create table run_stages (
      run_id text not null references runs (id), state text not null, attempt bigint not null, worker text not null,
      begun_at bigint not null, ended_at bigint, outcome text)`,
    `create index run_stages_by_run on run_stages (run_id)`,
    `create table run_progress (run_id text primary key references runs (id), progress text not null)`,
  ),
  '003-owners': statements(
    `alter table runs add column owner text not null default ''`,
    `create index runs_by_owner on runs (owner, state)`,
  ),
  // Gives two states of one millisecond an order; older states keep the order of their times.
  '004-order': statements(
    `alter table run_states add column seq bigint not null default 0`,
    `alter table run_stages add column seq bigint not null default 0`,
  ),
  '005-leases': statements(
    `create table workers (name text primary key, alive_at bigint not null)`,
    `update runs set worker = null where state in ('COMPLETED', 'REJECTED', 'EXPIRED', 'CANCELLED', 'FAILED')`,
    `create index runs_by_worker on runs (worker)`,
    `create index run_stages_by_worker on run_stages (worker)`,
  ),
  // One number tells a page whether a launch has changed.
  '006-changes': statements(
    `alter table launches add column changes bigint not null default 0`,
    `alter table launches add column changed_at bigint not null default 0`,
    `create index runs_by_launch_and_state on runs (launch_id, state)`,
    `create index runs_by_change on runs (updated_at)`,
  ),
  '007-results': statements(
    `create table run_results (run_id text primary key references runs (id), summary text not null, picture text not null)`,
  ),
  '008-runs-of-a-user': statements(
    `create index runs_by_owner_and_time on runs (owner, created_at)`,
    `create index runs_by_owner_and_change on runs (owner, updated_at)`,
  ),
  // Runs and launches may lie in stores of their own: neither refers to the other's table.
  '009-apart': apart,
  // The estimate that the user saw before the approval.
  '010-estimates': statements(`alter table runs add column estimate text`),
  // Lists since a run has several outputs.
  '011-several-outputs': statements(
    `alter table runs rename column output to outputs`,
    `alter table runs rename column file to files`,
    `update runs set outputs = '[' || outputs || ']' where outputs is not null`,
    `update runs set files = '[' || files || ']' where files is not null`,
  ),
  // Facts about the making of a run's outputs.
  '012-provenance': statements(`alter table runs add column provenance text`),
  // The body of the create call, which a repeat must not change.
  '013-operation-requests': statements(`alter table runs add column operation_request text`),
  // Identifies a launch by its renewed token too.
  '014-latest-tokens': statements(
    `alter table launches add column latest_token_hash text`,
    `create index launches_by_latest_token on launches (latest_token_hash)`,
  ),
  // The order of processing, and an index that finds old runs without a scan.
  '015-turns': statements(
    `alter table runs add column turn bigint not null default 0`,
    `create index runs_by_state_and_change on runs (state, updated_at)`,
    `drop index runs_by_state`,
  ),
  // Steps that each worker can do, the turn that was served last, and the oldest release that this schema still serves.
  '016-fleet': fleet,
  // Needs of runs, sizes of workers, the use of runs, and the jobs that engines outside the app have.
  '017-placement': statements(
    `alter table runs add column memory_limit bigint`,
    `alter table runs add column needs_label text`,
    `alter table runs add column needs_memory bigint not null default 0`,
    `alter table runs add column needs_cores bigint not null default 0`,
    `alter table runs add column needs_disk bigint not null default 0`,
    `alter table runs add column usage text`,
    `alter table workers add column labels text`,
    `alter table workers add column memory bigint`,
    `alter table workers add column cores bigint`,
    `alter table workers add column disk bigint`,
    `create table step_jobs (run_id text not null, part bigint not null, name text not null unique,
      token_hash text not null, session_hash text, sealed_hash text not null, owner_url text not null, primary key (run_id, part))`,
    `alter table runs add column grid text`,
  ),
};

/** True if the database lacks a migration of this release. */
export async function isOutdated<Tables>(database: Kysely<Tables>): Promise<boolean> {
  const provider = { getMigrations: () => Promise.resolve({ ...migrations }) };
  const known = await new Migrator({ db: database, provider }).getMigrations();
  return known.some(({ executedAt }) => executedAt === undefined);
}

/** The newest migration that this release knows. */
export const newestMigration = Object.keys(migrations).toSorted().at(-1) ?? '';

/** Brings a database up to date, or as far as a named migration; processes that start at the same time wait for each other. True where there was something to do. */
export async function migrate<Tables>(database: Kysely<Tables>, upTo?: string): Promise<boolean> {
  // Kysely runs each statement by itself on SQLite, where one process migrates.
  if (!database.getExecutor().adapter.supportsTransactionalDdl) return migrateIn(database, upTo);
  let untilMs: number | null = null;
  for (;;) {
    try {
      return await database.transaction().execute(async (transaction) => {
        await lockMigrations(transaction);
        if (await isOutdated(transaction)) await lockTables(transaction);
        return migrateIn(transaction, upTo);
      });
    } catch (error) {
      untilMs ??= performance.now() + patienceMs;
      if (!isLocked(error) || performance.now() > untilMs) throw error;
      await sleep(pauseMs * (0.5 + Math.random()));
    }
  }
}

/** Maximum time for further attempts, after the first one fails because another process uses a table. */
const patienceMs = 60_000;
const pauseMs = 100;

/** Tables of the app. A migration locks those that exist. */
export const appTables: readonly string[] = ['launches', 'launch_changes', 'runs', 'workers', 'turns', 'schema_floor', 'run_states', 'run_stages', 'run_progress', 'step_jobs', 'run_results', 'sessions']; // oxfmt-ignore

/**
 * Locks all tables or none. A migration that holds one table and waits for another could cause a deadlock with a request of
 * the last release, and would block all other requests. Fails at once (55P03) if another transaction uses a table.
 */
async function lockTables<Tables>(transaction: Kysely<Tables>): Promise<void> {
  const names = sql.join(appTables.map((name) => sql.lit(name)));
  const { rows } = await sql<{ name: string }>`select tablename as name from pg_tables
    where schemaname = current_schema() and tablename in (${names}) order by tablename`.execute(transaction);
  if (rows.length === 0) return;
  const present = sql.join(rows.map(({ name }) => sql.table(name)));
  await sql`lock table ${present} in access exclusive mode nowait`.execute(transaction);
}

/** True if another transaction uses a table. */
const isLocked = (error: unknown): boolean =>
  codeOf(error instanceof DatabaseUnavailableError ? error.cause : error) === '55P03';

/** Waits until no other process migrates. The lock ends with the transaction, so that a pooler such as PgBouncer cannot give it to somebody else. Releases up to 1.0.0 use the same key. */
const lockMigrations = <Tables>(transaction: Kysely<Tables>) =>
  sql`select pg_advisory_xact_lock(3853314791062309107)`.execute(transaction);

/** PostgreSQL without Kysely's own lock, which belongs to a session. `migrate` locks. */
export class LocklessPostgresDialect extends PostgresDialect {
  override createAdapter(): PostgresAdapter {
    return new LocklessAdapter();
  }
}

class LocklessAdapter extends PostgresAdapter {
  override acquireMigrationLock(): Promise<void> {
    return Promise.resolve();
  }

  override releaseMigrationLock(): Promise<void> {
    return Promise.resolve();
  }
}

async function migrateIn<Tables>(database: Kysely<Tables>, upTo: string | undefined): Promise<boolean> {
  const provider = { getMigrations: () => Promise.resolve({ ...migrations }) };
  const migrator = new Migrator({ db: database, provider });
  const { error, results = [] } = await (upTo === undefined ? migrator.migrateToLatest() : migrator.migrateTo(upTo));
  // Kysely has no class for this error.
  const [, missing] = /previously executed migration (\S+) is missing/.exec(messageOf(error)) ?? [];
  if (missing !== undefined)
    throw new KitError(
      'database_newer',
      `the database is from a newer version of the app (migration ${missing}): start that version, or use a copy from before the update (docs/upgrading.md)`,
    );
  if (error !== undefined) throw error;
  return results.length > 0;
}
