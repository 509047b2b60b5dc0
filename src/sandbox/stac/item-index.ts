import { isDeepStrictEqual } from 'node:util';
import type { Polygon } from 'geojson';
import type { Interval } from '../../contract/index.ts';
import { footprintOfBox, type Box } from '../../raster/footprint.ts';
import { ArrayFiles } from './array-files.ts';
import type { IndexedItem, Items } from './items.ts';
import { outlineMeetsBox, polygonOf } from './outline.ts';
import { SpatialTree, type Accepts } from './spatial-tree.ts';

/** What the index can decide by itself; null leaves all. */
export interface IndexQuery {
  /** West may be greater than east. */
  readonly box: Box | null;
  readonly collections: readonly string[] | null;
  readonly interval: Interval | null;
}

/** Of the index. */
export type Rows = Uint32Array | readonly number[];

/** Rows that came after the tree was built are scanned; so many, and it is built anew. */
const maxTail = 5_000;
/** Positions of an outline, about: of rows that come later. */
const tailPositions = 5;
/** A footprint that is its box has these in the place of an outline: fewer than any ring has. */
const boxNumbers = 4;

/** Of the columns in a file: one of another layout is made anew. */
const layout = 2;

/** Which items a file is of. */
interface IndexKey {
  readonly layout: typeof layout;
  readonly rewrites: number;
  readonly size: number;
  readonly lastNumber: number;
  /** Tells a database that was put back from another time. */
  readonly lastId: string | null;
  readonly collectionIds: readonly string[];
}

const fileName = 'items';

/**
 * Items in memory, beside the database: columns of collection, time and footprint by row, and a tree of
 * their boxes (flatbush). The database stays the truth. A row is the place of an item in the order of its
 * number; new items come last. A file keeps them for the next start, and is void once an item was replaced or removed.
 */
export class ItemIndex {
  #items: Items;
  #files: ArrayFiles<IndexKey>;
  #size = 0;
  #numbers = new Float64Array(0);
  #datetimesMs = new Float64Array(0);
  #collections = new Uint16Array(0);
  /** Where a row's outline begins in `#coordinates`, or the box that it is; it ends where the next begins. */
  #outlineAt = new Uint32Array(1);
  #coordinates = new Float64Array(0);
  /** Boxes that are not the bounds of their outlines: across the antimeridian. */
  #otherBoxes = new Map<number, Box>();
  #collectionIds: string[] = [];
  #tree: SpatialTree | null = null;
  #treeRows = 0;
  /** West, south, east, north of the rows behind the tree. */
  #tail: Box[] = [];
  #idRanks = new Float64Array(0);
  /** Room for every row, when no search has it. */
  #spare = new Uint32Array(0);
  /** As the database counts them (`Items.rewrites`), when it was read. */
  rewrites = 0;
  /** Grows with every change. */
  version = 0;
  /** Grows when rows are numbered anew. */
  generation = 0;

