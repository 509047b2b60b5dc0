import type { Statement } from 'better-sqlite3';
import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import { apiKeyHeader, type Endpoint } from '../../contract/index.ts';
import { iso, type SandboxClock } from '../clock.ts';
import { Lateness } from './lateness.ts';
import { CallWriter, maxOfLaunch, unattributed, type CallRow } from './call-writer.ts';
import { bounded, pathOf, plainHeaders, scrubber, tokensIn } from './redaction.ts';
import type { SandboxDatabase } from '../database.ts';
import { countOf } from '../rows.ts';
import { contextOf, type CallNotes } from '../web/call-context.ts';
import type { DrawnCall } from './timeline.ts';
import { inOrder, type CallDetail, type TracedCall } from './traced-call.ts';
import { keyOfViolation, type KeptViolation, type Missing, type ViolationView } from './verdict.ts';
import type { CallAttribution } from './call-attribution.ts';
import { ownJson } from '../../files/index.ts';

/** Half of an exchange as it is kept, secrets redacted. */
export interface TracedMessage {
  readonly headers: Readonly<Record<string, string>>;
  /** A JSON body; null where there was none, where it was no JSON, or where it was too large to keep. */
  readonly body: unknown;
}

type JudgedRow = Pick<CallRow, 'id' | 'at' | 'duration_ms' | 'endpoint' | 'status' | 'delivered' | 'detail'>;

/** Window and threshold for recording the sandbox's own delays with a status call. */
const lookedBackMs = 10_000;
const leastLateMs = 50;
/** A delay that ended within this time also delayed the call. */
const heldWithinMs = 500;
/** Calls of a launch: looked through for a text, and shown. */
const most = { readForText: 5_000, shown: 10_000 };

/** Every call of a launch, as it came in and as it was answered, and those that nobody knows a launch of. Bounded; survives a restart. */
export class Trace {
  #database: SandboxDatabase;
  #writer: CallWriter;
  #clock: SandboxClock;
  #log: Logger;
  #redact: <T>(value: T) => T;
  #judged: Statement<[string, number, number], JudgedRow>;
  #extent: Statement<[{ launchId: string }], { oldestId: number; newestId: number }>;
  #lateness = new Lateness();
  /** Start of this process, and the time since the last call before it. */
  #start: { readonly atMs: number; readonly awayMs: number };

