import { setTimeout as sleep } from 'node:timers/promises';
import { PgBoss, type Job } from 'pg-boss';
import pLimit from 'p-limit';
import { KitError } from '../../contract/index.ts';
import { asDatabaseError, QuietClient } from '../database-unavailable.ts';
import { reasonOf } from '../database.ts';
import { RepeatedFailure } from './repeated-failure.ts';
import type { StageLog } from './stages/stage.ts';
import {
  giveAgainMs,
  warnOfTake,
  type QueueName,
  type QueuedRun,
  type QueueWorker,
  type RunQueue,
} from './run-queue.ts';

const queueNames: readonly QueueName[] = ['wait', 'process'];
const queueOf = (queueName: QueueName) => `runs-${queueName}`;

/** The shortest time that pg-boss accepts. A job is done as soon as a worker has claimed its run, so a job that lasts this long belongs to a dead worker. */
const heartbeatSeconds = 10;
const longestSeconds = 60;
const retries = 1_000_000;
/** Interval at which a worker with free capacity looks for runs. */
const lookEveryMs = 500;
const batch = 200;
/** Runs of a batch that are claimed at a time, so that a slow database gets few claims and its pool stays free for others. */
const takesAtOnce = 5;
/** pg-boss hands its options to the pool of its connections. One whose other end is gone without a word is given up; its own upgrades have to be done by then. */
const poolOptions = { Client: QuietClient, query_timeout: 120_000 };

export interface RunJob {
  readonly runId: string;
}

/** It has a pool of its own: its errors are told apart as those of the app's. */
const rethrow = (error: unknown): never => {
  throw asDatabaseError(error);
};

/** The part of pg-boss that the queue uses. */
export type Boss = Pick<PgBoss, 'insert' | 'complete' | 'fail' | 'stop'> & {
  fetch(name: string, options: { batchSize: number }): Promise<Pick<Job<RunJob>, 'id' | 'data'>[]>;
};

/** Runs in PostgreSQL by pg-boss: any number of processes add and take them. */
export class PgBossRunQueue implements RunQueue {
  readonly isShared = true;
  #boss: Boss;
  #loops: Promise<void>[] = [];
  #stopping = new AbortController();

  constructor(boss: Boss) {
    this.#boss = boss;
  }

  /** Opens the queue, and makes its tables where they are not there. `supervises`: whether this process looks for jobs of workers that died. */
  static async open(
    connectionString: string,
    { supervises, log }: { supervises: boolean; log: Pick<StageLog, 'warn'> },
  ): Promise<PgBossRunQueue> {
    const boss = new PgBoss({
      ...{
        connectionString,
        max: 4,
        schedule: false,
        supervise: supervises,
        superviseIntervalSeconds: 5,
        monitorIntervalSeconds: 5,
      },
      ...poolOptions,
    });
    // Errors of pg-boss' own background work; a failed call throws to its caller.
    const background = new RepeatedFailure(log, 'the queue reported an error');
    boss.on('error', (error) => background.failed(error));
    const options = {
      heartbeatSeconds,
      expireInSeconds: longestSeconds,
      retryLimit: retries,
      retryDelay: giveAgainMs / 1000,
      deleteAfterSeconds: 3_600,
    };
    try {
      await boss.start();
      for (const queueName of queueNames) {
        await boss.createQueue(queueOf(queueName), { policy: 'exclusive', ...options });
        await boss.updateQueue(queueOf(queueName), options);
      }
    } catch (error) {
      await boss.stop({ graceful: false }).catch(() => {});
      throw new KitError('database_unavailable', `DATABASE_URL: the app could not open the queue (${reasonOf(error)})`);
    }
    return new PgBossRunQueue(boss);
  }

  async add(runs: readonly QueuedRun[]): Promise<void> {
    for (const queueName of queueNames) {
      const jobs = runs
        .filter((run) => run.queueName === queueName)
        .map(({ runId }) => ({ data: { runId } satisfies RunJob, singletonKey: runId }));
      if (jobs.length > 0) await this.#boss.insert(queueOf(queueName), jobs).catch(rethrow);
    }
  }

  work(worker: QueueWorker): Promise<void> {
    this.#loops = queueNames.map((queueName) => this.#take(queueName, worker));
    return Promise.resolve();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#loops);
  }

  async close(): Promise<void> {
    await this.#boss.stop({ graceful: false });
  }

  async #take(queueName: QueueName, worker: QueueWorker): Promise<void> {
    const failure = new RepeatedFailure(worker.log, `could not ask the queue for runs (${queueName})`);
    while (!this.#stopping.signal.aborted) {
      const capacity = Math.min(batch, worker.capacity(queueName));
      const given = capacity <= 0 ? 0 : await this.#give(queueName, capacity, worker, failure);
      // A full batch: there may be more.
      if (given < batch) await sleep(lookEveryMs, undefined, { signal: this.#stopping.signal }).catch(() => {});
    }
  }

  /** Returns how many jobs there were. Runs that were taken leave the queue; it offers the others again, and those whose outcome is unknown. */
  async #give(queueName: QueueName, batchSize: number, worker: QueueWorker, failure: RepeatedFailure): Promise<number> {
    try {
      const jobs = await this.#boss.fetch(queueOf(queueName), { batchSize });
      const isTaken = await pLimit(takesAtOnce).map(jobs, (job) => this.#isTaken(job, queueName, worker));
      const ids = (wanted: boolean) => jobs.filter((_, i) => isTaken[i] === wanted).map(({ id }) => id);
      const [taken, left] = [ids(true), ids(false)];
      if (taken.length > 0) await this.#boss.complete(queueOf(queueName), taken);
      if (left.length > 0) await this.#boss.fail(queueOf(queueName), left);
      failure.succeeded();
      return jobs.length;
    } catch (error) {
      failure.failed(error);
      return 0;
    }
  }

  async #isTaken(
    { data: { runId } }: Pick<Job<RunJob>, 'data'>,
    queueName: QueueName,
    worker: QueueWorker,
  ): Promise<boolean> {
    try {
      await worker.take({ runId, queueName });
      return true;
    } catch (error) {
      warnOfTake(worker, error, runId);
      return false;
    }
  }
}
