/**
 * The patience of one run with a platform or a machine that is out of order. Each has the whole patience from its first
 * failure on. Progress ends the waiting for both: a stage that ended, or a part that the platform acknowledged.
 */
export class Patience {
  readonly #limitMs: number;
  readonly #now: () => number;
  #unansweredSinceMs: number | null = null;
  #machineFailsSinceMs: number | null = null;

  constructor(limitMs: number, now: () => number) {
    this.#limitMs = limitMs;
    this.#now = now;
  }

  /** The platform did not answer. Returns the time, in epoch milliseconds, at which the run gives it up. */
  unanswered(): number {
    this.#unansweredSinceMs ??= this.#now();
    return this.#unansweredSinceMs + this.#limitMs;
  }

  /** The platform answered. That says nothing about the machine. */
  answered(): void {
    this.#unansweredSinceMs = null;
  }

  /** The machine failed. Returns true if the run gives it up. */
  machineFailed(): boolean {
    const nowMs = this.#now();
    this.#machineFailsSinceMs ??= nowMs;
    return nowMs - this.#machineFailsSinceMs >= this.#limitMs;
  }

  /** A stage has ended, or a part is acknowledged. */
  progressed(): void {
    this.#unansweredSinceMs = null;
    this.#machineFailsSinceMs = null;
  }
}
