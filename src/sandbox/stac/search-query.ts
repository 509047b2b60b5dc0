import type { Geometry } from 'geojson';
import type { Interval } from '../../contract/index.ts';
import type { Box } from '../../raster/footprint.ts';
import type { Items } from './items.ts';
import { valueOfJson } from './search-values.ts';

/** A search as SQL, with the data of its functions. `search-thread.ts` runs it. */
export interface SearchQuery {
  /** True if the search reads properties or compares geometries of many items. */
  readonly isSlow: boolean;
  readonly readsProperties: boolean;
  /** Column with the number of an item. */
  readonly number: string;
  readonly from: string;
  readonly where: string;
  readonly order: string;
  readonly values: Readonly<Record<string, unknown>>;
  /** Geometries for `meets` and `meet_each_other`, by position. */
  readonly geometries: readonly Geometry[];
  /** Patterns for `is_like`, by position. */
  readonly patterns: readonly string[];
  /** Condition of the collections, if the search has one. */
  readonly ofCollections: string | null;
  readonly limit: number;
  readonly offset: number;
  /** Conditions that at least one item must meet, because the search sorts by their properties. */
  readonly required: readonly string[];
}

/** Splits a box that crosses the antimeridian, where west is greater than east. */
function splitBox([west, south, east, north]: Box): Box[] {
  return west <= east
    ? [[west, south, east, north]]
    : [
        [west, south, 180, north],
        [-180, south, east, north],
      ];
}

/** Builds the SQL of one search. Every value is bound. */
export class SqlOfSearch {
  readonly values: Record<string, unknown> = {};
  readonly geometries: Geometry[] = [];
  readonly patterns: string[] = [];
  readonly #bound = new Map<unknown, string>();
  readonly #properties = new Map<string, string>();
  /** Table with the columns number, id, collection_id and datetime_ms: `b`, the R*Tree, or `i`, the items. */
  readonly own: 'b' | 'i';
  readonly #geometry: string;
  readsProperties = false;
  #comparesGeometries = false;

  constructor(isSpatial: boolean) {
    this.own = isSpatial ? 'b' : 'i';
    this.#geometry = isSpatial ? '(select geometry from items where number = b.number)' : 'i.geometry';
  }

  /** True if the search reads properties or compares geometries of many items. */
  get isSlow(): boolean {
    return this.readsProperties || this.#comparesGeometries || this.patterns.length > 0;
  }

  /** SQLite omits the join if no condition names `i`. */
  get from(): string {
    return this.own === 'i' ? 'items i' : 'item_boxes b left join items i on i.number = b.number';
  }

  bind(value: unknown): string {
    const known = this.#bound.get(value);
    if (known !== undefined) return known;
    const name = `v${this.#bound.size}`;
    this.values[name] = value;
    this.#bound.set(value, `@${name}`);
    return `@${name}`;
  }

  /** Conditions for items whose time, or time range, meets an interval. `reach`: result of `Items.reach`. The first condition can use the index of times. */
  meetsInterval({ startMs, endMs }: Interval, reach: ReturnType<Items['reach']>): string[] {
    const within = (first: number, last: number) =>
      `${this.own}.datetime_ms between ${this.bind(first)} and ${this.bind(last)}`;
    if (!reach) return [within(startMs, endMs)];
    const ranged = `select number from items where end_ms >= ${this.bind(startMs)} and start_ms <= ${this.bind(endMs)}`;
    return [
      within(startMs - reach.afterMs, endMs + reach.beforeMs),
      `(${within(startMs, endMs)} or ${this.own}.number in (${ranged}))`,
    ];
  }

  /** True if the list contains the value. The list is one bound value, because SQLite limits the number of bound values. */
  isIn(expression: string, list: readonly unknown[]): string {
    return `${expression} in (select ${valueOfJson} from json_each(${this.bind(JSON.stringify(list))}))`;
  }

  /** True if the box of an item and this box share a point. */
  overlaps([west, south, east, north]: Box): string {
    const [w, s, e, n] = [west, south, east, north].map((degrees) => this.bind(degrees));
    return `b.west <= ${e} and b.east >= ${w} and b.south <= ${n} and b.north >= ${s}`;
  }

  /** True if the footprint of an item and the geometry share a point. */
  meets(geometry: Geometry): string {
    this.#comparesGeometries = true;
    return `meets(${this.geometries.push(geometry) - 1}, ${this.#geometry})`;
  }

  /** True if the footprint of an item and the box share a point. Footprints inside the box need no comparison. */
  meetsBox(box: Box): string {
    const [first = '', second] = splitBox(box).map((part) => {
      const [w, s, e, n] = part.map((degrees) => this.bind(degrees));
      const isWithin = `b.west >= ${w} and b.east <= ${e} and b.south >= ${s} and b.north <= ${n}`;
      return `${this.overlaps(part)} and (${isWithin} or meets_box(${this.#geometry}, ${w}, ${s}, ${e}, ${n}))`;
    });
    if (second === undefined) return first;
    const numbers = [first, second].map((part) => `select number from item_boxes b where ${part}`);
    return `b.number in (${numbers.join(' union ')})`;
  }

  /** True if two geometries of the filter share a point. */
  meetEachOther(a: Geometry, b: Geometry): string {
    this.#comparesGeometries = true;
    return `meet_each_other(${this.geometries.push(a) - 1}, ${this.geometries.push(b) - 1})`;
  }

  isLike(expression: string, pattern: string): string {
    return `is_like(${this.patterns.push(pattern) - 1}, ${expression})`;
  }

  /** Search value of a property. */
  property(name: string): string {
    const known = this.#properties.get(name);
    if (known !== undefined) return known;
    const sql = this.#property(name);
    this.#properties.set(name, sql);
    return sql;
  }

  #property(name: string): string {
    if (name === 'id') return `('t' || ${this.own}.id)`;
    if (name === 'collection') return `('t' || ${this.own}.collection_id)`;
    if (name === 'title') return `('t' || i.title)`;
    if (name === 'datetime')
      return `('t' || strftime('%Y-%m-%dT%H:%M:%fZ', ${this.own}.datetime_ms / 1000.0, 'unixepoch'))`;
    this.readsProperties = true;
    return `(i.search_values ->> ${this.bind(`$.${JSON.stringify(name)}`)})`;
  }

  /** Epoch milliseconds of a property. Null if the property is not a timestamp. */
  instant(name: string): string {
    return name === 'datetime' ? `${this.own}.datetime_ms` : `instant_of(${this.property(name)})`;
  }
}
