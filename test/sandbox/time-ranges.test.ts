// @module-tag all
/** A search finds an item with a time range at every time in the range (STAC `start_datetime` and `end_datetime`). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSandboxDatabase, type SandboxDatabase } from '../../src/sandbox/database.ts';
import { Catalog } from '../../src/sandbox/stac/catalog.ts';
import { search } from '../../src/sandbox/stac/search.ts';
import { testFolder } from '../support/folders.ts';

const day = (text: string) => Date.parse(`${text}T00:00:00Z`);
let database: SandboxDatabase;
let catalog: Catalog;

beforeAll(async () => {
  database = openSandboxDatabase(await testFolder());
  catalog = new Catalog(database);
  catalog.collections.putCatalog({ id: 'root', parentId: null, title: 'root', description: 'root' });
  catalog.collections.put({
    ...{ id: 'a', catalogId: 'root', title: 'a', description: 'a', license: 'proprietary', keywords: [] },
    createdAtMs: 0,
  });
  const put = (id: string, at: string, range: Record<string, string> = {}) =>
    catalog.items.put({
      ...{ id, collectionId: 'a', title: id, datetimeMs: day(at), source: { kind: 'none' }, properties: range },
      footprint: { type: 'Polygon', coordinates: [[[0, 0], [1, 0], [1, 1], [0, 0]]] }, // oxfmt-ignore
    });
  put('moment', '2020-05-01');
  put('after', '2020-03-01', { start_datetime: '2020-03-01T00:00:00Z', end_datetime: '2020-06-01T00:00:00Z' });
  put('around', '2020-08-01', { start_datetime: '2020-07-01T00:00:00Z', end_datetime: '2020-09-01T00:00:00Z' });
});
afterAll(async () => {
  await catalog.close();
  database.close();
});

test.each([
  ['2020-05-01', '2020-05-01', ['after', 'moment']],
  ['2020-05-02', '2020-05-30', ['after']],
  ['2020-06-02', '2020-06-30', []],
  ['2020-07-02', '2020-07-03', ['around']],
  ['2020-08-30', '2020-12-01', ['around']],
  ['2020-09-02', '2020-12-01', []],
  ['2020-01-01', '2020-12-01', ['after', 'around', 'moment']],
])('from %s to %s', async (from, to, expected) => {
  const datetime = { startMs: day(from), endMs: day(to) };
  const ids = async (bbox?: [number, number, number, number]) =>
    (await search(catalog, { datetime, ...(bbox && { bbox }) })).items.map(({ id }) => id).toSorted();
  expect(await ids()).toEqual(expected);
  expect(await ids([0, 0, 2, 2])).toEqual(expected);
});

test('the interval of a collection holds the ranges', () => {
  expect(catalog.items.extents().get('a')!.interval).toEqual({ startMs: day('2020-03-01'), endMs: day('2020-09-01') });
});
