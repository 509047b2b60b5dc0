import type { SandboxDatabase } from '../database.ts';
import { newId, newSecret } from '../secrets.ts';

export interface UploadSession {
  readonly id: string;
  readonly key: string;
  readonly fileName: string;
  /** Name of the file that holds the parts, in the blob folder. */
  readonly blob: string;
  readonly launchId: string | null;
  readonly operationId: string | null;
  readonly receivedBytes: number;
  readonly createdAtMs: number;
  /** The finished file; null while the session is open. */
  readonly fileId: string | null;
}

export interface UploadPart {
  readonly partNumber: number;
  readonly size: number;
  readonly sha256: string;
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

  create(owner: { launchId: string; operationId: string }, fileName: string, nowMs: number): UploadSession {
    const id = newId('upload');
    const key = `uploads/${newSecret()}/${fileName}`;
    this.#database
      .prepare('insert into uploads (id, key, file_name, blob, launch_id, operation_id, last_chunk_at, created_at) values (?, ?, ?, ?, ?, ?, ?, ?)')
      .run(id, key, fileName, newId('blob'), owner.launchId, owner.operationId, nowMs, nowMs);
    return this.find(id)!;
  }

  find(id: string): UploadSession | null {
    const row = this.#database.prepare<[string], SessionRow>('select * from uploads where id = ?').get(id);
    return row ? fromRow(row) : null;
  }

  listByLaunch(launchId: string): UploadSession[] {
    return this.#database.prepare<[string], SessionRow>('select * from uploads where launch_id = ? order by created_at, rowid').all(launchId).map(fromRow);
  }

  parts(id: string): UploadPart[] {
    return this.#database
      .prepare<[string], UploadPart>('select part_number as partNumber, size, sha256 from upload_parts where upload_id = ? order by part_number')
      .all(id);
  }

  part(id: string, partNumber: number): UploadPart | null {
    const row = this.#database
      .prepare<[string, number], UploadPart>('select part_number as partNumber, size, sha256 from upload_parts where upload_id = ? and part_number = ?')
      .get(id, partNumber);
    return row ?? null;
  }

  countParts(id: string): number {
    return this.#database.prepare<[string], { n: number }>('select count(*) as n from upload_parts where upload_id = ?').get(id)!.n;
  }

  /** Acknowledges a part. From here on it is never lost. */
  commitPart(id: string, part: UploadPart, nowMs: number): void {
    this.#database.transaction(() => {
      this.#database.prepare('insert into upload_parts values (?, ?, ?, ?)').run(id, part.partNumber, part.size, part.sha256);
      this.#database.prepare('update uploads set received_bytes = received_bytes + ?, last_chunk_at = ? where id = ?').run(part.size, nowMs, id);
    })();
  }

  /** Makes the session's bytes the file `fileId`, together with `alsoCommit`. */
  complete(id: string, fileId: string, alsoCommit: () => void): void {
    this.#database.transaction(() => {
      alsoCommit();
      this.#database.prepare('update uploads set file_id = ? where id = ?').run(fileId, id);
    })();
  }

  /** Forgets a session that is not completed. False where it is completed, or gone. */
  discard(id: string): boolean {
    return this.#database.prepare('delete from uploads where id = ? and file_id is null').run(id).changes === 1;
  }

  /** Open sessions without a chunk since `beforeMs`, by the clock that `now` gives for their launch. */
  listIdle(idleMs: number, now: (launchId: string | null) => number): UploadSession[] {
    const rows = this.#database.prepare<[], SessionRow & { last_chunk_at: number }>('select * from uploads where file_id is null').all();
    return rows.filter((row) => row.last_chunk_at + idleMs <= now(row.launch_id)).map(fromRow);
  }

  /** Every blob that a session or a file still refers to. */
  referencedBlobs(): Set<string> {
    const rows = this.#database.prepare<[], { blob: string }>('select blob from uploads union select blob from files').all();
    return new Set(rows.map((row) => row.blob));
  }
}

function fromRow(row: SessionRow): UploadSession {
  return {
    id: row.id,
    key: row.key,
    fileName: row.file_name,
    blob: row.blob,
    launchId: row.launch_id,
    operationId: row.operation_id,
    receivedBytes: row.received_bytes,
    createdAtMs: row.created_at,
    fileId: row.file_id,
  };
}
