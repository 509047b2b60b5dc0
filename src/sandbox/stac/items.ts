import type { SandboxDatabase } from '../database.ts';
import { boxOf, footprintOfBox, type Box, type Footprint } from '../../raster/footprint.ts';
import type { SyntheticScene } from '../../raster/synthetic-scene.ts';
import { outlineOf, polygonOf, type Outline } from './outline.ts';

/** Where a raster's pixels lie, in the projection extension's terms. */
export interface RasterGrid {
  readonly epsg: number;
  /** Rows and columns. */
  readonly shape: readonly [number, number];
  /** Affine: column and row to easting and northing, row by row. */
  readonly transform: readonly number[];
}

/** One band of a scene, in a file of its own. */
export interface SceneFile {
  readonly path: string;
  /** In the item's archive. Says whose bands are counted, where the file's own name does not. */
  readonly fileName: string;
  /** As the file's name counts it: `B4`. */
  readonly band: string;
  /** Common name, `red`; the band where it has none. */
  readonly name: string;
}

/** Where an item's pixels come from. `grid` is null for what is no raster with a known CRS. */
export type ItemSource =
  | {
      readonly kind: 'file';
      readonly fileId: string;
      readonly blob: string;
      readonly fileName: string;
      readonly isRaster: boolean;
      readonly hasOverviews: boolean;
      readonly isClipped: boolean;
      readonly grid: RasterGrid | null;
    }
  | { readonly kind: 'path'; readonly path: string; readonly isRaster: boolean; readonly grid: RasterGrid | null }
  | { readonly kind: 'scene'; readonly files: readonly SceneFile[]; readonly grid: RasterGrid | null }
  | { readonly kind: 'shipped'; readonly fileName: string; readonly grid: RasterGrid }
  | { readonly kind: 'synthetic'; readonly scene: SyntheticScene; readonly grid: RasterGrid }
  | { readonly kind: 'none' };

/** An item as it is kept; links, assets and bbox are made when it is served. */
export interface ItemRecord {
  /** Place of its row: a number from 1 on. */
  readonly number: number;
  readonly id: string;
  readonly collectionId: string;
  /** Identifier of the underlying source record (spec 2.3). */
  readonly title: string;
  readonly datetimeMs: number;
  readonly box: Box;
  readonly footprint: Footprint;
  /** All but `datetime`. */
  readonly properties: Readonly<Record<string, unknown>>;
  readonly source: ItemSource;
  /** Characters of what it was read from: about what it takes in an answer. */
  readonly length: number;
}

export interface NewItem extends Omit<ItemRecord, 'number' | 'box' | 'length'> {
  /** The uploaded file that the item stands for; it goes with it. */
  readonly fileId?: string;
}

interface ItemRow {
  number: number;
  id: string;
  collection_id: string;
  title: string;
  datetime_ms: number;
  west: number;
  south: number;
  east: number;
  north: number;
  outline: Buffer | null;
  geometry: string | null;
  properties: string;
  source: string;
}

/** What the index in memory keeps of an item. */
export interface IndexedItem {
  readonly number: number;
  readonly collectionId: string;
  readonly datetimeMs: number;
  readonly box: Box;
  /** Bytes of an `Outline`. */
  readonly outline: Buffer | null;
}

/** The items of the catalog, on disk. */
export class Items {
  #database: SandboxDatabase;
  #insert;
  #byNumber;
  #readFirst: (numbers: readonly number[], characters: number) => ItemRecord[];

