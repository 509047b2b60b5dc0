import DataLoader from 'dataloader';

/** Time between two queries: a read waits for the next one together with others. The first read after a pause does not wait. */
const betweenMs = 100;

/**
 * Joins reads of single keys into one query, so that thousands of polls and pages cost few queries. `read` returns the values of its keys by key; a key that it
 * leaves out has `missing(key)`, or is an error. Keeps nothing, because other processes may write at any time.
 */
export function joinedReads<V>(
  read: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>,
  { missing, atOnce = 500 }: { readonly missing: (key: string) => V | Error; readonly atOnce?: number },
): (key: string) => Promise<V> {
  let [dueMs, isDue] = [-Infinity, false];
  /** More keys than one query may have are read by several queries at the same time. */
  function schedule(load: () => void): void {
    const nowMs = performance.now();
    if (!isDue) [dueMs, isDue] = [Math.max(nowMs, dueMs + betweenMs), true];
    setTimeout(() => {
      isDue = false;
      load();
    }, dueMs - nowMs);
  }
  const loader = new DataLoader<string, V>(
    async (keys) => {
      const values = await read([...new Set(keys)]);
      return keys.map((key) => values.get(key) ?? missing(key));
    },
    { cache: false, maxBatchSize: atOnce, batchScheduleFn: schedule },
  );
  return (key) => loader.load(key);
}
