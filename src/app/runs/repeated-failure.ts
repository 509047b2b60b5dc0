/** Receives the lines. */
interface FailureLog {
  warn(facts: object, message: string): void;
}

/** Shortest time between two lines about the same failure. */
const againAfterMs = 5 * 60_000;

/** A failure of work that is repeated often. The log has one line for its beginning, and one for each five minutes until the work succeeds. */
export class RepeatedFailure {
  #log: FailureLog;
  #what: string;
  #now: () => number;
  #loggedAtMs: number | null = null;
  #times = 0;

  constructor(log: FailureLog, what: string, now: () => number = Date.now) {
    this.#log = log;
    this.#what = what;
    this.#now = now;
  }

  /** Logs the failure, unless the log has it already. */
  failed(error: unknown): void {
    const nowMs = this.#now();
    this.#times += 1;
    if (this.#loggedAtMs !== null && nowMs - this.#loggedAtMs < againAfterMs) return;
    this.#loggedAtMs = nowMs;
    this.#log.warn({ err: error, times: this.#times }, this.#what);
  }

  succeeded(): void {
    this.#loggedAtMs = null;
    this.#times = 0;
  }
}
