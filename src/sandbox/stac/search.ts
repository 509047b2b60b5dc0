import { setImmediate as otherCalls } from 'node:timers/promises';
import {
  isPathSegment,
  limits,
  pageLimits,
  positionsOf,
  type SearchRequest,
  type SortRule,
} from '../../contract/index.ts';
import { boxOfPositions, type Box } from '../../raster/footprint.ts';
import { invalid } from '../web/sandbox-error.ts';
import type { Catalog } from './catalog.ts';
import { Cql2, propertyName, spatialHint } from './cql2.ts';
import { itemOf, type ItemRecord } from './items.ts';
import { SqlOfSearch } from './search-query.ts';

export interface SearchResult<View = ItemRecord> {
  readonly items: readonly View[];
  /** Exact. */
  readonly numberMatched: number;
  readonly limit: number;
  readonly offset: number;
  /** The applied rules. Default: newest first. */
  readonly sortby: readonly SortRule[];
}

const defaultSort: readonly SortRule[] = [{ field: 'properties.datetime', direction: 'desc' }];
/** Fields of every item. */
const commonFields: ReadonlySet<string> = new Set(['datetime', 'id', 'collection', 'title']);
/** Milliseconds after which the conversion of a page lets the event loop answer other calls. */
const viewMs = 20;

/** Answers a validated search (spec 4.2). Throws 400 for a wrong filter, and 503 if the search takes too long. */
export function search(catalog: Catalog, request: SearchRequest): Promise<SearchResult>;
/** Answers a search, and converts each item by `view`. */
export function search<View>(
  catalog: Catalog,
  request: SearchRequest,
  view: (item: ItemRecord) => View,
): Promise<SearchResult<View>>;
export async function search(
  catalog: Catalog,
  request: SearchRequest,
  view: (item: ItemRecord) => unknown = (item) => item,
): Promise<SearchResult<unknown>> {
  const { limit = pageLimits.default, offset = 0, bbox, intersects, filter, ids, collections, datetime } = request;
  const sortby = request.sortby?.length ? request.sortby : defaultSort;
  const hint = intersects ? boxOfPositions(positionsOf(intersects)) : filter === undefined ? null : spatialHint(filter);
  const isSmall = (box: Box | null | undefined): box is Box => box !== null && box !== undefined && !isWorld(box);
  const sql = new SqlOfSearch(isSmall(bbox) || isSmall(hint));
  const conditions = ['in_time()'];
  if (ids) conditions.push(sql.isIn(`${sql.own}.id`, ids));
  const ofCollections = collections ? sql.isIn(`${sql.own}.collection_id`, collections) : null;
  if (ofCollections) conditions.push(ofCollections);
  if (datetime) conditions.push(...sql.meetsInterval(datetime, catalog.items.reach()));
  // SQLite evaluates conditions in their order, so the slow comparison of geometries comes last.
  if (isSmall(hint)) conditions.push(sql.overlaps(hint));
  if (isSmall(bbox)) conditions.push(sql.meetsBox(bbox));
  if (intersects) conditions.push(sql.meets(intersects));
  const cql2 = new Cql2(sql);
  if (filter !== undefined) conditions.push(cql2.condition(filter));
  const sorted = sortby.map(({ field }) => propertyName(field));
  const properties = new Set([...cql2.properties, ...sorted].filter((name) => !commonFields.has(name)));
  if (properties.size > limits.search.properties)
    throw invalid([
      {
        path: filter === undefined ? 'sortby' : 'filter',
        message: `must name at most ${limits.search.properties} different properties, those of sortby included`,
      },
    ]);
  const own = sorted.filter((name) => !commonFields.has(name));
  const order = [...sortby.map((rule) => orderBy(sql, rule)), `${sql.own}.id`, `${sql.own}.collection_id`].join(', ');
  const answer = await catalog.threads.run({
    isSlow: sql.isSlow,
    readsProperties: sql.readsProperties,
    number: `${sql.own}.number`,
    from: sql.from,
    where: conditions.join(' and '),
    order,
    ...{ values: sql.values, geometries: sql.geometries, patterns: sql.patterns, ofCollections, limit, offset },
    required: own.map((name) => `in_time() and ${sql.property(name)} is not null`),
  });
  if ('unfulfilled' in answer) {
    const sortables = (await catalog.sortables()).join(', ');
    throw invalid(
      answer.unfulfilled.map((i) => ({
        path: `sortby.${sorted.indexOf(own[i] ?? '')}.field`,
        message: `no item has it; items can be sorted by ${sortables}`,
      })),
    );
  }
  const { numberMatched, rows } = answer;
  // One row that no address can name, from a data folder of an older version, takes no page with it.
  const items = rows.map(itemOf).filter(({ id, collectionId }) => isPathSegment(id) && isPathSegment(collectionId));
  return { items: await viewed(items.map((item) => () => view(item))), numberMatched, limit, offset, sortby };
}

/** Runs `work` with breaks, so that other calls do not wait for large items. */
async function viewed(work: readonly (() => unknown)[]): Promise<unknown[]> {
  const results: unknown[] = [];
  let sinceMs = performance.now();
  for (const task of work) {
    results.push(task());
    if (performance.now() - sinceMs < viewMs) continue;
    await otherCalls();
    sinceMs = performance.now();
  }
  return results;
}

const isWorld = ([west, south, east, north]: Box) => west <= -180 && south <= -90 && east >= 180 && north >= 90;

/** A missing value comes last in both directions. */
function orderBy(sql: SqlOfSearch, { field, direction }: SortRule): string {
  const name = propertyName(field);
  const columns: Readonly<Record<string, string>> = { datetime: 'datetime_ms', id: 'id', collection: 'collection_id' };
  const column = Object.hasOwn(columns, name) ? `${sql.own}.${columns[name]}` : sql.property(name);
  return `${column} ${direction}${commonFields.has(name) ? '' : ' nulls last'}`;
}
