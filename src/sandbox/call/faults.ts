import type { Endpoint } from '../../contract/index.ts';
import type * as z from 'zod';
import type { SandboxDatabase } from '../database.ts';
import type { LaunchEvents } from '../marketplace/launch-events.ts';
import { stored } from '../rows.ts';
import { newId } from '../secrets.ts';
import { faultText, type Fault, type FaultEffect, type newFault } from './fault.ts';
import { ownJson } from '../../files/index.ts';

interface FaultRow {
  id: string;
  launch_id: string | null;
  endpoint: Endpoint;
  after: number;
  times: number;
  effect: string;
  seen: number;
  fired: number;
}

/** Armed faults, with how often each has fired. They survive a restart. */
export class Faults {
  #database: SandboxDatabase;
  #all;
  /** Every call looks at them: kept beside the database until one is armed, counts or goes. Nothing else writes them. */
  #known: readonly FaultRow[] | null = null;
  #events: LaunchEvents;

  constructor(database: SandboxDatabase, events: LaunchEvents) {
    this.#database = database;
    this.#all = database.prepare<[], FaultRow>('select * from faults order by rowid');
    this.#events = events;
  }

  arm(fault: z.output<typeof newFault>): Fault {
    const id = newId('fault');
    this.#database
      .prepare('insert into faults (id, launch_id, endpoint, after, times, effect) values (?, ?, ?, ?, ?, ?)')
      .run(id, fault.launchId ?? null, fault.endpoint, fault.after, fault.times, JSON.stringify(fault.effect));
    this.#known = null;
    const armed = stored(this.#find(id));
    const when = `${armed.after > 0 ? `, after ${armed.after}` : ''}${armed.times > 1 ? `, ${armed.times} times` : ''}`;
    const text = `${armed.endpoint}: ${faultText(armed.effect)}${when}`;
    this.#events.note(armed.launchId, 'fault armed', text);
    return armed;
  }

  /** Arms the faults of one launch for another, as if none had fired. */
  armAgain(ofLaunchId: string, launchId: string): void {
    const faults = this.list().filter((fault) => fault.launchId === ofLaunchId);
    for (const { endpoint, effect, after, times } of faults) this.arm({ launchId, endpoint, effect, after, times });
  }

  list(): Fault[] {
    return this.#rows().map(fromRow);
  }

  /** Takes away one, if it is there. */
  disarm(id: string): void {
    const fault = this.#find(id);
    if (!fault) return;
    this.#database.prepare('delete from faults where id = ?').run(id);
    this.#known = null;
    this.#events.note(fault.launchId, 'faults disarmed', `${fault.endpoint}: ${faultText(fault.effect)}`);
  }

  clear(): void {
    const { changes } = this.#database.prepare('delete from faults').run();
    this.#known = null;
    if (changes > 0) this.#events.note(null, 'faults disarmed', 'all of them');
  }

  #find(id: string): Fault | undefined {
    return this.list().find((fault) => fault.id === id);
  }

  /** Counts a call and gives the first armed fault that it sets off. `launchId` is null where calls belong to none. */
  take(endpoint: Endpoint, launchId: string | null): FaultEffect | null {
    const matching = this.#rows().filter(
      (row) =>
        row.endpoint === endpoint && (row.launch_id === null || row.launch_id === launchId) && row.fired < row.times,
    );
    let taken: FaultRow | null = null;
    for (const row of matching) {
      const fires: boolean = taken === null && row.seen >= row.after;
      this.#database
        .prepare('update faults set seen = seen + 1, fired = fired + ? where id = ?')
        .run(fires ? 1 : 0, row.id);
      this.#known = null;
      if (fires) taken = row;
    }
    return taken && ownJson<FaultEffect>(taken.effect);
  }

  #rows(): readonly FaultRow[] {
    return (this.#known ??= this.#all.all());
  }
}

function fromRow(row: FaultRow): Fault {
  return {
    id: row.id,
    launchId: row.launch_id,
    endpoint: row.endpoint,
    after: row.after,
    times: row.times,
    effect: ownJson<FaultEffect>(row.effect),
    fired: row.fired,
  };
}
