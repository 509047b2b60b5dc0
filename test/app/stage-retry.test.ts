/** Patience with a platform and a database that are away: how long, and whose commit an answer belongs to. */
import { describe, expect, test } from 'vitest';
import { commitTransition, retryWhileDown } from '../../src/app/runs/stages/retry.ts';
import type { StageContext } from '../../src/app/runs/stages/stage.ts';
import type { Run } from '../../src/app/runs/run.ts';
import { PlatformError } from '../../src/platform-client/index.ts';

describe('a platform that is away', () => {
  async function pausesWhile(failures: number, retryAfterMs: number | null = null): Promise<number[]> {
    const pauses: number[] = [];
    let left = failures;
    const answer = await retryWhileDown(
      {
        patience: { answered: () => {}, unanswered: () => Infinity },
        now: () => Date.now(),
        signal: new AbortController().signal,
        report: () => {},
        log: { warn: () => {} },
      } as unknown as Parameters<typeof retryWhileDown>[0],
      async () => {
        if (left-- > 0)
          throw new PlatformError('upload.chunk', 'timeout', 'away', { platformStatus: 503, retryAfterMs });
        return 'back';
      },
      async (ms) => void pauses.push(ms),
    );
    expect(answer).toBe('back');
    return pauses;
  }

  test('is asked again after 2, 4, 8 and then every 10 seconds', async () => {
    expect(await pausesWhile(8)).toEqual([2_000, 4_000, 8_000, 10_000, 10_000, 10_000, 10_000, 10_000]);
  });

  test('is asked later if it says so', async () => {
    expect(await pausesWhile(2, 30_000)).toEqual([30_000, 30_000]);
  });
});

describe('a commit whose answer was lost', () => {
  const run = { id: 'r', claim: 3, state: 'PROCESSING' } as unknown as Run;
  const away = new Error('the database is away');

  /** Commits against a store whose first answer is lost, and which then has `found`. */
  async function commit(found: Partial<Run>) {
    const tried: string[] = [];
    const committing = commitTransition(
      {
        store: {
          transition: async (_run: Run, to: string) => {
            tried.push(to);
            if (tried.length === 1) throw away;
            throw new Error('the run was moved by another');
          },
          find: async () => ({ ...run, ...found }),
        },
        signal: new AbortController().signal,
        isAway: (error: unknown) => error === away,
        untilBack: async () => {},
      } as unknown as StageContext,
      run,
      'UPLOADING',
    ).then(
      ({ claim, state }) => ({ claim, state }),
      (error: unknown) => String(error),
    );
    return { end: await committing, tried: tried.length };
  }

  test('is not made twice if it was made', async () => {
    expect(await commit({ state: 'UPLOADING' })).toEqual({ end: { claim: 3, state: 'UPLOADING' }, tried: 1 });
  });

  test('is made again if it was not', async () => {
    expect(await commit({})).toMatchObject({ tried: 2 });
  });

  test('is not taken for that of another worker, which has the run by now', async () => {
    expect(await commit({ claim: 4, state: 'UPLOADING' })).toEqual({
      end: 'Error: the run was moved by another',
      tried: 2,
    });
  });
});
