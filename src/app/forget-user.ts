import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { DatabaseUnavailableError } from './database-unavailable.ts';
import type { AppDatabase } from './database.ts';
import { IllegalTransitionError, isFinal, runStates } from './runs/run-state.ts';
import { SqlRunStore } from './runs/sql-run-store.ts';
import { ownJson } from '../files/index.ts';

/** Data that the app stores about one user. */
export interface KeptOfUser {
  readonly launches: readonly string[];
  readonly sessions: readonly string[];
  readonly runs: number;
  /** Runs that have not ended. */
  readonly unfinished: number;
}

const unfinished = runStates.filter((state) => !isFinal(state));

/** Counts the data that the app stores about the user. `userId` is the platform's id. */
export async function keptOfUser(database: AppDatabase, userId: string): Promise<KeptOfUser> {
  const launches: string[] = [];
  for (const { id, user } of await database.selectFrom('launches').select(['id', 'user']).execute())
    if (ownJson<{ id?: unknown }>(user).id === userId) launches.push(id);
  const known = new Set<unknown>(launches);
  const sessions: string[] = [];
  for (const { id, data } of await database.selectFrom('sessions').select(['id', 'data']).execute())
    if (known.has(ownJson<{ launchId?: unknown }>(data).launchId)) sessions.push(id);
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
 * transaction. The app may run meanwhile: what its commits interrupt is tried again. Workers remove the work folders of
 * runs that are gone. Files on the platform stay there.
 */
export async function forgetUser(
  database: AppDatabase,
  userId: string,
  options: { readonly isShared: boolean },
): Promise<KeptOfUser> {
  const store = new SqlRunStore(database, Date.now, options);
  const kept = await repeated(async () => {
    for (;;) {
      const [run] = await store.listByOwner(userId, { limit: 1, states: unfinished });
      if (!run) break;
      await store.transition(run, 'CANCELLED');
    }
    const found = await keptOfUser(database, userId);
    await remove(database, userId, found);
    return found;
  });
  // Removed rows leave copies in free pages and in the write-ahead log.
  if (!options.isShared)
    await repeated(async () => {
      await sql`vacuum`.execute(database);
      await sql`pragma wal_checkpoint(truncate)`.execute(database);
    });
  return kept;
}

async function remove(database: AppDatabase, userId: string, { launches, sessions }: KeptOfUser): Promise<void> {
  await database.transaction().execute(async (trx) => {
    // The first statement writes: a transaction that begins by reading cannot always go on to write.
    for (const table of ['run_states', 'run_stages', 'run_progress', 'run_results'] as const)
      await trx
        .deleteFrom(table)
        .where('run_id', 'in', (of) => of.selectFrom('runs').select('id').where('owner', '=', userId))
        .execute();
    await trx.deleteFrom('runs').where('owner', '=', userId).execute();
    for (const id of sessions) await trx.deleteFrom('sessions').where('id', '=', id).execute();
    for (const id of launches) {
      await trx.deleteFrom('launch_changes').where('launch_id', '=', id).execute();
      await trx.deleteFrom('launches').where('id', '=', id).execute();
    }
  });
}

const maxTries = 50;
const tryAgainMs = 200;

/** Repeats work if the running app interrupts it by moving a run or holding the lock. */
async function repeated<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      const isInterrupted = error instanceof IllegalTransitionError || error instanceof DatabaseUnavailableError;
      if (!isInterrupted || tries === maxTries) throw error;
      await sleep(tryAgainMs);
    }
  }
}
