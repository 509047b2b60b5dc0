import type { AppDatabase } from '../database.ts';

/** What a run does at the moment. Nothing relies on it: it may be gone with the process, and the run's state is not. */
export interface RunProgress {
  /** 0 to 1; null where there is no telling. */
  readonly fraction: number | null;
  readonly note: string | null;
  /** While uploading. */
  readonly bytes: { readonly sent: number; readonly total: number } | null;
}

export const noProgress: RunProgress = { fraction: null, note: null, bytes: null };

/** Where workers write the progress of their runs, and whoever shows it reads. */
export interface ProgressBoard {
  report(runId: string, progress: RunProgress): void;
  get(runId: string): Promise<RunProgress>;
  /** The run is not under way here any more. */
  clear(runId: string): void;
  close(): Promise<void>;
}

/** Of one process. */
export function localProgress(): ProgressBoard {
  const known = new Map<string, RunProgress>();
  return {
    report: (runId, progress) => void known.set(runId, progress),
    get: async (runId) => known.get(runId) ?? noProgress,
    clear: (runId) => void known.delete(runId),
    close: async () => {},
  };
}

const writeEveryMs = 500;

/** Of many processes: what has changed is written twice a second, however often it changes. */
export function sharedProgress(database: AppDatabase, onError: (error: unknown) => void): ProgressBoard {
  const changed = new Map<string, RunProgress>();
  let writing = Promise.resolve();
  const write = async () => {
    const rows = [...changed].map(([run_id, progress]) => ({ run_id, progress: JSON.stringify(progress) }));
    changed.clear();
    if (rows.length === 0) return;
    await database
      .insertInto('run_progress')
      .values(rows)
      .onConflict((conflict) => conflict.column('run_id').doUpdateSet((of) => ({ progress: of.ref('excluded.progress') })))
      .execute();
  };
  const timer = setInterval(() => (writing = writing.then(write).catch(onError)), writeEveryMs);
  timer.unref();
  return {
    report: (runId, progress) => void changed.set(runId, progress),
    async get(runId) {
      const row = await database.selectFrom('run_progress').select('progress').where('run_id', '=', runId).executeTakeFirst();
      return row ? (JSON.parse(row.progress) as RunProgress) : noProgress;
    },
    clear: (runId) => void changed.set(runId, noProgress),
    async close() {
      clearInterval(timer);
      await writing;
    },
  };
}
