import DataLoader from 'dataloader';

/** Time for which a read waits for others. */
const waitMs = 20;

/**
 * Joins reads of single keys into one query, so that thousands of polls and pages cost few queries. `read` returns the values of its keys by key; a key that it
 * leaves out has `missing(key)`, or is an error. Keeps nothing, because other processes may write at any time.
 */
export function joinedReads<V>(
  read: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>,
  { missing, atOnce = 500 }: { readonly missing: (key: string) => V | Error; readonly atOnce?: number },
): (key: string) => Promise<V> {
  const loader = new DataLoader<string, V>(
    async (keys) => {
      const values = await read([...new Set(keys)]);
      return keys.map((key) => values.get(key) ?? missing(key));
    },
    { cache: false, maxBatchSize: atOnce, batchScheduleFn: (load) => setTimeout(load, waitMs) },
  );
  return (key) => loader.load(key);
}
