import { setTimeout as sleep } from 'node:timers/promises';
import { isOfTheMachine } from './machine-error.ts';

const tryAgainMs = 2_000;
/** Ten minutes by default: a machine that is ill for longer, or a single file that it cannot read, must not keep the others. */
const maxTries = 22;

export interface WorkLoopOptions<Job> {
  /** The next job that waits; null where none does. Marks it as begun. */
  readonly take: () => Job | null;
  /**
   * Runs one job to its end, whatever that is. Should return soon after `signal` is aborted, the job left to be taken again.
   * An error of the machine, such as a full disk, repeats it until `isLastTry`.
   */
  readonly run: (job: Job, signal: AbortSignal, isLastTry: boolean) => Promise<void>;
  /** The first pause before that; twice as long each time, up to 16 times. Default 2,000. */
  readonly tryAgainMs?: number;
  readonly onError: (error: unknown) => void;
  /** Jobs that run at a time. Default 1. */
  readonly concurrency?: number;
}

/** Runs jobs that wait in a table. */
export class WorkLoop<Job> {
  #options: WorkLoopOptions<Job>;
  #abort = new AbortController();
  #running = new Set<Promise<void>>();
  #again: NodeJS.Timeout | undefined;

  constructor(options: WorkLoopOptions<Job>) {
    this.#options = options;
  }

  /** Begins with what waits, as far as there is a free place; looks again whenever a job ends. */
  wake(): void {
    const { concurrency = 1, onError } = this.#options;
    clearTimeout(this.#again);
    while (this.#running.size < concurrency && !this.#abort.signal.aborted) {
      const job = this.#take();
      if (job === null) return;
      const running: Promise<void> = this.#run(job, this.#abort.signal)
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
    clearTimeout(this.#again);
    await Promise.all(this.#running);
  }

  /** Stops, and makes the loop ready for more work. */
  async restart(): Promise<void> {
    await this.stop();
    this.#abort = new AbortController();
  }

  #take(): Job | null {
    try {
      return this.#options.take();
    } catch (error) {
      this.#options.onError(error);
      // Nobody else may come by.
      this.#again = setTimeout(() => this.wake(), this.#options.tryAgainMs ?? tryAgainMs).unref();
      return null;
    }
  }

  async #run(job: Job, signal: AbortSignal): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#options.run(job, signal, tries === maxTries);
      } catch (error) {
        if (!isOfTheMachine(error) || signal.aborted || tries === maxTries) throw error;
        this.#options.onError(error);
      }
      await sleep((this.#options.tryAgainMs ?? tryAgainMs) * Math.min(16, 2 ** (tries - 1)), undefined, { signal });
    }
  }
}
