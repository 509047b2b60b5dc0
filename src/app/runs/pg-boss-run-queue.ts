import { setTimeout as sleep } from 'node:timers/promises';
import { PgBoss } from 'pg-boss';
import { KitError } from '../../contract/index.ts';
import { QuietClient } from '../database-away.ts';
import { reasonOf } from '../database.ts';
import type { StageLog } from './stages/stage.ts';
import { GivenUp, type Lane, type QueuedRun, type QueueWorker, type RunQueue } from './run-queue.ts';

const lanes: readonly Lane[] = ['wait', 'process'];
const queueOf = (lane: Lane) => `runs-${lane}`;

/** The least that pg-boss takes. A worker that says nothing for so long has died. */
const heartbeatSeconds = 10;
const heartbeatEveryMs = 3_000;
/** The most that pg-boss takes; a run that is driven longer is given back and taken again. */
const longestSeconds = 24 * 3_600 - 60;
const retries = 1_000_000;
/** How often a worker with room looks for runs. */
const lookEveryMs = 500;
const batch = 200;
const retryAfterMs = 1_000;
/** pg-boss hands its options to the pool of its connections. */
const quietClient = { Client: QuietClient };

interface HeldJob {
  readonly id: string;
  readonly lane: Lane;
  readonly retryCount: number;
  readonly abort: AbortController;
  done: Promise<void>;
}

interface RunJob {
  readonly runId: string;
}

/** Runs in PostgreSQL by pg-boss: any number of processes add and take them. */
export class PgBossRunQueue implements RunQueue {
  readonly isShared = true;
  #boss: PgBoss;
  #isTaking = false;
  #held = new Map<string, HeldJob>();
  #loops: Promise<void>[] = [];
  #stopping = new AbortController();

  private constructor(boss: PgBoss) {
    this.#boss = boss;
  }

  /** Opens the queue, and makes its tables where they are not there. `supervises`: whether this process looks for workers that died. */
  static async open(connectionString: string, { supervises, log }: { supervises: boolean; log: Pick<StageLog, 'warn'> }): Promise<PgBossRunQueue> {
    const boss = new PgBoss({ ...{ connectionString, max: 4, schedule: false, supervise: supervises, superviseIntervalSeconds: 1, monitorIntervalSeconds: 1 }, ...quietClient });
    // Of what it does by itself; what cannot be done for somebody is thrown where it is asked for.
    boss.on('error', (error) => log.warn({ err: error }, 'the queue met an error'));
    try {
      await boss.start();
      for (const lane of lanes) {
        await boss.createQueue(queueOf(lane), { policy: 'exclusive', heartbeatSeconds, expireInSeconds: longestSeconds, retryLimit: retries, retryDelay: 0, deleteAfterSeconds: 3_600 });
      }
    } catch (error) {
      await boss.stop({ graceful: false }).catch(() => {});
      throw new KitError('database_unavailable', `DATABASE_URL: the queue could not be opened (${reasonOf(error)})`);
    }
    return new PgBossRunQueue(boss);
  }

  async add(runId: string, lane: Lane, owner: string): Promise<void> {
    const data: RunJob & { owner: string } = { runId, owner };
    // The more of their own are waiting, the later: no user keeps the others from their turn.
    const priority = lane === 'process' ? -(await this.#waitingOf(owner)) : 0;
    await this.#boss.send(queueOf(lane), data, { singletonKey: runId, priority });
  }

  async work(worker: QueueWorker): Promise<void> {
    this.#isTaking = true;
    this.#loops = [...lanes.map((lane) => this.#take(lane, worker)), this.#stayAlive(worker)];
  }

  async stop(): Promise<void> {
    this.#isTaking = false;
    this.#stopping.abort();
    for (const { abort } of this.#held.values()) abort.abort(new GivenUp('the worker is stopping'));
    await Promise.all([...this.#held.values()].map(({ done }) => done));
    await Promise.all(this.#loops);
    await this.#boss.stop({ graceful: false });
  }

  async #waitingOf(owner: string): Promise<number> {
    const jobs = await this.#boss.findJobs(queueOf('process'), { data: { owner }, queued: true });
    return Math.min(jobs.length, 1_000_000);
  }

  async #take(lane: Lane, worker: QueueWorker): Promise<void> {
    while (this.#isTaking) {
      const room = Math.min(batch, worker.room(lane));
      const jobs = room <= 0 ? [] : await this.#fetch(lane, room, worker);
      for (const job of jobs) this.#drive(job, lane, worker);
      // A full batch: there may be more.
      if (jobs.length < batch) await sleep(lookEveryMs, undefined, { signal: this.#stopping.signal }).catch(() => {});
    }
  }

  async #fetch(lane: Lane, batchSize: number, { log }: QueueWorker) {
    try {
      return await this.#boss.fetch<RunJob>(queueOf(lane), { batchSize, includeMetadata: true });
    } catch (error) {
      log.warn({ err: error, lane }, 'no runs could be fetched for now');
      return [];
    }
  }

  #drive({ id, data, retryCount }: { id: string; data: RunJob; retryCount: number }, lane: Lane, worker: QueueWorker): void {
    const abort = new AbortController();
    const run: QueuedRun = { runId: data.runId, lane, signal: abort.signal };
    const held: HeldJob = { id, lane, retryCount, abort, done: Promise.resolve() };
    this.#held.set(id, held);
    if (!this.#isTaking) abort.abort(new GivenUp('the worker is stopping'));
    held.done = worker
      .drive(run)
      .then(() => this.#settle(held), (error: unknown) => this.#retry(held, error))
      .catch((error: unknown) => worker.log.warn({ err: error, runId: data.runId }, 'a run could not be taken off the queue; it will be taken again'))
      .finally(() => this.#held.delete(id));
  }

  /** Back on the queue, after a pause: what kept the run from being driven, a database above all, needs a moment. Never off it. */
  async #retry({ id, lane, retryCount }: HeldJob, error: unknown): Promise<void> {
    await sleep(retryAfterMs, undefined, { signal: this.#stopping.signal }).catch(() => {});
    await this.#boss.fail(queueOf(lane), { id, retryCount }, { reason: reasonOf(error) });
  }

  /** Off the queue, or back on it where it was given up. A claim that was lost is settled by whoever has it. */
  async #settle({ id, lane, retryCount, abort }: HeldJob): Promise<void> {
    const attempt = { id, retryCount };
    if (abort.signal.reason instanceof GivenUp) await this.#boss.fail(queueOf(lane), attempt);
    else await this.#boss.complete(queueOf(lane), attempt);
  }

  /** Says that this worker lives, for all that it holds. That a run is not its own any more, the store says. */
  async #stayAlive({ log }: QueueWorker): Promise<void> {
    while (this.#isTaking || this.#held.size > 0) {
      await sleep(heartbeatEveryMs, undefined, { signal: this.#stopping.signal }).catch(() => {});
      if (this.#stopping.signal.aborted) return;
      for (const lane of lanes) {
        const held = [...this.#held.values()].filter((one) => one.lane === lane && !one.abort.signal.aborted);
        if (held.length === 0) continue;
        try {
          await this.#boss.touch(queueOf(lane), held.map(({ id, retryCount }) => ({ id, retryCount })));
        } catch (error) {
          log.warn({ err: error }, 'the queue could not be told that this worker lives');
        }
      }
    }
  }
}
