import { iso, type SandboxClock } from '../clock.ts';
import type { SandboxDatabase } from '../database.ts';

/** What happens to a launch besides the calls that it makes. */
export const launchEventKinds = ['launched', 'approved', 'rejected', 'clock moved', 'revoked', 'fault armed', 'faults disarmed'] as const;
export type LaunchEventKind = (typeof launchEventKinds)[number];

export interface LaunchEvent {
  /** Real: epoch milliseconds of the machine. */
  readonly atMs: number;
  /** On the launch's clock. */
  readonly launchAtMs: number;
  readonly kind: LaunchEventKind;
  /** What it was about, in words. */
  readonly text: string;
  readonly operationId: string | null;
  /** How far the clock was moved; 0 for everything else. */
  readonly movedMs: number;
}

/** Kept of one launch, and of all together with those that are for all. */
const most = { shown: 500, ofAll: 100_000 };

interface EventRow {
  at: number;
  launch_at: number;
  kind: LaunchEventKind;
  detail: string;
}

/** Writes down what people and the control calls do to a launch, so that its calls can be understood. */
export class LaunchEvents {
  #database: SandboxDatabase;
  #clock: SandboxClock;

  constructor(database: SandboxDatabase, clock: SandboxClock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** `launchId` null: it concerns every launch. */
  note(launchId: string | null, kind: LaunchEventKind, text: string, { operationId = null, movedMs = 0 }: Partial<Pick<LaunchEvent, 'operationId' | 'movedMs'>> = {}): void {
    const { lastInsertRowid } = this.#database
      .prepare('insert into launch_events (launch_id, at, launch_at, kind, detail) values (?, ?, ?, ?, ?)')
      .run(launchId, this.#clock.machineNow(), this.#clock.now(launchId), kind, JSON.stringify({ text, operationId, movedMs }));
    this.#database.prepare('delete from launch_events where id <= ?').run(Number(lastInsertRowid) - most.ofAll);
  }

  /** Of the launch and of all, since the launch began: oldest first, the newest 500. */
  list(launchId: string): LaunchEvent[] {
    const rows = this.#database
      .prepare<[string, string, number], EventRow>(
        `select * from (
           select id, at, launch_at, kind, detail from launch_events
           where launch_id = ? or (launch_id is null and at >= (select min(at) from launch_events where launch_id = ?))
           order by at desc, id desc limit ?) order by at, id`,
      )
      .all(launchId, launchId, most.shown);
    return rows.map((row) => ({ atMs: row.at, launchAtMs: row.launch_at, kind: row.kind, ...(JSON.parse(row.detail) as Pick<LaunchEvent, 'text' | 'operationId' | 'movedMs'>) }));
  }

  /** When the launch's clock came to show `launchMs`, in the machine's time: now or before, else null. */
  machineTimeOf(launchId: string, launchMs: number): number | null {
    if (this.#clock.now(launchId) < launchMs) return null;
    // Before each move the launch's clock was behind the machine's by so much less.
    let offset = this.#clock.now(launchId) - this.#clock.machineNow();
    for (const { atMs, movedMs } of this.list(launchId).filter((event) => event.movedMs > 0).toReversed()) {
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
  const [size, unit] = ms >= 172_800_000 ? [86_400_000, 'days'] : ms >= 7_200_000 ? [3_600_000, 'h'] : ms >= 60_000 ? [60_000, 'min'] : [1_000, 's'];
  return `${Number((ms / size).toFixed(1))} ${unit}`;
}

export const viewEvent = ({ atMs, launchAtMs, ...event }: LaunchEvent) => ({ ...event, at: iso(atMs), launchAt: iso(launchAtMs) });
