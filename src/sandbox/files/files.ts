import type { CompleteUploadRequest, FileStatus, SourceType } from '../../contract/index.ts';
import type { SandboxClock } from '../clock.ts';
import type { SandboxDatabase } from '../database.ts';
import type { UploadSession } from '../uploads/upload-sessions.ts';
import type { FileFacts } from './inspect-job.ts';

export interface FileRecord {
  readonly id: string;
  readonly userId: string;
  readonly launchId: string | null;
  readonly originalName: string;
  readonly size: number;
  readonly sourceType: SourceType;
  /** Name of the file's bytes in the blob folder. */
  readonly blob: string;
  readonly status: FileStatus;
  /** Why it is FAILED. */
  readonly reason: string | null;
  /** As detected; null until it is processed. */
  readonly mediaType: string | null;
  readonly sha256: string | null;
  readonly createdAtMs: number;
}

interface FileRow {
  id: string;
  user_id: string;
  launch_id: string | null;
  original_name: string;
  size: number;
  source_type: SourceType;
  properties: string;
  blob: string;
  status: FileStatus;
  reason: string | null;
  media_type: string | null;
  sha256: string | null;
  facts: string | null;
  created_at: number;
}

/** Completed uploads and what became of them (spec 2.4, 3.2). */
export class Files {
  #database: SandboxDatabase;
  #clock: SandboxClock;

  constructor(database: SandboxDatabase, clock: SandboxClock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Takes over the bytes of an upload; QUEUED from now on. */
  insert(id: string, upload: UploadSession, userId: string, request: CompleteUploadRequest): void {
    const { vectorMappingProperties, layerProperties, geometry, acquisitionDate } = request;
    this.#database
      .prepare(
        `insert into files (id, user_id, launch_id, original_name, size, source_type, properties, blob, status, created_at)
         values (?, ?, ?, ?, ?, ?, ?, ?, 'QUEUED', ?)`,
      )
      .run(
        id,
        userId,
        upload.launchId,
        upload.fileName,
        upload.receivedBytes,
        request.sourceType,
        JSON.stringify({ vectorMappingProperties, layerProperties, geometry, acquisitionDate }),
        upload.blob,
        this.#clock.now(upload.launchId),
      );
  }

  find(id: string): FileRecord | null {
    const row = this.#database.prepare<[string], FileRow>('select * from files where id = ?').get(id);
    return row ? fromRow(row) : null;
  }

  /** The oldest file that waits for processing. */
  nextQueued(): FileRecord | null {
    const row = this.#database.prepare<[], FileRow>(`select * from files where status = 'QUEUED' order by created_at, rowid limit 1`).get();
    return row ? fromRow(row) : null;
  }

  start(id: string): void {
    this.#database.prepare(`update files set status = 'IN_PROGRESS' where id = ?`).run(id);
  }

  complete(id: string, facts: FileFacts): void {
    this.#database
      .prepare(`update files set status = 'COMPLETED', media_type = ?, sha256 = ?, facts = ? where id = ?`)
      .run(facts.mediaType, facts.sha256, JSON.stringify(facts), id);
  }

  fail(id: string, reason: string): void {
    this.#database.prepare(`update files set status = 'FAILED', reason = ? where id = ?`).run(reason, id);
  }

  /** What a stopped process was at is queued again. */
  requeueUnfinished(): void {
    this.#database.prepare(`update files set status = 'QUEUED' where status = 'IN_PROGRESS'`).run();
  }
}

function fromRow(row: FileRow): FileRecord {
  return {
    id: row.id,
    userId: row.user_id,
    launchId: row.launch_id,
    originalName: row.original_name,
    size: row.size,
    sourceType: row.source_type,
    blob: row.blob,
    status: row.status,
    reason: row.reason,
    mediaType: row.media_type,
    sha256: row.sha256,
    createdAtMs: row.created_at,
  };
}
