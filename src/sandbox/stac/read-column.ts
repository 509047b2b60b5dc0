import type Sqlite from 'better-sqlite3';
import { parseInstant } from '../../contract/index.ts';
import { compareValues } from './compare-values.ts';
import type { ColumnData } from './property-column.ts';

/** Columns of the table that count as properties, by the name that a search has for them. */
const ownColumns: ReadonlyMap<string, string> = new Map([
  ['id', 'id'],
  ['title', 'title'],
  ['collection', 'collection_id'],
]);

/** 0 number, 1 text, 2 what is neither. */
type Kind = 0 | 1 | 2;

/**
 * One property of all items up to a number, in the order of their numbers. SQLite sorts the values, in files where there
 * are many, so that memory holds a column as it will be, and no more.
 */
export function readColumn(database: Sqlite.Database, name: string, lastNumber: number): ColumnData {
  const rowOf = rowsByNumber(database, lastNumber);
  const codes = new Uint32Array(rowOf.count);
  const numbers = new Grown((length) => new Float64Array(length));
  const texts = new Grown((length) => new Uint8Array(length));
  const ends = new Grown((length) => new Uint32Array(length));
  let [code, textCount] = [0, 0];
  let last: unknown;
  for (const [number, kind, value] of valuesInOrder(database, name, lastNumber)) {
    // Two numbers of the database can be one of JavaScript's.
    if (code === 0 || value !== last || (kind === 2 && ends.length === textCount)) {
      code += 1;
      last = value;
      if (kind === 0) numbers.push(value as number);
      else {
        const bytes = Buffer.from(value as string);
        texts.append(bytes);
        ends.push(texts.length);
        if (kind === 1) textCount += 1;
      }
    }
    codes[rowOf(number)] = code;
  }
  const data = { texts: texts.taken(), ends: ends.taken(), textCount };
  return { codes: narrowed(codes, code), numbers: numbers.taken(), ...data, instants: instantsOf(data) };
}

/** So many different values of a property are told apart as they come; where there are more, SQLite sorts them. */
const fewValues = 1_000;

/**
 * Several properties at once, each item looked at once: null for one that has many values, which `readColumn` reads,
 * and for what is no property.
 */
export function readColumnsOfFewValues(
  database: Sqlite.Database,
  names: readonly string[],
  lastNumber: number,
): (ColumnData | null)[] {
  const rowOf = rowsByNumber(database, lastNumber);
  const readers = names.map((name) => (ownColumns.has(name) ? null : new FewValues(name, rowOf.count)));
  const items = database
    .prepare<[number], [number, string]>('select number, properties from items where number <= ? order by number')
    .raw()
    .iterate(lastNumber);
  for (const [number, text] of items) {
    const properties = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const row = rowOf(number);
    for (const reader of readers) reader?.add(row, properties);
  }
  return readers.map((reader) => reader?.column() ?? null);
}

/** Collects the values of one property until there are too many. */
class FewValues {
  #name: string;
  /** Counted as they came, from 1 on. */
  #places = new Map<unknown, number>();
  /** Of what is neither a number nor a text. */
  #placesByJson = new Map<unknown, number>();
  #values: unknown[] = [];
  #codes: Uint16Array | null;

  constructor(name: string, rows: number) {
    this.#name = name;
    this.#codes = new Uint16Array(rows);
  }

