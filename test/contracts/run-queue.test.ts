/** What a queue of runs promises, within one process and between many. */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { PgBossRunQueue } from '../../src/app/runs/pg-boss-run-queue.ts';
import { GivenUp, LocalRunQueue, type Lane, type QueuedRun, type RunQueue } from '../../src/app/runs/run-queue.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { hasPostgres, startPostgres, query } from '../support/postgres.ts';

let postgres: Awaited<ReturnType<typeof startPostgres>>;
beforeAll(async () => {
  if (hasPostgres) postgres = await startPostgres();
});

const log = { warn: () => {} };
/** A worker that notes what it was given; `work` says what it does with it. */
function notingWorker(work: (run: QueuedRun) => Promise<void> = async () => {}, room: (lane: Lane) => number = () => 100) {
  const given: string[] = [];
  return {
    given,
    worker: {
      room,
      log,
      drive: async (run: QueuedRun) => {
        given.push(`${run.lane} ${run.runId}`);
        await work(run);
      },
    },
  };
}
const untilStopped = ({ signal }: QueuedRun) => new Promise<void>((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve())));

const noLog = { warn: () => {} };

const adapters: [string, boolean, () => Promise<RunQueue>][] = [
  ['in one process', true, async () => new LocalRunQueue()],
  ['PostgreSQL and pg-boss', hasPostgres, async () => PgBossRunQueue.open(await postgres.create(), { supervises: true, log: noLog })],
];

describe.each(adapters)('%s', (_name, isHere, make) => {
  async function start(work?: (run: QueuedRun) => Promise<void>, room?: (lane: Lane) => number) {
    const queue = await make();
    let stopping: Promise<void> | null = null;
    const stop = () => (stopping ??= queue.stop());
    cleanUpLater(stop);
    return { queue, stop, ...notingWorker(work, room) };
  }

  test.runIf(isHere)('what is added is driven once, whether before or after work began', async () => {
    const { queue, worker, given } = await start();
    await queue.add('a', 'wait', 'o');
    await queue.work(worker);
    await queue.add('b', 'wait', 'o');
    await queue.add('c', 'process', 'o');
    await expect.poll(() => given.toSorted(), { timeout: 10_000 }).toHaveLength(3);
    await sleep(1_500);
    expect(given.map((one) => one.split(' ')[1]).sort()).toEqual(['a', 'b', 'c']);
  });

  test.runIf(isHere)('added again while it is under way: no harm', async () => {
    const { queue, worker, given, stop } = await start(untilStopped);
    await queue.work(worker);
    await queue.add('a', 'wait', 'o');
    await expect.poll(() => given, { timeout: 10_000 }).toEqual(['wait a']);
    await queue.add('a', 'wait', 'o');
    await sleep(1_500);
    expect(given).toEqual(['wait a']);
    await stop();
  });

  test.runIf(isHere)('stop: what is under way is told why, and waited for', async () => {
    const reasons: unknown[] = [];
    let ended = false;
    const { queue, worker, given, stop } = await start(async (run) => {
      await untilStopped(run);
      reasons.push(run.signal.reason);
      await sleep(200);
      ended = true;
    });
    await queue.work(worker);
    await queue.add('a', 'wait', 'o');
    await expect.poll(() => given, { timeout: 10_000 }).toHaveLength(1);
    await stop();
    expect(ended).toBe(true);
    expect(reasons[0]).toBeInstanceOf(GivenUp);
  });
});

describe('between processes', () => {
  test.runIf(hasPostgres)('a run that is given back goes to another worker at once', async () => {
    const url = await postgres.create();
    const [one, two] = [await PgBossRunQueue.open(url, { supervises: true, log: noLog }), await PgBossRunQueue.open(url, { supervises: true, log: noLog })];
    const [first, second] = [notingWorker(untilStopped), notingWorker()];
    await one.work(first.worker);
    await one.add('a', 'wait', 'o');
    await expect.poll(() => first.given, { timeout: 10_000 }).toHaveLength(1);
    await two.work(second.worker);
    await sleep(1_200);
    expect(second.given).toEqual([]);
    await one.stop();
    await expect.poll(() => second.given, { timeout: 5_000 }).toEqual(['wait a']);
    await two.stop();
  });

  test.runIf(hasPostgres)('what there is no room for waits for a worker that has some', async () => {
    const url = await postgres.create();
    const [one, two] = [await PgBossRunQueue.open(url, { supervises: true, log: noLog }), await PgBossRunQueue.open(url, { supervises: true, log: noLog })];
    const [full, free] = [notingWorker(async () => {}, (lane) => (lane === 'wait' ? 10 : 0)), notingWorker()];
    await one.work(full.worker);
    await one.add('a', 'process', 'o');
    await sleep(1_500);
    expect(full.given).toEqual([]);
    await two.work(free.worker);
    await expect.poll(() => free.given, { timeout: 5_000 }).toEqual(['process a']);
    await Promise.all([one.stop(), two.stop()]);
  });

  test.runIf(hasPostgres)('turns go round the owners: one run of a second user does not wait for the many of a first', async () => {
    const url = await postgres.create();
    const queue = await PgBossRunQueue.open(url, { supervises: true, log: noLog });
    let busy = 0;
    const { worker, given } = notingWorker(
      async () => {
        busy += 1;
        await sleep(30);
        busy -= 1;
      },
      (lane) => (lane === 'process' ? 1 - busy : 10),
    );
    for (let i = 0; i < 5; i++) await queue.add(`many-${i}`, 'process', 'first');
    await queue.add('one', 'process', 'second');
    await queue.work(worker);
    await expect.poll(() => given, { timeout: 20_000 }).toHaveLength(6);
    expect(given.indexOf('process one')).toBeLessThanOrEqual(1);
    await queue.stop();
  });

  test.runIf(hasPostgres)('no password and no token stands in the queue\'s tables', async () => {
    const url = await postgres.create();
    const queue = await PgBossRunQueue.open(url, { supervises: true, log: noLog });
    await queue.add('a', 'wait', 'owner');
    const jobs = await query(url, 'select * from pgboss.job');
    expect(jobs.map(({ data }) => data)).toEqual([{ runId: 'a', owner: 'owner' }]);
    await queue.stop();
  });

  test('a database that is away: a clear error, without the address', async () => {
    const opened = PgBossRunQueue.open('postgres://user:very-secret@127.0.0.1:1/nothing', { supervises: false, log: noLog });
    await expect(opened).rejects.toMatchObject({ code: 'database_unavailable', message: expect.not.stringContaining('very-secret') as string });
  });
});