  constructor(database: SandboxDatabase) {
    this.#database = database;
    this.#insert = database.prepare(
      `insert into items (id, collection_id, title, datetime_ms, west, south, east, north, outline, geometry, properties, source, file_id)
       values (@id, @collectionId, @title, @datetimeMs, @west, @south, @east, @north, @outline, @geometry, @properties, @source, @fileId)
       on conflict (id, collection_id) do update set title = excluded.title, datetime_ms = excluded.datetime_ms, west = excluded.west,
         south = excluded.south, east = excluded.east, north = excluded.north, outline = excluded.outline, geometry = excluded.geometry,
         properties = excluded.properties, source = excluded.source, file_id = excluded.file_id`,
    );
    this.#byNumber = database.prepare<[number], ItemRow>('select * from items where number = ?');
    this.#readFirst = database.transaction((numbers: readonly number[], characters: number) => {
      const items: ItemRecord[] = [];
      let length = 0;
      for (const number of numbers) {
        if (length > characters) break;
        const item = this.get(number);
        length += item.length;
        items.push(item);
      }
      return items;
    });
  }

  /** Inserts an item, or replaces the one of that id in its collection. */
  put(item: NewItem): void {
    const box = boxOf(item.footprint);
    const [west, south, east, north] = box;
    const outline = outlineOf(item.footprint, box);
    this.#insert.run({
      id: item.id,
      collectionId: item.collectionId,
      title: item.title,
      datetimeMs: item.datetimeMs,
      west,
      south,
      east,
      north,
      outline: outline && Buffer.from(outline.buffer, outline.byteOffset, outline.byteLength),
      // Only where the outline does not tell it.
      geometry: outline && polygonOf(outline) === null ? JSON.stringify(item.footprint) : null,
      properties: JSON.stringify(item.properties),
      source: JSON.stringify(item.source),
      fileId: item.fileId ?? null,
    });
  }

  /** Runs `work` in one transaction: many puts cost little then. */
  inTransaction<T>(work: () => T): T {
    return this.#database.transaction(work)();
  }

  get(number: number): ItemRecord {
    const row = this.#byNumber.get(number);
    if (!row) throw new Error(`item ${number} is gone`);
    return fromRow(row);
  }

  /** The first of `numbers`, one at least, until they come to so many characters; in one transaction, which takes one lock for all. */
  getFirst(numbers: readonly number[], characters: number): ItemRecord[] {
    return this.#readFirst(numbers, characters);
  }

  /** By id first, then by title (contract, "STAC"). */
  find(collectionId: string, idOrTitle: string): ItemRecord | null {
    for (const column of ['id', 'title'] as const) {
      const row = this.#database
        .prepare<[string, string], ItemRow>(
          `select * from items where ${column} = ? and collection_id = ? order by number limit 1`,
        )
        .get(idOrTitle, collectionId);
      if (row) return fromRow(row);
    }
    return null;
  }

  /** The item that stands for an uploaded file. */
  findByFile(fileId: string): ItemRecord | null {
    const row = this.#database
      .prepare<[string], { number: number }>('select number from items where file_id = ?')
      .get(fileId);
    return row ? this.get(row.number) : null;
  }

  /** Numbers of the items with one of `ids`. */
  numbersOf(ids: readonly string[]): number[] {
    const byId = this.#database.prepare<[string], { number: number }>('select number from items where id = ?');
    return [...new Set(ids)].flatMap((id) => byId.all(id).map(({ number }) => number));
  }

  count(): number {
    return this.#database.prepare<[], { n: number }>('select count(*) as n from items').get()!.n;
  }

  /** Null where there is no such item. */
  idOf(number: number): string | null {
    return (
      this.#database.prepare<[number], string>('select id from items where number = ?').pluck().get(number) ?? null
    );
  }

  /** Items with a number above `after`, by number: what the index is made of. */
  *indexed(after: number): IterableIterator<IndexedItem> {
    type Row = [number, string, number, number, number, number, number, Buffer | null];
    const rows = this.#database
      .prepare<[number], Row>(
        'select number, collection_id, datetime_ms, west, south, east, north, outline from items where number > ? order by number',
      )
      .raw()
      .iterate(after);
    for (const [number, collectionId, datetimeMs, west, south, east, north, outline] of rows) {
      yield { number, collectionId, datetimeMs, box: [west, south, east, north], outline };
    }
  }

  /** Numbers of all items by id, then by collection. */
  *numbersById(): IterableIterator<number> {
    for (const [number] of this.#database
      .prepare<[], [number]>('select number from items order by id, collection_id')
      .raw()
      .iterate())
      yield number;
  }

  /** The numbers that stand next to an item in the order of `numbersById`. */
  neighboursById(number: number): { before: number | null; after: number | null } {
    const { id, collectionId } = this.get(number);
    const before = this.#database.prepare<[string, string], { number: number }>(
      'select number from items where (id, collection_id) < (?, ?) order by id desc, collection_id desc limit 1',
    );
    const after = this.#database.prepare<[string, string], { number: number }>(
      'select number from items where (id, collection_id) > (?, ?) order by id, collection_id limit 1',
    );
    return { before: before.get(id, collectionId)?.number ?? null, after: after.get(id, collectionId)?.number ?? null };
  }

  /** Extent in space and time of each collection that has items. */
  extents() {
    type Row = {
      collectionId: string;
      west: number;
      south: number;
      east: number;
      north: number;
      startMs: number;
      endMs: number;
    };
    return this.#database
      .prepare<[], Row>(
        `select collection_id as collectionId, min(case when west > east then -180 else west end) as west, min(south) as south,
           max(case when west > east then 180 else east end) as east, max(north) as north, min(datetime_ms) as startMs, max(datetime_ms) as endMs
         from items group by collection_id`,
      )
      .all();
  }

  /** Numbers behind `after`, at most `limit` of them, with the value that each item has of one property. `id`, `title` and `collection` are the item's own. */
  column(name: string, after: number, limit: number): [number, unknown][] {
    if (name === 'id' || name === 'title' || name === 'collection') {
      const column = name === 'collection' ? 'collection_id' : name;
      return this.#database
        .prepare<[number, number], [number, string]>(
          `select number, ${column} from items where number > ? order by number limit ?`,
        )
        .raw()
        .all(after, limit);
    }
    const path = `$.${JSON.stringify(name)}`;
    const rows = this.#database
      .prepare<[string, number, number], [number, string | null]>(
        'select number, properties -> ? from items where number > ? order by number limit ?',
      )
      .raw()
      .all(path, after, limit);
    return rows.map(([number, value]) => [number, value === null ? null : (JSON.parse(value) as unknown)]);
  }

  /** Names of properties that have a value in some item, of the first 5,000. */
  propertyNames(): string[] {
    return this.#database
      .prepare<[], string>(
        `select distinct each.key from (select properties from items order by number limit 5000) as some, json_each(some.properties) as each
         where each.type <> 'null' order by 1`,
      )
      .pluck()
      .all();
  }

  /** Grows whenever an item that is there is replaced or removed; one that is new has a higher number than all others. */
  rewrites(): number {
    return Number(
      this.#database.prepare<[], string>(`select value from settings where name = 'item-rewrites'`).pluck().get(),
    );
  }

  /** Items whose pixels lie below the folder go; how many did. Reads every item: their sources are JSON. */
  removeBelow(folder: string): number {
    return this.#database
      .prepare('delete from items where instr(source, ?) > 0')
      .run(JSON.stringify(`${folder}/`).slice(1, -1)).changes;
  }

  /** What belongs to uploaded files goes; how many did. */
  removeOfFiles(): number {
    return this.#database.prepare('delete from items where file_id is not null').run().changes;
  }
}

function toOutline(bytes: Buffer): Outline {
  return new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}

function fromRow(row: ItemRow): ItemRecord {
  const box: Box = [row.west, row.south, row.east, row.north];
  const footprint =
    row.geometry !== null
      ? (JSON.parse(row.geometry) as Footprint)
      : row.outline === null
        ? footprintOfBox(box)
        : (polygonOf(toOutline(row.outline)) ?? footprintOfBox(box));
  return {
    number: row.number,
    id: row.id,
    collectionId: row.collection_id,
    title: row.title,
    datetimeMs: row.datetime_ms,
    box,
    footprint,
    properties: JSON.parse(row.properties) as Record<string, unknown>,
    source: JSON.parse(row.source) as ItemSource,
    length: row.properties.length + (row.geometry?.length ?? row.outline?.length ?? 0),
  };
}
