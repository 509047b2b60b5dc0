/** Turns in processing: so many at a time, round the owners, and nobody waits in vain. */
import { expect, test } from 'vitest';
import { FairQueue } from '../../src/child/index.ts';
import badSteps from '../support/bad-steps.ts';
import { launchApp, startApp } from '../support/app.ts';
import { startSandbox } from '../support/sandbox.ts';

const never = new AbortController().signal;
const gate = () => Promise.withResolvers<void>();

test('at most so many at a time, and all of them in the end', async () => {
  const queue = new FairQueue(2);
  let [now, most] = [0, 0];
  const tasks = Array.from({ length: 10 }, (_, i) =>
    queue.run(
      `owner-${i % 3}`,
      async () => {
        most = Math.max(most, (now += 1));
        await new Promise((resolve) => setImmediate(resolve));
        now -= 1;
        return i;
      },
      never,
    ),
  );
  expect([queue.running, queue.waiting]).toEqual([2, 8]);
  expect(await Promise.all(tasks)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect([most, queue.running, queue.waiting]).toEqual([2, 0, 0]);
});

test('a user with many does not keep one with few from their turn', async () => {
  const queue = new FairQueue(1);
  const order: string[] = [];
  const { promise, resolve } = gate();
  const first = queue.run('many', () => promise, never);
  const rest = ['many 1', 'many 2', 'many 3', 'few 1', 'few 2'].map((name) =>
    queue.run(name.split(' ')[0]!, async () => void order.push(name), never),
  );
  resolve();
  await Promise.all([first, ...rest]);
  expect(order).toEqual(['many 1', 'few 1', 'many 2', 'few 2', 'many 3']);
});

test('cancelled while it waits: at once, and its place goes to the next', async () => {
  const queue = new FairQueue(1);
  const { promise, resolve } = gate();
  const running = queue.run('a', () => promise, never);
  const abort = new AbortController();
  const waiting = queue.run('a', async () => 'ran', abort.signal);
  const next = queue.run('a', async () => 'next', never);
  abort.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
  expect(queue.waiting).toBe(1);
  resolve();
  expect(await next).toBe('next');
  await running;
});

test('cancelled tasks of owners with no other cost no place', async () => {
  const queue = new FairQueue(1);
  const { promise, resolve } = gate();
  const running = queue.run('a', () => promise, never);
  const abort = new AbortController();
  const cancelled = ['b', 'c'].map((owner) => queue.run(owner, async () => 'ran', abort.signal));
  abort.abort(new Error('enough'));
  for (const waiting of cancelled) await expect(waiting).rejects.toThrow('enough');
  resolve();
  await running;
  expect([queue.running, queue.waiting]).toEqual([0, 0]);
  expect(await queue.run('d', async () => 'ran', never)).toBe('ran');
});

test('costs together stay within the budget, nobody overtakes, and one alone may cost any amount', async () => {
  const queue = new FairQueue(10, 100);
  const gates = [60, 50, 10, 500, 10].map((cost) => ({ cost, ...gate() }));
  const begun: number[] = [];
  const tasks = gates.map(({ cost, promise }, i) =>
    queue.run(
      'owner',
      async () => {
        begun.push(i);
        await promise;
      },
      never,
      cost,
    ),
  );
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  await settle();
  // The third would fit beside the first, and waits behind the second.
  expect([begun, queue.running, queue.waiting]).toEqual([[0], 1, 4]);
  gates[0]!.resolve();
  await settle();
  expect(begun).toEqual([0, 1, 2]);
  gates[1]!.resolve();
  await settle();
  expect(begun).toEqual([0, 1, 2]);
  gates[2]!.resolve();
  await settle();
  expect(begun).toEqual([0, 1, 2, 3]);
  gates[3]!.resolve();
  gates[4]!.resolve();
  await Promise.all(tasks);
  expect([queue.running, queue.waiting]).toEqual([0, 0]);
});

test('a cancelled task that waits for its cost is not in the way of the next', async () => {
  const queue = new FairQueue(2, 100);
  const { promise, resolve } = gate();
  const first = queue.run('a', () => promise, never, 60);
  const abort = new AbortController();
  const large = queue.run('a', async () => 'large', abort.signal, 90);
  const small = queue.run('a', async () => 'small', never, 10);
  abort.abort(new Error('enough'));
  await expect(large).rejects.toThrow('enough');
  expect(await small).toBe('small');
  resolve();
  await first;
});

test('one that fails gives its place on', async () => {
  const queue = new FairQueue(1);
  const failing = queue.run('a', () => Promise.reject(new Error('broken')), never);
  const next = queue.run('b', async () => 'next', never);
  await expect(failing).rejects.toThrow('broken');
  expect(await next).toBe('next');
});

test('a full queue: a new run is refused with 503 and says why; with room again it is taken', async () => {
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url, {
    env: { STEP_QUEUE: '1' },
    definition: badSteps,
  });
  const { session } = await launchApp(sandbox, app);
  const wanted = { stepId: 'cooperative', input: { type: 'synthetic', size: 64 } };
  const first = await session.start(wanted);
  const { operationId } = await session.waitFor(first.id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${operationId}/approve`);
  await session.waitFor(first.id, 'PROCESSING');
  const refused = await session.post('api/runs', wanted);
  expect(refused.status).toBe(503);
  expect(await refused.json()).toMatchObject({
    code: 'busy',
    error: expect.stringContaining('1 runs are waiting for processing') as string,
  });
  expect((await session.post(`api/runs/${first.id}/cancel`)).status).toBe(200);
  expect((await session.post('api/runs', wanted)).status).toBe(201);
});
