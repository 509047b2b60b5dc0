import { limits } from '../../contract/index.ts';
import type { SandboxDatabase } from '../database.ts';
import { countOf, stored } from '../rows.ts';
import { newId, newSecret } from '../secrets.ts';
import { SandboxError } from '../web/sandbox-error.ts';

export interface UploadSession {
  readonly id: string;
  readonly key: string;
  readonly fileName: string;
  /** Name of the file that holds the parts, in the blob folder. */
  readonly blob: string;
  readonly launchId: string | null;
  readonly operationId: string | null;
  /** Bytes of the parts that are in the file: those from the first on without a gap. */
  readonly appendedBytes: number;
  readonly createdAtMs: number;
  /** The finished file; null while the session is open. */
  readonly fileId: string | null;
}

export interface UploadPart {
  readonly partNumber: number;
  readonly size: number;
}

export interface StoredPart extends UploadPart {
  /** Name of the part's own file where it came before its turn; null where it is in the session's file. */
  readonly blob: string | null;
}

/** Owner of a session; sessions of the file group belong to no launch. */
export interface UploadOwner {
  readonly launchId: string | null;
  readonly operationId: string | null;
}

interface SessionRow {
  id: string;
  key: string;
  file_name: string;
  blob: string;
  launch_id: string | null;
  operation_id: string | null;
  received_bytes: number;
  created_at: number;
  file_id: string | null;
}

/** Upload sessions and their parts, as committed. */
export class UploadSessions {
  #database: SandboxDatabase;

  constructor(database: SandboxDatabase) {
    this.#database = database;
  }

  create(owner: UploadOwner, fileName: string, nowMs: number): UploadSession {
    const id = newId('upload');
    const key = `uploads/${newSecret()}/${fileName}`;
    this.#database
      .prepare(
        'insert into uploads (id, key, file_name, blob, launch_id, operation_id, last_chunk_at, created_at) values (?, ?, ?, ?, ?, ?, ?, ?)',
      )
      .run(id, key, fileName, newId('blob'), owner.launchId, owner.operationId, nowMs, nowMs);
    return stored(this.find(id));
  }

  find(id: string): UploadSession | null {
    const row = this.#database.prepare<[string], SessionRow>('select * from uploads where id = ?').get(id);
    return row ? fromRow(row) : null;
  }

  findByKey(key: string): UploadSession | null {
    const row = this.#database.prepare<[string], SessionRow>('select * from uploads where key = ?').get(key);
    return row ? fromRow(row) : null;
  }

  listByLaunch(launchId: string): UploadSession[] {
    return this.#database
      .prepare<[string], SessionRow>('select * from uploads where launch_id = ? order by created_at, rowid')
      .all(launchId)
      .map(fromRow);
  }

  parts(id: string): StoredPart[] {
    return this.#database
      .prepare<[string], StoredPart>(
        'select part_number as partNumber, size, blob from upload_parts where upload_id = ? order by part_number',
      )
      .all(id);
  }

  part(id: string, partNumber: number): StoredPart | null {
    const row = this.#database
      .prepare<[string, number], StoredPart>(
        'select part_number as partNumber, size, blob from upload_parts where upload_id = ? and part_number = ?',
      )
      .get(id, partNumber);
    return row ?? null;
  }

  /** The part that the session's file goes on with. */
  nextPartNumber(id: string): number {
    const query = 'select count(*) from upload_parts where upload_id = ? and blob is null';
    return countOf(this.#database, query, id) + limits.firstPartNumber;
  }

  /** Acknowledges a part. From here on it is never lost. */
  commitPart(id: string, part: StoredPart, nowMs: number): void {
    this.#database.transaction(() => {
      this.#database
        .prepare('insert into upload_parts (upload_id, part_number, size, blob) values (?, ?, ?, ?)')
        .run(id, part.partNumber, part.size, part.blob);
      const appended = part.blob === null ? part.size : 0;
      this.#database
        .prepare('update uploads set received_bytes = received_bytes + ?, last_chunk_at = ? where id = ?')
        .run(appended, nowMs, id);
    })();
  }

  /** A part that waited is in the session's file now. */
  commitAppended(id: string, part: UploadPart): void {
    this.#database.transaction(() => {
      this.#database
        .prepare('update upload_parts set blob = null where upload_id = ? and part_number = ?')
        .run(id, part.partNumber);
      this.#database.prepare('update uploads set received_bytes = received_bytes + ? where id = ?').run(part.size, id);
    })();
  }

  /** Makes the session's bytes the file `fileId`, together with `alsoCommit`. */
  complete(id: string, fileId: string, alsoCommit: () => void): void {
    this.#database.transaction(() => {
      alsoCommit();
      const { changes } = this.#database.prepare('update uploads set file_id = ? where id = ?').run(fileId, id);
      // The session went away meanwhile, by a reset: its bytes are gone too, and nothing is committed.
      if (changes !== 1) throw sessionNotFound();
    })();
  }

  /** Forgets a session that is not completed. False where it is completed, or gone. */
  discard(id: string): boolean {
    return this.#database.prepare('delete from uploads where id = ? and file_id is null').run(id).changes === 1;
  }

  /** Returns open sessions without a chunk for `idleMs`, by the clock `now` of their launch. `id`: checks only this session. */
  listIdle(idleMs: number, now: (launchId: string | null) => number, id: string | null = null): UploadSession[] {
    const rows = this.#database
      .prepare<[{ id: string | null }], SessionRow & { last_chunk_at: number }>(
        `select * from uploads where file_id is null${id === null ? '' : ' and id = @id'}`,
      )
      .all({ id });
    return rows.filter((row) => row.last_chunk_at + idleMs <= now(row.launch_id)).map(fromRow);
  }

  /** True if a session or a file refers to a blob. */
  refersTo(blob: string): boolean {
    const found = this.#database
      .prepare<[{ blob: string }]>(
        'select 1 from uploads where blob = @blob union all select 1 from files where blob = @blob union all select 1 from upload_parts where blob = @blob limit 1',
      )
      .get({ blob });
    return found !== undefined;
  }

  /** Every blob that a session or a file still refers to. */
  referencedBlobs(): Set<string> {
    const rows = this.#database
      .prepare<[], { blob: string }>(
        'select blob from uploads union select blob from files union select blob from upload_parts where blob is not null',
      )
      .all();
    return new Set(rows.map((row) => row.blob));
  }
}

export const sessionNotFound = (): SandboxError => new SandboxError('upload_session_not_found');

function fromRow(row: SessionRow): UploadSession {
  return {
    id: row.id,
    key: row.key,
    fileName: row.file_name,
    blob: row.blob,
    launchId: row.launch_id,
    operationId: row.operation_id,
    appendedBytes: row.received_bytes,
    createdAtMs: row.created_at,
    fileId: row.file_id,
  };
}
