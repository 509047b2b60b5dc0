import type { AppDatabase, StepJobRow } from '../database.ts';
import { isFinal, runStates } from '../runs/run-state.ts';

/** The job of a run's current attempt, or of one of its tiles, so that a later owner of the run finds it again. */
export interface JobRecord {
  readonly runId: string;
  /** Number of the tile, from 1. 0: the whole run. */
  readonly part: number;
  readonly name: string;
  /** Digests of the one-time token, and of the session that it was exchanged for. Null until then. */
  readonly tokenHash: string;
  readonly sessionHash: string | null;
  /** Digest of what the job does. */
  readonly sealedHash: string;
  /** Address of the process that has the run. */
  readonly ownerUrl: string;
}

/** Records of the jobs that engines have. A run has at most one for each of its parts. */
export class JobRecords {
  #database: AppDatabase;

  constructor(database: AppDatabase) {
    this.#database = database;
  }

  async ofRun(runId: string, part = 0): Promise<JobRecord | null> {
    const row = await this.#database
      .selectFrom('step_jobs')
      .selectAll()
      .where('run_id', '=', runId)
      .where('part', '=', part)
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  async named(name: string): Promise<JobRecord | null> {
    const row = await this.#database.selectFrom('step_jobs').selectAll().where('name', '=', name).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Replaces the record of the earlier attempt at the run or the part. */
  async put({ runId, part, name, tokenHash, sessionHash, sealedHash, ownerUrl }: JobRecord): Promise<void> {
    const columns = {
      name,
      token_hash: tokenHash,
      session_hash: sessionHash,
      sealed_hash: sealedHash,
      owner_url: ownerUrl,
    };
    await this.#database
      .insertInto('step_jobs')
      .values({ run_id: runId, part, ...columns })
      .onConflict((conflict) => conflict.columns(['run_id', 'part']).doUpdateSet(columns))
      .execute();
  }

  /** Takes over the job of an earlier owner. Null if there is no such job any more. */
  async takeOver(name: string, ownerUrl: string): Promise<JobRecord | null> {
    const row = await this.#database
      .updateTable('step_jobs')
      .set({ owner_url: ownerUrl })
      .where('name', '=', name)
      .returningAll()
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Exchanges the token for a session. False if that has happened before, with another session. */
  async begin(name: string, sessionHash: string): Promise<boolean> {
    const { numUpdatedRows } = await this.#database
      .updateTable('step_jobs')
      .set({ session_hash: sessionHash })
      .where('name', '=', name)
      .where((of) => of.or([of('session_hash', 'is', null), of('session_hash', '=', sessionHash)]))
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  async remove(name: string): Promise<void> {
    await this.#database.deleteFrom('step_jobs').where('name', '=', name).execute();
  }

  /** True if the run of a job goes on. */
  async hasRun({ runId }: JobRecord): Promise<boolean> {
    const row = await this.#database.selectFrom('runs').select('state').where('id', '=', runId).executeTakeFirst();
    return row !== undefined && !isFinal(row.state);
  }

  /** Jobs whose run has ended or is gone. */
  async ofEndedRuns(): Promise<JobRecord[]> {
    const unfinished = runStates.filter((state) => !isFinal(state));
    const rows = await this.#database
      .selectFrom('step_jobs')
      .selectAll()
      .where((of) =>
        of.not(
          of.exists(
            of
              .selectFrom('runs')
              .select('runs.id')
              .whereRef('runs.id', '=', 'step_jobs.run_id')
              .where('runs.state', 'in', unfinished),
          ),
        ),
      )
      .execute();
    return rows.map(fromRow);
  }
}

const fromRow = (row: StepJobRow): JobRecord => ({
  runId: row.run_id,
  part: row.part,
  name: row.name,
  tokenHash: row.token_hash,
  sessionHash: row.session_hash,
  sealedHash: row.sealed_hash,
  ownerUrl: row.owner_url,
});
