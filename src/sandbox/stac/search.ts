import type { Geometry } from 'geojson';
import { pageLimits, type Interval, type SearchRequest, type SortRule } from '../../contract/index.ts';
import type { Box } from '../../raster/footprint.ts';
import type { Catalog } from './catalog.ts';
import { parseFilter, propertyName, spatialHint, type Filter, type FilterSubject } from './cql2.ts';
import type { ItemRecord } from './items.ts';
import { outlineMeetsBox, outlineOf } from './outline.ts';
import { splitBox } from './item-index.ts';
import type { PropertyColumn } from './property-columns.ts';
import { SearchArea } from './search-area.ts';
import { selectPage, type RowOrder } from './select-page.ts';

export interface SearchResult {
  readonly items: readonly ItemRecord[];
  /** Exact. */
  readonly numberMatched: number;
  readonly limit: number;
  readonly offset: number;
  /** The rules that were applied: newest first where none was asked for. */
  readonly sortby: readonly SortRule[];
}

const defaultSort: readonly SortRule[] = [{ field: 'properties.datetime', direction: 'desc' }];

/** Answers a search that was read and checked (spec 4.2). Throws 400 for a filter that is none. */
export function search(catalog: Catalog, request: SearchRequest): SearchResult {
  const { limit = pageLimits.default, offset = 0, sortby = [] } = request;
  const filter = request.filter === undefined ? null : parseFilter(request.filter);
  const rows = request.ids ? rowsOfIds(catalog, request, filter) : rowsOf(catalog, request, filter);
  const rules = sortby.length > 0 ? sortby : defaultSort;
  const page = selectPage(rows, orderBy(catalog, rules), offset, limit);
  return { items: page.map((row) => catalog.items.get(catalog.index.numberOf(row))), numberMatched: rows.length, limit, offset, sortby: rules };
}

function rowsOf(catalog: Catalog, { bbox, collections, datetime, intersects, filter: json }: SearchRequest, filter: Filter | null): number[] {
  const area = intersects ? new SearchArea(intersects) : null;
  const box = bbox ?? area?.box ?? (filter && spatialHint(json));
  const { index } = catalog;
  const subject = new RowSubject(catalog);
  const meets = area ? (row: number) => area.meets(index.boxOf(row), () => subject.at(row).footprint()) : null;
  const passes = filter ? (row: number) => filter(subject.at(row)) === true : null;
  const test = meets && passes ? (row: number) => meets(row) && passes(row) : (meets ?? passes);
  return index.search({ box, collections: collections ?? null, interval: datetime ?? null, test });
}

/** Few items, looked at one by one. */
function rowsOfIds(catalog: Catalog, request: SearchRequest, filter: Filter | null): number[] {
  const { bbox, collections, datetime, intersects, ids = [] } = request;
  const subject = new RowSubject(catalog);
  const area = intersects ? new SearchArea(intersects) : null;
  return catalog.items
    .numbersOf(ids)
    .map((number) => catalog.items.get(number))
    .filter((item) => (!collections || collections.includes(item.collectionId)) && (!datetime || isWithin(item.datetimeMs, datetime)))
    .filter((item) => (!bbox || splitBox(bbox).some((box) => footprintMeetsBox(item, box))) && (!area || area.meets(item.box, () => item.footprint)))
    .map((item) => catalog.index.rowOf(item.number))
    .filter((row) => !filter || filter(subject.at(row)) === true);
}

function isWithin(ms: number, { startMs, endMs }: Interval): boolean {
  return ms >= startMs && ms <= endMs;
}

function footprintMeetsBox({ footprint, box }: ItemRecord, [west, south, east, north]: Box): boolean {
  const outline = outlineOf(footprint, box);
  if (outline) return outlineMeetsBox(outline, 0, outline.length, west, south, east, north);
  return box[0] <= east && box[2] >= west && box[1] <= north && box[3] >= south;
}

/** One row of the index at a time, as a filter looks at it. */
class RowSubject implements FilterSubject {
  #catalog: Catalog;
  #columns = new Map<string, PropertyColumn>();
  #row = 0;

  constructor(catalog: Catalog) {
    this.#catalog = catalog;
  }

  at(row: number): this {
    this.#row = row;
    return this;
  }

  property(name: string): unknown {
    let column = this.#columns.get(name);
    if (column === undefined) this.#columns.set(name, (column = this.#catalog.columns.get(name)));
    return column[this.#row];
  }

  footprint(): Geometry {
    const { index, items } = this.#catalog;
    return index.polygonOf(this.#row) ?? items.get(index.numberOf(this.#row)).footprint;
  }

  box(): Box {
    return this.#catalog.index.boxOf(this.#row);
  }

  datetimeMs(): number {
    return this.#catalog.index.datetimeMsOf(this.#row);
  }
}

/** By the rules, one after the other; ties by id, then by collection. What has no value comes last. */
function orderBy(catalog: Catalog, rules: readonly SortRule[]): RowOrder {
  const { index } = catalog;
  const orders = rules.map(({ field, direction }): RowOrder => {
    const name = propertyName(field);
    const sign = direction === 'desc' ? -1 : 1;
    if (name === 'datetime') return (a, b) => sign * (index.datetimeMsOf(a) - index.datetimeMsOf(b));
    if (name === 'id') return (a, b) => sign * (index.idRankOf(a) - index.idRankOf(b));
    const column = catalog.columns.get(name);
    return (a, b) => compareValues(column[a], column[b], sign);
  });
  const [first] = orders;
  if (orders.length === 1 && first) return (a, b) => first(a, b) || index.idRankOf(a) - index.idRankOf(b);
  return (a, b) => {
    for (const order of orders) {
      const result = order(a, b);
      if (result !== 0) return result;
    }
    return index.idRankOf(a) - index.idRankOf(b);
  };
}

function compareValues(a: unknown, b: unknown, sign: number): number {
  const [hasA, hasB] = [a, b].map((value) => value !== null && value !== undefined);
  if (!hasA || !hasB) return Number(hasB) - Number(hasA);
  if (typeof a === 'number' && typeof b === 'number') return sign * (a - b);
  const [x, y] = [a, b].map((value) => (typeof value === 'string' ? value : JSON.stringify(value))) as [string, string];
  return x === y ? 0 : x < y ? -sign : sign;
}
