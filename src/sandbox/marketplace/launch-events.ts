import type { SandboxClock } from '../clock.ts';
import type { SandboxDatabase } from '../database.ts';

/** Kinds of events of a launch besides its calls. */
export type LaunchEventKind =
  | 'launched'
  | 'approved'
  | 'rejected'
  | 'clock moved'
  | 'revoked'
  | 'fault armed'
  | 'faults disarmed';

export interface LaunchEvent {
  /** Real: epoch milliseconds of the machine. */
  readonly atMs: number;
  readonly kind: LaunchEventKind;
  /** Subject of the event, in words. */
  readonly text: string;
  /** Distance by which the clock was moved; 0 for all other events. */
  readonly movedMs: number;
}

/** Kept of all launches together; shown of one. */
const most = { kept: 100_000, shown: 500 };

/** Writes down what people and the control calls do to a launch, so that its calls can be understood. */
export class LaunchEvents {
  #database: SandboxDatabase;
  #clock: SandboxClock;

  constructor(database: SandboxDatabase, clock: SandboxClock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** `launchId` null: it concerns every launch. */
  note(launchId: string | null, kind: LaunchEventKind, text: string, movedMs = 0): void {
    const { lastInsertRowid } = this.#database
      .prepare('insert into launch_events (launch_id, at, kind, text, moved_ms) values (?, ?, ?, ?, ?)')
      .run(launchId, this.#clock.machineNow(), kind, text, movedMs);
    this.#database.prepare('delete from launch_events where id <= ?').run(Number(lastInsertRowid) - most.kept);
  }

  /** Moves the clock of one launch, or of all. */
  moveClock(launchId: string | null, byMs: number): void {
    this.#clock.advance(byMs, launchId);
    if (byMs > 0)
      this.note(launchId, 'clock moved', `by ${spanText(byMs)}${launchId === null ? ', for every launch' : ''}`, byMs);
  }

  /** Returns the events of the launch, and those of all launches since it began: the newest 500, oldest first. */
  list(launchId: string): LaunchEvent[] {
    return this.#database
      .prepare<[string, string, number], LaunchEvent>(
        `select at as atMs, kind, text, moved_ms as movedMs from (
           select * from launch_events
           where launch_id = ? or (launch_id is null and at >= (select min(at) from launch_events where launch_id = ?))
           order by at desc, id desc limit ?) order by at, id`,
      )
      .all(launchId, launchId, most.shown);
  }

  /** True if an event of this kind has come to any launch. */
  has(kind: LaunchEventKind): boolean {
    return this.#database.prepare('select 1 from launch_events where kind = ? limit 1').get(kind) !== undefined;
  }

  /** When the launch's clock came to show `launchMs`, in the machine's time: now or before, else null. By the launch's events, as `list` gives them. */
  machineTimeOf(launchId: string, launchMs: number, noted: readonly LaunchEvent[]): number | null {
    if (this.#clock.now(launchId) < launchMs) return null;
    // Before each move the launch's clock was behind the machine's by so much less.
    let offset = this.#clock.now(launchId) - this.#clock.machineNow();
    for (const { atMs, movedMs } of noted.filter((event) => event.movedMs > 0).toReversed()) {
      const reachedMs = launchMs - offset;
      if (reachedMs >= atMs) return Math.round(reachedMs);
      if (launchMs > atMs + offset - movedMs) return atMs;
      offset -= movedMs;
    }
    return Math.round(launchMs - offset);
  }
}

/** `31 min`, `2 h`, `45 s`: as a person says how far a clock was moved. */
export function spanText(ms: number): string {
  const [size, unit] =
    ms >= 172_800_000
      ? [86_400_000, 'days']
      : ms >= 7_200_000
        ? [3_600_000, 'h']
        : ms >= 60_000
          ? [60_000, 'min']
          : [1_000, 's'];
  return `${Number((ms / size).toFixed(1))} ${unit}`;
}
