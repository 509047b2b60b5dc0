import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { Kysely, PostgresDialect, sql, SqliteDialect } from 'kysely';
import pg from 'pg';
import { KitError } from '../contract/index.ts';
import { codeOf, ensurePrivateFile, isTransient } from '../files/index.ts';
import { DatabaseUnavailableError, QuietClient, tellingFile, tellingPool } from './database-unavailable.ts';
import { isOutdated, LocklessPostgresDialect, migrate } from './migrations.ts';
import type { RunState } from './runs/run-state.ts';

/** A connection whose other end is gone without a word would else be waited for as long as TCP does, a quarter of an hour. */
const answerWithinMs = 20_000;

export interface LaunchRow {
  id: string;
  /** SHA-256 of the token that began the launch: tells a replay without keeping the token. */
  first_token_hash: string;
  /** SHA-256 of the current token; null for rows that an older version wrote. */
  latest_token_hash: string | null;
  /** The token in force, as a JWE. */
  sealed_token: string;
  token_expires_at: number | null;
  /** JSON of the platform's user details. */
  user: string;
  created_at: number;
}

/** Number of changes to the runs of a launch, and the time of the last change. */
export interface LaunchChangesRow {
  launch_id: string;
  changes: number;
  changed_at: number;
}

export interface RunRow {
  id: string;
  /** Id of the user who owns the run; empty for runs from before the app kept it. */
  owner: string;
  launch_id: string;
  state: RunState;
  step_id: string;
  step_version: string;
  /** JSON, like every column below that is not a plain value. */
  parameters: string;
  input: string;
  idempotency_key: string;
  operation_request: string | null;
  operation_id: string | null;
  operation_expires_at: number | null;
  outputs: string | null;
  provenance: string | null;
  upload: string | null;
  files: string | null;
  failure: string | null;
  estimate: string | null;
  /** Kind of machine that the run needs. Null: every machine will do. */
  needs_label: string | null;
  /** Bytes, cores and bytes that its worker must have. 0: any number will do. */
  needs_memory: number;
  needs_cores: number;
  needs_disk: number;
  /** Memory limit of its step, in bytes. Null: that of the worker. */
  memory_limit: number | null;
  /** JSON of the size of its raster in pixels. Null if it is not known. */
  grid: string | null;
  /** JSON of `RunUsage`. Null until the step has ended. */
  usage: string | null;
  /** Number of times that workers have claimed the run. Only the latest claim may write. */
  claim: number;
  /** The worker that has the run; null if nobody has it or it has ended. */
  worker: string | null;
  /** Order in which waiting runs are processed. Lower numbers come first. */
  turn: number;
  created_at: number;
  updated_at: number;
}

/** A process that takes runs. */
export interface WorkerRow {
  name: string;
  /** Time of its last lease. */
  alive_at: number;
  /** JSON of its steps, each as `id@version`. Null for a release that does not report them and takes every run. */
  can: string | null;
  /** 1 if an operator drains it. */
  rests: number;
  /** JSON of its labels. Null for a release that does not report them, like the three sizes. */
  labels: string | null;
  memory: number | null;
  cores: number | null;
  disk: number | null;
}

/** One row. */
export interface TurnsRow {
  id: number;
  /** The turn of the run that was begun last. */
  served: number;
}

/** One row. */
export interface SchemaFloorRow {
  id: number;
  /** The newest migration that a process must know, at least, to work with this schema. */
  oldest: string;
}

/** One stage of a run as one worker did it. */
export interface RunStageRow {
  run_id: string;
  /** Place among the run's stages, from 1. */
  seq: number;
  state: RunState;
  /** The run's claim: which attempt it was. */
  attempt: number;
  worker: string;
  begun_at: number;
  ended_at: number | null;
  /** The state that it led to, or `given back`, or `abandoned` where another worker took over. */
  outcome: string | null;
}

/** The job of a run's current attempt, which an engine outside the app has. */
export interface StepJobRow {
  run_id: string;
  /** Number of the tile, from 1. 0: the whole run. */
  part: number;
  name: string;
  token_hash: string;
  session_hash: string | null;
  /** Digest of what the job does. */
  sealed_hash: string;
  owner_url: string;
}

