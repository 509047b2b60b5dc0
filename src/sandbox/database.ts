import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { ensurePrivateFile } from '../files/index.ts';
import { footprintOfBox } from '../raster/footprint.ts';
import { searchValuesOf } from './stac/search-values.ts';

export type SandboxDatabase = Sqlite.Database;

/** Times are epoch milliseconds: of the launch's clock in what belongs to a launch, of the sandbox's clock elsewhere, of the machine in `calls.at`. */
const firstSchema = `
  create table if not exists settings (name text primary key, value text not null) strict;
  create table if not exists clock_offsets (launch_id text primary key, offset_ms integer not null) strict;

  create table if not exists api_keys (
    id text primary key, key_hash text not null unique, permissions text not null, created_at integer not null) strict;
  create table if not exists users (
    id text primary key, email text not null, name text not null, organization text not null, position integer not null) strict;
  create table if not exists apps (id text primary key, manifest text not null, position integer not null) strict;

  create table if not exists launches (
    id text primary key, app_id text not null, user_id text not null, renew_policy text not null,
    created_at integer not null, revoked_at integer) strict;
  create table if not exists tokens (
    token_hash text primary key, launch_id text not null references launches (id) on delete cascade,
    predecessor_hash text, expires_at integer not null, first_used_at integer, revoked_at integer) strict;
  create index if not exists tokens_by_launch on tokens (launch_id);

  create table if not exists operations (
    id text primary key, launch_id text not null references launches (id) on delete cascade,
    name text not null, description text, parameters text not null, status text not null,
    created_at integer not null, updated_at integer not null, expires_at integer not null,
    idempotency_key text, body_hash text not null, unique (launch_id, idempotency_key)) strict;

  create table if not exists uploads (
    id text primary key, key text not null, file_name text not null, blob text not null,
    launch_id text references launches (id) on delete cascade, operation_id text,
    received_bytes integer not null default 0, last_chunk_at integer not null, created_at integer not null,
    file_id text) strict;
  create index if not exists uploads_by_launch on uploads (launch_id);
  create table if not exists upload_parts (
    upload_id text not null references uploads (id) on delete cascade,
    part_number integer not null, size integer not null, sha256 text not null,
    primary key (upload_id, part_number)) strict, without rowid;

  create table if not exists files (
    id text primary key, user_id text not null, launch_id text, original_name text not null, size integer not null,
    source_type text not null, properties text not null, blob text not null, status text not null, reason text,
    media_type text, sha256 text, facts text, created_at integer not null) strict;
  create index if not exists files_by_status on files (status, created_at);

  create table if not exists faults (
    id text primary key, launch_id text, endpoint text not null, after integer not null, times integer not null,
    effect text not null, seen integer not null default 0, fired integer not null default 0) strict;
  create table if not exists calls (
    id integer primary key, launch_id text not null, at integer not null, launch_at integer not null,
    endpoint text not null, method text not null, status integer, duration_ms real not null, delivered integer not null,
    request_bytes integer not null, response_bytes integer not null, detail text not null) strict;
  create index if not exists calls_by_launch on calls (launch_id, id);
`;

/** Brings a data folder of any earlier version up to date, one step after the other. */
const migrations: readonly (string | ((database: SandboxDatabase) => void))[] = [
  firstSchema,
  // Parts of the file group that came before their turn.
  'alter table upload_parts add column blob text',
  // `outline`: a footprint's positions as pairs of doubles, rings parted by a pair of NaN; null where the footprint is its box.
  `
  create table catalogs (
    id text primary key, parent_id text, title text not null, description text not null, position integer not null) strict;
  create table collections (
    id text primary key, catalog_id text not null references catalogs (id), title text not null, description text not null,
    license text not null, keywords text not null, created_at integer not null, position integer not null) strict;
  create table items (
    number integer primary key, id text not null, collection_id text not null references collections (id) on delete cascade,
    title text not null, datetime_ms integer not null, west real not null, south real not null, east real not null, north real not null,
    outline blob, geometry text, properties text not null, source text not null, file_id text) strict;
  create unique index items_by_id on items (id, collection_id);
  create index items_by_title on items (title, collection_id);
  create index items_by_file on items (file_id) where file_id is not null;
  `,
  `
  create table inference_jobs (
    id text primary key, model_id text not null, type text not null, file_id text not null, geometry text, status text not null,
    reason text, result_name text, started_at integer not null) strict;
  create index inference_jobs_by_status on inference_jobs (status, started_at);
  `,
  // Calls as they were exchanged, for people; which token of its launch a call came with, for the referee.
  `
  alter table calls add column path text not null default '';
  alter table calls add column request text not null default '{}';
  alter table calls add column response text not null default '{}';
  alter table tokens add column number integer not null default 1;
  `,
  // When a sandbox that had been killed began again: calls just before may not be in the trace.
  'create table trace_gaps (at integer not null) strict',
  // Events of a launch besides its calls; null `launch_id`: of all launches. `at` has the same meaning as in `calls`.
  `
  create table launch_events (id integer primary key, launch_id text, at integer not null, kind text not null, text text not null, moved_ms integer not null) strict;
  create index launch_events_by_launch on launch_events (launch_id, at);
  alter table operations add column decided_by text;
  create index operations_by_time on operations (created_at);
  create index operations_waiting on operations (created_at) where status = 'REQUESTED';
  create index launches_by_time on launches (created_at);
  create index files_by_time on files (created_at);
  `,
  // A key that is an app's own.
  'alter table api_keys add column app_id text',
  // Subject of an event, for programs.
  `alter table launch_events add column data text not null default '{}'`,
  // A part that comes again is held against its bytes; its digest is taken where somebody asks.
  'alter table upload_parts drop column sha256',
  // Files made from the items become invalid after any change except a new item.
  `
  insert into settings values ('item-rewrites', '0');
  create trigger items_replaced after update on items begin
    update settings set value = value + 1 where name = 'item-rewrites';
  end;
  create trigger items_removed after delete on items begin
    update settings set value = value + 1 where name = 'item-rewrites';
  end;
  `,
  // Launches with deleted calls, because the trace has a limited size.
  'create table trace_cuts (launch_id text primary key) strict',
  searchBySql,
  // Violations outlive their calls, and a cut says how many calls are gone.
  `
  alter table trace_cuts add column calls integer not null default 1;
  create table kept_violations (
    launch_id text not null, rule text not null, calls text not null, violation text not null,
    primary key (launch_id, rule, calls)
  ) strict;
  `,
  // Items of a time range (STAC start_datetime, end_datetime). Null for items of one time.
  `
  alter table items add column start_ms integer;
  alter table items add column end_ms integer;
  update items set
    start_ms = cast(round((julianday(json_extract(properties, '$.start_datetime')) - 2440587.5) * 86400000) as integer),
    end_ms = cast(round((julianday(json_extract(properties, '$.end_datetime')) - 2440587.5) * 86400000) as integer)
  where json_extract(properties, '$.start_datetime') is not null and json_extract(properties, '$.end_datetime') is not null;
  create index items_by_range on items (end_ms, start_ms) where end_ms is not null;
  `,
];