  /** `redact`: takes out whatever is a key or a token of anybody's. */
  constructor(
    database: SandboxDatabase,
    clock: SandboxClock,
    log: Logger,
    redact: <T>(value: T) => T,
    writer = new CallWriter(database, log),
  ) {
    this.#redact = redact;
    this.#judged = database.prepare(
      'select id, at, duration_ms, endpoint, status, delivered, detail from calls where launch_id = ? and id > ? order by id limit ?',
    );
    this.#extent = database.prepare(
      `select coalesce((select id from calls where launch_id = @launchId order by id limit 1), 0) as oldestId,
         coalesce((select id from calls where launch_id = @launchId order by id desc limit 1), 0) as newestId`,
    );
    this.#database = database;
    this.#writer = writer;
    this.#clock = clock;
    this.#log = log;
    const wasKilled =
      database.prepare(`insert into settings values ('trace-open', '') on conflict (name) do nothing`).run().changes ===
      0;
    const atMs = clock.machineNow();
    if (wasKilled) database.prepare('insert into trace_gaps values (?)').run(atMs);
    const last = database
      .prepare<[], { endedAt: number }>('select at + duration_ms as endedAt from calls order by id desc limit 1')
      .get();
    this.#start = { atMs, awayMs: last ? Math.max(0, Math.round(atMs - last.endedAt)) : 0 };
    database
      .prepare('delete from trace_gaps where at not in (select at from trace_gaps order by at desc limit 1000)')
      .run();
  }

  /** Nothing more comes: the next start knows that nothing is missing. */
  close(): void {
    this.#lateness.stop();
    // Calls are missing if a full disk had no space for them.
    if (this.#writer.writeAll()) this.#database.prepare(`delete from settings where name = 'trace-open'`).run();
  }

  /** Forgets every call. */
  clear(): void {
    this.#writer.clear();
  }

  /** Returns the gaps in a launch's trace: kills, which may have lost calls, how many old calls were deleted, and the violations kept of these. */
  missing(launchId: string): Missing {
    const gaps = this.#database.prepare<[], { at: number }>('select at from trace_gaps order by at').all();
    const cut = this.#database
      .prepare<[string], { calls: number }>('select calls from trace_cuts where launch_id = ?')
      .get(launchId);
    const kept = this.#database
      .prepare<[string], { rule: string; violation: string }>(
        'select rule, violation from kept_violations where launch_id = ? order by rowid',
      )
      .all(launchId);
    return {
      gaps: gaps.map(({ at }) => at),
      cutCalls: cut?.calls ?? 0,
      kept: kept.map(({ rule, violation }) => ({ rule, violation: ownJson<ViolationView>(violation) })),
    };
  }

  /** Sets what is called before calls of a launch, up to an id, are deleted for want of room. */
  beforeForgetting(listener: (launchId: string, lastId: number) => void): void {
    this.#writer.beforeForgetting = listener;
  }

  /** Keeps violations beyond the life of their calls. */
  keep(launchId: string, violations: readonly KeptViolation[]): void {
    const insertion = this.#database.prepare<[string, string, string, string]>(
      'insert or ignore into kept_violations values (?, ?, ?, ?)',
    );
    for (const { rule, violation } of violations)
      insertion.run(launchId, rule, keyOfViolation(violation), JSON.stringify(violation));
  }

  /** Notes the call when it is over. The query of a call without a token is left out, because it may hold a signature. */
  begin(req: Request, res: Response, endpoint: Endpoint, attribution: CallAttribution): void {
    const launchId = attribution.launchId ?? unattributed;
    const { operation } = attribution;
    // Read them now, because Express has other parameters when the call is over. No path has a wildcard, which would give a list.
    const { token = '' } = req.params as Readonly<Record<string, string>>;
    const path = token === '' ? req.path : pathOf(req, token);
    const call = contextOf(res);
    const { notes } = call;
    Object.assign(notes.detail, attribution.detail);
    const at = this.#clock.machineNow();
    const launchAt = this.#clock.now(launchId === unattributed ? undefined : launchId);
    const lateMs = Math.round(this.#lateness.within(lookedBackMs));
    if (endpoint === 'operation.status') {
      const heldMs = Math.round(this.#lateness.within(heldWithinMs));
      if (lateMs >= leastLateMs) notes.detail['lateMs'] = lateMs;
      if (heldMs >= leastLateMs) notes.detail['heldMs'] = heldMs;
      const { atMs, awayMs } = this.#start;
      if (awayMs >= leastLateMs && at - atMs < lookedBackMs) notes.detail['awayMs'] = awayMs;
    }
    const started = performance.now();
    const answered: { body: unknown; afterMs: number | null } = { body: null, afterMs: null };
    if (launchId !== unattributed) call.observe = (body) => (answered.body = body);
    res.once('finish', () => {
      answered.afterMs = performance.now() - started;
      // Later, a client may have closed the connection because it has the answer.
      notes.isUndelivered ||= req.socket.readableEnded;
    });
    res.once('close', () => {
      if (!this.#database.open) return;
      const { detail } = notes;
      if (call.errorCode !== undefined) detail['code'] = call.errorCode;
      const asked = Number(res.get('retry-after'));
      if (asked > 0) detail['retryAfterSeconds'] = asked;
      if (operation && detail['operationId'] === undefined && detail['foreign'] === undefined)
        Object.assign(detail, { operationId: operation.id, operationStatus: operation.status });
      const scrubOwn = scrubber([
        token,
        req.get(apiKeyHeader) ?? '',
        ...(endpoint === 'token.renew' ? tokensIn(answered.body) : []),
      ]);
      const scrub = <T>(value: T) => this.#redact(scrubOwn(value));
      try {
        this.#writer.note({
          launch_id: launchId,
          at,
          launch_at: launchAt,
          endpoint,
          method: req.method,
          status: res.headersSent ? res.statusCode : notes.lostStatus,
          duration_ms: Math.round((answered.afterMs ?? performance.now() - started) * 10) / 10,
          delivered: isDelivered(req, res, notes) ? 1 : 0,
          request_bytes: Number(req.get('content-length') ?? 0),
          response_bytes: Number(res.get('content-length') ?? 0),
          // Its names are ours: no secret is one of them.
          detail: JSON.stringify(
            Object.fromEntries(Object.entries(detail).map(([name, value]) => [name, scrub(value)])),
          ),
          path: scrub(path),
          request: JSON.stringify(
            scrub({ headers: plainHeaders(req.headers), body: bounded(req.body) } satisfies TracedMessage),
          ),
          response: JSON.stringify(
            scrub({ headers: plainHeaders(res.getHeaders()), body: bounded(answered.body) } satisfies TracedMessage),
          ),
        });
      } catch (error) {
        // The body may be nested too deep to inspect. The answer is already sent, and the error must not stop the server.
        this.#log.error({ err: error, endpoint }, 'could not record a call');
      }
    });
  }

  /** Returns the calls with a larger id than `afterId` for the referee, oldest first. `limit` selects those with the lowest ids. Ids follow the ends of the calls. */
  calls(launchId: string, afterId = 0, limit: number | null = null): TracedCall[] {
    const calls = this.#judged.all(launchId, afterId, limit ?? -1).map((row) => ({
      id: row.id,
      at: row.at,
      endedAt: row.at + row.duration_ms,
      endpoint: row.endpoint,
      status: row.status,
      delivered: row.delivered === 1,
      detail: ownJson<CallDetail>(row.detail),
    }));
    return calls.sort(inOrder);
  }

  /** Number of stored calls of a launch. */
  count(launchId: string): number {
    return countOf(this.#database, 'select count(*) from calls where launch_id = ?', launchId);
  }

  /** Ids of the oldest and newest stored call of a launch. 0 if there is none. */
  extent(launchId: string): { oldestId: number; newestId: number } {
    return this.#extent.get({ launchId }) ?? { oldestId: 0, newestId: 0 };
  }

  /** When a call about the operation last came, its creation included; in epoch milliseconds of the machine, null where none is kept. */
  lastAboutAt(launchId: string, operationId: string): number | null {
    const row = this.#database
      .prepare<[string, number, string], { at: number }>(
        `select at from (select id, at, detail from calls where launch_id = ? order by id desc limit ?) where json_extract(detail, '$.operationId') = ? order by id desc limit 1`,
      )
      .get(launchId, most.readForText, operationId);
    return row?.at ?? null;
  }

  /** For people and programs, oldest first: the newest `limit` of them. */
  list(launchId: string, limit: number = most.shown) {
    if (launchId === unattributed) this.#writer.writeAll();
    return this.#rows(launchId, limit).map(view);
  }

  /** The newest `limit` of the calls that `wanted` lets through, newest first; `total` counts all of these. */
  page(launchId: string, wanted: CallFilter, limit: number) {
    const conditions = ['launch_id = @launchId'];
    if (wanted.endpoint) conditions.push('endpoint = @endpoint');
    if (wanted.outcome === 'refused') conditions.push('(status >= 400 and delivered = 1)');
    if (wanted.outcome === 'lost') conditions.push('delivered = 0');
    if (wanted.outcome === 'fault') conditions.push("json_extract(detail, '$.fault') is not null");
    if (wanted.among) conditions.push('id in (select value from json_each(@among))');
    // Text search reads calls whole, so it covers only the newest.
    if (wanted.text)
      conditions.push(
        "id in (select id from calls where launch_id = @launchId order by id desc limit @maxRead) and instr(lower(path || ' ' || detail || ' ' || request || ' ' || response || ' ' || coalesce(status, '')), lower(@text)) > 0",
      );
    const values = {
      launchId,
      endpoint: wanted.endpoint ?? null,
      text: wanted.text ?? null,
      among: wanted.among ? JSON.stringify(wanted.among) : null,
      before: wanted.before ?? null,
      limit,
      maxRead: most.readForText,
    };
    const total = countOf(this.#database, `select count(*) from calls where ${conditions.join(' and ')}`, values);
    const rows = this.#database
      .prepare<[typeof values], CallRow>(
        `select * from calls where ${conditions.join(' and ')} and (@before is null or id < @before) order by id desc limit @limit`,
      )
      .all(values);
    return { total, calls: rows.map(view) };
  }

  /** The newest call that was answered with this request id. Null if it is not among the newest calls of all launches. */
  byRequest(requestId: string): { launchId: string; id: number } | null {
    const row = this.#database
      .prepare<[number, string], { launchId: string; id: number }>(
        `select launch_id as launchId, id from (select id, launch_id, response from calls order by id desc limit ?)
           where json_extract(response, '$.headers."x-request-id"') = ? order by id desc limit 1`,
      )
      .get(most.readForText, requestId);
    return row && row.launchId !== unattributed ? row : null;
  }

  /** Null where there is none of this launch. */
  find(launchId: string, id: number) {
    const row = this.#database
      .prepare<[string, number], CallRow>('select * from calls where launch_id = ? and id = ?')
      .get(launchId, id);
    return row ? view(row) : null;
  }

  /** Returns drawing data of the newest `limit` calls that began in the interval, oldest first; epoch milliseconds of the machine. */
  drawn(launchId: string, fromMs: number, toMs: number, limit: number): DrawnCall[] {
    const rows = this.#database
      .prepare<[string, number, number, number], CallRow>(
        `select * from (select id, at, launch_at, endpoint, method, status, duration_ms, delivered, detail from calls
           where launch_id = ? and at between ? and ? order by id desc limit ?) order by at, id`,
      )
      .all(launchId, fromMs, toMs, limit);
    return rows.map((row) => ({
      id: row.id,
      at: iso(row.at),
      durationMs: row.duration_ms,
      endpoint: row.endpoint,
      status: row.status,
      delivered: row.delivered === 1,
      detail: ownJson<Record<string, unknown>>(row.detail),
    }));
  }

  #rows(launchId: string, limit: number = maxOfLaunch): CallRow[] {
    return this.#database
      .prepare<[string, number], CallRow>(
        'select * from (select * from calls where launch_id = ? order by at desc, id desc limit ?) order by at, id',
      )
      .all(launchId, limit);
  }
}

