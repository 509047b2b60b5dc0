/** Repeats of a call: how many, and no wait after the last. */
import { expect, test } from 'vitest';
import { PlatformError } from '../../src/platform-client/index.ts';
import { NotFinishedError } from '../../src/contract/index.ts';
import { untilFinished, withRetries } from '../../src/platform-client/retry-policy.ts';

const policy = { retries: 1, minDelayMs: 1, maxDelayMs: 1, maxRetryAfterMs: 120_000 };
const busy = (retryAfterMs: number | null) =>
  new PlatformError('upload.chunk', 'timeout', 'busy', { platformStatus: 503, retryAfterMs });

test('the error of the last try comes at once, whatever wait it asks for', { timeout: 20_000 }, async () => {
  let tries = 0;
  const answer = withRetries(
    () => {
      tries += 1;
      return Promise.reject(busy(tries === 1 ? null : 100_000));
    },
    policy,
    undefined,
    () => {},
  );
  await expect(answer).rejects.toMatchObject({ retryAfterMs: 100_000 });
  expect(tries).toBe(2);
});

test('a wait that is longer than the policy allows is not waited for', { timeout: 20_000 }, async () => {
  let tries = 0;
  const answer = withRetries(() => Promise.reject((tries++, busy(120_001))), policy, undefined, () => {}); // oxfmt-ignore
  await expect(answer).rejects.toMatchObject({ retryAfterMs: 120_001 });
  expect(tries).toBe(1);
});

test('a Retry-After counts for the next poll only', { timeout: 60_000 }, async () => {
  const polledAtMs: number[] = [];
  await untilFinished(
    'upload.complete',
    async () => {
      polledAtMs.push(performance.now());
      const header = () => (polledAtMs.length === 1 ? '1' : undefined);
      if (polledAtMs.length < 4) throw new NotFinishedError({ status: 202, header });
    },
    { pauseMs: 10, maxPauseMs: 60_000, signal: undefined },
  );
  const [first = 0, second = 0, , last = Infinity] = polledAtMs;
  expect(second - first).toBeGreaterThanOrEqual(990);
  expect(last - second).toBeLessThan(second - first);
});
