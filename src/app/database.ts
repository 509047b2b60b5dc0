import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { Kysely, sql, SqliteDialect } from 'kysely';

export interface LaunchRow {
  id: string;
  /** SHA-256 of the token that began the launch: tells a replay without keeping the token. */
  first_token_hash: string;
  /** The token in force, sealed with AES-GCM. */
  sealed_token: string;
  token_expires_at: number | null;
  /** JSON of the platform's user details. */
  user: string;
  created_at: number;
}

export interface RunRow {
  id: string;
  launch_id: string;
  state: string;
  step_id: string;
  step_version: string;
  /** JSON, like every column below that is not a plain value. */
  parameters: string;
  input: string;
  idempotency_key: string;
  operation_id: string | null;
  operation_expires_at: number | null;
  output: string | null;
  upload: string | null;
  file: string | null;
  failure: string | null;
  created_at: number;
  updated_at: number;
}

export interface RunStateRow {
  run_id: string;
  state: string;
  at: number;
}

export interface SessionRow {
  id: string;
  data: string;
  expires_at: number;
}

export interface AppTables {
  launches: LaunchRow;
  runs: RunRow;
  run_states: RunStateRow;
  sessions: SessionRow;
}

export type AppDatabase = Kysely<AppTables>;

/** Opens (and makes, where new) the app's SQLite database under `dataDir`. What it acknowledges outlives a power cut. */
export async function openDatabase(dataDir: string): Promise<AppDatabase> {
  mkdirSync(dataDir, { recursive: true });
  const sqlite = new Sqlite(join(dataDir, 'app.db'));
  sqlite.pragma('journal_mode = WAL');
  sqlite.pragma('synchronous = FULL');
  sqlite.pragma('foreign_keys = ON');
  sqlite.pragma('busy_timeout = 5000');
  const database = new Kysely<AppTables>({ dialect: new SqliteDialect({ database: sqlite }) });
  await createTables(database);
  return database;
}

async function createTables(database: AppDatabase): Promise<void> {
  const statements = [
    sql`create table if not exists launches (
      id text primary key, first_token_hash text not null unique, sealed_token text not null,
      token_expires_at bigint, "user" text not null, created_at bigint not null)`,
    sql`create table if not exists runs (
      id text primary key, launch_id text not null references launches (id), state text not null,
      step_id text not null, step_version text not null, parameters text not null, input text not null,
      idempotency_key text not null, operation_id text, operation_expires_at bigint, output text, upload text,
      file text, failure text, created_at bigint not null, updated_at bigint not null)`,
    sql`create index if not exists runs_by_launch on runs (launch_id, created_at)`,
    sql`create table if not exists run_states (
      run_id text not null references runs (id), state text not null, at bigint not null)`,
    sql`create index if not exists run_states_by_run on run_states (run_id)`,
    sql`create table if not exists sessions (id text primary key, data text not null, expires_at bigint not null)`,
  ];
  for (const statement of statements) await statement.execute(database);
}