/** Prepares the items for searches by SQL: an R*Tree of their boxes, and their properties as JSONB. */
function searchBySql(database: SandboxDatabase): void {
  database.exec(`
    drop trigger items_replaced;
    drop trigger items_removed;
    delete from settings where name = 'item-rewrites';
    alter table items add column search_values blob;
    update items set search_values = ${searchValuesOf('properties')};
  `);
  // Earlier versions stored a footprint with one ring as pairs of doubles, and a box only by its bounds.
  type Row = { number: number; west: number; south: number; east: number; north: number; outline: Buffer | null };
  const some = database.prepare<[number], Row>(
    'select number, west, south, east, north, outline from items where geometry is null and number > ? order by number limit 1000',
  );
  const update = database.prepare('update items set geometry = ? where number = ?');
  for (let rows = some.all(0); rows.length > 0; rows = some.all(rows.at(-1)?.number ?? 0))
    for (const { number, west, south, east, north, outline } of rows) {
      const degrees = outline && new Float64Array(Uint8Array.from(outline).buffer);
      const ring =
        degrees && Array.from({ length: degrees.length / 2 }, (_, i) => [degrees[2 * i], degrees[2 * i + 1]]);
      const footprint = ring ? { type: 'Polygon', coordinates: [ring] } : footprintOfBox([west, south, east, north]);
      update.run(JSON.stringify(footprint), number);
    }
  const columnsOf = (row: string) => `${row}number,
    case when ${row}west > ${row}east then -180 else ${row}west end, case when ${row}west > ${row}east then 180 else ${row}east end,
    ${row}south, ${row}north, ${row}datetime_ms, ${row}collection_id, ${row}id`;
  const remove = 'delete from item_boxes where number = old.number;';
  const insert = `insert into item_boxes select ${columnsOf('new.')};`;
  database.exec(`
    alter table items drop column outline;
    create virtual table item_boxes using rtree(number, west, east, south, north, +datetime_ms integer, +collection_id text, +id text);
    insert into item_boxes select ${columnsOf('')} from items;
    create trigger items_inserted after insert on items begin ${insert} end;
    create trigger items_updated after update on items begin ${remove} ${insert} end;
    create trigger items_deleted after delete on items begin ${remove} end;
    create index items_by_time on items (datetime_ms desc, id, collection_id);
    create index items_by_collection on items (collection_id, datetime_ms desc, id, west, south, east, north);
  `);
}

/** Longest wait of a write for another process. The driver is synchronous: nothing else happens meanwhile. */
const busyTimeoutMs = 250;

/** Opens (and makes, where new) the sandbox's database. WAL: a kill -9 loses nothing that was acknowledged. */
export function openSandboxDatabase(dataDir: string): SandboxDatabase {
  const path = join(dataDir, 'sandbox.db');
  ensurePrivateFile(path);
  // Another process that holds the lock must not block every request, so the write fails with 503.
  const database = new Sqlite(path, { timeout: busyTimeoutMs });
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = NORMAL');
  database.pragma('foreign_keys = ON');
  // 64 MiB. With less, an import of a million items reads the same pages of the R*Tree again and again.
  database.pragma('cache_size = -65536');
  migrateSandbox(database);
  return database;
}

/** Brings a database up to version `to` of its schema. Default: the newest. */
export function migrateSandbox(database: SandboxDatabase, to = migrations.length): void {
  for (let version = Number(database.pragma('user_version', { simple: true })); version < to; version++)
    database.transaction(() => {
      const migrate = migrations[version] ?? '';
      if (typeof migrate === 'string') database.exec(migrate);
      else migrate(database);
      database.pragma(`user_version = ${version + 1}`);
    })();
}
