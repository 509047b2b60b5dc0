/** Thread that answers searches of the catalog, so that the main thread stays free for other calls. */
import { parentPort, workerData } from 'node:worker_threads';
import Sqlite from 'better-sqlite3';
import type { Geometry } from 'geojson';
import { boxOf, type Footprint } from '../../raster/footprint.ts';
import type { ItemRow } from './items.ts';
import { likeMatcher } from './like.ts';
import { meetsBox, SearchArea } from './search-area.ts';
import type { SearchQuery } from './search-query.ts';
import { Shape } from './shape.ts';
import { instantOf, isText, orderOf, type SearchValue } from './search-values.ts';
import { messageOf, ownJson } from '../../files/index.ts';

export interface SearchOrder {
  /** Null asks for the names of properties. */
  readonly query: SearchQuery | null;
  /** Milliseconds until the thread gives up the search. */
  readonly leftMs: number;
}

export type SearchAnswer =
  | { readonly numberMatched: number; readonly rows: readonly ItemRow[] }
  /** Positions in `required` of conditions that no item meets. */
  | { readonly unfulfilled: readonly number[] }
  | { readonly names: readonly string[] }
  | { readonly isLate: true }
  | { readonly error: string }
  /** The thread has loaded. */
  | { readonly isReady: true };

/** Approximate limit of the characters in a page. A page of large items ends early, and the next page starts there. */
const pageCharacters = 16 * 1024 * 1024;

class LateError extends Error {}

const database = new Sqlite(String(workerData), { readonly: true });
// A scan of a large catalog reads most of the file.
database.pragma('mmap_size = 268435456');

let endMs = 0;
let geometries: readonly Geometry[] = [];
let areas: (SearchArea | null)[] = [];
/** Results of `meet_each_other`. */
const met = new Map<string, number>();
let matchers: readonly ((text: string) => boolean)[] = [];
// Conditions name places in the query's own list.
const areaOf = (place: number) => (areas[place] ??= new SearchArea(geometries[place] as Geometry));
const inTime = () => {
  if (performance.now() > endMs) throw new LateError();
  return 1;
};
const numberOf = (truth: boolean) => (truth ? 1 : 0);
database.function('in_time', inTime);
database.function('instant_of', { deterministic: true }, (value: SearchValue) => instantOf(value));
database.function('order_of', { deterministic: true }, (a: SearchValue, b: SearchValue) => orderOf(a, b));
database.function('is_like', (pattern: number, value: SearchValue) => {
  const matches = matchers[pattern];
  return matches && isText(value) ? numberOf(matches(value.slice(1))) : null;
});
database.function('meets_box', (geometry: string, west: number, south: number, east: number, north: number) => {
  inTime();
  return numberOf(meetsBox(ownJson<Footprint>(geometry), [west, south, east, north]));
});
database.function('meet_each_other', (a: number, b: number) => {
  const [first, second] = [geometries[a], geometries[b]];
  const name = `${a} ${b}`;
  const known = met.get(name);
  if (known !== undefined || !first || !second) return known ?? null;
  const result = numberOf(new Shape(first).meets(new Shape(second)));
  met.set(name, result);
  return result;
});
database.function('meets', (area: number, geometry: string) => {
  // One comparison of large geometries can take a second.
  inTime();
  const footprint = ownJson<Footprint>(geometry);
  return numberOf(areaOf(area).meets(boxOf(footprint), () => footprint));
});

/** Names of properties that have a value in one of the first 5,000 items. */
const names = database
  .prepare<[], string>(
    `select distinct each.key from (select search_values from items order by number limit 5000) as some, json_each(some.search_values) as each
     where in_time() order by 1`,
  )
  .pluck();

/** Reads the number of matches and the page in one transaction, so that they agree. */
const answer = database.transaction((query: SearchQuery): SearchAnswer => {
  const { number, where, order, values, limit, offset, required } = query;
  // An empty catalog has no properties, and nothing to sort.
  const hasItems = database.prepare('select 1 from items limit 1').get() !== undefined;
  const unfulfilled = (hasItems ? required : []).flatMap((condition, i) =>
    database.prepare(`select 1 from items i where ${condition} limit 1`).get(bound(condition, values)) ? [] : [i],
  );
  if (unfulfilled.length > 0) return { unfulfilled };
  const from = fromOf(query);
  const count = `select count(*) from ${from} where ${where}`;
  const numberMatched = database.prepare<unknown[], number>(count).pluck().get(bound(count, values)) ?? 0;
  if (numberMatched <= offset) return { numberMatched, rows: [] };
  const page = `select ${number} from ${from} where ${where} order by ${order} limit ${limit} offset ${offset}`;
  const numbers = database.prepare<unknown[], number>(page).pluck().all(bound(page, values));
  const byNumber = database.prepare<[number], ItemRow>('select * from items where number = ?');
  const items: ItemRow[] = [];
  for (let [i, characters] = [0, 0]; i < numbers.length && characters <= pageCharacters; i++) {
    // Both are there: the loop ends before, and the numbers are of this transaction.
    const row = byNumber.get(numbers[i] as number) as ItemRow;
    characters += row.properties.length + row.geometry.length;
    items.push(row);
  }
  return { numberMatched, rows: items };
});

/** If the collections have more than this fraction of all items, a scan of the table is faster than their index. */
const manyAreOneIn = 8;

/** SQLite would always use the index of collections, because it does not know their sizes. */
function fromOf({ from, readsProperties, values, ofCollections }: SearchQuery): string {
  if (from !== 'items i' || ofCollections === null || !readsProperties) return from;
  const sql = `select count(*) from ${from} where ${ofCollections}`;
  const inCollections = database.prepare<unknown[], number>(sql).pluck().get(bound(sql, values)) ?? 0;
  const all = database.prepare<[], number>('select max(number) from items').pluck().get() ?? 0;
  return inCollections * manyAreOneIn < all ? from : `${from} not indexed`;
}

/** Selects the values that the SQL names, because SQLite rejects others. */
function bound(sql: string, values: SearchQuery['values']): Record<string, unknown> {
  const names = new Set(sql.match(/@v\d+/g));
  return Object.fromEntries(Object.entries(values).filter(([name]) => names.has(`@${name}`)));
}

parentPort?.on('message', ({ query, leftMs }: SearchOrder) => {
  endMs = performance.now() + leftMs;
  try {
    inTime();
    if (query === null) {
      parentPort?.postMessage({ names: names.all() } satisfies SearchAnswer);
      return;
    }
    geometries = query.geometries;
    areas = geometries.map(() => null);
    met.clear();
    matchers = query.patterns.map(likeMatcher);
    parentPort?.postMessage(answer(query));
  } catch (error) {
    parentPort?.postMessage(error instanceof LateError ? { isLate: true } : { error: messageOf(error) });
  }
});
parentPort?.postMessage({ isReady: true } satisfies SearchAnswer);
