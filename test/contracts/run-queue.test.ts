/** Promises of a queue of runs, within one process and between many. */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test, type TestOptions } from 'vitest';
import { PgBossRunQueue, type Boss } from '../../src/app/runs/pg-boss-run-queue.ts';
import { DatabaseUnavailableError } from '../../src/app/database-unavailable.ts';
import { Outage } from '../../src/app/runs/outage.ts';
import { RepeatedFailure } from '../../src/app/runs/repeated-failure.ts';
import { LocalRunQueue, type RunQueue } from '../../src/app/runs/run-queue.ts';
import { notingWorker, queued, runQueueSuite } from '../support/suites/run-queue-suite.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { startPostgres, query } from '../support/postgres.ts';
import { isThere, needing } from '../support/needs.ts';
import { onlyInAll } from '../support/tags.ts';

let postgres: Awaited<ReturnType<typeof startPostgres>>;
beforeAll(async () => {
  if (isThere('postgresql')) postgres = await startPostgres();
});

const log = { warn: () => {} };
const run = queued;

function closeLater(queue: RunQueue): RunQueue {
  cleanUpLater(async () => {
    await queue.stop();
    await queue.close();
  });
  return queue;
}
const open = async (url: string) => closeLater(await PgBossRunQueue.open(url, { supervises: true, log }));

const adapters: [string, TestOptions, () => Promise<RunQueue>][] = [
  ['in one process', {}, async () => closeLater(new LocalRunQueue())],
  ['PostgreSQL and pg-boss', needing('postgresql'), async () => open(await postgres.create())],
];

for (const [name, options, make] of adapters) describe(name, options, () => runQueueSuite({ test, expect }, make));

test('in one process: a restart with many runs lets requests through between its takes', async () => {
  const queue = closeLater(new LocalRunQueue());
  let [taken, most, before] = [0, 0, 0];
  const look = setInterval(() => {
    most = Math.max(most, taken - before);
    before = taken;
  }, 0);
  cleanUpLater(() => clearInterval(look));
  await queue.add(Array.from({ length: 1_000 }, (_, i) => run(`r${i}`)));
  await queue.work({
    take: async () => {
      taken += 1;
      const until = performance.now() + 2;
      while (performance.now() < until);
    },
    capacity: () => Infinity,
    log,
  });
  expect(taken).toBe(1_000);
  expect(Math.max(most, taken - before)).toBeLessThan(100);
});

test('a database that is away: one line for each queue, and one more for each five minutes', async () => {
  const logged: string[] = [];
  const boss = { fetch: () => Promise.reject(new Error('connect ECONNREFUSED')) } as unknown as Boss;
  const queue = new PgBossRunQueue(boss);
  await queue.work({
    take: async () => {},
    capacity: () => 1,
    log: { warn: (_, message) => void logged.push(message) },
  });
  await sleep(2_000);
  await queue.stop();
  expect(logged.toSorted()).toEqual([
    'could not ask the queue for runs (process)',
    'could not ask the queue for runs (wait)',
  ]);

  let nowMs = 0;
  const times: unknown[] = [];
  const log = { warn: ({ times: n }: { times?: number }) => void times.push(n) };
  const failure = new RepeatedFailure(log, 'what', () => nowMs);
  for (; nowMs < 301_000; nowMs += 1_000) failure.failed(new Error('away'));
  expect(times).toEqual([1, 301]);
  failure.succeeded();
  failure.failed(new Error('away'));
  expect(times).toEqual([1, 301, 1]);
});

test('a batch of runs is claimed by few queries at a time', async () => {
  const jobs = Array.from({ length: 40 }, (_, i) => ({ id: `j${i}`, data: { runId: `r${i}` } }));
  const completed: string[] = [];
  const boss = {
    fetch: async () => jobs.splice(0),
    complete: async (_name: string, ids: string[]) => void completed.push(...ids),
    stop: async () => {},
  } as unknown as Boss;
  const queue = new PgBossRunQueue(boss);
  let [underWay, most] = [0, 0];
  await queue.work({
    async take() {
      most = Math.max(most, (underWay += 1));
      await sleep(10);
      underWay -= 1;
    },
    capacity: (queueName) => (queueName === 'wait' ? 200 : 0),
    log,
  });
  await expect.poll(() => completed, { timeout: 30_000 }).toHaveLength(40);
  await queue.stop();
  expect(most).toBe(5);
});

test('after an outage, the runs of a worker go on one after the other', async () => {
  let nowMs = 0;
  const outage = new Outage({ warn: () => {}, info: () => {} }, () => nowMs);
  outage.isCause(new DatabaseUnavailableError(new Error('away')));
  const wentOnAtMs: number[] = [];
  const { signal } = new AbortController();
  const runs = Array.from({ length: 100 }, async () => {
    await outage.over(signal);
    wentOnAtMs.push(performance.now());
  });
  nowMs = 10_000;
  outage.ended();
  await Promise.all(runs);
  // A hundred runs share a second.
  expect(Math.max(...wentOnAtMs) - Math.min(...wentOnAtMs)).toBeGreaterThan(500);
});

describe('between processes', () => {
  test(
    'a run that a worker was about to take when it died goes to another',
    { tags: [onlyInAll], timeout: 900_000, ...needing('postgresql') },
    async () => {
      const url = await postgres.create();
      const [one, two] = [await open(url), await open(url)];
      const hanging = Promise.withResolvers<void>();
      const [dying, living] = [notingWorker(() => hanging.promise), notingWorker()];
      await one.work(dying.worker);
      await one.add([run('a')]);
      await expect.poll(() => dying.given, { timeout: 300_000 }).toHaveLength(1);
      await two.work(living.worker);
      await expect.poll(() => living.given, { timeout: 300_000 }).toEqual(['wait a']);
      hanging.resolve();
    },
  );

  test('what there is no room for waits for a worker that has some', needing('postgresql'), async () => {
    const url = await postgres.create();
    const [one, two] = [await open(url), await open(url)];
    const [full, free] = [
      notingWorker(
        async () => {},
        (queueName) => (queueName === 'wait' ? 10 : 0),
      ),
      notingWorker(),
    ];
    await one.work(full.worker);
    await one.add([run('a', 'process')]);
    await sleep(1_500);
    expect(full.given).toEqual([]);
    await two.work(free.worker);
    await expect.poll(() => free.given, { timeout: 300_000 }).toEqual(['process a']);
  });

  test("no password and no token stands in the queue's tables", needing('postgresql'), async () => {
    const url = await postgres.create();
    const queue = await open(url);
    await queue.add([run('a')]);
    const jobs = await query(url, 'select * from pgboss.job');
    expect(jobs.map(({ data }) => data)).toEqual([{ runId: 'a' }]);
  });

  test('a database that is away: a clear error, without the address', async () => {
    const opened = PgBossRunQueue.open('postgres://user:very-secret@127.0.0.1:1/nothing', { supervises: false, log });
    await expect(opened).rejects.toMatchObject({
      code: 'database_unavailable',
      message: expect.not.stringContaining('very-secret') as string,
    });
  });
});