export interface RunProgressRow {
  run_id: string;
  /** JSON of `RunProgress`. */
  progress: string;
}

export interface RunResultRow {
  run_id: string;
  /** JSON of `OutputSummary`. */
  summary: string;
  /** A PNG in base64, which SQLite and PostgreSQL both take as text. */
  picture: string;
}

export interface RunStateRow {
  run_id: string;
  /** Place in the run's history, from 1. */
  seq: number;
  state: RunState;
  at: number;
}

export interface SessionRow {
  id: string;
  data: string;
  expires_at: number;
}

export interface AppTables {
  launches: LaunchRow;
  launch_changes: LaunchChangesRow;
  runs: RunRow;
  workers: WorkerRow;
  turns: TurnsRow;
  schema_floor: SchemaFloorRow;
  run_states: RunStateRow;
  run_stages: RunStageRow;
  run_progress: RunProgressRow;
  step_jobs: StepJobRow;
  run_results: RunResultRow;
  sessions: SessionRow;
}

export type AppDatabase = Kysely<AppTables>;

/** Connections of one process to PostgreSQL. */
const defaultConnections = 10;

export interface DatabaseOptions {
  readonly dataDir: string;
  /** Address of PostgreSQL. Null: SQLite under `dataDir`. */
  readonly databaseUrl: string | null;
  /** False: a database of an earlier release is an error, and stays as it is. Default: true. */
  readonly migrates?: boolean;
  /** Most connections to PostgreSQL. Default: 10. */
  readonly connections?: number;
  /** Maximum time to retry if PostgreSQL does not answer, in milliseconds. Default 0. */
  readonly waitMs?: number;
  /** Called once, when the wait begins. */
  readonly onWait?: (reason: string) => void;
}

const pools = new WeakMap<AppDatabase, pg.Pool>();

/** Connections of an open database to PostgreSQL by use, and the queries that wait for one. Null for SQLite. */
export function connectionsOf(database: AppDatabase): { total: number; idle: number; waiting: number } | null {
  const pool = pools.get(database);
  return pool ? { total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount } : null;
}

const askAgainMs = 1_000;

/** Opens the app's database and brings it up to date: PostgreSQL at `databaseUrl`, else SQLite under `dataDir`. What it acknowledges outlives a power cut. */
export async function openDatabase({ waitMs = 0, onWait, ...options }: DatabaseOptions): Promise<AppDatabase> {
  const untilMs = performance.now() + waitMs;
  for (let tries = 1; ; tries++) {
    try {
      return await openNow(options);
    } catch (error) {
      const isAway = error instanceof KitError && error.data['isAway'] === true;
      if (!isAway || performance.now() + askAgainMs > untilMs) throw error;
      if (tries === 1) onWait?.(error.message);
      await sleep(askAgainMs);
    }
  }
}

async function openNow({
  dataDir,
  databaseUrl,
  migrates = true,
  connections = defaultConnections,
}: DatabaseOptions): Promise<AppDatabase> {
  const shared =
    databaseUrl === null ? null : postgres(databaseUrl, { max: connections, query_timeout: answerWithinMs });
  const database = new Kysely<AppTables>({ dialect: shared?.dialect ?? sqlite(dataDir) });
  if (shared) pools.set(database, shared.pool);
  // A migration of a large table takes as long as it takes.
  const migrated =
    databaseUrl === null ? database : new Kysely<AppTables>({ dialect: postgres(databaseUrl, { max: 1 }).dialect });
  try {
    if (!migrates && (await isOutdated(migrated)))
      throw new KitError(
        'database_older',
        'the database is from an earlier version of the app: use that version, or run migrate first (docs/upgrading.md)',
      );
    const hasChanged = await migrate(migrated);
    if (databaseUrl === null) await enforceReferences(database, { hasChanged });
    if (migrated !== database) await migrated.destroy();
  } catch (error) {
    await migrated.destroy();
    if (migrated !== database) await database.destroy();
    // A connection's error can hold the address, and that the password.
    if (error instanceof KitError && ['database_newer', 'database_older'].includes(error.code)) throw error;
    const reason = reasonOf(error instanceof DatabaseUnavailableError ? error.cause : error);
    if (databaseUrl === null) {
      if (!(error instanceof DatabaseUnavailableError)) throw error;
      throw new KitError(
        'database_unavailable',
        `the app could not open the database ${join(dataDir, 'app.db')} (${reason})`,
      );
    }
    throw new KitError('database_unavailable', `DATABASE_URL: the app could not open the database (${reason})`, {
      data: { isAway: isAway(error) },
    });
  }
  return database;
}

