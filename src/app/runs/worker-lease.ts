import { abortableSleep } from '../../platform-client/index.ts';

/** A worker that has said nothing for so long counts as dead, and others may take its runs. */
export const leaseMs = 10_000;
/** Interval at which a worker checks whether to renew its lease, and whether to ask which runs it still has. */
export const renewEveryMs = 1_000;
/** Time before the end of the lease in which the worker begins no call of the platform, because a call takes time. */
const marginMs = 2_000;
const lookAgainMs = 100;
/** Interval at which a worker asks which runs it still has, if no other worker can take them. */
const aloneEveryMs = 5_000;
/** After a database was away for everybody, the others get so long to say that they live. */
const settleMs = 3_000;

/** The name by which other workers know this process, and whether they still count it as alive. */
export class WorkerLease {
  readonly worker: string;
  #endsAtMs: number;
  #renewedAtMs = -Infinity;
  #doubtedAtMs = -Infinity;
  #settledAtMs = -Infinity;
  #clock: () => number;

  /** `isShared`: other workers may take what this one has. `clock`: milliseconds that nobody sets back. It does not count the time for which a virtual machine is paused: then the claim of a run refuses late writes. */
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

  /** True if it is time to renew the lease. Always true if others may take this worker's runs. */
  get isDue(): boolean {
    return (
      this.#endsAtMs !== Infinity ||
      this.#doubtedAtMs >= this.#renewedAtMs ||
      this.#clock() - this.#renewedAtMs > aloneEveryMs - renewEveryMs / 2
    );
  }

  /** Notes that this worker may have lost runs unnoticed, because the database did not answer. The lease is due until the next renewal. */
  doubt(): void {
    this.#doubtedAtMs = this.#clock();
  }

  /** Notes a renewal whose statement began at `fromMs`, as `now` tells it. */
  renewed(fromMs: number): void {
    this.#renewedAtMs = fromMs;
    if (this.#endsAtMs === Infinity) return;
    if (this.#endsAtMs !== -Infinity && fromMs >= this.#endsAtMs) this.#settledAtMs = this.#clock() + settleMs;
    this.#endsAtMs = fromMs + leaseMs - marginMs;
  }

  /** True if the lease has ended since its last renewal. False before the first renewal. */
  get isOver(): boolean {
    return this.#endsAtMs !== -Infinity && this.#clock() >= this.#endsAtMs;
  }

  /** False while this worker's own lease is over, and while other leases may have ended only because the database was away, which is over now. */
  get mayJudgeOthers(): boolean {
    return this.#clock() < this.#endsAtMs && this.#clock() >= this.#settledAtMs;
  }

  /**
   * Resolves while the lease holds. A worker that was stopped or cut off from the database for longer waits here until it
   * knows which runs it still has: another worker may have continued them. Rejects with the signal's reason.
   */
  async held(signal: AbortSignal | undefined): Promise<void> {
    while (this.#clock() >= this.#endsAtMs) await abortableSleep(lookAgainMs, signal);
  }
}
