import { setTimeout as sleep } from 'node:timers/promises';
import type { QueueName, QueuedRun, QueueWorker, RunQueue } from '../../../src/app/runs/run-queue.ts';
import type { SuiteTools } from './suite-tools.ts';

const log = { warn: () => {} };
export const queued = (runId: string, queueName: QueueName = 'wait'): QueuedRun => ({
  runId,
  queueName,
});

/** A worker that notes what it was given. */
export function notingWorker(
  take: QueueWorker['take'] = async () => {},
  capacity: QueueWorker['capacity'] = () => 100,
) {
  const given: string[] = [];
  const worker: QueueWorker = {
    capacity,
    log,
    take: async (one) => {
      given.push(`${one.queueName} ${one.runId}`);
      await take(one);
    },
  };
  return { given, worker };
}

/** Tests of a queue of runs, of any kind. `make` gives an empty one, which its caller stops and closes. */
export function runQueueSuite({ test, expect }: SuiteTools, make: () => Promise<RunQueue>): void {
  test('what is added is given once, whether before or after work began', async () => {
    const queue = await make();
    const { worker, given } = notingWorker();
    await queue.add([queued('a')]);
    await queue.work(worker);
    await queue.add([queued('b'), queued('c', 'process')]);
    await expect.poll(() => given.toSorted(), { timeout: 10_000 }).toHaveLength(3);
    await sleep(1_500);
    expect(given.toSorted()).toEqual(['process c', 'wait a', 'wait b']);
  });

  test('added again while it is being taken: no harm', async () => {
    const queue = await make();
    const taking = Promise.withResolvers<void>();
    const { worker, given } = notingWorker(() => taking.promise);
    await queue.work(worker);
    await queue.add([queued('a')]);
    await expect.poll(() => given, { timeout: 10_000 }).toEqual(['wait a']);
    await queue.add([queued('a')]);
    await sleep(1_500);
    expect(given).toEqual(['wait a']);
    taking.resolve();
  });

  test('what could not be taken is given again, and what was taken can be added anew', async () => {
    const queue = await make();
    let tries = 0;
    const { worker, given } = notingWorker(async () => {
      if ((tries += 1) < 3) throw new Error('the database is away');
    });
    await queue.work(worker);
    await queue.add([queued('a')]);
    await expect.poll(() => given, { timeout: 15_000 }).toEqual(['wait a', 'wait a', 'wait a']);
    await sleep(500);
    await queue.add([queued('a')]);
    await expect.poll(() => given, { timeout: 10_000 }).toHaveLength(4);
  });

  test('stop: nothing more is given, and what is being taken is waited for', async () => {
    const queue = await make();
    let ended = false;
    const { worker, given } = notingWorker(async () => {
      await sleep(200);
      ended = true;
    });
    await queue.work(worker);
    await queue.add([queued('a')]);
    await expect.poll(() => given, { timeout: 10_000 }).toHaveLength(1);
    await queue.stop();
    expect(ended).toBe(true);
    await queue.add([queued('b')]);
    await sleep(1_000);
    expect(given).toHaveLength(1);
  });
}
