/** The pauses between polls. */
import { expect, test } from 'vitest';
import { pollOperation } from '../../src/app/runs/operation-poller.ts';
import { PlatformError } from '../../src/platform-client/index.ts';
import type { OperationStatus } from '../../src/contract/index.ts';

const bounds = { min: 2_000, max: 5_000 };
const busy = (retryAfterMs: number) =>
  new PlatformError('operation.status', 'timeout', 'busy', { platformStatus: 503, retryAfterMs });

/** Polls until the answers are used up, and returns the pauses before each poll. */
async function pausesOf(answers: readonly (OperationStatus | PlatformError)[]): Promise<number[]> {
  const pauses: number[] = [];
  const left = [...answers];
  await pollOperation({
    getStatus: async () => {
      const answer = left.shift() ?? 'REJECTED';
      if (answer instanceof PlatformError) throw answer;
      return { status: answer };
    },
    pause: async (ms) => void pauses.push(ms),
    ...{ intervalMs: 3_000, bounds, signal: new AbortController().signal },
    ...{ onUnanswered: () => {}, onAnswered: () => {} },
  });
  return pauses;
}

test('each pause is the interval plus or minus a tenth, the first included', async () => {
  const pauses = await pausesOf(['REQUESTED', 'REQUESTED', 'APPROVED']);
  expect(pauses).toHaveLength(3);
  for (const pause of pauses) {
    expect(pause).toBeGreaterThanOrEqual(2_700);
    expect(pause).toBeLessThanOrEqual(3_300);
  }
});

test('a wait that the platform asks for holds for the next poll alone', async () => {
  const [, asked, ...later] = await pausesOf([busy(120_000), 'REQUESTED', 'APPROVED']);
  expect(asked).toBe(120_000);
  expect(later).toHaveLength(1);
  for (const pause of later) expect(pause).toBeLessThanOrEqual(bounds.max);
});

test('no wait is longer than two minutes', async () => {
  const [, asked] = await pausesOf([busy(3_600_000), 'APPROVED']);
  expect(asked).toBe(120_000);
});
