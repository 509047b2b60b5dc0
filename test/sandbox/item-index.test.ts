/** Spec 4.2: the index tells of every footprint what the database has, from memory and from its file. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { boxOf, footprintOfBox, type Box, type Footprint } from '../../src/raster/footprint.ts';
import { openSandboxDatabase } from '../../src/sandbox/database.ts';
import { Catalog } from '../../src/sandbox/stac/catalog.ts';
import { ItemIndex } from '../../src/sandbox/stac/item-index.ts';

const folder = mkdtempSync(join(tmpdir(), 'marketplace-app-kit-test-'));
const database = openSandboxDatabase(folder);
const { items, collections } = new Catalog(database, join(folder, 'catalog'));
afterEach(() => void vi.restoreAllMocks());
afterAll(() => {
  database.close();
  rmSync(folder, { recursive: true, force: true });
});

const square = (x: number, y: number, side: number) => [
  [x, y],
  [x + side, y],
  [x + side, y + side],
  [x, y + side],
  [x, y],
];
const footprints: Readonly<Record<string, Footprint>> = {
  box: footprintOfBox([1, 2, 3, 4]),
  point: footprintOfBox([5, 5, 5, 5]),
  diamond: {
    type: 'Polygon',
    coordinates: [
      [
        [20, 0],
        [25, 5],
        [20, 10],
        [15, 5],
        [20, 0],
      ],
    ],
  },
  hole: { type: 'Polygon', coordinates: [square(40, 0, 10), square(42, 2, 6)] },
  parts: { type: 'MultiPolygon', coordinates: [[square(60, 0, 1)], [square(70, 5, 2)]] },
  across: { type: 'MultiPolygon', coordinates: [[square(178, -1, 2)], [square(-180, -1, 2)]] },
  acrossFiji: footprintOfBox([177, -20, -178, -15]),
};

function put(id: string, footprint: Footprint): void {
  items.put({
    ...{ id, collectionId: 'a', title: id, datetimeMs: 0, properties: {}, source: { kind: 'none' } },
    footprint,
  });
}

/** In a footprint, in its hole, beside it in its box, and around them. */
const boxes: readonly Box[] = [
  [1.5, 2.5, 2, 3],
  [5, 5, 5, 5],
  [19, 4, 21, 6],
  [15, 0, 16.9, 1.9],
  [43, 3, 44, 4],
  [41, 1, 44, 4],
  [71, 6, 72, 7],
  [61.5, 0, 69, 4],
  [179, 0, 179.5, 0.5],
  [-179.5, 0, -179, 0.5],
  [178, -19, -179, -16],
  [-100, -50, 170, 50],
];

function told(index: ItemIndex, names: readonly string[]) {
  const all = { collections: null, interval: null };
  return {
    boxes: names.map((_, row) => index.boxOf(row)),
    polygons: names.map((_, row) => index.polygonOf(row)),
    found: boxes.map((box) => [...index.search({ ...all, box })].map((row) => names[row]).sort()),
  };
}

test('boxes, outlines and what is found are the same in memory, behind the tree and from the file', async () => {
  collections.putCatalog({ id: 'root', parentId: null, title: 'root', description: 'root' });
  collections.put({
    ...{ id: 'a', catalogId: 'root', title: 'a', description: 'a', license: 'proprietary', keywords: [] },
    createdAtMs: 0,
  });
  const names = Object.keys(footprints);
  const behindTheTree = new ItemIndex(items, join(folder, 'none'));
  for (const [name, footprint] of Object.entries(footprints)) put(name, footprint);
  behindTheTree.refresh();
  const index = new ItemIndex(items, join(folder, 'index'));
  const expected = {
    boxes: Object.values(footprints).map(boxOf),
    // Holes and parts are the database's to tell.
    polygons: names.map((name) => (['hole', 'parts', 'across', 'acrossFiji'].includes(name) ? null : footprints[name])),
    found: [
      ['box'],
      ['point'],
      ['diamond'],
      [],
      [],
      ['hole'],
      ['parts'],
      [],
      ['across'],
      ['across'],
      ['acrossFiji'],
      ['box', 'diamond', 'hole', 'parts', 'point'],
    ],
  };
  expect(told(index, names)).toEqual(expected);
  expect(told(behindTheTree, names)).toEqual(expected);

  await index.save();
  const reload = vi.spyOn(ItemIndex.prototype, 'reload');
  const kept = new ItemIndex(items, join(folder, 'index'));
  expect(reload).not.toHaveBeenCalled();
  expect(told(kept, names)).toEqual(expected);
  // One more, which the file does not know.
  put('later', footprintOfBox([177, 50, -178, 60]));
  kept.refresh();
  expect(told(kept, [...names, 'later']).boxes).toEqual([...expected.boxes, [177, 50, -178, 60]]);
});

test('a file of another layout is made anew, once', async () => {
  const folderOfIt = join(folder, 'layout');
  const made = new ItemIndex(items, folderOfIt);
  await made.save();
  const file = join(folderOfIt, 'items.bin');
  const bytes = readFileSync(file, 'latin1');
  expect(bytes).toContain('"layout":2,');
  writeFileSync(file, bytes.replace('"layout":2,', '"layout":1,'), 'latin1');
  const reload = vi.spyOn(ItemIndex.prototype, 'reload');
  const next = new ItemIndex(items, folderOfIt);
  expect(reload).toHaveBeenCalledTimes(1);
  await next.save();
  new ItemIndex(items, folderOfIt);
  expect(reload).toHaveBeenCalledTimes(1);
});

test('rows that were given back are used again by the next search of everything, and by no other', () => {
  const index = new ItemIndex(items, join(folder, 'none'));
  const everything = { box: null, collections: null, interval: null };
  const [first, second] = [index.search(everything), index.search(everything)] as Uint32Array[];
  expect(first!.buffer).not.toBe(second!.buffer);
  expect([...first!]).toEqual([...second!]);
  index.giveBack(first!);
  const third = index.search(everything) as Uint32Array;
  expect(third.buffer).toBe(first!.buffer);
  expect((index.search(everything) as Uint32Array).buffer).not.toBe(first!.buffer);
  expect([...third]).toEqual([...second!]);
  // The catalog has grown: there is no room in what is given back.
  index.giveBack(third);
  put('one more', footprintOfBox([0, 0, 1, 1]));
  index.refresh();
  expect(index.search(everything)).toHaveLength(index.size);
});
