import type { Geometry } from 'geojson';
import { limits, pageLimits, type Interval, type SearchRequest, type SortRule } from '../../contract/index.ts';
import type { Box } from '../../raster/footprint.ts';
import type { Slice } from '../slices.ts';
import { invalid, SandboxError } from '../web/sandbox-error.ts';
import type { Catalog } from './catalog.ts';
import { parseFilter, propertyName, spatialHint, type FilterSubject, type ParsedFilter } from './cql2.ts';
import type { ItemRecord } from './items.ts';
import { outlineMeetsBox, outlineOf } from './outline.ts';
import { splitBox, type Rows } from './item-index.ts';
import { operand } from './cql2-values.ts';
import type { PropertyColumn } from './property-column.ts';
import { conditionOnRows, type PropertyCondition, type RowCondition } from './property-condition.ts';
import { SearchArea } from './search-area.ts';
import { selectPageInSlices, type RowOrder } from './select-page.ts';

export interface SearchResult<View = ItemRecord> {
  readonly items: readonly View[];
  /** Exact. */
  readonly numberMatched: number;
  readonly limit: number;
  readonly offset: number;
  /** The rules that were applied: newest first where none was asked for. */
  readonly sortby: readonly SortRule[];
}

const defaultSort: readonly SortRule[] = [{ field: 'properties.datetime', direction: 'desc' }];

/** Characters of the items of one answer, about: a page of large ones ends early, and the next one begins there. */
const pageCharacters = 16 * 1024 * 1024;
/** How often a search begins again, because the catalog was numbered anew under it. */
const mostTries = 5;

/** Answers a search that was read and checked (spec 4.2), in slices. Throws 400 for a filter that is none, and 503 where it takes too long. */
export function search(catalog: Catalog, request: SearchRequest): Promise<SearchResult>;
/** The same, each item as `view` shows it: made in slices too. */
export function search<View>(
  catalog: Catalog,
  request: SearchRequest,
  view: (item: ItemRecord) => View,
): Promise<SearchResult<View>>;
export function search(
  catalog: Catalog,
  request: SearchRequest,
  view: (item: ItemRecord) => unknown = (item) => item,
): Promise<SearchResult<unknown>> {
  const filter = request.filter === undefined ? null : parseFilter(request.filter);
  const rules = request.sortby?.length ? request.sortby : defaultSort;
  const names = new Set([
    ...(filter?.properties.filter((name) => name !== 'datetime') ?? []),
    ...rules.map(({ field }) => propertyName(field)).filter((name) => !indexed.has(name)),
  ]);
  if (names.size > limits.search.properties)
    throw invalid([
      {
        path: request.filter === undefined ? 'sortby' : 'filter',
        message: `must name at most ${limits.search.properties} different properties, those of sortby included`,
      },
    ]);
  return catalog.slices.run('the search', async (slice) => {
    for (let tries = 0; ; tries++) {
      const { generation } = catalog.index;
      const found = await searchOnce(catalog, request, filter, rules, [...names], slice, view);
      if (found && generation === catalog.index.generation) return found;
      if (tries === mostTries)
        throw new SandboxError(503, 'busy', 'the catalog is changing too fast for the search; try again in a moment');
    }
  });
}

/** What the index itself sorts by. */
const indexed: ReadonlySet<string> = new Set(['datetime', 'id']);

/** Null where the catalog was numbered anew meanwhile: rows are numbers that it makes void. */
async function searchOnce(
  catalog: Catalog,
  request: SearchRequest,
  filter: ParsedFilter | null,
  sortby: readonly SortRule[],
  names: readonly string[],
  slice: Slice,
  view: (item: ItemRecord) => unknown,
): Promise<SearchResult<unknown> | null> {
  const { limit = pageLimits.default, offset = 0 } = request;
  const { generation } = catalog.index;
  const columns = new Map<string, PropertyColumn>();
  for (const name of names) columns.set(name, await catalog.columns.get(name, slice));
  requireSortable(catalog, sortby, columns);
  const subject = new RowSubject(catalog, columns, filter?.conditions ?? []);
  const rows = request.ids
    ? await rowsOfIds(catalog, request, filter, subject, slice)
    : await rowsOf(catalog, request, filter, subject, slice);
  const page = await selectPageInSlices(rows, orderBy(catalog, sortby, columns), offset, limit, slice);
  const items: unknown[] = [];
  let characters = 0;
  for (const row of page) {
    if (generation !== catalog.index.generation) return null;
    if (characters > pageCharacters) break;
    const item = catalog.items.get(catalog.index.numberOf(row));
    characters += item.length;
    items.push(view(item));
    if (slice.isOver) await slice.next();
  }
  return { items, numberMatched: rows.length, limit, offset, sortby };
}

/** What items can be sorted by: of their properties those that the first 5,000 items have. */
export function sortablesOf(catalog: Catalog): string[] {
  const names = new Set(['datetime', ...catalog.items.propertyNames()]);
  return ['id', 'collection', ...[...names].map((name) => `properties.${name}`)];
}

