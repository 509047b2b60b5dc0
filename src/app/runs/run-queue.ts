import type { StageLog } from './stages/stage.ts';

/** `wait`: calls and waits, thousands at once. `process`: a step to run, as many as a worker has room for. */
export type Lane = 'wait' | 'process';

/** A run as a worker was given it. */
export interface QueuedRun {
  readonly runId: string;
  readonly lane: Lane;
  /** Aborted where the queue is stopping, or where the run is this worker's no more. */
  readonly signal: AbortSignal;
}

/**
 * Gives runs to workers, at least once each: to one at a time, to another where a worker dies. What a run
 * is and how far it came, the store says; here stands only that somebody has to take it further.
 */
export interface RunQueue {
  /** True where other processes take runs of the same queue. */
  readonly isShared: boolean;
  /** Sees to it that a worker takes the run. Again, or of a run that is under way, is no harm. `owner`: whose it is, for fairness. */
  add(runId: string, lane: Lane, owner: string): Promise<void>;
  /** Takes runs until `stop`, and gives each to `drive`; a run whose `drive` has resolved is off the queue, one whose `drive` rejects is tried again. */
  work(worker: QueueWorker): Promise<void>;
  /** Takes no more, gives back what is under way, and resolves when every `drive` has. */
  stop(): Promise<void>;
}

export interface QueueWorker {
  drive(run: QueuedRun): Promise<void>;
  /** How many runs of the lane there is room for now. */
  room(lane: Lane): number;
  readonly log: Pick<StageLog, 'warn'>;
}

/** Reason of an abort: the process is stopping, or another has the run. It stays as it is. */
export class GivenUp extends Error {}

/** The queue of one process that does everything: a run is driven as soon as it is added. */
export class LocalRunQueue implements RunQueue {
  readonly isShared = false;
  #worker: QueueWorker | null = null;
  /** Added before there was a worker. */
  #early = new Map<string, Lane>();
  #driven = new Map<string, Promise<void>>();
  #abort = new AbortController();

  async add(runId: string, lane: Lane): Promise<void> {
    if (this.#abort.signal.aborted || this.#driven.has(runId)) return;
    if (!this.#worker) {
      this.#early.set(runId, lane);
      return;
    }
    // One that could not be driven is found again by whoever looks for runs that nobody drives.
    const done = this.#worker.drive({ runId, lane, signal: this.#abort.signal }).catch(() => {}).finally(() => this.#driven.delete(runId));
    this.#driven.set(runId, done);
  }

  async work(worker: QueueWorker): Promise<void> {
    this.#worker = worker;
    for (const [runId, lane] of this.#early) await this.add(runId, lane);
    this.#early.clear();
  }

  async stop(): Promise<void> {
    this.#abort.abort(new GivenUp('the app is stopping'));
    await Promise.all(this.#driven.values());
  }
}
