import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { joinedReads } from '../../src/app/joined-reads.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function countedReads() {
  const sizes: number[] = [];
  const read = joinedReads(
    async (keys) => {
      sizes.push(keys.length);
      return new Map(keys.map((key) => [key, key]));
    },
    { missing: () => '', atOnce: 100 },
  );
  return {
    sizes,
    read: (count: number, name = 'key') => Array.from({ length: count }, (_, i) => read(`${name}-${i}`)),
  };
}

test('the first read after a pause does not wait; later ones share the query of the next tenth of a second', async () => {
  const { sizes, read } = countedReads();
  void read(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(sizes).toEqual([1]);
  for (let i = 0; i < 9; i++) {
    void read(1, `later-${i}`);
    await vi.advanceTimersByTimeAsync(10);
  }
  expect(sizes).toEqual([1]);
  await vi.advanceTimersByTimeAsync(10);
  expect(sizes).toEqual([1, 9]);
});

test('more keys than one query may have do not wait for each other', async () => {
  const { sizes, read } = countedReads();
  const reads = read(1_950);
  await vi.advanceTimersByTimeAsync(1);
  expect(sizes).toEqual([...Array.from({ length: 19 }, () => 100), 50]);
  expect(await Promise.all(reads)).toHaveLength(1_950);
});
