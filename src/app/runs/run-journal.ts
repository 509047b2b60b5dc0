/** Records about a run: its states, the stages that workers did, its result, and the number of changes to its launch. */
import { sql, type Kysely } from 'kysely';
import type { AppTables } from '../database.ts';
import type { RunResult } from '../processing/output-summary.ts';
import type { RunState } from './run-state.ts';
import type { Run } from './run.ts';

/** Keeps only the last attempt's result. */
export async function putResult(
  database: Kysely<AppTables>,
  runId: string,
  { summary, picture }: RunResult,
): Promise<void> {
  const columns = { summary: JSON.stringify(summary), picture: Buffer.from(picture).toString('base64') };
  await database
    .insertInto('run_results')
    .values({ run_id: runId, ...columns })
    .onConflict((conflict) => conflict.column('run_id').doUpdateSet(columns))
    .execute();
}

/** The next number behind the run's rows in the table. */
function nextSeq(table: 'run_states' | 'run_stages', runId: string) {
  return sql<number>`(select coalesce(max(seq), 0) + 1 from ${sql.table(table)} where run_id = ${runId})`;
}

export async function addState(database: Kysely<AppTables>, runId: string, state: RunState, at: number): Promise<void> {
  await database
    .insertInto('run_states')
    .values({ run_id: runId, seq: nextSeq('run_states', runId), state, at })
    .execute();
}

export async function countChange(database: Kysely<AppTables>, launchId: string, at: number): Promise<void> {
  await database
    .insertInto('launch_changes')
    .values({ launch_id: launchId, changes: 1, changed_at: at })
    .onConflict((conflict) =>
      conflict
        .column('launch_id')
        .doUpdateSet((of) => ({ changes: of('launch_changes.changes', '+', 1), changed_at: at })),
    )
    .execute();
}

/** Forgets the changes of launches that have no runs any more. */
export async function forgetChanges(database: Kysely<AppTables>, lastBeforeMs: number): Promise<void> {
  await database
    .deleteFrom('launch_changes')
    .where('changed_at', '<', lastBeforeMs)
    .where((of) =>
      of.not(
        of.exists(of.selectFrom('runs').select('runs.id').whereRef('runs.launch_id', '=', 'launch_changes.launch_id')),
      ),
    )
    .execute();
}

export async function beginStage(
  database: Kysely<AppTables>,
  { id, state, claim }: Run,
  worker: string,
  at: number,
): Promise<void> {
  await database
    .insertInto('run_stages')
    .values({
      run_id: id,
      seq: nextSeq('run_stages', id),
      state,
      attempt: claim,
      worker,
      begun_at: at,
      ended_at: null,
      outcome: null,
    })
    .execute();
}

export async function endStage(database: Kysely<AppTables>, runId: string, outcome: string, at: number): Promise<void> {
  await database
    .updateTable('run_stages')
    .set({ ended_at: at, outcome })
    .where('run_id', '=', runId)
    .where('ended_at', 'is', null)
    .execute();
}