  /** `folder`: of its file. */
  constructor(items: Items, folder: string) {
    this.#items = items;
    this.#files = new ArrayFiles(folder);
    if (!this.#open()) this.reload();
  }

  get size(): number {
    return this.#size;
  }

  /** Reads everything anew. */
  reload(): void {
    this.#spare = new Uint32Array(0);
    const count = this.#items.count();
    const room = count + maxTail;
    this.rewrites = this.#items.rewrites();
    this.#size = 0;
    this.#collectionIds = [];
    this.#numbers = new Float64Array(room);
    this.#datetimesMs = new Float64Array(room);
    this.#collections = new Uint16Array(room);
    this.#outlineAt = new Uint32Array(room + 1);
    this.#coordinates = new Float64Array(room * tailPositions * 2);
    this.#otherBoxes = new Map();
    const boxes = new Float64Array(count * 4);
    for (const item of this.#items.indexed(0)) {
      boxes.set(searchBox(item.box), this.#size * 4);
      this.#push(item);
    }
    const used = this.#outlineAt[this.#size] as number;
    // Most are boxes, or more than was thought.
    if (used < this.#coordinates.length / 2)
      this.#coordinates = this.#coordinates.slice(0, used + maxTail * tailPositions * 2);
    this.#tree = count > 0 ? SpatialTree.of(boxes, this.#datetimesMs, this.#collections) : null;
    this.#treeRows = this.#size;
    this.#tail = [];
    this.#idRanks = new Float64Array(room);
    let rank = 0;
    for (const number of this.#items.numbersById()) this.#idRanks[this.rowOf(number)] = rank++;
    this.version += 1;
    this.generation += 1;
  }

  /** Takes in the items that were put since. */
  refresh(): void {
    if (this.#tail.length > maxTail || this.rewrites !== this.#items.rewrites()) return this.reload();
    const before = this.#size;
    for (const item of this.#items.indexed(this.#numbers[this.#size - 1] ?? 0)) {
      this.#push(item);
      this.#tail.push(searchBox(item.box));
      const rank = this.#rankOfNew(item);
      if (rank === null || this.#tail.length > maxTail) return this.reload();
      this.#idRanks = grown(this.#idRanks, this.#size);
      this.#idRanks[this.#size - 1] = rank;
    }
    if (this.#size > before) this.version += 1;
  }

  /** Keeps it in its file, for the next start: as it was when it was read last. */
  async save(): Promise<void> {
    const size = this.#treeRows;
    const lastNumber = this.numberOf(size - 1);
    const lastId = this.#items.idOf(lastNumber);
    const key = {
      layout,
      rewrites: this.rewrites,
      size,
      lastNumber,
      lastId,
      collectionIds: this.#collectionIds,
    } as const;
    const isKept = (kept: IndexKey) => isDeepStrictEqual(kept, key);
    if (!this.#tree || this.#files.load(fileName, isKept, () => true)) return;
    await this.#files.save(fileName, key, {
      numbers: this.#numbers.subarray(0, size),
      datetimesMs: this.#datetimesMs.subarray(0, size),
      collections: this.#collections.subarray(0, size),
      outlineAt: this.#outlineAt.subarray(0, size + 1),
      coordinates: this.#coordinates.subarray(0, this.#outlineAt[size]),
      otherBoxes: Float64Array.from([...this.#otherBoxes].filter(([row]) => row < size).flat(2)),
      idRanks: this.#idRanks.subarray(0, size),
      ...this.#tree.kept,
    });
  }

  /** False where there is no file of the items that there are. */
  #open(): boolean {
    const rewrites = this.#items.rewrites();
    const isOpen = this.#files.load(
      fileName,
      (key) => key.layout === layout && key.rewrites === rewrites && this.#items.idOf(key.lastNumber) === key.lastId,
      (arrays, { size, collectionIds }) => {
        const numbers = (name: string, perRow = 1) => arrays.take(name, ['Float64Array'], maxTail * perRow);
        this.#numbers = numbers('numbers');
        this.#datetimesMs = numbers('datetimesMs');
        this.#collections = arrays.take('collections', ['Uint16Array'], maxTail);
        this.#outlineAt = arrays.take('outlineAt', ['Uint32Array'], maxTail);
        this.#coordinates = numbers('coordinates', tailPositions * 2);
        this.#otherBoxes = new Map();
        const others = arrays.take('otherBoxes', ['Float64Array']);
        for (let i = 0; i < others.length; i += 1 + boxNumbers) {
          const [row = 0, ...box] = others.subarray(i, i + 1 + boxNumbers);
          this.#otherBoxes.set(row, box as unknown as Box);
        }
        this.#idRanks = numbers('idRanks');
        const kept = { rows: arrays.take('rows', ['Uint32Array']), tree: arrays.take('tree', ['Uint8Array']) };
        this.#tree = SpatialTree.from(kept, this.#datetimesMs, this.#collections);
        this.#collectionIds = [...collectionIds];
        this.#size = this.#treeRows = size;
        return true;
      },
    );
    if (!isOpen) return false;
    this.rewrites = rewrites;
    this.version += 1;
    this.generation += 1;
    this.refresh();
    return true;
  }

  numberOf(row: number): number {
    return this.#numbers[row] as number;
  }

  /** -1 where there is no such item. */
  rowOf(number: number): number {
    let [low, high] = [0, this.#size - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = this.#numbers[middle] as number;
      if (found === number) return middle;
      if (found < number) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  datetimeMsOf(row: number): number {
    return this.#datetimesMs[row] as number;
  }

  collectionOf(row: number): string {
    return this.#collectionIds[this.#collections[row] as number] as string;
  }

  /** Place of a row in the order of ids. */
  idRankOf(row: number): number {
    return this.#idRanks[row] as number;
  }

  /** Box of the footprint; west greater than east across the antimeridian. */
  boxOf(row: number): Box {
    return this.#otherBoxes.get(row) ?? this.#boundsOf(row);
  }

  /** Bounds of the row's coordinates; of a footprint that is its box, that box. */
  #boundsOf(row: number): Box {
    const coordinates = this.#coordinates;
    let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = this.#outlineAt[row] as number; i < (this.#outlineAt[row + 1] as number); i += 2) {
      const [x, y] = [coordinates[i] as number, coordinates[i + 1] as number];
      // The gap between two rings is NaN: no comparison holds.
      if (x < west) west = x;
      if (x > east) east = x;
      if (y < south) south = y;
      if (y > north) north = y;
    }
    return [west, south, east, north];
  }

  /** The footprint where memory tells it: one ring. */
  polygonOf(row: number): Polygon | null {
    const [from = 0, to = 0] = [this.#outlineAt[row], this.#outlineAt[row + 1]];
    return to - from === boxNumbers
      ? (footprintOfBox(this.boxOf(row)) as Polygon)
      : polygonOf(this.#coordinates.subarray(from, to));
  }

  /** Rows that fulfil the query, in no order. Whoever is done with them gives them back. */
  search({ box, collections, interval }: IndexQuery): Rows {
    const wanted = collections && this.#maskOf(collections);
    const { startMs, endMs } = interval ?? { startMs: -Infinity, endMs: Infinity };
    if (wanted?.every((one) => one === 0)) return new Uint32Array(0);
    if (box === null || this.#isWithin(box)) return this.#all(startMs, endMs, wanted);
    const accepts = (atMs: number, collection: number) =>
      atMs >= startMs && atMs <= endMs && (wanted === null || wanted[collection] === 1);
    return this.#inBoxes(splitBox(box), accepts);
  }

  /** Takes back what `search` gave, for the next one that looks at every item: an array of megabytes for each of them stays in memory until it is swept. */
  giveBack(rows: Rows): void {
    if (rows instanceof Uint32Array && rows.buffer.byteLength > this.#spare.byteLength)
      this.#spare = new Uint32Array(rows.buffer as ArrayBuffer);
  }

  /** Extent of a collection: null where it has no item. West to east always, over the whole globe where items cross the antimeridian. */
  extents(): ReadonlyMap<string, { box: Box; interval: Interval }> {
    const extents = new Map<string, { box: Box; interval: Interval }>();
    for (const { collectionId, west, south, east, north, startMs, endMs } of this.#items.extents()) {
      extents.set(collectionId, { box: [west, south, east, north], interval: { startMs, endMs } });
    }
    return extents;
  }

  #push(item: IndexedItem): void {
    const row = this.#size;
    this.#size += 1;
    this.#numbers = grown(this.#numbers, this.#size);
    this.#datetimesMs = grown(this.#datetimesMs, this.#size);
    this.#collections = grown(this.#collections, this.#size);
    this.#outlineAt = grown(this.#outlineAt, this.#size + 1);
    this.#numbers[row] = item.number;
    this.#datetimesMs[row] = item.datetimeMs;
    let collection = this.#collectionIds.lastIndexOf(item.collectionId);
    if (collection < 0) collection = this.#collectionIds.push(item.collectionId) - 1;
    this.#collections[row] = collection;
    const from = this.#outlineAt[row] as number;
    const length = item.outline ? item.outline.length / Float64Array.BYTES_PER_ELEMENT : boxNumbers;
    this.#outlineAt[row + 1] = from + length;
    this.#coordinates = grown(this.#coordinates, from + length);
    if (item.outline)
      item.outline.copy(new Uint8Array(this.#coordinates.buffer), from * Float64Array.BYTES_PER_ELEMENT);
    else this.#coordinates.set(item.box, from);
    if (this.#boundsOf(row).some((bound, i) => bound !== item.box[i])) this.#otherBoxes.set(row, item.box);
  }

  /** A rank between its neighbours'; null where there is no room between them. */
  #rankOfNew(item: IndexedItem): number | null {
    const { before, after } = this.#items.neighboursById(item.number);
    // A neighbour that is not here yet has no rank: NaN, which is between nothing.
    const rank = (number: number | null, edge: number) =>
      number === null ? edge : (this.#idRanks[this.rowOf(number)] ?? NaN);
    const low = rank(before, -1);
    const high = rank(after, Math.max(this.#size, low) + 2);
    const middle = (low + high) / 2;
    return middle > low && middle < high ? middle : null;
  }

  #maskOf(collections: readonly string[]): Uint8Array {
    const wanted = new Set(collections);
    return Uint8Array.from(this.#collectionIds, (id) => (wanted.has(id) ? 1 : 0));
  }

  /** A box that holds everything need not be looked for in the tree. */
  #isWithin([west, south, east, north]: Box): boolean {
    return (
      (this.#tree?.isWithin([west, south, east, north]) ?? true) &&
      this.#tail.every(([x0, y0, x1, y1]) => west <= x0 && south <= y0 && east >= x1 && north >= y1)
    );
  }

  #all(startMs: number, endMs: number, wanted: Uint8Array | null): Rows {
    const [size, datetimesMs, collections] = [this.#size, this.#datetimesMs, this.#collections];
    const rows = this.#roomForAll();
    let count = 0;
    for (let row = 0; row < size; row++) {
      const atMs = datetimesMs[row] as number;
      const isFound = atMs >= startMs && atMs <= endMs && (wanted === null || wanted[collections[row] as number] === 1);
      // Written over where it is not: processors guess badly which rows are.
      rows[count] = row;
      count += isFound ? 1 : 0;
    }
    return rows.subarray(0, count);
  }

  #roomForAll(): Uint32Array {
    const spare = this.#spare;
    this.#spare = new Uint32Array(0);
    return spare.length >= this.#size ? spare : new Uint32Array(this.#size);
  }

  #inBoxes(boxes: readonly Box[], accepts: Accepts): Rows {
    const [first = [], second] = boxes.map((box) => this.#inBox(box, accepts));
    return second === undefined ? first : [...new Set([...first, ...second])];
  }

  #inBox([west, south, east, north]: Box, accepts: Accepts): Rows {
    const outlineAt = this.#outlineAt;
    const meets = (row: number, x0: number, y0: number, x1: number, y1: number) => {
      if (x0 >= west && x1 <= east && y0 >= south && y1 <= north) return true;
      const from = outlineAt[row] as number;
      const to = outlineAt[row + 1] as number;
      return to - from === boxNumbers || outlineMeetsBox(this.#coordinates, from, to, west, south, east, north);
    };
    const rows = this.#tree?.search([west, south, east, north], accepts, meets) ?? new Uint32Array(0);
    const later: number[] = [];
    this.#tail.forEach(([x0, y0, x1, y1], i) => {
      const row = this.#treeRows + i;
      if (
        x0 > east ||
        x1 < west ||
        y0 > north ||
        y1 < south ||
        !accepts(this.#datetimesMs[row] as number, this.#collections[row] as number)
      )
        return;
      if (meets(row, x0, y0, x1, y1)) later.push(row);
    });
    return later.length === 0 ? rows : Uint32Array.from([...rows, ...later]);
  }
}

/** The box by which an item is found: across the antimeridian all longitudes, and its outline decides. */
function searchBox([west, south, east, north]: Box): Box {
  return west <= east ? [west, south, east, north] : [-180, south, 180, north];
}

export function splitBox([west, south, east, north]: Box): Box[] {
  return west <= east
    ? [[west, south, east, north]]
    : [
        [west, south, 180, north],
        [-180, south, east, north],
      ];
}

/** The array with room for `length` values; its values are kept. */
function grown<T extends Float64Array | Uint16Array | Uint32Array>(array: T, length: number): T {
  if (array.length >= length) return array;
  const larger = new (array.constructor as new (length: number) => T)(Math.ceil(length * 1.5));
  larger.set(array);
  return larger;
}
