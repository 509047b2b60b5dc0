/** Repeats pieces of work until `stop`, and never runs one twice at the same time. Reports a failure, and tries again the next time. Begins nothing after `stop`. */
export class Repeats {
  #timers: NodeJS.Timeout[] = [];
  #running = new Set<Promise<void>>();
  #isStopped = false;
  #onError: (error: unknown, what: string) => void;

  constructor(onError: (error: unknown, what: string) => void) {
    this.#onError = onError;
  }

  every(intervalMs: number, what: string, work: () => Promise<unknown>): void {
    if (this.#isStopped) return;
    let running: Promise<void> | null = null;
    const timer = setInterval(() => {
      if (running !== null) return;
      const now = work()
        .then(() => {})
        .catch((error: unknown) => this.#onError(error, what))
        .finally(() => {
          running = null;
          this.#running.delete(now);
        });
      running = now;
      this.#running.add(now);
    }, intervalMs);
    timer.unref();
    this.#timers.push(timer);
  }

  /** Resolves when all running work has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timers.forEach(clearInterval);
    await Promise.all(this.#running);
  }
}