/** True if a client that was still connected received a readable answer. The answer to HEAD has no body. */
const isDelivered = (req: Request, res: Response, { isUndelivered }: CallNotes): boolean =>
  res.writableFinished && !isUndelivered && req.method !== 'HEAD';

export interface CallFilter {
  readonly endpoint?: Endpoint | undefined;
  /** Answered by 4xx or 5xx; without an answer that arrived; touched by an armed fault. */
  readonly outcome?: 'refused' | 'lost' | 'fault' | undefined;
  /** Only of these ids. */
  readonly among?: readonly number[] | undefined;
  /** Stands anywhere in address, headers, bodies or what was understood, of the newest 5,000 calls. */
  readonly text?: string | undefined;
  /** Only those with a smaller id. */
  readonly before?: number | undefined;
}

function view(row: CallRow) {
  return {
    id: row.id,
    at: iso(row.at),
    launchAt: iso(row.launch_at),
    endpoint: row.endpoint,
    method: row.method,
    path: row.path,
    status: row.status,
    durationMs: row.duration_ms,
    delivered: row.delivered === 1,
    requestBytes: row.request_bytes,
    responseBytes: row.response_bytes,
    // The operation of an upload call may be unknown.
    detail: {
      ...(row.endpoint.startsWith('upload.') && { operationId: null }),
      ...ownJson<Record<string, unknown>>(row.detail),
    },
    request: ownJson<TracedMessage>(row.request),
    response: ownJson<TracedMessage>(row.response),
  };
}
export type CallView = ReturnType<typeof view>;
