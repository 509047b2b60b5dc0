/** A worker's lease, and the work that it repeats. */
import { expect, test } from 'vitest';
import { Repeats } from '../../src/app/runs/repeats.ts';
import { leaseMs, WorkerLease } from '../../src/app/runs/worker-lease.ts';

test('a worker whose own lease is over judges nobody, and after a pause waits for the others', () => {
  let clock = 0;
  const lease = new WorkerLease('w', { isShared: true, clock: () => clock });
  expect(lease.mayJudgeOthers).toBe(false);
  lease.renewed(clock);
  expect(lease.mayJudgeOthers).toBe(true);
  clock += leaseMs;
  expect(lease.mayJudgeOthers).toBe(false);
  lease.renewed(clock);
  expect(lease.mayJudgeOthers).toBe(false);
  clock += 3_000;
  expect(lease.mayJudgeOthers).toBe(true);
});

test('a lease begins with the request for it, not with the response of the database', () => {
  let clock = 0;
  const lease = new WorkerLease('w', { isShared: true, clock: () => clock });
  // The database took half of the lease to answer.
  const askedAtMs = clock;
  clock += leaseMs / 2;
  lease.renewed(askedAtMs);
  expect(lease.mayJudgeOthers).toBe(true);
  clock = leaseMs - 1;
  expect(lease.mayJudgeOthers).toBe(false);
});

test('a worker that is alone may always judge', () => {
  expect(new WorkerLease('w', { isShared: false }).mayJudgeOthers).toBe(true);
});

test('repeats end with what runs, and begin nothing afterwards', async () => {
  const repeats = new Repeats(() => {});
  const running = Promise.withResolvers<undefined>();
  let begun = 0;
  repeats.every(1, 'work', () => {
    begun += 1;
    return running.promise;
  });
  await expect.poll(() => begun, { timeout: 60_000 }).toBe(1);
  let isOver = false;
  const stopped = repeats.stop().then(() => (isOver = true));
  repeats.every(1, 'more work', async () => (begun += 1));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect([begun, isOver]).toEqual([1, false]);
  running.resolve(undefined);
  await stopped;
  expect(begun).toBe(1);
});
