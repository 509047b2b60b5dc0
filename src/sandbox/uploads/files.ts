import type { CompleteUploadRequest, FileStatus, SourceType } from '../../contract/index.ts';
import type { SandboxClock } from '../clock.ts';
import type { SandboxDatabase } from '../database.ts';
import { countOf } from '../rows.ts';
import type { FileFacts } from '../inspect/facts.ts';
import { ownJson } from '../../files/index.ts';

export interface FileRecord {
  readonly id: string;
  readonly userId: string;
  readonly launchId: string | null;
  readonly originalName: string;
  readonly size: number;
  readonly sourceType: SourceType;
  readonly properties: FileProperties;
  /** Name of the file's bytes in the blob folder. */
  readonly blob: string;
  readonly status: FileStatus;
  /** Reason for the status FAILED. */
  readonly reason: string | null;
  /** Detected media type; null until the file is processed. */
  readonly mediaType: string | null;
  readonly sha256: string | null;
  /** Null until it is COMPLETED. */
  readonly facts: FileFacts | null;
  readonly createdAtMs: number;
}

/** Properties from a file's uploader (spec 4.4), for its item. */
export type FileProperties = Pick<
  CompleteUploadRequest,
  'vectorMappingProperties' | 'layerProperties' | 'geometry' | 'acquisitionDate'
>;

export interface NewFile {
  readonly userId: string;
  readonly launchId: string | null;
  readonly fileName: string;
  readonly sizeBytes: number;
  readonly blob: string;
  readonly sourceType: SourceType;
  readonly properties: FileProperties;
}

/** Files of a list. A field that is absent filters nothing. */
export interface FileFilter {
  /** Part of the name or the id. Letters from A to Z count in any case. */
  readonly text?: string | undefined;
  readonly sourceType?: SourceType | undefined;
  readonly status?: FileStatus | undefined;
}

const fitsFilter = `(@text is null or instr(lower(original_name || ' ' || id), lower(@text)) > 0)
  and (@sourceType is null or source_type = @sourceType) and (@status is null or status = @status)`;
const boundFilter = ({ text, sourceType, status }: FileFilter) => ({
  text: text ?? null,
  sourceType: sourceType ?? null,
  status: status ?? null,
});

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
  insert(id: string, file: NewFile): void {
    const { vectorMappingProperties, layerProperties, geometry, acquisitionDate } = file.properties;
    this.#database
      .prepare(
        `insert into files (id, user_id, launch_id, original_name, size, source_type, properties, blob, status, created_at)
         values (?, ?, ?, ?, ?, ?, ?, ?, 'QUEUED', ?)`,
      )
      .run(
        id,
        file.userId,
        file.launchId,
        file.fileName,
        file.sizeBytes,
        file.sourceType,
        JSON.stringify({ vectorMappingProperties, layerProperties, geometry, acquisitionDate }),
        file.blob,
        this.#clock.now(file.launchId),
      );
  }

  find(id: string): FileRecord | null {
    const row = this.#database.prepare<[string], FileRow>('select * from files where id = ?').get(id);
    return row ? fromRow(row) : null;
  }

  /**
   * The file that is processed next, IN_PROGRESS from now on: the oldest that waits, of those users of whom the fewest
   * are in progress. Nobody has more than `maxOfOne` at a time.
   */
  takeQueued(maxOfOne: number): FileRecord | null {
    const row = this.#database
      .prepare<[number], FileRow>(
        `with load as (select user_id, count(*) as busy from files where status = 'IN_PROGRESS' group by user_id)
         update files set status = 'IN_PROGRESS'
         where id = (
           select files.id from files left join load on load.user_id = files.user_id
           where status = 'QUEUED' and coalesce(busy, 0) < ? order by coalesce(busy, 0), created_at, files.rowid limit 1
         ) returning *`,
      )
      .get(maxOfOne);
    return row ? fromRow(row) : null;
  }

  /** Newest first. */
  listNewest(limit: number, skip = 0, filter: FileFilter = {}): FileRecord[] {
    return this.#database
      .prepare<[ReturnType<typeof boundFilter> & { limit: number; skip: number }], FileRow>(
        `select * from files where ${fitsFilter} order by created_at desc, rowid desc limit @limit offset @skip`,
      )
      .all({ ...boundFilter(filter), limit, skip })
      .map(fromRow);
  }

  /** True if an app has delivered a file. */
  hasDelivered(): boolean {
    return this.#database.prepare('select 1 from files where launch_id is not null limit 1').get() !== undefined;
  }

  /** Default: counts all files. */
  count(filter: FileFilter = {}): number {
    return countOf(this.#database, `select count(*) from files where ${fitsFilter}`, boundFilter(filter));
  }

  /** Together with `alsoCommit`. */
  complete(id: string, facts: FileFacts, alsoCommit: () => void): void {
    this.#database.transaction(() => {
      const { changes } = this.#database
        .prepare(`update files set status = 'COMPLETED', media_type = ?, sha256 = ?, facts = ? where id = ?`)
        .run(facts.mediaType, facts.sha256, JSON.stringify(facts), id);
      // A reset has taken the file: nothing is published of it.
      if (changes === 1) alsoCommit();
    })();
  }

  fail(id: string, reason: string): void {
    this.#database.prepare(`update files set status = 'FAILED', reason = ? where id = ?`).run(reason, id);
  }

  /** Queues the unfinished files of a stopped process again. */
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
    properties: ownJson<FileProperties>(row.properties),
    blob: row.blob,
    status: row.status,
    reason: row.reason,
    mediaType: row.media_type,
    sha256: row.sha256,
    facts: row.facts === null ? null : ownJson<FileFacts>(row.facts),
    createdAtMs: row.created_at,
  };
}
