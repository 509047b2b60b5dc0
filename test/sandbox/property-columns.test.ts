// @module-tag all
/** Spec 4.2: what a filter and a sort find is the same with columns, with what was kept of them in files, and item by item. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import type { SearchRequest } from '../../src/contract/index.ts';
import { openSandboxDatabase, type SandboxDatabase } from '../../src/sandbox/database.ts';
import { ArrayFiles } from '../../src/sandbox/stac/array-files.ts';
import { Slices } from '../../src/sandbox/slices.ts';
import { Catalog } from '../../src/sandbox/stac/catalog.ts';
import { compareValues } from '../../src/sandbox/stac/compare-values.ts';
import { holdsFor, parseFilter } from '../../src/sandbox/stac/cql2.ts';
import { ItemIndex } from '../../src/sandbox/stac/item-index.ts';
import type { NewItem } from '../../src/sandbox/stac/items.ts';
import { CodeColumn, PropertyColumn } from '../../src/sandbox/stac/property-column.ts';
import { readColumn, readColumnsOfFewValues } from '../../src/sandbox/stac/read-column.ts';
import { search } from '../../src/sandbox/stac/search.ts';
import { warmUp } from '../../src/sandbox/stac/warm-up.ts';

const folders: string[] = [];
const open: { catalog: Catalog; database: SandboxDatabase }[] = [];
const close = async () => {
  for (const { catalog, database } of open.splice(0)) {
    await catalog.close();
    database.close();
  }
};
afterEach(close);
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'marketplace-app-kit-test-'));
  folders.push(folder);
  return folder;
}

function catalogIn(folder: string): { catalog: Catalog; database: SandboxDatabase } {
  const database = openSandboxDatabase(folder);
  const catalog = new Catalog(database, join(folder, 'index'), { slices: new Slices({ deadlineMs: 600_000 }) });
  if (!catalog.collections.find('a')) {
    catalog.collections.putCatalog({ id: 'root', parentId: null, title: 'root', description: 'root' });
    catalog.collections.put({
      ...{ id: 'a', catalogId: 'root', title: 'a', description: 'a', license: 'proprietary', keywords: [] },
      createdAtMs: 0,
    });
  }
  open.push({ catalog, database });
  return { catalog, database };
}

function newItem(id: string, properties: Readonly<Record<string, unknown>>, [x, y] = [0, 0]): NewItem {
  const ring = [
    [x, y],
    [x + 1, y + 0.5],
    [x + 0.5, y + 1],
    [x, y],
  ];
  return {
    ...{ id, collectionId: 'a', title: id, datetimeMs: id.length * 86_400_000, properties },
    footprint: { type: 'Polygon', coordinates: [ring] },
    source: { kind: 'none' },
  };
}

const text = fc.oneof(
  fc.constantFrom(
    '',
    'a',
    'b',
    'aa',
    'true',
    '2024-01-01T00:00:00Z',
    '2024-01-01T01:00:00+01:00',
    '5',
    '\u{1f6f0}',
    '\uffee',
  ),
  fc.string({ maxLength: 3 }).filter((one) => !one.includes('\0')),
);
const number = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom(0.1, -0.5, 1e300, 2 ** 60));
const value = fc.oneof(
  text,
  number,
  fc.boolean(),
  fc.constant(null),
  fc.constantFrom([1, 'x'], { k: 1 }, [], { k: null }),
);
const literal = fc.oneof(text, number, fc.boolean(), fc.constant({ timestamp: '2024-01-01T00:00:00Z' }));
const x = { property: 'x' };
const condition = fc.oneof(
  fc
    .tuple(fc.constantFrom('=', '<>', '<', '<=', '>', '>='), literal, fc.boolean())
    .map(([op, one, turned]) => ({ op, args: turned ? [one, x] : [x, one] })),
  fc.tuple(literal, literal).map(([low, high]) => ({ op: 'between', args: [x, low, high] })),
  fc.array(fc.oneof(literal, fc.constant(x)), { maxLength: 12 }).map((list) => ({ op: 'in', args: [x, list] })),
  text.map((pattern) => ({ op: 'like', args: [x, `${pattern}%`] })),
  fc.constant({ op: 'isNull', args: [x] }),
  fc.constant({ op: 't_intersects', args: [x, { interval: ['2023-01-01', '2025-01-01'] }] }),
);
const geometry = { property: 'geometry' };
const { filter } = fc.letrec<{ filter: unknown }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    condition,
    fc.constant({ op: 's_intersects', args: [geometry, { bbox: [0, 0, 1, 1] }] }),
    fc.constant({ op: '=', args: [x, x] }),
    fc.tuple(fc.constantFrom('and', 'or'), fc.array(tie('filter'), { minLength: 2, maxLength: 4 })).map(
      ([op, args]) => ({ op, args }), // prettier-ignore
    ),
    tie('filter').map((one) => ({ op: 'not', args: [one] })),
  ),
}));

test('codes are in the order of values, and a condition says of a row what it says of its value', async () => {
  const { catalog, database } = catalogIn(newFolder());
  await fc.assert(
    fc.asyncProperty(
      fc.array(value, { minLength: 1, maxLength: 40 }),
      fc.array(filter, { minLength: 5 }),
      async (values, filters) => {
        database.exec('delete from items');
        // Every other one lies elsewhere.
        const placeOf = (i: number) => (i % 2 ? 20 : 0);
        const put = (one: unknown, i: number) =>
          catalog.items.put(newItem(`i${i}`, one === null ? {} : { x: one }, [placeOf(i), placeOf(i)]));
        // Half of them have codes, and the others came since.
        const coded = values.length >> 1;
        values.slice(0, coded).forEach(put);
        catalog.reload();
        const lastCoded = Number(database.prepare('select max(number) from items').pluck().get());
        await search(catalog, { filter: { op: '=', args: [x, 1] } });
        values.slice(coded).forEach((one, i) => put(one, i + coded));
        catalog.refresh();
        const last = Number(database.prepare('select max(number) from items').pluck().get());
        const columns = [
          readColumn(database, 'x', last),
          readColumnsOfFewValues(database, ['x', 'y'], last)[0]!,
          readColumn(database, 'x', lastCoded),
        ].map((data) => new PropertyColumn(data));
        columns[2]!.later.push(...values.slice(coded));
        for (const column of columns) {
          expect(values.map((_, row) => column.valueOf(row))).toEqual(values.map((one) => one));
          for (const sign of [1, -1] as const) {
            const { compare, keys } = column.order(sign);
            const key = new Float64Array(values.length);
            keys([...values.keys()], 0, values.length, key);
            for (const a of values.keys())
              for (const b of values.keys()) {
                const order = compareValues(values[a], values[b], sign);
                expect(Math.sign(compare(a, b)) || 0).toBe(Math.sign(order) || 0);
                if (order < 0) expect(key[a]).toBeLessThanOrEqual(key[b]!);
              }
          }
        }
        for (const json of filters) {
          const { filter: read } = parseFilter(json);
          const subject = (one: unknown, at: number) => ({
            property: () => one,
            box: () => [at, at, at + 1, at + 1] as const,
            footprint: () => ({ type: 'Point' as const, coordinates: [at, at] }),
          });
          const expected = values.flatMap((one, i) =>
            holdsFor(read, subject(one, placeOf(i))) === true ? [`i${i}`] : [],
          );
          const { items, numberMatched } = await search(catalog, { filter: json, limit: 100 });
          expect(items.map(({ id }) => id).sort(), JSON.stringify(json)).toEqual(expected.sort());
          expect(numberMatched).toBe(expected.length);
        }
      },
    ),
    { numRuns: 150 },
  );
});

const many = 21_000;

test('a large catalog is kept in files: found the same by the next start, with what came since, and void after a change', async () => {
  const folder = newFolder();
  const first = catalogIn(folder);
  const properties = (i: number) => ({
    x: i % 7 ? (i * 7919) % 1_500 : `t${i % 11}`,
    name: `n${(i * 31) % many}`,
    few: i % 3,
    ...(i % 2 && { half: (i * 13) % 900 }),
  });
  first.catalog.items.inTransaction(() => {
    for (let i = 0; i < many; i++)
      first.catalog.items.put(newItem(`i${i}`, properties(i), [(i % 300) - 150, (i % 140) - 70]));
  });
  first.catalog.reload();
  const requests = [
    { bbox: [10, 10, 30, 20], sortby: [{ field: 'name', direction: 'asc' }], limit: 50 },
    {
      filter: { op: '<', args: [x, 40] },
      sortby: [
        { field: 'few', direction: 'desc' },
        { field: 'x', direction: 'asc' },
      ],
      limit: 50,
    },
    { filter: { op: 'like', args: [{ property: 'name' }, 'n1%'] }, limit: 50 },
    {
      filter: {
        op: 'or',
        args: [
          { op: 'not', args: [{ op: '<', args: [x, 900] }] },
          {
            op: 'and',
            args: [
              { op: '=', args: [{ property: 'few' }, 1] },
              { op: 'like', args: [{ property: 'name' }, 'n2%'] },
            ],
          },
        ],
      },
      limit: 50,
    },
    { bbox: [-180, -90, 180, 90], sortby: [{ field: 'x', direction: 'desc' }], limit: 50, offset: 3_000 },
    { sortby: [{ field: 'half', direction: 'desc' }], limit: 50, offset: many / 2 - 25 },
  ] as unknown as SearchRequest[];
  const answers = async ({ catalog }: { catalog: Catalog }) =>
    Promise.all(
      requests.map(async (request) => {
        const { numberMatched, items } = await search(catalog, request);
        return { numberMatched, ids: items.map(({ id }) => id) };
      }),
    );
  const before = await answers(first);
  // Blocks of rows, each item by itself: the same.
  for (const [i, { filter: json, bbox }] of requests.entries()) {
    if (json === undefined || bbox) continue;
    const { filter: read } = parseFilter(json);
    const isFound = (of: number) =>
      holdsFor(read, {
        property: (name) => (properties(of) as Readonly<Record<string, unknown>>)[name],
        box: () => [0, 0, 1, 1],
        footprint: () => ({ type: 'Point', coordinates: [0, 0] }),
      }) === true;
    expect(before[i]?.numberMatched).toBe(Array.from({ length: many }, (_, of) => of).filter(isFound).length);
  }
  expect(before.every(({ numberMatched, ids }) => numberMatched > 50 && ids.length === 50)).toBe(true);
  await first.catalog.prepare();
  // What no item has is no order: the file of that property says so too.
  const byNothing = { sortby: [{ field: 'nothing', direction: 'asc' }], limit: 1 } as unknown as SearchRequest;
  await expect(search(first.catalog, byNothing)).rejects.toMatchObject({ status: 400 });
  await close();
  const kept = readdirSync(join(folder, 'index', 'properties'));
  expect(kept).toHaveLength(6);

  const [reload, load] = [vi.spyOn(ItemIndex.prototype, 'reload'), vi.spyOn(ArrayFiles.prototype, 'load')];
  const second = catalogIn(folder);
  const sortableOfNames = () =>
    second.catalog.slices.run('a sort', (slice) => second.catalog.columns.getSortable('name', slice));
  const slices = vi.spyOn(second.catalog.slices, 'run');
  await warmUp(second.catalog);
  expect(slices).toHaveBeenCalledTimes(2);
  // That opens no column; and to sort by one only its codes are read.
  expect(await sortableOfNames()).toBeInstanceOf(CodeColumn);
  expect(await answers({ catalog: second.catalog })).toEqual(before);
  expect(await sortableOfNames()).toBeInstanceOf(PropertyColumn);
  // What the files have is what it answers by.
  expect(reload).not.toHaveBeenCalled();
  const loads = Object.groupBy(load.mock.calls, ([name]) => name);
  expect(Object.keys(loads)).toHaveLength(5);
  // Codes, and then all of it.
  for (const calls of Object.values(loads)) expect(calls?.length).toBeLessThanOrEqual(2);
  expect(load.mock.results.filter(({ value }) => value === null)).toEqual([]);
  vi.restoreAllMocks();
  await expect(search(second.catalog, byNothing)).rejects.toMatchObject({ status: 400 });
  // Two come, which the files do not know.
  second.catalog.items.put(newItem('later', { x: -1, name: 'n', few: 5 }, [15, 15]));
  second.catalog.items.put(newItem('latest', { x: '\u{1f6f0}' }, [15, 15]));
  second.catalog.refresh();
  await expect(search(second.catalog, byNothing)).rejects.toMatchObject({ status: 400 });
  const [byName, small, , , byX] = await answers(second);
  expect([byName?.ids[0], small?.ids[0], byX?.numberMatched]).toEqual(['later', 'later', many + 2]);
  await close();
  const third = catalogIn(folder);
  // Those that the files do not know have values, and no codes.
  expect(
    await third.catalog.slices.run('a sort', (slice) => third.catalog.columns.getSortable('name', slice)),
  ).toBeInstanceOf(PropertyColumn);
  expect((await answers(third))[0]).toEqual(byName);

  // One is replaced: nothing of the files holds.
  third.catalog.items.put(newItem('i5', { x: -2, name: 'm', few: 6 }, [15, 15]));
  third.catalog.refresh();
  expect((await answers(third))[1]?.ids.slice(0, 2)).toEqual(['i5', 'later']);
  // A file that is damaged is none: it ends early, or says of itself what cannot be.
  const right = await answers(third);
  const damages = [
    (path: string) => truncateSync(path, 1_000),
    (path: string) => writeFileSync(path, readFileSync(path, 'latin1').replace(/(?<="type":")\w/g, '?'), 'latin1'),
  ];
  for (const damage of damages) {
    const whole = catalogIn(folder);
    await whole.catalog.prepare();
    await close();
    const properties = readdirSync(join(folder, 'index', 'properties'));
    expect(properties).toHaveLength(5);
    for (const one of ['items.bin', ...properties.map((name) => join('properties', name))])
      damage(join(folder, 'index', one));
    expect(await answers(catalogIn(folder))).toEqual(right);
    await close();
  }
});
