// @module-tag all
/** Spec 4.2: a page of large items ends early, and the next one begins where it ended. */
import { expect, test } from 'vitest';
import { openSandboxDatabase } from '../../src/sandbox/database.ts';
import { Catalog } from '../../src/sandbox/stac/catalog.ts';
import { search } from '../../src/sandbox/stac/search.ts';
import { testFolder } from '../support/folders.ts';

const mebibyte = 2 ** 20;

test.each([
  ['small ones', () => 10, [50]],
  ['of 3 MiB each', (i: number) => (i < 14 ? 3 * mebibyte : 10), [6, 6, 38]],
  ['larger than a page each', (i: number) => (i % 20 === 0 ? 17 * mebibyte : 100), [1, 20, 20, 9]],
  ['of 40 kB each', () => 40_000, [50]],
])('pages of fifty items, %s: every one once, in order', async (_name, textLength, pages) => {
  const folder = await testFolder();
  const database = openSandboxDatabase(folder);
  const catalog = new Catalog(database, { deadlineMs: 600_000 });
  try {
    catalog.collections.putCatalog({ id: 'root', parentId: null, title: 'root', description: 'root' });
    catalog.collections.put({
      ...{ id: 'a', catalogId: 'root', title: 'a', description: 'a', license: 'proprietary', keywords: [] },
      createdAtMs: 0,
    });
    const ids = Array.from({ length: 50 }, (_, i) => `item-${String(i).padStart(2, '0')}`);
    for (const [i, id] of ids.entries())
      catalog.items.put({
        ...{ id, collectionId: 'a', title: id, datetimeMs: 0, source: { kind: 'none' } },
        properties: { text: 'x'.repeat(textLength(i)) },
        footprint: { type: 'Polygon', coordinates: [[[0, 0], [1, 0], [1, 1], [0, 0]]] }, // oxfmt-ignore
      });
    const found: string[] = [];
    const sizes: number[] = [];
    while (found.length < ids.length) {
      const page = await search(catalog, {
        sortby: [{ field: 'id', direction: 'asc' }],
        limit: 100,
        offset: found.length,
      });
      expect(page.numberMatched).toBe(ids.length);
      expect(page.items.length).toBeGreaterThan(0);
      found.push(...page.items.map(({ id }) => id));
      sizes.push(page.items.length);
    }
    expect(found).toEqual(ids);
    expect(sizes).toEqual(pages);
  } finally {
    await catalog.close();
    database.close();
  }
});
