import type { WireLimits } from '../contract/index.ts';
import type { LaunchPage, LaunchStore } from './launch/launch-store.ts';
import type { SessionStore } from './launch/session-store.ts';
import type { RunStore } from './runs/run.ts';

export interface SweptStores {
  readonly runs: Pick<RunStore, 'forget' | 'launchesWithRuns'>;
  readonly launches: Pick<LaunchStore, 'listBegunBefore' | 'eraseTokens' | 'forget'>;
  readonly sessions: Pick<SessionStore, 'sweep'>;
}

export interface SweepOptions {
  readonly nowMs: number;
  /** Time for which ended runs are kept, and launches with their users' details. */
  readonly keepMs: number;
  /** The platform's limits: how long a token is of use. */
  readonly limits: Pick<WireLimits, 'tokenLifetimeMaxMs' | 'tokenRenewalGraceMs'>;
}

const pageSize = 200;

/** Removes expired sessions, tokens that nobody can use, and whatever was kept for long enough. Returns how much it removed. */
export async function sweep(
  { runs, launches, sessions }: SweptStores,
  { nowMs, keepMs, limits }: SweepOptions,
): Promise<{ runs: number; launches: number }> {
  await sessions.sweep();
  const over = { begunBeforeMs: nowMs - limits.tokenLifetimeMaxMs - limits.tokenRenewalGraceMs, withToken: true };
  for await (const ids of pages(launches, over)) {
    const busy = await runs.launchesWithRuns(ids, { unfinished: true });
    await launches.eraseTokens(ids.filter((id) => !busy.has(id)));
  }
  const begunBeforeMs = nowMs - keepMs;
  const forgotten = { runs: await runs.forget(begunBeforeMs), launches: 0 };
  for await (const ids of pages(launches, { begunBeforeMs })) {
    const used = await runs.launchesWithRuns(ids);
    forgotten.launches += await launches.forget(ids.filter((id) => !used.has(id)));
  }
  return forgotten;
}

async function* pages(launches: SweptStores['launches'], which: Pick<LaunchPage, 'begunBeforeMs' | 'withToken'>) {
  for (let after: string | undefined; ;) {
    const ids = await launches.listBegunBefore({ ...which, limit: pageSize, after });
    if (ids.length > 0) yield ids;
    if (ids.length < pageSize) return;
    after = ids.at(-1);
  }
}
