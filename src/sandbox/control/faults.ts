import { STATUS_CODES } from 'node:http';
import { Transform, type Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Request, Response } from 'express';
import * as z from 'zod';
import { errorMessages, externalAppEndpoints, type ErrorCode, type ExternalAppEndpoint } from '../../contract/index.ts';
import type { SandboxDatabase } from '../database.ts';
import type { LaunchEvents } from '../marketplace/launch-events.ts';
import { traceOf, type CallNotes } from '../referee/trace.ts';
import { platformEndpoints, type PlatformEndpoint } from '../platform-endpoints.ts';
import { newId } from '../secrets.ts';
import { SandboxError } from '../web/sandbox-error.ts';
import { answerAfterWork, dropAnswer, mislabelAnswer, slowAnswer, truncateAnswer } from './answer-effects.ts';

/** Every call of the platform can be faulted, and limited. */
export const faultEndpoints = platformEndpoints;
export type FaultEndpoint = PlatformEndpoint;

const status = z.int().min(400).max(599);
const effect = z.union(
  [
    z.strictObject({ status, afterWork: z.literal(true) }),
    z.strictObject({ status, retryAfterSeconds: z.int().min(0).max(86_400).optional() }),
    z.strictObject({ delayMs: z.int().min(0).max(600_000) }),
    z.strictObject({ reset: z.literal(true) }),
    z.strictObject({ dropResponse: z.literal(true) }),
    z.strictObject({ truncate: z.literal(true) }),
    z.strictObject({ contentType: z.string().regex(/^[\w.+-]{1,60}\/[\w.+-]{1,60}$/) }),
    z.strictObject({ slowBodyMs: z.int().min(0).max(600_000) }),
    z.strictObject({ failWork: z.literal(true) }),
  ],
  'must be one of {status, retryAfterSeconds?}, {status, afterWork: true}, {delayMs}, {reset: true}, {dropResponse: true}, {truncate: true}, {contentType: "text/html"}, {slowBodyMs}, {failWork: true} (of a completion)',
);
export type FaultEffect = z.output<typeof effect>;

export const faultFields = z.strictObject({
  launchId: z.string().optional(),
  endpoint: z.enum(faultEndpoints, `must be one of ${faultEndpoints.join(', ')}`),
  after: z.int().min(0).default(0),
  times: z.int().min(1).default(1),
  effect,
});

/** Body of `POST /sandbox/faults`. */
export const newFault = faultFields
  .refine(({ launchId, endpoint }) => launchId === undefined || isOfLaunch(endpoint), {
    path: ['launchId'],
    error: 'must be left out: only calls of the external-app group belong to a launch',
  })
  .refine(({ endpoint, effect }) => !('failWork' in effect) || completions.includes(endpoint), {
    path: ['effect'],
    error: 'must be another: only a completion (upload.complete, file.complete) fails in its work',
  });
const completions: readonly FaultEndpoint[] = ['upload.complete', 'file.complete'];

/** True for calls that carry an identity token. */
export function isOfLaunch(endpoint: FaultEndpoint): endpoint is ExternalAppEndpoint {
  return (externalAppEndpoints as readonly string[]).includes(endpoint);
}

export interface Fault {
  readonly id: string;
  readonly launchId: string | null;
  readonly endpoint: FaultEndpoint;
  /** Matching calls let through first. */
  readonly after: number;
  readonly times: number;
  readonly effect: FaultEffect;
  readonly fired: number;
}

interface FaultRow {
  id: string;
  launch_id: string | null;
  endpoint: FaultEndpoint;
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
    const armed = this.#find(id)!;
    const when = `${armed.after > 0 ? `, after ${armed.after}` : ''}${armed.times > 1 ? `, ${armed.times} times` : ''}`;
    const text = `${armed.endpoint}: ${faultText(armed.effect)}${when}`;
    this.#events.note(armed.launchId, 'fault armed', text, 0, { fault: armed });
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
  take(endpoint: FaultEndpoint, launchId: string | null): FaultEffect | null {
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
    return taken && (JSON.parse(taken.effect) as FaultEffect);
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
    effect: JSON.parse(row.effect) as FaultEffect,
    fired: row.fired,
  };
}

/** What an effect does, in words. */
export function faultText(effect: FaultEffect): string {
  if ('afterWork' in effect) return `do the work, answer ${effect.status}`;
  if ('status' in effect)
    return `answer ${effect.status}${effect.retryAfterSeconds === undefined ? '' : `, Retry-After ${effect.retryAfterSeconds}`}`;
  if ('delayMs' in effect) return `slow by ${effect.delayMs / 1000} s`;
  if ('slowBodyMs' in effect) return `half of the answer late by ${effect.slowBodyMs / 1000} s`;
  if ('contentType' in effect) return `say that the answer is ${effect.contentType}`;
  if ('truncate' in effect) return 'half of the answer';
  if ('failWork' in effect) return 'fail in the middle of the work, and clean up';
  return 'reset' in effect ? 'cut the connection' : 'do the work, lose the answer';
}

/** Does what a fault says before the call's work. True where the work goes on. */
export async function applyFault(
  effect: FaultEffect | null,
  endpoint: FaultEndpoint,
  req: Request,
  res: Response,
): Promise<boolean> {
  if (effect === null) return true;
  const notes: Partial<CallNotes> = traceOf(res) ?? {};
  if (notes.detail) notes.detail['fault'] = effect;
  if ('afterWork' in effect) {
    answerAfterWork(res, effect.status, () => ({
      error: messageOf(endpoint, effect.status),
      code: codeOf(effect.status),
      requestId: String(res.getHeader('X-Request-Id')),
    }));
    return true;
  }
  if ('status' in effect) {
    if (effect.retryAfterSeconds !== undefined) res.set('Retry-After', String(effect.retryAfterSeconds));
    throw new SandboxError(effect.status, codeOf(effect.status), messageOf(endpoint, effect.status));
  }
  if ('truncate' in effect) {
    notes.isUndelivered = true;
    truncateAnswer(res);
    return true;
  }
  if ('contentType' in effect) {
    // Clients cannot read this answer, so it does not count as delivered.
    notes.isUndelivered ||= !/[/+]json$/i.test(effect.contentType);
    mislabelAnswer(res, effect.contentType);
    return true;
  }
  if ('failWork' in effect) {
    res.locals['failsInWork'] = true;
    return true;
  }
  if ('slowBodyMs' in effect) {
    slowAnswer(res, effect.slowBodyMs);
    return true;
  }
  if ('delayMs' in effect) {
    await sleep(effect.delayMs);
    return !req.socket.destroyed;
  }
  notes.isUndelivered = true;
  if ('dropResponse' in effect) {
    dropAnswer(res, () => {
      notes.lostStatus = res.statusCode;
      req.socket.destroy();
    });
    return true;
  }
  if (endpoint === 'upload.chunk' || endpoint === 'file.chunk') {
    res.locals['openBody'] = () => req.pipe(cutInTheMiddle(req));
    return true;
  }
  req.socket.destroy();
  return false;
}

/** Returns the interface's message for a call and status, or else HTTP's reason phrase. */
const messageOf = (endpoint: FaultEndpoint, status: number): string =>
  errorMessages[endpoint]?.[status] ?? STATUS_CODES[status] ?? 'Injected fault';

function codeOf(status: number): ErrorCode {
  if (status === 429) return 'too_many_requests';
  return status >= 500 ? 'internal_error' : 'injected_fault';
}

/** True where a fault wants the call's work to fail in the middle. */
export const failsInWork = (res: Response): boolean => res.locals['failsInWork'] === true;

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
