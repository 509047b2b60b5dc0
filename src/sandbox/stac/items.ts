import { parseInstant, type Interval } from '../../contract/index.ts';
import type { SandboxDatabase } from '../database.ts';
import { countOf } from '../rows.ts';
import { boxOf, type Box, type Footprint } from '../../raster/footprint.ts';
import type { SyntheticScene } from '../../raster/synthetic-scene.ts';
import { searchValuesOf } from './search-values.ts';
import { ownJson } from '../../files/index.ts';

/** Position of a raster's pixels, in the projection extension's terms. */
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
  /** Band in the file's name: `B4`. */
  readonly band: string;
  /** Common name, `red`; the band where it has none. */
  readonly name: string;
}

/** Source of an item's pixels. `grid` is null unless it is a raster with a known CRS. */
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
}

export interface NewItem extends Omit<ItemRecord, 'number' | 'box'> {
  /** The uploaded file that the item stands for; it goes with it. */
  readonly fileId?: string;
}

/** An item's row in the database. */
export interface ItemRow {
  number: number;
  id: string;
  collection_id: string;
  title: string;
  datetime_ms: number;
  west: number;
  south: number;
  east: number;
  north: number;
  geometry: string;
  properties: string;
  source: string;
}

/** Uploads that are read to find the results of an item. */
const lookedThrough = 300;

/** The items of the catalog, on disk. */
export class Items {
  #database: SandboxDatabase;
  #insert;
  #byNumber;
  #version = 0;
  #reach: { readonly version: number; readonly reach: ReturnType<Items['reach']> } | null = null;

