import { createHash } from 'node:crypto';
import {
  operationTransitions,
  type OperationRequest,
  type OperationStatus,
  type WireLimits,
} from '../../contract/index.ts';
import type { SandboxClock } from '../clock.ts';
import type { SandboxDatabase } from '../database.ts';
import type { LaunchEvents } from '../marketplace/launch-events.ts';
import { countOf, stored } from '../rows.ts';
import { newId } from '../secrets.ts';
import { invalid, SandboxError } from '../web/sandbox-error.ts';

export interface Operation {
  readonly id: string;
  readonly launchId: string;
  readonly name: string;
  readonly description: string | null;
  readonly parameters: unknown;
  readonly status: OperationStatus;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly expiresAtMs: number;
  /** Author of the decision, in words; null if there is no decision or no known author. */
  readonly decidedBy: string | null;
}

interface OperationRow {
  id: string;
  launch_id: string;
  name: string;
  description: string | null;
  parameters: string;
  status: OperationStatus;
  created_at: number;
  updated_at: number;
  expires_at: number;
  idempotency_key: string | null;
  body_hash: string;
  decided_by: string | null;
}

/** Operations and their life (spec 3.1). EXPIRED is computed whenever one is read, on its launch's clock. */
export class Operations {
  #database: SandboxDatabase;
  #clock: SandboxClock;
  #events: LaunchEvents;
  #windowMs: number;

  constructor(
    database: SandboxDatabase,
    clock: SandboxClock,
    events: LaunchEvents,
    limits: Pick<WireLimits, 'operationWindowMs'>,
  ) {
    this.#windowMs = limits.operationWindowMs;
    this.#database = database;
    this.#clock = clock;
    this.#events = events;
  }

  /** The same idempotency key, launch and body give the same operation again; another body is 400. */
  create(launchId: string, request: OperationRequest, idempotencyKey: string | null): Operation {
    const bodyHash = hashBody(request);
    const earlier = idempotencyKey === null ? undefined : this.#byKey(launchId, idempotencyKey);
    if (earlier) {
      if (earlier.body_hash === bodyHash) return this.#read(earlier);
      throw new SandboxError('idempotency_key_reused', {
        details: [
          {
            path: 'Idempotency-Key',
            message: 'was used with another body in this launch; use a new key for a new operation',
          },
        ],
      });
    }
    const now = this.#clock.now(launchId);
    const id = newId('op');
    this.#database
      .prepare('insert into operations values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, null)')
      .run(
        id,
        launchId,
        request.name,
        request.description ?? null,
        JSON.stringify(request.parameters ?? {}),
        'REQUESTED',
        now,
        now,
        now + this.#windowMs,
        idempotencyKey,
        bodyHash,
      );
    return stored(this.find(id));
  }

  find(id: string): Operation | null {
    const row = this.#database.prepare<[string], OperationRow>('select * from operations where id = ?').get(id);
    return row ? this.#read(row) : null;
  }

  /** An operation of this launch. Throws 404 for another launch's too. */
  getOfLaunch(id: string, launchId: string): Operation {
    const operation = this.find(id);
    if (!operation || operation.launchId !== launchId) throw operationNotFound();
    return operation;
  }

  /** The launch's newest operation. */
  latestOf(launchId: string): Operation | null {
    const row = this.#database
      .prepare<[string], OperationRow>(
        'select * from operations where launch_id = ? order by created_at desc, rowid desc limit 1',
      )
      .get(launchId);
    return row ? this.#read(row) : null;
  }

  /** The launch's operation, where it has no other. */
  onlyOf(launchId: string): Operation | null {
    const [row, another] = this.#database
      .prepare<[string], OperationRow>('select * from operations where launch_id = ? limit 2')
      .all(launchId);
    return row && !another ? this.#read(row) : null;
  }

