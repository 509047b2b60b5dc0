// @module-tag all
/** Pages of many rows: as if all of them were sorted. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Slices } from '../../src/sandbox/slices.ts';
import { PropertyColumn } from '../../src/sandbox/stac/property-column.ts';
import { selectPage, type RowOrder } from '../../src/sandbox/stac/select-page.ts';

/** Numbers by row: null where there is none. Those from `codedRows` on have come since. */
function columnOf(values: readonly (number | null)[], codedRows: number): PropertyColumn {
  const coded = values.slice(0, codedRows);
  const numbers = Float64Array.from(new Set(coded.filter((one) => one !== null))).sort();
  const places = new Map(Array.from(numbers, (one, i) => [one, i + 1]));
  const column = new PropertyColumn({
    codes: Uint32Array.from(coded, (one) => (one === null ? 0 : places.get(one)!)),
    numbers,
    texts: new Uint8Array(0),
    ends: new Uint32Array(0),
    instants: new Float64Array(0),
    textCount: 0,
  });
  column.later.push(...values.slice(codedRows));
  return column;
}

const orders: Readonly<Record<string, (row: number, random: number, of: number) => number | null>> = {
  'of chance': (_row, random) => Math.floor(random * 1e6),
  ascending: (row) => row,
  descending: (row, _random, of) => of - row,
  'few values': (_row, random) => Math.floor(random * 3),
  'of which many are missing': (row, random) => (row % 3 ? Math.floor(random * 100) : null),
  'the least where the sample looks': (row) => (row % 64 === 0 ? row : row + 1e6),
};

test('a row that is asked for before its value has come has its place afterwards', () => {
  const column = columnOf([1, 3], 2);
  expect(column.placeOf(2)).toBe(0);
  column.later.push(2);
  expect(column.placeOf(2)).toBe(1.5);
});

test.each(Object.keys(orders))('rows in an order %s', async (name) => {
  const random = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 30_000 }),
      fc.array(random, { minLength: 50, maxLength: 50 }),
      fc.oneof(fc.nat(200), fc.nat(35_000)),
      fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 10_000 })),
      fc.constantFrom(1 as const, -1 as const),
      random,
      async (size, randoms, offset, limit, sign, share) => {
        const values = Array.from({ length: size }, (_, row) => orders[name]!(row, randoms[row % 50]!, size));
        const column = columnOf(values, Math.floor(size * (share < 0.5 ? 1 : share)));
        const byValue = column.order(sign);
        // Ties by row.
        const order: RowOrder = { ...byValue, compare: (a, b) => byValue.compare(a, b) || a - b };
        const rows = Uint32Array.from({ length: size }, (_, row) => row).filter((row) => (row * 7) % 11 !== 0);
        const expected = Array.from(rows)
          .sort((a, b) => {
            const [x, y] = [values[a] ?? null, values[b] ?? null];
            if (x === null || y === null) return Number(x === null) - Number(y === null) || a - b;
            return sign * (x - y) || a - b;
          })
          .slice(offset, offset + limit);
        const page = await new Slices().run('the test', (slice) => selectPage(rows, order, offset, limit, slice));
        expect(page).toEqual(expected);
      },
    ),
    { numRuns: 25 },
  );
});
