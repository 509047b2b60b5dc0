import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import { apiKeyHeader, type ExternalAppEndpoint } from '../../contract/index.ts';
import { iso, type SandboxClock } from '../clock.ts';
import type { SandboxDatabase } from '../database.ts';

/** What the routes tell the trace of a call as they learn it: ids, statuses, sizes; never a token or key. */
export interface CallNotes {
  readonly detail: Record<string, unknown>;
  /** Set where the answer was lost or the connection cut on purpose. */
  isUndelivered: boolean;
  /** Status of an answer that was made and lost. */
  lostStatus: number | null;
}

/** Calls kept of one launch. */
const maxCallsPerLaunch = 10_000;

interface CallRow {
  at: number;
  launch_at: number;
  endpoint: string;
  method: string;
  status: number | null;
  duration_ms: number;
  delivered: number;
  request_bytes: number;
  response_bytes: number;
  detail: string;
}

/** Every external-app call of a launch, as it came in and as it was answered. */
export class Trace {
  #database: SandboxDatabase;
  #clock: SandboxClock;
  #log: Logger;

  constructor(database: SandboxDatabase, clock: SandboxClock, log: Logger) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
  }

  /** Notes the call when it is over. A call with a token of no launch is nobody's, and is not kept. */
  begin(req: Request, res: Response, endpoint: ExternalAppEndpoint, launchId: string | null): void {
    const notes: CallNotes = { detail: {}, isUndelivered: false, lostStatus: null };
    res.locals['callNotes'] = notes;
    if (launchId === null) return;
    const at = this.#clock.machineNow();
    const launchAt = this.#clock.now(launchId);
    const started = performance.now();
    const secrets = [String(req.params['token']), req.get(apiKeyHeader) ?? ''];
    res.once('close', () => {
      if (!this.#database.open) return;
      if (typeof res.locals['errorCode'] === 'string') notes.detail['code'] = res.locals['errorCode'];
      try {
        this.#insert({
          launch_id: launchId,
          at,
          launch_at: launchAt,
          endpoint,
          method: req.method,
          status: res.headersSent ? res.statusCode : notes.lostStatus,
          duration_ms: Math.round((performance.now() - started) * 10) / 10,
          delivered: res.writableFinished && !notes.isUndelivered ? 1 : 0,
          request_bytes: Number(req.get('content-length') ?? 0),
          response_bytes: Number(res.get('content-length') ?? 0),
          detail: redact(JSON.stringify(notes.detail), secrets),
        });
      } catch (error) {
        // The answer is gone already; a full disk must not take the server with it.
        this.#log.error({ err: error, endpoint }, 'a call could not be noted');
      }
    });
  }

  /** Oldest first. */
  list(launchId: string) {
    const rows = this.#database.prepare<[string], CallRow>('select * from calls where launch_id = ? order by at, id').all(launchId);
    return rows.map((row) => ({
      at: iso(row.at),
      launchAt: iso(row.launch_at),
      endpoint: row.endpoint,
      method: row.method,
      status: row.status,
      durationMs: row.duration_ms,
      delivered: row.delivered === 1,
      requestBytes: row.request_bytes,
      responseBytes: row.response_bytes,
      detail: JSON.parse(row.detail) as Record<string, unknown>,
    }));
  }

  #insert(call: CallRow & { launch_id: string }): void {
    this.#database
      .prepare(
        `insert into calls (launch_id, at, launch_at, endpoint, method, status, duration_ms, delivered, request_bytes, response_bytes, detail)
         values (@launch_id, @at, @launch_at, @endpoint, @method, @status, @duration_ms, @delivered, @request_bytes, @response_bytes, @detail)`,
      )
      .run(call);
    this.#database
      .prepare('delete from calls where launch_id = ? and id <= (select id from calls where launch_id = ? order by id desc limit 1 offset ?)')
      .run(call.launch_id, call.launch_id, maxCallsPerLaunch);
  }
}

/** An app may put a secret where it does not belong; the trace must not keep it. */
function redact(text: string, secrets: readonly string[]): string {
  return secrets.reduce((clean, secret) => (secret === '' ? clean : clean.replaceAll(secret, '[redacted]')), text);
}

export function traceOf(res: Response): CallNotes {
  return res.locals['callNotes'] as CallNotes;
}
