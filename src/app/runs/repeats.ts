/** Repeats pieces of work until `stop`, and never runs one twice at the same time. Reports a failure, and tries again the next time. */
export class Repeats {
  #timers: NodeJS.Timeout[] = [];
  #onError: (error: unknown, what: string) => void;

  constructor(onError: (error: unknown, what: string) => void) {
    this.#onError = onError;
  }

  every(intervalMs: number, what: string, work: () => Promise<unknown>): void {
    let busy = false;
    const timer = setInterval(() => {
      if (busy) return;
      busy = true;
      work()
        .catch((error: unknown) => this.#onError(error, what))
        .finally(() => (busy = false));
    }, intervalMs);
    timer.unref();
    this.#timers.push(timer);
  }

  stop(): void {
    this.#timers.forEach(clearInterval);
  }
}