/** Checks SQLite's foreign keys, because its migrations run without them. Throws if one left a row that refers to nothing. */
async function enforceReferences(database: AppDatabase, { hasChanged }: { hasChanged: boolean }): Promise<void> {
  if (hasChanged) {
    const { rows } = await sql<{ table: string }>`pragma foreign_key_check`.execute(database);
    if (rows.length > 0)
      throw new Error(`${rows.length} rows refer to rows that are not there, the first of them in ${rows[0]?.table}`);
  }
  await sql`pragma foreign_keys = on`.execute(database);
}

/** True if the server is starting or cannot be reached yet. Waiting does not help against a wrong password or name. */
function isAway(error: unknown): boolean {
  const code = codeOf(error instanceof DatabaseUnavailableError ? error.cause : error);
  // The driver's own errors have no code.
  if (code === null) return /timeout|terminated/i.test(driverMessageOf(error));
  return isTransient({ code }) || /^(57P0[1-3]|08...|53...)$/.test(code);
}

const driverMessageOf = (error: unknown) => {
  const { message }: { message?: unknown } = (error instanceof DatabaseUnavailableError ? error.cause : error) ?? {};
  return typeof message === 'string' ? message : '';
};

/** The code of a connection's or a database's error, which holds no address. */
/** Codes of the system, of PostgreSQL and of SQLite, in words. */
const reasons: Readonly<Record<string, string>> = {
  ENOTFOUND: 'no machine has this name',
  ECONNREFUSED: 'nothing listens there',
  EHOSTUNREACH: 'the host cannot be reached',
  ETIMEDOUT: 'no answer in time',
  '28P01': 'the password is wrong',
  '28000': 'the role may not log in',
  '3D000': 'there is no such database',
  '42501': 'the role lacks a permission',
  '53100': 'its disk is full',
  '53300': 'it has no free connection',
  '55P03': 'other transactions used its tables for a minute',
  '57P03': 'it is starting or stopping',
  SQLITE_FULL: 'the disk is full',
  SQLITE_IOERR_WRITE: 'the disk rejects writes',
  SQLITE_READONLY: 'the file or its folder cannot be written',
  SQLITE_CANTOPEN: 'the file cannot be opened',
  SQLITE_NOTADB: 'the file is no database',
  SQLITE_CORRUPT: 'the file is damaged',
};

export function reasonOf(error: unknown): string {
  const code = codeOf(error);
  if (code === null) return 'no answer';
  const words = Object.hasOwn(reasons, code) ? reasons[code] : undefined;
  return words === undefined ? code : `${code}: ${words}`;
}

function sqlite(dataDir: string): SqliteDialect {
  const path = join(dataDir, 'app.db');
  ensurePrivateFile(path);
  const file = new Sqlite(path);
  file.pragma('journal_mode = WAL');
  file.pragma('synchronous = FULL');
  // Off until the migrations are done: one that rebuilds a table would delete the rows that refer to it.
  file.pragma('foreign_keys = OFF');
  file.pragma('busy_timeout = 5000');
  return new SqliteDialect({ database: tellingFile(file) });
}

/** Reads 64-bit integers as numbers, which is exact for counts and for times in milliseconds. By default `pg` reads them as texts. */
const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.INT8, Number);

function postgres(connectionString: string, options: pg.PoolConfig): { dialect: PostgresDialect; pool: pg.Pool } {
  const pool = new pg.Pool({
    connectionString,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    Client: QuietClient,
    types,
    ...options,
  });
  // A connection that breaks while it is idle: the next query opens another.
  pool.on('error', () => {});
  return { dialect: new LocklessPostgresDialect({ pool: tellingPool(pool) }), pool };
}
