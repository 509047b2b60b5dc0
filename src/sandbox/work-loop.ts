export interface WorkLoopOptions<Job> {
  /** The next job that waits; null where none does. Marks it as begun. */
  readonly take: () => Job | null;
  /** Runs one job to its end, whatever that is. Should return soon after `signal` is aborted, the job left to be taken again. */
  readonly run: (job: Job, signal: AbortSignal) => Promise<void>;
  readonly onError: (error: unknown) => void;
  /** Jobs that run at a time. Default 1. */
  readonly concurrency?: number;
}

/** Runs jobs that wait in a table. */
export class WorkLoop<Job> {
  #options: WorkLoopOptions<Job>;
  #abort = new AbortController();
  #running = new Set<Promise<void>>();

  constructor(options: WorkLoopOptions<Job>) {
    this.#options = options;
  }

  /** Begins with what waits, as far as there is a free place; looks again whenever a job ends. */
  wake(): void {
    const { concurrency = 1, run, onError } = this.#options;
    while (this.#running.size < concurrency && !this.#abort.signal.aborted) {
      const job = this.#take();
      if (job === null) return;
      const running: Promise<void> = run(job, this.#abort.signal)
        // One that could not even be marked as failed must not keep the others.
        .catch(onError)
        .finally(() => {
          this.#running.delete(running);
          this.wake();
        });
      this.#running.add(running);
    }
  }

  /** Leaves what is under way, and waits until nothing runs. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error('the sandbox is stopping'));
    await Promise.all(this.#running);
  }

  /** As `stop`, and ready for more. */
  async restart(): Promise<void> {
    await this.stop();
    this.#abort = new AbortController();
  }

  #take(): Job | null {
    try {
      return this.#options.take();
    } catch (error) {
      this.#options.onError(error);
      return null;
    }
  }
}
