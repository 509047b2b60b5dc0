export interface WorkLoopOptions<Job> {
  /** The next job that waits; null where none does. Marks it as begun. */
  readonly take: () => Job | null;
  /** Runs one job to its end, whatever that is. Should return soon after `signal` is aborted, the job left to be taken again. */
  readonly run: (job: Job, signal: AbortSignal) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

/** Runs jobs that wait in a table, one after the other. */
export class WorkLoop<Job> {
  #options: WorkLoopOptions<Job>;
  #abort = new AbortController();
  #running: Promise<void> | null = null;
  #isWoken = false;

  constructor(options: WorkLoopOptions<Job>) {
    this.#options = options;
  }

  /** Begins with what waits, if nothing runs yet. */
  wake(): void {
    this.#isWoken = true;
    this.#running ??= this.#runAll()
      .catch(this.#options.onError)
      .finally(() => {
        this.#running = null;
        // Woken between the last look and here: look again.
        if (this.#isWoken) this.wake();
      });
  }

  /** Leaves what is under way, and waits until nothing runs. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error('the sandbox is stopping'));
    await this.#running;
  }

  /** As `stop`, and ready for more. */
  async restart(): Promise<void> {
    await this.stop();
    this.#abort = new AbortController();
  }

  async #runAll(): Promise<void> {
    const { signal } = this.#abort;
    const { take, run, onError } = this.#options;
    for (;;) {
      this.#isWoken = false;
      const job = signal.aborted ? null : take();
      if (job === null) return;
      // One that could not even be marked as failed must not keep the others.
      await run(job, signal).catch(onError);
    }
  }
}
