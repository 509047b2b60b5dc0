import { sql } from 'kysely';
import type { AppDatabase } from './database.ts';
import { isFinal, runStates } from './runs/run-state.ts';
import { SqlRunStore } from './runs/sql-run-store.ts';

/** Data that the app stores about one user. */
export interface KeptOfUser {
  readonly launches: readonly string[];
  readonly sessions: readonly string[];
  readonly runs: number;
  /** Runs that have not ended. */
  readonly unfinished: number;
}

const unfinished = runStates.filter((state) => !isFinal(state));
const atOnce = 200;

/** Counts the data that the app stores about the user. `userId` is the platform's id. */
export async function keptOfUser(database: AppDatabase, userId: string): Promise<KeptOfUser> {
  const launches: string[] = [];
  for (const { id, user } of await database.selectFrom('launches').select(['id', 'user']).execute())
    if ((JSON.parse(user) as { id?: unknown }).id === userId) launches.push(id);
  const known = new Set<unknown>(launches);
  const sessions: string[] = [];
  for (const { id, data } of await database.selectFrom('sessions').select(['id', 'data']).execute())
    if (known.has((JSON.parse(data) as { launchId?: unknown }).launchId)) sessions.push(id);
  const runs = new SqlRunStore(database, Date.now);
  return {
    launches,
    sessions,
    runs: await runs.countByOwner(userId),
    unfinished: await runs.countByOwner(userId, unfinished),
  };
}

/**
 * Cancels the user's runs that have not ended, then removes runs, results, launches with tokens, and sessions in one
 * transaction. Workers remove the work folders of runs that are gone. Files on the platform stay there.
 */
export async function forgetUser(
  database: AppDatabase,
  userId: string,
  options: { readonly isShared: boolean },
): Promise<KeptOfUser> {
  const store = new SqlRunStore(database, Date.now, options);
  for (;;) {
    const [run] = await store.listByOwner(userId, { limit: 1, states: unfinished });
    if (!run) break;
    await store.transition(run, 'CANCELLED');
  }
  if (!options.isShared) await sql`pragma secure_delete = on`.execute(database);
  const kept = await keptOfUser(database, userId);
  await database.transaction().execute(async (trx) => {
    for (;;) {
      const rows = await trx.selectFrom('runs').select('id').where('owner', '=', userId).limit(atOnce).execute();
      if (rows.length === 0) break;
      const ids = rows.map(({ id }) => id);
      for (const table of ['run_states', 'run_stages', 'run_progress', 'run_results'] as const)
        await trx.deleteFrom(table).where('run_id', 'in', ids).execute();
      await trx.deleteFrom('runs').where('id', 'in', ids).execute();
    }
    for (const id of kept.sessions) await trx.deleteFrom('sessions').where('id', '=', id).execute();
    for (const id of kept.launches) {
      await trx.deleteFrom('launch_changes').where('launch_id', '=', id).execute();
      await trx.deleteFrom('launches').where('id', '=', id).execute();
    }
  });
  // The write-ahead log still contains the removed rows.
  if (!options.isShared) await sql`pragma wal_checkpoint(truncate)`.execute(database);
  return kept;
}
