import type { SandboxDatabase } from './database.ts';

const everywhere = '';

/** The sandbox's time: the machine's, plus what was advanced for all, plus what was advanced for one launch. Offsets survive a restart. */
export class SandboxClock {
  #database: SandboxDatabase;
  #machineNow: () => number;
  #offsets = new Map<string, number>();
  readonly #startsAtMs: number | null;

  /** `startsAtMs`: time at which the clock of a sandbox without launches begins, in epoch milliseconds. Default: the machine's. */
  constructor(database: SandboxDatabase, machineNow: () => number, startsAtMs: number | null = null) {
    this.#database = database;
    this.#machineNow = machineNow;
    this.#startsAtMs = startsAtMs;
    const rows = database.prepare<[], { launch_id: string; offset_ms: number }>('select * from clock_offsets').all();
    for (const row of rows) this.#offsets.set(row.launch_id, row.offset_ms);
    const isUsed = database.prepare<[], object>('select 1 from launches limit 1').get() !== undefined;
    if (!isUsed) this.#begin();
  }

  #begin(): void {
    if (this.#startsAtMs !== null && !this.#offsets.has(everywhere))
      this.advance(this.#startsAtMs - this.#machineNow(), null);
  }

  /** Epoch milliseconds; of a launch's own clock where `launchId` is given. */
  now(launchId?: string | null): number {
    const own = launchId ? (this.#offsets.get(launchId) ?? 0) : 0;
    return this.#machineNow() + (this.#offsets.get(everywhere) ?? 0) + own;
  }

  /** The machine's time, which the referee's poll intervals are in. */
  machineNow(): number {
    return this.#machineNow();
  }

  advance(byMs: number, launchId: string | null): void {
    const scope = launchId ?? everywhere;
    const offset = (this.#offsets.get(scope) ?? 0) + byMs;
    this.#database
      .prepare(
        'insert into clock_offsets values (?, ?) on conflict (launch_id) do update set offset_ms = excluded.offset_ms',
      )
      .run(scope, offset);
    this.#offsets.set(scope, offset);
  }

  /** Launches whose clock was moved apart from the others. */
  movedLaunches(): string[] {
    return [...this.#offsets.keys()].filter((id) => id !== everywhere);
  }

  reset(): void {
    this.#database.prepare('delete from clock_offsets').run();
    this.#offsets.clear();
    this.#begin();
  }
}

/** A larger difference of the two clocks means that the machine slept or that its clock was set. Time servers make smaller steps. */
const largestStepMs = 10_000;

/**
 * Returns a clock in epoch milliseconds that ignores small steps of the machine's clock, so that call times keep their order
 * and distance. It follows steps of more than ten seconds.
 */
export function steadyClock(
  wall: () => number = Date.now,
  passed: () => number = () => performance.now(),
): () => number {
  let offset = wall() - passed();
  return () => {
    const ahead = wall() - passed() - offset;
    if (Math.abs(ahead) > largestStepMs) offset += ahead;
    return Math.round(passed() + offset);
  };
}

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}
