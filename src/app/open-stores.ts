import type { Logger } from 'pino';
import { ownFolder } from '../server/index.ts';
import type { AppConfig } from './config.ts';
import { connectionsOf, openDatabase } from './database.ts';
import { createTokenSealer } from './launch/sealed-token.ts';
import type { LaunchStore } from './launch/launch-store.ts';
import { SqlSessionStore, type SessionStore } from './launch/session-store.ts';
import { SqlLaunchStore } from './launch/sql-launch-store.ts';
import { localProgress, sharedProgress, type ProgressBoard } from './runs/run-progress.ts';
import { LocalRunQueue, type RunQueue } from './runs/run-queue.ts';
import type { RunStore } from './runs/run.ts';
import { JobRecords } from './execution/job-records.ts';
import { SqlRunStore } from './runs/sql-run-store.ts';
import { RepeatedFailure } from './runs/repeated-failure.ts';

/** Stores for data that outlives a request. `src/testing` has a test suite for each, which your own stores can run. */
export interface AppStores {
  readonly runs: RunStore;
  readonly launches: LaunchStore;
  readonly sessions: SessionStore;
  /** Closed with the app. */
  readonly progress: ProgressBoard;
  /** Stopped and closed with the app. If the queue is shared, other processes take runs of the same stores. */
  readonly queue: RunQueue;
}

/** The stores of an app. Opens the database of `config` only for the stores that are not given. */
export async function openStores(
  given: Partial<AppStores>,
  config: AppConfig,
  now: () => number,
  log: Logger,
): Promise<{
  stores: AppStores;
  jobs: JobRecords | null;
  connections: () => ReturnType<typeof connectionsOf>;
  close: () => Promise<void>;
}> {
  const { runs, launches, sessions, progress, queue } = given;
  if (runs && launches && sessions && progress && queue)
    return {
      stores: { runs, launches, sessions, progress, queue },
      jobs: null,
      connections: () => null,
      close: async () => {},
    };

  const databaseUrl = config.databaseUrl?.reveal() ?? null;
  const isShared = databaseUrl !== null;
  // SQLite has runs of this process alone; those of a shared database may be anybody's.
  const leaveFolder = isShared ? () => {} : ownFolder(config.dataDir);
  const database = await openDatabase({
    dataDir: config.dataDir,
    databaseUrl,
    connections: config.databaseConnections,
    waitMs: config.databaseWaitMs,
    onWait: (reason) => log.warn({ waitMs: config.databaseWaitMs }, `${reason}; asking again until it answers`),
  });
  const ownQueue = async () => {
    if (databaseUrl === null) return new LocalRunQueue();
    // An app on SQLite does not load pg-boss.
    const { PgBossRunQueue } = await import('./runs/pg-boss-run-queue.ts');
    return PgBossRunQueue.open(databaseUrl, { supervises: config.role !== 'web', log });
  };
  const ownProgress = () =>
    isShared
      ? sharedProgress(database, new RepeatedFailure(log, 'could not write the progress of runs'))
      : localProgress();
  const close = async () => {
    await database.destroy();
    leaveFolder();
  };
  const opened = await (queue ?? ownQueue().catch((error: unknown) => close().then(() => Promise.reject(error))));
  return {
    stores: {
      runs: runs ?? new SqlRunStore(database, now, { isShared }),
      launches: launches ?? new SqlLaunchStore(database, createTokenSealer(config.secrets), { isShared }),
      sessions: sessions ?? new SqlSessionStore(database, now),
      progress: progress ?? ownProgress(),
      queue: opened,
    },
    jobs: new JobRecords(database),
    connections: () => connectionsOf(database),
    close,
  };
}
