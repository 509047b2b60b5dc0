import { setImmediate as othersRan, setTimeout as sleep } from 'node:timers/promises';
import type { StageLog } from './stages/stage.ts';

/** `wait`: calls and waits, thousands at once. `process`: a step to run, as many as a worker has room for. */
export type QueueName = 'wait' | 'process';

/** A run that somebody has to take. */
export interface QueuedRun {
  readonly runId: string;
  readonly queueName: QueueName;
}

/**
 * Wakes workers at least once for each run that is added. Only the store says who has a run and how far it came:
 * a run leaves the queue as soon as a worker has it.
 */
export interface RunQueue {
  /** True where other processes take runs of the same queue. */
  readonly isShared: boolean;
  /** Makes sure that a worker takes the runs. Adding a run twice, or one that is under way, does no harm. */
  add(runs: readonly QueuedRun[]): Promise<void>;
  /** Gives runs to `worker` until `stop`. */
  work(worker: QueueWorker): Promise<void>;
  /** Stops giving runs; resolves when every `take` has settled. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

/** The worker cannot take a run at the moment, for a reason that it knows or has logged. The queue offers the run again without a line in the log. */
export class NotTakenError extends Error {}

/** The part of a worker that a queue calls. */
export interface QueueWorker {
  /**
   * Resolves if this worker has taken a run, or if no run is left to take. If several workers share the queue `process`, the worker takes the next run in turn
   * whose step it has, whatever run the job names. If the promise rejects, the queue offers the job again, to this worker or another.
   */
  take(run: Pick<QueuedRun, 'runId' | 'queueName'>): Promise<void>;
  /** Returns the number of runs of the queue that the worker can take now. */
  capacity(queueName: QueueName): number;
  readonly log: Pick<StageLog, 'warn'>;
}

/** Logs why a worker could not take a run, unless the reason is known. */
export function warnOfTake({ log }: QueueWorker, error: unknown, runId: string): void {
  if (error instanceof NotTakenError) return;
  log.warn({ err: error, runId }, 'the worker could not take a run; the queue gives it again');
}

/** Pause before the queue offers a run again that a worker could not take. The obstacle, usually the database, needs a moment. */
export const giveAgainMs = 1_000;

/** A take is a transaction of a synchronous driver: after so many of them requests get their turn. */
const takesAtOnce = 20;

/** The queue of one process that does everything: a run is given as soon as it is added. */
export class LocalRunQueue implements RunQueue {
  readonly isShared = false;
  #worker: QueueWorker | null = null;
  /** Added before there was a worker. */
  #early: QueuedRun[] = [];
  #given = new Map<string, Promise<void>>();
  #stopping = new AbortController();

  async add(runs: readonly QueuedRun[]): Promise<void> {
    if (!this.#worker) return void this.#early.push(...runs);
    for (const [i, run] of runs.entries()) {
      if (i > 0 && i % takesAtOnce === 0) await othersRan();
      if (this.#stopping.signal.aborted || this.#given.has(run.runId)) continue;
      this.#given.set(
        run.runId,
        this.#give(run, this.#worker).finally(() => this.#given.delete(run.runId)),
      );
    }
  }

  async work(worker: QueueWorker): Promise<void> {
    this.#worker = worker;
    await this.add(this.#early.splice(0));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#given.values());
  }

  async close(): Promise<void> {}

  async #give(run: QueuedRun, worker: QueueWorker): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      try {
        return await worker.take(run);
      } catch (error) {
        warnOfTake(worker, error, run.runId);
      }
      await sleep(giveAgainMs, undefined, { signal: this.#stopping.signal }).catch(() => {});
    }
  }
}
