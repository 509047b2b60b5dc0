import type { InferenceStatus, InferenceType } from '../../contract/index.ts';
import type { SandboxClock } from '../clock.ts';
import type { SandboxDatabase } from '../database.ts';
import { stored } from '../rows.ts';
import { newId } from '../secrets.ts';
import type { Model } from './models.ts';

export interface InferenceJob {
  readonly id: string;
  readonly modelId: string;
  readonly type: InferenceType;
  readonly fileId: string;
  /** GeoJSON. */
  readonly geometry: string | null;
  readonly status: InferenceStatus;
  /** Reason for the status FAILED. */
  readonly reason: string | null;
  /** File name of the result, for its download. */
  readonly resultName: string | null;
  readonly startedAtMs: number;
}

const columns =
  'id, model_id as modelId, type, file_id as fileId, geometry, status, reason, result_name as resultName, started_at as startedAtMs';

/** Inference jobs (spec 2.6, 3.3): SUBMITTED, RUNNING, DONE or FAILED. */
export class InferenceJobs {
  #database: SandboxDatabase;
  #clock: SandboxClock;

  constructor(database: SandboxDatabase, clock: SandboxClock) {
    this.#database = database;
    this.#clock = clock;
  }

  submit(model: Model, fileId: string, geometry: string | null): InferenceJob {
    const id = newId('inference');
    this.#database
      .prepare(
        `insert into inference_jobs (id, model_id, type, file_id, geometry, status, started_at) values (?, ?, ?, ?, ?, 'SUBMITTED', ?)`,
      )
      .run(id, model.id, model.type, fileId, geometry, this.#clock.now());
    return stored(this.find(id));
  }

  find(id: string): InferenceJob | null {
    return (
      this.#database.prepare<[string], InferenceJob>(`select ${columns} from inference_jobs where id = ?`).get(id) ??
      null
    );
  }

  /** Newest first. */
  listNewest(limit: number): InferenceJob[] {
    return this.#database
      .prepare<[number], InferenceJob>(
        `select ${columns} from inference_jobs order by started_at desc, rowid desc limit ?`,
      )
      .all(limit);
  }

  /** The oldest job that waits, RUNNING from now on. */
  takeSubmitted(): InferenceJob | null {
    const row = this.#database
      .prepare<[], InferenceJob>(
        `update inference_jobs set status = 'RUNNING'
         where id = (select id from inference_jobs where status = 'SUBMITTED' order by started_at, rowid limit 1) returning ${columns}`,
      )
      .get();
    return row ?? null;
  }

  complete(id: string, resultName: string): void {
    this.#database
      .prepare(`update inference_jobs set status = 'DONE', result_name = ? where id = ?`)
      .run(resultName, id);
  }

  fail(id: string, reason: string): void {
    this.#database.prepare(`update inference_jobs set status = 'FAILED', reason = ? where id = ?`).run(reason, id);
  }

  /** Queues the unfinished jobs of a stopped process again. */
  requeueUnfinished(): void {
    this.#database.prepare(`update inference_jobs set status = 'SUBMITTED' where status = 'RUNNING'`).run();
  }
}