  constructor(database: SandboxDatabase) {
    this.#database = database;
    this.#insert = database.prepare(
      `insert into items (id, collection_id, title, datetime_ms, start_ms, end_ms, west, south, east, north, geometry, properties, search_values, source, file_id)
       values (@id, @collectionId, @title, @datetimeMs, @startMs, @endMs, @west, @south, @east, @north, @geometry, @properties, ${searchValuesOf('@properties')}, @source, @fileId)
       on conflict (id, collection_id) do update set title = excluded.title, datetime_ms = excluded.datetime_ms,
         start_ms = excluded.start_ms, end_ms = excluded.end_ms, west = excluded.west,
         south = excluded.south, east = excluded.east, north = excluded.north, geometry = excluded.geometry,
         properties = excluded.properties, search_values = excluded.search_values, source = excluded.source, file_id = excluded.file_id`,
    );
    this.#byNumber = database.prepare<[number], ItemRow>('select * from items where number = ?');
  }

  /** Inserts an item, or replaces the one of that id in its collection. */
  put(item: NewItem): void {
    const [west, south, east, north] = boxOf(item.footprint);
    this.#version += 1;
    this.#insert.run({
      id: item.id,
      collectionId: item.collectionId,
      title: item.title,
      datetimeMs: item.datetimeMs,
      startMs: rangeOf(item.properties)?.startMs ?? null,
      endMs: rangeOf(item.properties)?.endMs ?? null,
      west,
      south,
      east,
      north,
      geometry: JSON.stringify(item.footprint),
      properties: JSON.stringify(item.properties),
      source: JSON.stringify(item.source),
      fileId: item.fileId ?? null,
    });
  }

  /** Runs `work` in one transaction, which makes many puts fast. */
  inTransaction<T>(work: () => T): T {
    return this.#database.transaction(work)();
  }

  get(number: number): ItemRecord {
    const row = this.#byNumber.get(number);
    if (!row) throw new Error(`item ${number} is gone`);
    return itemOf(row);
  }

  /** By id first, then by title (contract, "STAC"). */
  find(collectionId: string, idOrTitle: string): ItemRecord | null {
    for (const column of ['id', 'title'] as const) {
      const row = this.#database
        .prepare<[string, string], ItemRow>(
          `select * from items where ${column} = ? and collection_id = ? order by number limit 1`,
        )
        .get(idOrTitle, collectionId);
      if (row) return itemOf(row);
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

  /** Uploaded files whose uploader names this item as a source, newest first: of the newest 300 uploads, each of which is read. */
  listDerivedFrom({ collectionId, id }: Pick<ItemRecord, 'collectionId' | 'id'>, limit: number): ItemRecord[] {
    return this.#database
      .prepare<[string, string, number], ItemRow>(
        `select * from (select * from items where file_id is not null order by number desc limit ${lookedThrough}) as items where exists (
           select 1 from json_each(items.properties, '$.layerProperties.sourceItems') as source
           where source.type = 'object' and json_extract(source.value, '$.collectionId') = ? and json_extract(source.value, '$.itemId') = ?)
         order by number desc limit ?`,
      )
      .all(collectionId, id, limit)
      .map(itemOf);
  }

  count(): number {
    return countOf(this.#database, 'select count(*) from items');
  }

  /** Extent of each collection with items. It covers all longitudes if an item crosses the antimeridian. */
  extents(): ReadonlyMap<string, { readonly box: Box; readonly interval: Interval }> {
    const rows = this.#database
      .prepare<[], [string, number, number, number, number, number, number]>(
        `select collection_id, min(case when west > east then -180 else west end), min(south),
           max(case when west > east then 180 else east end), max(north),
           min(coalesce(start_ms, datetime_ms)), max(coalesce(end_ms, datetime_ms))
         from items group by collection_id`,
      )
      .raw()
      .all();
    return new Map(
      rows.map(([id, west, south, east, north, startMs, endMs]) => [
        id,
        { box: [west, south, east, north], interval: { startMs, endMs } },
      ]),
    );
  }

  /** Distance by which the time ranges of items reach beyond their `datetime`, in milliseconds; null if every item has one time. */
  reach(): { readonly beforeMs: number; readonly afterMs: number } | null {
    if (this.#reach?.version !== this.#version) {
      const [beforeMs, afterMs] = this.#database
        .prepare<[], [number | null, number | null]>(
          'select max(max(datetime_ms - start_ms), 0), max(max(end_ms - datetime_ms), 0) from items where end_ms is not null',
        )
        .raw()
        .get() ?? [null, null];
      const reach = beforeMs === null || afterMs === null ? null : { beforeMs, afterMs };
      this.#reach = { version: this.#version, reach };
    }
    return this.#reach.reach;
  }

  /** Number that grows with each change of the items. */
  get version(): number {
    return this.#version;
  }

  /** Deletes items with pixels below the folder. Reads every item, because sources are JSON. */
  removeBelow(folder: string): void {
    this.#version += 1;
    this.#database
      .prepare('delete from items where instr(source, ?) > 0')
      .run(JSON.stringify(`${folder}/`).slice(1, -1));
  }

  /** Deletes items of uploaded files. */
  removeOfFiles(): void {
    this.#version += 1;
    this.#database.prepare('delete from items where file_id is not null').run();
  }
}

/** The time range of an item; null if it has one time (STAC common metadata, `start_datetime` and `end_datetime`). */
function rangeOf(properties: Readonly<Record<string, unknown>>): Interval | null {
  const [startMs, endMs] = [properties['start_datetime'], properties['end_datetime']].map((written) => {
    const instant = typeof written === 'string' ? parseInstant(written) : null;
    return instant === null ? null : Math.floor(instant);
  });
  return startMs == null || endMs == null ? null : { startMs, endMs };
}

export function itemOf(row: ItemRow): ItemRecord {
  return {
    number: row.number,
    id: row.id,
    collectionId: row.collection_id,
    title: row.title,
    datetimeMs: row.datetime_ms,
    box: [row.west, row.south, row.east, row.north],
    footprint: ownJson<Footprint>(row.geometry),
    properties: ownJson<Record<string, unknown>>(row.properties),
    source: ownJson<ItemSource>(row.source),
  };
}
