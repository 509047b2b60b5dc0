/** `listCollections` ends, also if catalogs link to many others or in circles. */
import { expect, test } from 'vitest';
import type { CatalogNode } from '../../src/contract/index.ts';
import { listCollections } from '../../src/platform-client/browse-catalog.ts';

type Child = CatalogNode['children'][number];

/** Walks catalogs whose children a function names. Returns the calls, and the collections that it found. */
async function walk(childrenOf: (catalogId: string | null) => Child[]) {
  const asked: (string | null)[] = [];
  const node = (id: string, children: Child[]): CatalogNode => ({ id, title: id, description: '', children });
  const collections = await listCollections({
    getCatalog: async (id) => {
      asked.push(id);
      return node(id ?? 'root', childrenOf(id));
    },
    getCollection: async (id) => node(id, []),
  });
  return { asked, collections: collections.map(({ id }) => id) };
}

const catalogs = (count: number, prefix: string): Child[] =>
  Array.from({ length: count }, (_, i) => ({ kind: 'catalog', id: `${prefix}${i}` }));

test('requests at most 200 catalogs and the root, over all levels together', async () => {
  const { asked } = await walk((id) => (id?.includes('.') ? [] : catalogs(150, id === null ? 'c' : `${id}.`)));
  expect(asked).toHaveLength(201);
  expect(new Set(asked).size).toBe(201);
});

test('requests the catalogs of a circle once', async () => {
  const next = { a: 'b', b: 'a' } as const;
  const { asked, collections } = await walk((id) => [
    { kind: 'catalog', id: id === null ? 'a' : next[id as 'a' | 'b'] },
    { kind: 'collection', id: 'same' },
  ]);
  expect([asked, collections]).toEqual([[null, 'a', 'b'], ['same']]);
});

test('reads at most 1,000 collections', async () => {
  const { collections } = await walk(() =>
    Array.from({ length: 1_001 }, (_, i): Child => ({ kind: 'collection', id: String(i) })),
  );
  expect(collections).toHaveLength(1_000);
});
