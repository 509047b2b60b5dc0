import { STATUS_CODES } from 'node:http';
import { Transform, type Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Request, Response } from 'express';
import * as z from 'zod';
import { externalAppEndpoints, type ExternalAppEndpoint } from '../../contract/index.ts';
import type { SandboxDatabase } from '../database.ts';
import type { LaunchEvents } from '../marketplace/launch-events.ts';
import { traceOf } from '../referee/trace.ts';
import { newId } from '../secrets.ts';
import { SandboxError } from '../web/sandbox-error.ts';

const effect = z.union(
  [
    z.strictObject({ status: z.int().min(400).max(599), retryAfterSeconds: z.int().min(0).max(86_400).optional() }),
    z.strictObject({ delayMs: z.int().min(0).max(600_000) }),
    z.strictObject({ reset: z.literal(true) }),
    z.strictObject({ dropResponse: z.literal(true) }),
  ],
  'must be one of {status, retryAfterSeconds?}, {delayMs}, {reset: true}, {dropResponse: true}',
);
export type FaultEffect = z.output<typeof effect>;

/** Body of `POST /sandbox/faults`. */
export const newFault = z.strictObject({
  launchId: z.string().optional(),
  endpoint: z.enum(externalAppEndpoints, `must be one of ${externalAppEndpoints.join(', ')}`),
  after: z.int().min(0).default(0),
  times: z.int().min(1).default(1),
  effect,
});

export interface Fault {
  readonly id: string;
  readonly launchId: string | null;
  readonly endpoint: ExternalAppEndpoint;
  /** Matching calls let through first. */
  readonly after: number;
  readonly times: number;
  readonly effect: FaultEffect;
  readonly fired: number;
}

interface FaultRow {
  id: string;
  launch_id: string | null;
  endpoint: ExternalAppEndpoint;
  after: number;
  times: number;
  effect: string;
  seen: number;
  fired: number;
}

/** Armed faults, with how often each has fired. They survive a restart. */
export class Faults {
  #database: SandboxDatabase;
  #events: LaunchEvents;

  constructor(database: SandboxDatabase, events: LaunchEvents) {
    this.#database = database;
    this.#events = events;
  }

  arm(fault: z.output<typeof newFault>): Fault {
    const id = newId('fault');
    this.#database
      .prepare('insert into faults (id, launch_id, endpoint, after, times, effect) values (?, ?, ?, ?, ?, ?)')
      .run(id, fault.launchId ?? null, fault.endpoint, fault.after, fault.times, JSON.stringify(fault.effect));
    const armed = this.#find(id)!;
    const when = `${armed.after > 0 ? `, after ${armed.after}` : ''}${armed.times > 1 ? `, ${armed.times} times` : ''}`;
    this.#events.note(armed.launchId, 'fault armed', `${armed.endpoint}: ${faultText(armed.effect)}${when}`);
    return armed;
  }

  list(): Fault[] {
    return this.#rows().map(fromRow);
  }

  /** Takes away one, if it is there. */
  disarm(id: string): void {
    const fault = this.#find(id);
    if (!fault) return;
    this.#database.prepare('delete from faults where id = ?').run(id);
    this.#events.note(fault.launchId, 'faults disarmed', `${fault.endpoint}: ${faultText(fault.effect)}`);
  }

  clear(): void {
    const { changes } = this.#database.prepare('delete from faults').run();
    if (changes > 0) this.#events.note(null, 'faults disarmed', 'all of them');
  }

  #find(id: string): Fault | undefined {
    return this.list().find((fault) => fault.id === id);
  }

  /** Counts a call and gives the first armed fault that it sets off. */
  take(endpoint: ExternalAppEndpoint, launchId: string): FaultEffect | null {
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
      if (fires) taken = row;
    }
    return taken && (JSON.parse(taken.effect) as FaultEffect);
  }

  #rows(): FaultRow[] {
    return this.#database.prepare<[], FaultRow>('select * from faults order by rowid').all();
  }
}

function fromRow(row: FaultRow): Fault {
  return {
    id: row.id,
    launchId: row.launch_id,
    endpoint: row.endpoint,
    after: row.after,
    times: row.times,
    effect: JSON.parse(row.effect) as FaultEffect,
    fired: row.fired,
  };
}

/** What an effect does, in words. */
export function faultText(effect: FaultEffect): string {
  if ('status' in effect)
    return `answer ${effect.status}${effect.retryAfterSeconds === undefined ? '' : `, Retry-After ${effect.retryAfterSeconds}`}`;
  if ('delayMs' in effect) return `slow by ${effect.delayMs / 1000} s`;
  return 'reset' in effect ? 'cut the connection' : 'do the work, lose the answer';
}

/** Does what a fault says before the call's work. True where the work goes on. */
export async function applyFault(
  effect: FaultEffect | null,
  endpoint: ExternalAppEndpoint,
  req: Request,
  res: Response,
): Promise<boolean> {
  if (effect === null) return true;
  traceOf(res).detail['fault'] = effect;
  if ('status' in effect) {
    if (effect.retryAfterSeconds !== undefined) res.set('Retry-After', String(effect.retryAfterSeconds));
    throw new SandboxError(
      effect.status,
      effect.status >= 500 ? 'internal_error' : 'injected_fault',
      STATUS_CODES[effect.status] ?? 'Injected fault',
    );
  }
  if ('delayMs' in effect) {
    await sleep(effect.delayMs);
    return !req.socket.destroyed;
  }
  traceOf(res).isUndelivered = true;
  if ('dropResponse' in effect) {
    res.end = () => {
      traceOf(res).lostStatus = res.statusCode;
      req.socket.destroy();
      return res;
    };
    return true;
  }
  if (endpoint === 'upload.chunk') {
    res.locals['openBody'] = () => req.pipe(cutInTheMiddle(req));
    return true;
  }
  req.socket.destroy();
  return false;
}

/** A request's body as the call's work may read it: the request, or what a fault leaves of it. Call it once, when reading begins. */
export function bodyOf(req: Request, res: Response): Readable {
  const open = res.locals['openBody'] as (() => Readable) | undefined;
  return open?.() ?? req;
}

/** Lets half of the body through, then cuts the connection. */
function cutInTheMiddle(req: Request): Transform {
  let left = Math.floor(Number(req.get('content-length') ?? 0) / 2);
  return new Transform({
    transform(bytes: Buffer, _encoding, done) {
      const passed = bytes.subarray(0, left);
      left -= passed.length;
      if (passed.length === bytes.length) return done(null, passed);
      this.push(passed);
      req.socket.destroy();
      done(new Error('an armed fault cut the connection'));
    },
  });
}
