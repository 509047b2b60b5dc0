interface Waiting {
  readonly begin: () => void;
}

/** Runs so many tasks at a time; whose turn it is goes round the owners, so that nobody's many keep another's one waiting. */
export class FairQueue {
  #concurrency: number;
  #running = 0;
  /** By owner, in the order of their turns. */
  #waiting = new Map<string, Waiting[]>();

  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return [...this.#waiting.values()].reduce((sum, tasks) => sum + tasks.length, 0);
  }

  waitingOf(owner: string): number {
    return this.#waiting.get(owner)?.length ?? 0;
  }

  /** Rejects at once with the signal's reason where that is aborted while the task waits. */
  async run<T>(owner: string, task: () => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    if (this.#running < this.#concurrency) this.#running += 1;
    else await this.#turn(owner, signal);
    try {
      signal.throwIfAborted();
      return await task();
    } finally {
      this.#next();
    }
  }

  /** Resolves when a place was handed over. */
  #turn(owner: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        const left = (this.#waiting.get(owner) ?? []).filter((other) => other !== waiting);
        if (left.length > 0) this.#waiting.set(owner, left);
        else this.#waiting.delete(owner);
        reject(signal.reason);
      };
      const waiting: Waiting = {
        begin: () => {
          signal.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      this.#waiting.set(owner, [...(this.#waiting.get(owner) ?? []), waiting]);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** The place goes to the next owner's oldest task, and that owner to the end of the line. */
  #next(): void {
    const [first] = this.#waiting;
    if (!first) {
      this.#running -= 1;
      return;
    }
    const [owner, [task, ...rest]] = first;
    this.#waiting.delete(owner);
    if (rest.length > 0) this.#waiting.set(owner, rest);
    task?.begin();
  }
}