  /** Newest first; of one launch where it is given. */
  list(launchId: string | null, limit = -1): Operation[] {
    const rows = this.#database
      .prepare<[string | null, string | null, number], OperationRow>(
        'select * from operations where (? is null or launch_id = ?) order by created_at desc, rowid desc limit ?',
      )
      .all(launchId, launchId, limit);
    return rows.map((row) => this.#read(row));
  }

  /** Ids and names of a launch's operations, newest first. */
  names(launchId: string): { readonly id: string; readonly name: string }[] {
    return this.#database
      .prepare<[string], { id: string; name: string }>(
        'select id, name from operations where launch_id = ? order by created_at desc, rowid desc',
      )
      .all(launchId);
  }

  /**
   * Operations that wait for a decision, oldest first, so that a new one moves none; or the others, newest first. At most `limit` after `skip`.
   * Default: of all apps and launches.
   */
  page(
    limit: number,
    {
      isWaiting,
      skip = 0,
      appId = null,
      launchId = null,
    }: { isWaiting: boolean; skip?: number; appId?: string | null; launchId?: string | null },
  ): Operation[] {
    const found: Operation[] = [];
    let skipped = 0;
    // Expired operations are still stored as REQUESTED.
    const rows = this.#database
      .prepare<{ appId: string | null; launchId: string | null }, OperationRow>(
        `select * from operations where ${isWaiting ? "status = 'REQUESTED'" : 'true'} ${launchId === null ? '' : 'and launch_id = @launchId'} ${appId === null ? '' : 'and launch_id in (select id from launches where app_id = @appId)'} order by created_at ${isWaiting ? 'asc' : 'desc'}, rowid ${isWaiting ? 'asc' : 'desc'}`,
      )
      .iterate({ appId, launchId });
    for (const row of rows) {
      if (isWaiting !== this.#isWaiting(row)) continue;
      if (skipped++ < skip) continue;
      found.push(this.#read(row));
      if (found.length === limit) break;
    }
    return found;
  }

  /** The one whose parameters name one of these, of one app where it is given: an approved one first, then the newest; of the last 100, as far as their parameters are short. */
  newestNaming(names: readonly string[], appId: string | null): Operation | null {
    const values = { names: JSON.stringify(names.map((name) => JSON.stringify(name))), appId };
    const row = this.#database
      .prepare<typeof values, OperationRow>(
        `select * from (select *, rowid as number from operations order by created_at desc, rowid desc limit 100)
         where length(parameters) <= 16384 and exists (select 1 from json_each(@names) where instr(parameters, value) > 0)
           and (@appId is null or launch_id in (select id from launches where app_id = @appId))
         order by status = 'APPROVED' desc, created_at desc, number desc limit 1`,
      )
      .get(values);
    return row ? this.#read(row) : null;
  }

  /** Counts the operations that wait for a decision, of all apps or of one. */
  countRequested(appId: string | null = null): number {
    const moved = JSON.stringify(this.#clock.movedLaunches());
    const ofApp = appId === null ? '' : 'and launch_id in (select id from launches where app_id = @appId)';
    const values = { moved, appId, now: this.#clock.now() };
    const n = countOf(
      this.#database,
      `select count(*) from operations where status = 'REQUESTED' and expires_at > @now and launch_id not in (select value from json_each(@moved)) ${ofApp}`,
      values,
    );
    const others = this.#database
      .prepare<typeof values, Pick<OperationRow, 'launch_id' | 'status' | 'expires_at'>>(
        `select launch_id, status, expires_at from operations where status = 'REQUESTED' and launch_id in (select value from json_each(@moved)) ${ofApp}`,
      )
      .all(values);
    return n + others.filter((row) => this.#isWaiting(row)).length;
  }

  /** The user's decision, `by` whom in words. Throws 409 where the operation does not wait for one. */
  decide(id: string, to: 'APPROVED' | 'REJECTED', by: string | null = null): Operation {
    const operation = this.find(id);
    if (!operation) throw operationNotFound();
    if (!operationTransitions[operation.status].includes(to)) {
      throw new SandboxError('operation_not_requested', { message: `Operation is ${operation.status}, not REQUESTED` });
    }
    this.#database
      .prepare('update operations set status = ?, updated_at = ?, decided_by = ? where id = ?')
      .run(to, this.#clock.now(operation.launchId), by, id);
    this.#events.note(
      operation.launchId,
      to === 'APPROVED' ? 'approved' : 'rejected',
      `${operation.name}${by === null ? '' : `, by ${by}`}`,
    );
    return stored(this.find(id));
  }

  /** Counts all operations, or those of one app. */
  count(appId: string | null = null): number {
    return countOf(
      this.#database,
      'select count(*) from operations where ? is null or launch_id in (select id from launches where app_id = ?)',
      appId,
      appId,
    );
  }

  #byKey(launchId: string, key: string): OperationRow | undefined {
    return this.#database
      .prepare<[string, string], OperationRow>('select * from operations where launch_id = ? and idempotency_key = ?')
      .get(launchId, key);
  }

  #isWaiting(row: Pick<OperationRow, 'launch_id' | 'status' | 'expires_at'>): boolean {
    return row.status === 'REQUESTED' && this.#clock.now(row.launch_id) < row.expires_at;
  }

  #read(row: OperationRow): Operation {
    const isExpired = row.status === 'REQUESTED' && !this.#isWaiting(row);
    return {
      id: row.id,
      launchId: row.launch_id,
      name: row.name,
      description: row.description,
      parameters: JSON.parse(row.parameters),
      status: isExpired ? 'EXPIRED' : row.status,
      createdAtMs: row.created_at,
      updatedAtMs: isExpired ? row.expires_at : row.updated_at,
      expiresAtMs: row.expires_at,
      decidedBy: row.decided_by,
    };
  }
}

/** Throws 400 `operation_not_approved`, naming the status (spec 4.8, rules 3 and 4). */
export function requireApproved(operation: Operation): void {
  if (operation.status === 'APPROVED') return;
  throw new SandboxError('operation_not_approved', { message: `Operation is ${operation.status}, not APPROVED` });
}

/** `Idempotency-Key` as it may come: printable ASCII, 1 to 255; null where there is none. */
export function readIdempotencyKey(header: string | undefined): string | null {
  if (header === undefined) return null;
  if (/^[\x21-\x7e]{1,255}$/.test(header)) return header;
  throw invalid([{ path: 'Idempotency-Key', message: 'must be 1 to 255 printable ASCII characters without spaces' }]);
}

function operationNotFound(): SandboxError {
  return new SandboxError('operation_not_found');
}

/** The same for the same values, whatever the order of keys. */
function hashBody(request: OperationRequest): string {
  const sorted = (_key: string, value: unknown): unknown =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  return createHash('sha256').update(JSON.stringify(request, sorted)).digest('base64url');
}