  add(row: number, properties: Readonly<Record<string, unknown>>): void {
    if (!this.#codes || !Object.hasOwn(properties, this.#name)) return;
    const value = properties[this.#name];
    if (value === null) return;
    const isPlain = typeof value === 'number' || typeof value === 'string';
    const [places, key] = isPlain ? [this.#places, value] : [this.#placesByJson, JSON.stringify(value)];
    let place = places.get(key);
    if (place === undefined) {
      if (this.#values.length === fewValues) return void (this.#codes = null);
      place = this.#values.push(value);
      places.set(key, place);
    }
    this.#codes[row] = place;
  }

  column(): ColumnData | null {
    if (!this.#codes) return null;
    const order = this.#values.map((_, place) => place);
    order.sort((a, b) => compareValues(this.#values[a], this.#values[b], 1));
    const codeOf = new Uint16Array(order.length + 1);
    order.forEach((place, i) => (codeOf[place + 1] = i + 1));
    const sorted = order.map((place) => this.#values[place]);
    const others = sorted.filter((value) => typeof value !== 'number');
    const bytes = others.map((value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
    let end = 0;
    const data = {
      texts: new Uint8Array(Buffer.concat(bytes)),
      ends: Uint32Array.from(bytes, ({ length }) => (end += length)),
      textCount: others.filter((value) => typeof value === 'string').length,
    };
    const codes = Uint32Array.from(this.#codes, (place) => codeOf[place] as number);
    const numbers = Float64Array.from(sorted.filter((value) => typeof value === 'number'));
    return { codes: narrowed(codes, order.length), numbers, ...data, instants: instantsOf(data) };
  }
}

function valuesInOrder(database: Sqlite.Database, name: string, lastNumber: number): Iterable<[number, Kind, unknown]> {
  const own = ownColumns.get(name);
  const rows =
    own === undefined
      ? `select number, case kind when 'integer' then 0 when 'real' then 0 when 'text' then 1 else 2 end as kind,
           case when kind in ('integer', 'real', 'text') then properties ->> @path else properties -> @path end as value
         from (select number, properties, json_type(properties, @path) as kind from items where number <= @lastNumber)
         where kind <> 'null' order by 2, 3`
      : `select number, 1 as kind, ${own} as value from items where number <= @lastNumber order by 3`;
  return database
    .prepare<[{ path: string; lastNumber: number }], [number, Kind, unknown]>(rows)
    .raw()
    .iterate({ path: `$.${JSON.stringify(name)}`, lastNumber });
}

/** Where an item stands among those up to a number. */
function rowsByNumber(database: Sqlite.Database, lastNumber: number): ((number: number) => number) & { count: number } {
  const { count, first } = database
    .prepare<[number], { count: number; first: number }>(
      'select count(*) as count, coalesce(min(number), 0) as first from items where number <= ?',
    )
    .get(lastNumber) ?? { count: 0, first: 0 };
  if (lastNumber - first + 1 === count) return Object.assign((number: number) => number - first, { count });
  const rows = new Map<number, number>();
  const numbers = database
    .prepare<[number], number>('select number from items where number <= ? order by number')
    .pluck()
    .iterate(lastNumber);
  for (const number of numbers) rows.set(number, rows.size);
  return Object.assign((number: number) => rows.get(number) ?? -1, { count });
}

function instantsOf({ texts, ends, textCount }: Pick<ColumnData, 'texts' | 'ends' | 'textCount'>): Float64Array {
  const bytes = Buffer.from(texts.buffer, texts.byteOffset, texts.byteLength);
  const instants = new Float64Array(textCount);
  let found = 0;
  for (let i = 0; i < textCount; i++) {
    const ms = parseInstant(bytes.toString('utf8', i === 0 ? 0 : ends[i - 1], ends[i]));
    instants[i] = ms ?? NaN;
    if (ms !== null) found += 1;
  }
  return found > 0 ? instants : new Float64Array(0);
}

/** In the narrowest type that holds the highest code. */
function narrowed(codes: Uint32Array, highest: number): ColumnData['codes'] {
  return highest < 2 ** 8 ? Uint8Array.from(codes) : highest < 2 ** 16 ? Uint16Array.from(codes) : codes;
}

/** An array of numbers that grows as it is filled. */
class Grown<T extends Float64Array | Uint8Array | Uint32Array> {
  #make: (length: number) => T;
  #values: T;
  length = 0;

  constructor(make: (length: number) => T) {
    this.#make = make;
    this.#values = make(1024);
  }

  push(value: number): void {
    this.#reserve(1);
    this.#values[this.length] = value;
    this.length += 1;
  }

  append(values: ArrayLike<number>): void {
    this.#reserve(values.length);
    this.#values.set(values, this.length);
    this.length += values.length;
  }

  /** Exactly what was put in. */
  taken(): T {
    return this.#values.slice(0, this.length) as T;
  }

  #reserve(more: number): void {
    if (this.length + more <= this.#values.length) return;
    const larger = this.#make(Math.ceil((this.length + more) * 1.5));
    larger.set(this.#values);
    this.#values = larger;
  }
}
