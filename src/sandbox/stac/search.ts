import type { Geometry } from 'geojson';
import { limits, pageLimits, type Interval, type SearchRequest, type SortRule } from '../../contract/index.ts';
import type { Box } from '../../raster/footprint.ts';
import type { Slice } from '../slices.ts';
import { invalid, SandboxError } from '../web/sandbox-error.ts';
import type { Catalog } from './catalog.ts';
import { holdsFor, parseFilter, propertyName, spatialHint, type FilterSubject, type ParsedFilter } from './cql2.ts';
import { blockRows, filterOnRows, type FilterRows } from './filter-rows.ts';
import type { ItemRecord } from './items.ts';
import { outlineMeetsBox, outlineOf } from './outline.ts';
import { splitBox, type Rows } from './item-index.ts';
import type { PropertyColumn, Sortable } from './property-column.ts';
import { SearchArea } from './search-area.ts';
import { selectPage, type RowOrder } from './select-page.ts';
import { truths } from './three-valued.ts';

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
/** Items of a page that are read in one go: so many, or as many as come to so many characters. */
const readTogether = { items: 16, characters: 64 * 1024 };
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
  const filtered = filter?.properties.filter((name) => name !== 'datetime') ?? [];
  const sorted = rules.map(({ field }) => propertyName(field)).filter((name) => !indexed.has(name));
  if (new Set([...filtered, ...sorted]).size > limits.search.properties)
    throw invalid([
      {
        path: request.filter === undefined ? 'sortby' : 'filter',
        message: `must name at most ${limits.search.properties} different properties, those of sortby included`,
      },
    ]);
  return catalog.slices.run('the search', async (slice) => {
    for (let tries = 0; ; tries++) {
      const { generation } = catalog.index;
      const found = await searchOnce(catalog, request, filter, rules, { filtered, sorted }, slice, view);
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
  { filtered, sorted }: { readonly filtered: readonly string[]; readonly sorted: readonly string[] },
  slice: Slice,
  view: (item: ItemRecord) => unknown,
): Promise<SearchResult<unknown> | null> {
  const { limit = pageLimits.default, offset = 0 } = request;
  const { generation } = catalog.index;
  const columns = new Map<string, PropertyColumn>();
  for (const name of filtered) columns.set(name, await catalog.columns.get(name, slice));
  const sortables = new Map<string, Sortable>(columns);
  for (const name of sorted) {
    if (!sortables.has(name)) sortables.set(name, await catalog.columns.getSortable(name, slice));
    if (slice.isOver) await slice.next();
  }
  requireSortable(catalog, sortby, sortables);
  const look = new ItemRows(catalog, columns);
  const rows = request.ids
    ? await rowsOfIds(catalog, request, filter, look, slice)
    : await rowsOf(catalog, request, filter, look, slice);
  const numberMatched = rows.length;
  const page = await selectPage(rows, orderBy(catalog, sortby, sortables), offset, limit, slice);
  catalog.index.giveBack(rows);
  const items: unknown[] = [];
  let characters = 0;
  while (items.length < page.length && characters <= pageCharacters) {
    if (generation !== catalog.index.generation) return null;
    const rowsNow = page.slice(items.length, items.length + readTogether.items);
    const numbers = rowsNow.map((row) => catalog.index.numberOf(row));
    for (const item of catalog.items.getFirst(numbers, readTogether.characters)) {
      characters += item.length;
      items.push(view(item));
      if (slice.isOver) await slice.next();
    }
  }
  return { items, numberMatched, limit, offset, sortby };
}

/** What items can be sorted by: of their properties those that the first 5,000 items have. */
export function sortablesOf(catalog: Catalog): string[] {
  const names = new Set(['datetime', ...catalog.items.propertyNames()]);
  return ['id', 'collection', ...[...names].map((name) => `properties.${name}`)];
}

/** Throws 400 for a rule by what no item has: the order would be none. */
function requireSortable(catalog: Catalog, rules: readonly SortRule[], sortables: ReadonlyMap<string, Sortable>): void {
  // An empty catalog has no property, and nothing to sort.
  if (catalog.index.size === 0) return;
  const unknown = rules.flatMap(({ field }, i) => {
    return sortables.get(propertyName(field))?.hasValues === false ? [i] : [];
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
  parsed: ParsedFilter | null,
  look: ItemRows,
  slice: Slice,
): Promise<Rows> {
  const area = intersects ? new SearchArea(intersects) : null;
  const box = bbox ?? area?.box ?? (parsed && spatialHint(json));
  const { index } = catalog;
  const found = index.search({ box, collections: collections ?? null, interval: datetime ?? null });
  if (!area && !parsed) return found;
  const { generation } = index;
  const test = parsed && filterOnRows(parsed.filter, look);
  // Between two looks at the clock. One pair of shapes may take a tenth of a second.
  const step = area ? 1 : Math.max(1, Math.floor(blockRows / Math.max(1, parsed?.cost ?? 1)));
  const [block, results] = [new Uint32Array(step), new Uint8Array(step).fill(truths.yes)];
  const meets = area && ((row: number) => area.meets(index.boxOf(row), () => look.subject(row).footprint()));
  // In the place of what was found: a match never comes to stand behind the block that it is of.
  const rows = found instanceof Uint32Array ? found : new Uint32Array(found.length);
  let count = 0;
  for (let from = 0; from < found.length; from += step) {
    if (slice.isOver) {
      await slice.next();
      if (generation !== index.generation) break;
    }
    const inBlock = copyRows(found, from, block, meets);
    test?.(block, inBlock, results);
    count = appendMatches(block, inBlock, results, rows, count);
  }
  return rows.subarray(0, count);
}

/** Fills `block` with the rows from `from` on that meet. Returns how many those are. */
function copyRows(rows: Rows, from: number, block: Uint32Array, meets: ((row: number) => boolean) | null): number {
  const to = Math.min(rows.length, from + block.length);
  let count = 0;
  for (let i = from; i < to; i++) {
    const row = rows[i] as number;
    if (meets === null || meets(row)) block[count++] = row;
  }
  return count;
}

/** Puts those of the block that match behind the others. Returns how many there are then. */
function appendMatches(
  block: Uint32Array,
  inBlock: number,
  results: Uint8Array,
  matches: Uint32Array,
  before: number,
): number {
  let count = before;
  for (let i = 0; i < inBlock; i++) {
    // Written over where it is none: processors guess badly which rows match.
    matches[count] = block[i] as number;
    count += results[i] === truths.yes ? 1 : 0;
  }
  return count;
}

/** Few items, looked at one by one. */
async function rowsOfIds(
  catalog: Catalog,
  request: SearchRequest,
  parsed: ParsedFilter | null,
  look: ItemRows,
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
    (!parsed || holdsFor(parsed.filter, look.subject(row)) === true);
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

/** The items of the index, as a filter looks at them. */
class ItemRows implements FilterRows, FilterSubject {
  #catalog: Catalog;
  #columns: ReadonlyMap<string, PropertyColumn>;
  #row = 0;

  /** `columns` has every property that is asked for, but `datetime`. */
  constructor(catalog: Catalog, columns: ReadonlyMap<string, PropertyColumn>) {
    this.#catalog = catalog;
    this.#columns = columns;
  }

  columnOf(property: string): PropertyColumn | null {
    return this.#columns.get(property) ?? null;
  }

  datetimeMsOf(row: number): number {
    return this.#catalog.index.datetimeMsOf(row);
  }

  subject(row: number): FilterSubject {
    this.#row = row;
    return this;
  }

  property(name: string): unknown {
    return name === 'datetime'
      ? new Date(this.datetimeMsOf(this.#row)).toISOString()
      : this.#columns.get(name)?.valueOf(this.#row);
  }

  footprint(): Geometry {
    const { index, items } = this.#catalog;
    return index.polygonOf(this.#row) ?? items.get(index.numberOf(this.#row)).footprint;
  }

  box(): Box {
    return this.#catalog.index.boxOf(this.#row);
  }
}

/** By the rules, one after the other; ties by id, then by collection. What has no value comes last. */
function orderBy(catalog: Catalog, rules: readonly SortRule[], sortables: ReadonlyMap<string, Sortable>): RowOrder {
  const { index } = catalog;
  const byId: RowOrder = orderOf((row) => index.idRankOf(row), 1);
  const orders = rules.map(({ field, direction }): RowOrder => {
    const name = propertyName(field);
    const sign = direction === 'desc' ? -1 : 1;
    if (name === 'datetime') return orderOf((row) => index.datetimeMsOf(row), sign);
    if (name === 'id') return orderOf((row) => index.idRankOf(row), sign);
    return sortables.get(name)?.order(sign) ?? orderOf(() => 0, 1);
  });
  const [first = byId] = orders;
  const compare = (a: number, b: number) => {
    for (const order of orders) {
      const result = order.compare(a, b);
      if (result !== 0) return result;
    }
    return byId.compare(a, b);
  };
  return { compare, keys: first.keys };
}

function orderOf(numberOf: (row: number) => number, sign: 1 | -1): RowOrder {
  return {
    compare: (a, b) => sign * (numberOf(a) - numberOf(b)),
    keys: (rows, from, to, into) => {
      for (let i = from; i < to; i++) into[i - from] = sign * numberOf(rows[i] as number);
    },
  };
}
