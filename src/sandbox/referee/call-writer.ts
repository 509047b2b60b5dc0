import type { Endpoint } from '../../contract/index.ts';
import type { Logger } from 'pino';
import type { SandboxDatabase } from '../database.ts';

/** A call as the database has it. */
export interface CallRow {
  id: number;
  at: number;
  launch_at: number;
  endpoint: Endpoint;
  method: string;
  status: number | null;
  duration_ms: number;
  delivered: number;
  request_bytes: number;
  response_bytes: number;
  detail: string;
  path: string;
  request: string;
  response: string;
}

export type NewCall = Omit<CallRow, 'id'> & { readonly launch_id: string };

/** Stands for the launch of calls that nobody knows one of. */
export const unattributed = '-';
/** Calls kept of one launch: more than the parts of the largest upload and the polls of the longest wait. */
export const maxOfLaunch = 50_000;
/** Calls kept of all; waiting for room on the disk, of which the oldest go; written in one transaction. */
const most = { ofAll: 1_000_000, waiting: 10_000, together: 100 };
/** Calls between two checks of the bounds: a check walks over the launch's calls. */
const boundEvery = 100;
/** Calls that go beyond a bound before some are deleted: their launches are judged once more before that. */
const deletedTogether = { ofLaunch: 5_000, ofAll: 2_000 };
/** Longest wait before a call without a launch is written; milliseconds. */
const unattributedWaitMs = 20;

/** Writes calls down, in order: a launch's at once, nobody's a moment later, and all of them when the disk has room. */
export class CallWriter {
  #database: SandboxDatabase;
  #insertion;
  #insertAll: (calls: readonly NewCall[]) => void;
  #log: Logger;
  #waiting: NewCall[] = [];
  #timer: NodeJS.Timeout | null = null;
  /** Called before calls of a launch, up to an id, are deleted. */
  beforeForgetting: (launchId: string, lastId: number) => void = () => {};

  constructor(database: SandboxDatabase, log: Logger) {
    this.#database = database;
    this.#log = log;
    this.#insertAll = database.transaction((calls: readonly NewCall[]) => calls.forEach((call) => this.#insert(call)));
    this.#insertion = database.prepare<[NewCall]>(
      `insert into calls (launch_id, at, launch_at, endpoint, method, status, duration_ms, delivered, request_bytes, response_bytes, detail, path, request, response)
       values (@launch_id, @at, @launch_at, @endpoint, @method, @status, @duration_ms, @delivered, @request_bytes, @response_bytes, @detail, @path, @request, @response)`,
    );
  }

  /**
   * Writes a call down, and before it those that wait: a referee that has not seen an answer accuses who acts on it.
   * No referee judges nobody's calls. Those of a moment share a transaction, which costs about as much as one for one of them.
   */
  note(call: NewCall): void {
    this.#waiting.push(call);
    if (call.launch_id === unattributed) this.#timer ??= setTimeout(() => this.writeAll(), unattributedWaitMs).unref();
    else this.writeAll();
  }

  /** False where calls still wait: the disk has no room for them. The answers are gone already, and it must not take the server with it. */
  writeAll(): boolean {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    try {
      // By few: where the disk has room for some, those are written, and a full one is not filled again and again.
      while (this.#waiting.length > 0 && this.#database.open) {
        const some = this.#waiting.slice(0, most.together);
        this.#insertAll(some);
        this.#waiting.splice(0, some.length);
      }
    } catch (error) {
      const [waiting, endpoint] = [this.#waiting.length, this.#waiting.at(-1)?.endpoint];
      this.#log.error({ err: error, endpoint, waiting }, 'could not record a call at the moment');
      this.#waiting = this.#waiting.slice(-most.waiting);
    }
    return this.#waiting.length === 0;
  }

  /** Forgets every call. */
  clear(): void {
    this.#waiting = [];
    this.#database.exec('delete from calls; delete from trace_cuts; delete from kept_violations');
  }

  #insert(call: NewCall): void {
    const { lastInsertRowid } = this.#insertion.run(call);
    const id = Number(lastInsertRowid);
    if (id % boundEvery !== 0) return;
    // This checks only the call's own launch: a launch with many calls soon returns here.
    if (this.#idBehind(call.launch_id, maxOfLaunch + deletedTogether.ofLaunch) !== null)
      this.#forget(call.launch_id, this.#idBehind(call.launch_id, maxOfLaunch) ?? 0);
    const oldest = this.#database.prepare<[], { id: number }>('select id from calls order by id limit 1').get();
    const lastOfAll = id - most.ofAll;
    if (oldest === undefined || oldest.id > lastOfAll - deletedTogether.ofAll) return;
    const launches = this.#database
      .prepare<[number], { launchId: string }>('select distinct launch_id as launchId from calls where id <= ?')
      .all(lastOfAll);
    for (const { launchId } of launches) this.#forget(launchId, lastOfAll);
  }

  /** The id of the launch's newest call but `count`; null if it has no more calls than that. */
  #idBehind(launchId: string, count: number): number | null {
    const found = this.#database
      .prepare<[string, number], { id: number }>(
        'select id from calls where launch_id = ? order by id desc limit 1 offset ?',
      )
      .get(launchId, count);
    return found?.id ?? null;
  }

  /** Deletes the launch's calls up to an id. The referee keeps its findings, and must know that calls are missing. */
  #forget(launchId: string, lastId: number): void {
    if (launchId !== unattributed) this.beforeForgetting(launchId, lastId);
    const { changes } = this.#database
      .prepare('delete from calls where launch_id = ? and id <= ?')
      .run(launchId, lastId);
    this.#database
      .prepare(
        'insert into trace_cuts values (?, ?) on conflict (launch_id) do update set calls = calls + excluded.calls',
      )
      .run(launchId, changes);
  }
}
