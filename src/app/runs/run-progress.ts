import { DatabaseUnavailableError } from '../database-unavailable.ts';
import type { AppDatabase } from '../database.ts';
import { RecentMap } from '../recent-map.ts';
import type { RunState } from './run-state.ts';
import type { Run } from './run.ts';
import type { RepeatedFailure } from './repeated-failure.ts';
import { ownJson } from '../../files/index.ts';

/** The progress of a run at the moment. Nothing relies on it: it may be gone with the process, and the run's state is not. */
export interface RunProgress {
  /** 0 to 1; null where there is no telling. */
  readonly fraction: number | null;
  readonly note: string | null;
  /** While uploading. */
  readonly bytes: { readonly sent: number; readonly total: number } | null;
  /** One letter for each tile, from the top: `w` waits, `r` runs, `d` is done. Null or absent: the run is not cut into tiles. */
  readonly tiles?: string | null;
}

/** The progress of a run that reports none. */
export const noProgress: RunProgress = { fraction: null, note: null, bytes: null };

/** The run that reports progress. Progress belongs to the state in which it was reported: after a change of state, a page shows nothing from the previous one. */
type Reported = Pick<Run, 'id' | 'launchId' | 'state'>;

/** Progress with the run's state at that time. Releases up to 1.0.0 store no state. */
type KeptProgress = RunProgress & { readonly state?: RunState };

function ofState(kept: KeptProgress | undefined, state: RunState): RunProgress {
  if (!kept) return noProgress;
  const { state: keptState = state, ...progress } = kept;
  return keptState === state ? progress : noProgress;
}

/** Workers write the progress of their runs here, and pages read it. */
export interface ProgressBoard {
  report(run: Reported, progress: RunProgress): void;
  /** Returns the progress that the run reported in its current state. */
  get(run: Pick<Run, 'id' | 'state'>): Promise<RunProgress>;
  /** A number that changes whenever the progress of one of the launch's runs has changed, unless the launch itself says so. */
  changesOf(launchId: string): number;
  /** The run is not under way here any more. */
  clear(run: Pick<Run, 'id' | 'launchId'>): void;
  close(): Promise<void>;
}

/** Launches whose changes are counted; of the oldest beyond that a page looks once too often. */
const maxCounted = 10_000;

/** The board of a single process. */
export function localProgress(): ProgressBoard {
  const known = new Map<string, KeptProgress>();
  const changes = new RecentMap<string, number>(maxCounted);
  const count = (launchId: string) => changes.set(launchId, (changes.get(launchId) ?? 0) + 1);
  return {
    report({ id, launchId, state }, progress) {
      known.set(id, { ...progress, state });
      count(launchId);
    },
    get: ({ id, state }) => Promise.resolve(ofState(known.get(id), state)),
    changesOf: (launchId) => changes.get(launchId) ?? 0,
    clear({ id, launchId }) {
      if (known.delete(id)) count(launchId);
    },
    close: () => Promise.resolve(),
  };
}

const writeEveryMs = 500;

/** The board of many processes: writes changes twice a second, however often progress changes. */
export function sharedProgress(
  database: AppDatabase,
  failure: Pick<RepeatedFailure, 'failed' | 'succeeded'>,
): ProgressBoard {
  const changed = new Map<string, { launchId: string; progress: KeptProgress }>();
  let writing = Promise.resolve();
  const insert = (rows: { run_id: string; progress: string }[]) =>
    database
      .insertInto('run_progress')
      .values(rows)
      .onConflict((conflict) =>
        conflict.column('run_id').doUpdateSet((of) => ({ progress: of.ref('excluded.progress') })),
      )
      .execute();
  const write = async () => {
    if (changed.size === 0) return;
    const batch = new Map(changed);
    // Processes that write the same rows in the same order do not wait for each other in a circle.
    const rows = [...batch]
      .map(([run_id, { progress }]) => ({ run_id, progress: JSON.stringify(progress) }))
      .toSorted((a, b) => (a.run_id < b.run_id ? -1 : 1));
    const launchIds = [...new Set([...changed.values()].map(({ launchId }) => launchId))];
    changed.clear();
    try {
      await insert(rows);
    } catch (error) {
      if (error instanceof DatabaseUnavailableError) {
        for (const [runId, reported] of batch) if (!changed.has(runId)) changed.set(runId, reported);
        throw error;
      }
      // A run may have been removed meanwhile. The others keep their progress.
      for (const row of rows) await insert([row]).catch(() => {});
    }
    // One by one: two processes that took several at once, each in its own order, could wait for each other.
    for (const id of launchIds)
      await database
        .updateTable('launch_changes')
        .set((of) => ({ changes: of('changes', '+', 1) }))
        .where('launch_id', '=', id)
        .execute();
    failure.succeeded();
  };
  const timer = setInterval(
    () => (writing = writing.then(write).catch((error: unknown) => failure.failed(error))),
    writeEveryMs,
  );
  timer.unref();
  return {
    report: ({ id, launchId, state }, progress) => void changed.set(id, { launchId, progress: { ...progress, state } }),
    async get({ id, state }) {
      const row = await database
        .selectFrom('run_progress')
        .select('progress')
        .where('run_id', '=', id)
        .executeTakeFirst();
      return ofState(row && ownJson<KeptProgress>(row.progress), state);
    },
    changesOf: () => 0,
    clear: ({ id, launchId }) => void changed.set(id, { launchId, progress: noProgress }),
    async close() {
      clearInterval(timer);
      await writing;
    },
  };
}
