import v8 from 'node:v8';
import type { Catalog } from './catalog.ts';
import { blockRows } from './filter-rows.ts';
import { PropertyColumn } from './property-column.ts';
import { comparisonOf, conditionOnRows } from './property-condition.ts';
import { search } from './search.ts';
import { selectPage } from './select-page.ts';

/** As often as it takes until it is compiled. */
const rowCount = 2 ** 18;
const valueCount = 250;
/** Items of a catalog whose index takes some 100 MiB. */
const hugeSize = 500_000;
const pageItems = 10;

/**
 * Runs what a search of a large catalog runs for every item (comparisons, sorts, the time of items), before anybody searches:
 * the first takes hardly longer than later ones then. It opens no column: the values are made up, with codes of each type.
 */
export async function warmUp(catalog: Catalog): Promise<void> {
  if (!catalog.isLarge) return;
  // `scripts/preload.mjs` keeps the young generation small, for uploads. So large a catalog needs ten times the memory of
  // that, and many searches at once take a fifth less time: what they make is not moved to the old generation first.
  if (catalog.index.size >= hugeSize) v8.setFlagsFromString('--semi-space-growth-factor=2');
  await search(catalog, {
    filter: { op: '>', args: [{ property: 'datetime' }, { timestamp: '1970-01-01T00:00:00Z' }] },
    sortby: [{ field: 'id', direction: 'asc' }],
    limit: pageItems,
  });
  await catalog.slices.run('the start', async (slice) => {
    const rows = Uint32Array.from({ length: rowCount }, (_, row) => row);
    const results = new Uint8Array(blockRows);
    for (const type of [Uint8Array, Uint16Array, Uint32Array]) {
      const column = new PropertyColumn({
        codes: new type(rowCount).map((_, row) => row % valueCount),
        numbers: Float64Array.from({ length: valueCount }, (_, i) => i),
        ...{ texts: new Uint8Array(0), ends: new Uint32Array(0), instants: new Float64Array(0), textCount: 0 },
      });
      const isLess = comparisonOf('', { value: valueCount / 2, ms: null }, (sign) => sign < 0);
      for (const condition of [isLess, { property: '', test: () => true }]) {
        const test = conditionOnRows(condition, column);
        for (let from = 0; from < rowCount; from += blockRows) test(rows.subarray(from), blockRows, results);
      }
      for (const sign of [1, -1] as const) await selectPage(rows, column.order(sign), 0, pageItems, slice);
    }
  });
}