/** Throws 400 for a rule by what no item has: the order would be none. */
function requireSortable(
  catalog: Catalog,
  rules: readonly SortRule[],
  columns: ReadonlyMap<string, PropertyColumn>,
): void {
  // An empty catalog has no property, and nothing to sort.
  if (catalog.index.size === 0) return;
  const unknown = rules.flatMap(({ field }, i) => {
    const column = columns.get(propertyName(field));
    return column && !column.hasValues ? [i] : [];
  });
  if (unknown.length === 0) return;
  throw invalid(
    unknown.map((i) => ({
      path: `sortby.${i}.field`,
      message: `no item has it; items can be sorted by ${sortablesOf(catalog).join(', ')}`,
    })),
  );
}

async function rowsOf(
  catalog: Catalog,
  { bbox, collections, datetime, intersects, filter: json }: SearchRequest,
  filter: ParsedFilter | null,
  subject: RowSubject,
  slice: Slice,
): Promise<Rows> {
  const area = intersects ? new SearchArea(intersects) : null;
  const box = bbox ?? area?.box ?? (filter && spatialHint(json));
  const { index } = catalog;
  const found = index.search({ box, collections: collections ?? null, interval: datetime ?? null });
  if (!area && !filter) return found;
  const { generation } = index;
  const rows = new Uint32Array(found.length);
  let count = 0;
  // A shape takes its time; a condition on a property takes none.
  const looksEvery = area || filter?.isSpatial ? 1 : 256;
  for (let i = 0; i < found.length; i++) {
    if (i % looksEvery === 0 && slice.isOver) {
      await slice.next();
      if (generation !== index.generation) break;
    }
    const row = found[i] as number;
    if (
      (!area || area.meets(index.boxOf(row), () => subject.at(row).footprint())) &&
      (!filter || filter.test(subject.at(row)) === true)
    )
      rows[count++] = row;
  }
  return rows.subarray(0, count);
}

/** Few items, looked at one by one. */
async function rowsOfIds(
  catalog: Catalog,
  request: SearchRequest,
  filter: ParsedFilter | null,
  subject: RowSubject,
  slice: Slice,
): Promise<number[]> {
  const { bbox, datetime, intersects, ids = [] } = request;
  const collections = request.collections && new Set(request.collections);
  const area = intersects ? new SearchArea(intersects) : null;
  const isWanted = (item: ItemRecord, row: number) =>
    (!collections || collections.has(item.collectionId)) &&
    (!datetime || isWithin(item.datetimeMs, datetime)) &&
    (!bbox || splitBox(bbox).some((box) => footprintMeetsBox(item, box))) &&
    (!area || area.meets(item.box, () => item.footprint)) &&
    (!filter || filter.test(subject.at(row)) === true);
  const { generation } = catalog.index;
  const rows: number[] = [];
  for (const number of catalog.items.numbersOf(ids)) {
    if (generation !== catalog.index.generation) return rows;
    const row = catalog.index.rowOf(number);
    if (row >= 0 && isWanted(catalog.items.get(number), row)) rows.push(row);
    if (slice.isOver) await slice.next();
  }
  return rows;
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
  #columns: ReadonlyMap<string, PropertyColumn>;
  #conditions: readonly RowCondition[];
  #row = 0;

  /** `columns` has every property that is asked for, but `datetime`. */
  constructor(
    catalog: Catalog,
    columns: ReadonlyMap<string, PropertyColumn>,
    conditions: readonly PropertyCondition[],
  ) {
    this.#catalog = catalog;
    this.#columns = columns;
    this.#conditions = conditions.map((condition) => {
      const column = columns.get(condition.property);
      return column ? conditionOnRows(condition, column) : this.#conditionOnDatetime(condition);
    });
  }

  at(row: number): this {
    this.#row = row;
    return this;
  }

  property(name: string): unknown {
    return name === 'datetime'
      ? new Date(this.#catalog.index.datetimeMsOf(this.#row)).toISOString()
      : this.#columns.get(name)?.valueOf(this.#row);
  }

  decide({ place }: PropertyCondition): boolean | null {
    return (this.#conditions[place] as RowCondition)(this.#row);
  }

  footprint(): Geometry {
    const { index, items } = this.#catalog;
    return index.polygonOf(this.#row) ?? items.get(index.numberOf(this.#row)).footprint;
  }

  box(): Box {
    return this.#catalog.index.boxOf(this.#row);
  }

  /** Most are compared with a moment, which needs no text. */
  #conditionOnDatetime({ test, comparison }: PropertyCondition): RowCondition {
    const { index } = this.#catalog;
    const wanted = comparison?.with.ms;
    return comparison && typeof wanted === 'number'
      ? (row) => comparison.holds(index.datetimeMsOf(row) - wanted)
      : (row) => test(operand(new Date(index.datetimeMsOf(row)).toISOString()));
  }
}

/** By the rules, one after the other; ties by id, then by collection. What has no value comes last. */
function orderBy(catalog: Catalog, rules: readonly SortRule[], columns: ReadonlyMap<string, PropertyColumn>): RowOrder {
  const { index } = catalog;
  const orders = rules.map(({ field, direction }): RowOrder => {
    const name = propertyName(field);
    const sign = direction === 'desc' ? -1 : 1;
    if (name === 'datetime') return (a, b) => sign * (index.datetimeMsOf(a) - index.datetimeMsOf(b));
    if (name === 'id') return (a, b) => sign * (index.idRankOf(a) - index.idRankOf(b));
    const column = columns.get(name);
    return column ? (a, b) => column.compare(a, b, sign) : () => 0;
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
