import { abortableSleep } from '../../platform-client/index.ts';

/** A worker that has said nothing for so long counts as dead, and others may take its runs. */
export const leaseMs = 10_000;
/** So long before the lease is over the worker asks the platform for nothing more: a call that is under way takes its time. */
const marginMs = 2_000;
const lookAgainMs = 100;
/** After a database was away for everybody, the others get so long to say that they live. */
const settleMs = 3_000;

/** The name by which other workers know this process, and whether they still count it as alive. */
export class WorkerLease {
  readonly worker: string;
  #endsAtMs: number;
  #settledAtMs = -Infinity;
  #clock: () => number;

  /** `isShared`: other workers may take what this one has. `clock`: milliseconds that nobody sets back. */
  constructor(
    worker: string,
    { isShared, clock = () => performance.now() }: { isShared: boolean; clock?: () => number },
  ) {
    this.worker = worker;
    this.#clock = clock;
    this.#endsAtMs = isShared ? -Infinity : Infinity;
  }

  now(): number {
    return this.#clock();
  }

  /** Notes a renewal whose statement began at `fromMs`, as `now` tells it. */
  renewed(fromMs: number): void {
    if (this.#endsAtMs === Infinity) return;
    if (this.#endsAtMs !== -Infinity && fromMs >= this.#endsAtMs) this.#settledAtMs = this.#clock() + settleMs;
    this.#endsAtMs = fromMs + leaseMs - marginMs;
  }

  /** False while other leases may have ended only because the database was away, which is over now. */
  get mayJudgeOthers(): boolean {
    return this.#clock() >= this.#settledAtMs;
  }

  /**
   * Resolves while the lease holds. A worker that was stopped or cut off from the database for longer waits here until it
   * knows which runs it still has: another worker may have continued them. Rejects with the signal's reason.
   */
  async held(signal: AbortSignal | undefined): Promise<void> {
    while (this.#clock() >= this.#endsAtMs) await abortableSleep(lookAgainMs, signal);
  }
}
