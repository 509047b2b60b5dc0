interface Waiting {
  readonly cost: number;
  readonly begin: () => void;
}

/**
 * Runs so many tasks at a time, whose costs together stay within a budget. The turns go round the owners, so that nobody's many keep another's one
 * waiting. No task overtakes one that waits for its cost, and a task alone may cost any amount.
 */
export class FairQueue {
  #concurrency: number;
  #budget: number;
  #running = 0;
  /** Costs of the running tasks. */
  #spent = 0;
  /** By owner, in the order of their turns. */
  #waiting = new Map<string, Waiting[]>();

  constructor(concurrency: number, budget = Infinity) {
    this.#concurrency = concurrency;
    this.#budget = budget;
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

  /** Runs the task in its turn. Rejects at once with the signal's reason where that is aborted while the task waits. Default of `cost`: 0. */
  async run<T>(owner: string, task: () => Promise<T>, signal: AbortSignal, cost = 0): Promise<T> {
    signal.throwIfAborted();
    if (this.#waiting.size === 0 && this.#hasPlace(cost)) this.#enter(cost);
    else await this.#turn(owner, cost, signal);
    try {
      signal.throwIfAborted();
      return await task();
    } finally {
      this.#running -= 1;
      this.#spent -= cost;
      this.#startWaiting();
    }
  }

  #hasPlace(cost: number): boolean {
    if (this.#running >= this.#concurrency) return false;
    return this.#running === 0 || this.#spent + cost <= this.#budget;
  }

  #enter(cost: number): void {
    this.#running += 1;
    this.#spent += cost;
  }

  /** Resolves when the task has a place. */
  #turn(owner: string, cost: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        const left = (this.#waiting.get(owner) ?? []).filter((other) => other !== waiting);
        if (left.length > 0) this.#waiting.set(owner, left);
        else this.#waiting.delete(owner);
        reject(signal.reason);
        // The task may have been in the way of others.
        this.#startWaiting();
      };
      const waiting: Waiting = {
        cost,
        begin: () => {
          signal.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      this.#waiting.set(owner, [...(this.#waiting.get(owner) ?? []), waiting]);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** Gives free places to the next owners' oldest tasks, and puts these owners at the end of the line. */
  #startWaiting(): void {
    for (;;) {
      const [[owner, [task, ...rest]] = ['', []]] = this.#waiting;
      if (!task || !this.#hasPlace(task.cost)) return;
      this.#waiting.delete(owner);
      if (rest.length > 0) this.#waiting.set(owner, rest);
      this.#enter(task.cost);
      task.begin();
    }
  }
}
