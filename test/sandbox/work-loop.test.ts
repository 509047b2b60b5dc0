/** Jobs that wait in a table are run one after the other, and none is forgotten. */
import { expect, test } from 'vitest';
import { WorkLoop } from '../../src/sandbox/work-loop.ts';

function loopOver(jobs: string[], onEmpty: () => void = () => {}) {
  const done: string[] = [];
  const errors: unknown[] = [];
  const loop = new WorkLoop<string>({
    take: () => {
      const job = jobs.shift() ?? null;
      if (job === null) onEmpty();
      return job;
    },
    run: async (job) => {
      if (job === 'bad') throw new Error('bad');
      done.push(job);
    },
    onError: (error) => void errors.push(error),
  });
  return { loop, done, errors, settled: () => new Promise((resolve) => setTimeout(resolve, 20)) };
}

test("a job that comes between the last look and the loop's end is run", async () => {
  const jobs = ['first'];
  let isFirst = true;
  const { loop, done, settled } = loopOver(jobs, () => {
    if (!isFirst) return;
    isFirst = false;
    // Before the loop's own promise has settled.
    queueMicrotask(() => {
      jobs.push('late');
      loop.wake();
    });
  });
  loop.wake();
  await settled();
  expect(done).toEqual(['first', 'late']);
});

test('one that fails does not keep the others', async () => {
  const { loop, done, errors, settled } = loopOver(['bad', 'good']);
  loop.wake();
  await settled();
  expect([done, errors.length]).toEqual([['good'], 1]);
});

test('stopped, it takes nothing more; restarted, it does', async () => {
  const { loop, done, settled } = loopOver(['job']);
  await loop.stop();
  loop.wake();
  await settled();
  expect(done).toEqual([]);
  await loop.restart();
  loop.wake();
  await settled();
  expect(done).toEqual(['job']);
});

test('the pauses of a job that the machine cannot do end at sixteen times the first', { timeout: 30_000 }, async () => {
  let runs = 0;
  const jobs = ['a'];
  const loop = new WorkLoop<string>({
    take: () => jobs.shift() ?? null,
    run: async () => {
      if ((runs += 1) < 18) throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });
    },
    onError: () => {},
    tryAgainMs: 2,
  });
  loop.wake();
  // 17 pauses of at most 32 ms. The last alone would be 131 s if they went on doubling.
  await expect.poll(() => runs, { timeout: 25_000 }).toBe(18);
  await loop.stop();
});

test('a machine that has no room for a while: the job is run again, and a look that failed is repeated', async () => {
  const full = () => Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });
  const [jobs, done]: [string[], string[]] = [['a'], []];
  let [looks, runs] = [0, 0];
  const loop = new WorkLoop<string>({
    take: () => {
      if ((looks += 1) === 1) throw full();
      return jobs.shift() ?? null;
    },
    run: async (job) => {
      if ((runs += 1) < 3) throw full();
      done.push(job);
    },
    onError: () => {},
    tryAgainMs: 5,
  });
  loop.wake();
  await expect.poll(() => done, { timeout: 300_000 }).toEqual(['a']);
  expect(runs).toBe(3);
  await loop.stop();
});
