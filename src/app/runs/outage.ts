import { abortableSleep } from '../../platform-client/index.ts';
import { DatabaseUnavailableError } from '../database-unavailable.ts';

/** Interval at which a waiting run checks whether the outage is over. */
const lookEveryMs = 500;
/** After an outage, runs go on at random within this time for each of them, so that they do not query the database all at once. */
const spreadOfEachMs = 10;
const longestSpreadMs = 5_000;

/**
 * An outage of the database, shared by all runs of a worker. The runs wait until the worker has renewed its lease, so they
 * do not query the database themselves. The log has one line for the beginning and one for the end.
 */
export class Outage {
  #sinceMs: number | null = null;
  #waitedFor = 0;
  #spreadMs = 0;
  #log: { warn(facts: object, message: string): void; info(facts: object, message: string): void };
  #now: () => number;

  constructor(
    log: { warn(facts: object, message: string): void; info(facts: object, message: string): void },
    now: () => number,
  ) {
    this.#log = log;
    this.#now = now;
  }

  get isOn(): boolean {
    return this.#sinceMs !== null;
  }

  /** Notes the outage, and returns true, if `error` says that the database is away. */
  isCause(error: unknown): boolean {
    if (!(error instanceof DatabaseUnavailableError)) return false;
    if (this.#sinceMs === null) {
      this.#sinceMs = this.#now();
      this.#log.warn({ err: error }, 'the database does not answer; runs wait for it');
    }
    return true;
  }

  /** The database has answered. */
  ended(): void {
    if (this.#sinceMs === null) return;
    const seconds = (this.#now() - this.#sinceMs) / 1_000;
    this.#log.info({ seconds, runsThatWaited: this.#waitedFor }, 'the database answers again');
    this.#sinceMs = null;
    this.#spreadMs = Math.min(longestSpreadMs, this.#waitedFor * spreadOfEachMs);
    this.#waitedFor = 0;
  }

  /** Resolves when it has ended. Rejects with the signal's reason. */
  async over(signal: AbortSignal): Promise<void> {
    if (this.#sinceMs === null) return;
    this.#waitedFor += 1;
    // oxlint-disable-next-line typescript/no-unnecessary-condition -- `end` may run during a sleep
    while (this.#sinceMs !== null) await abortableSleep(lookEveryMs, signal);
    await abortableSleep(Math.random() * this.#spreadMs, signal);
  }
}
