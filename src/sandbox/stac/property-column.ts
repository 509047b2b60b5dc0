import { compareValues } from './compare-values.ts';
import type { RowOrder } from './select-page.ts';

/** One property of every item, as numbers: what a worker makes of the database, and what a file keeps. */
export interface ColumnData {
  /** By row: 0 where an item has no value; else the place of its value in their order, from 1 on. */
  readonly codes: Uint8Array | Uint16Array | Uint32Array;
  /** The values, each once, in the order of `compareValues`: numbers first. */
  readonly numbers: Float64Array;
  /** Then texts, in UTF-8, and behind them what is neither, as JSON. */
  readonly texts: Uint8Array;
  /** Where each of `texts` ends; the next begins there. */
  readonly ends: Uint32Array;
  /** Epoch milliseconds of each text that is a moment, NaN for another; empty where none is. */
  readonly instants: Float64Array;
  /** How many of `texts` are text. */
  readonly textCount: number;
}

/** What rows can be sorted by. */
export interface Sortable {
  /** False where no item has the property. */
  readonly hasValues: boolean;
  /** The order of rows by their values; what has none comes last, whatever the sign. */
  order(sign: 1 | -1): RowOrder;
}

/** A property's codes without the values that they stand for: all that a sort looks at. */
export class CodeColumn implements Sortable {
  readonly codes: ColumnData['codes'];
  readonly hasValues: boolean;

  constructor(codes: ColumnData['codes'], hasValues: boolean) {
    this.codes = codes;
    this.hasValues = hasValues;
  }

  /** In memory. */
  get byteLength(): number {
    return this.codes.byteLength;
  }

  order(sign: 1 | -1): RowOrder {
    // What has come since it was asked for is last.
    return orderByPlace({ codes: this.codes, placeOf: () => 0, compareAtPlace: () => 0 }, sign);
  }
}

interface Places {
  readonly codes: ColumnData['codes'];
  /** Of a row without a code. */
  readonly placeOf: (row: number) => number;
  /** Two rows that are at one place. */
  readonly compareAtPlace: (a: number, b: number, place: number) => number;
}

/** By places from 1 on; a row at 0 has none, and comes last. */
function orderByPlace({ codes, placeOf, compareAtPlace }: Places, sign: 1 | -1): RowOrder {
  return {
    compare: (a, b) => {
      const [x, y] = [codes[a] ?? placeOf(a), codes[b] ?? placeOf(b)];
      if (x === 0 || y === 0) return Number(y !== 0) - Number(x !== 0);
      return sign * (x - y) || compareAtPlace(a, b, x);
    },
    keys: (rows, from, to, into) => {
      for (let i = from; i < to; i++) {
        const row = rows[i] as number;
        const place = codes[row] ?? placeOf(row);
        into[i - from] = place === 0 ? Infinity : sign * place;
      }
    },
  };
}

/**
 * The values of one property, by row of the index. Equal values have one code, and codes are in the order of values:
 * a sort compares codes, and a filter decides a value once, however many items have it.
 */
export class PropertyColumn implements Sortable {
  readonly data: ColumnData;
  /** Values of the rows behind `data`: of items that came since. */
  readonly later: unknown[] = [];
  /** Of `later`. */
  readonly #places: number[] = [];
  readonly #bytes: Buffer;

  constructor(data: ColumnData) {
    this.data = data;
    this.#bytes = Buffer.from(data.texts.buffer, data.texts.byteOffset, data.texts.byteLength);
  }

  /** Rows that have a code. */
  get codedRows(): number {
    return this.data.codes.length;
  }

  /** Different values among them; the highest code. */
  get valueCount(): number {
    return this.data.numbers.length + this.data.ends.length;
  }

  /** In memory, about. */
  get byteLength(): number {
    const { codes, numbers, texts, ends, instants } = this.data;
    return [codes, numbers, texts, ends, instants].reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  get hasValues(): boolean {
    return this.valueCount > 0 || this.later.some((value) => value !== null && value !== undefined);
  }

  /** Null where the item has none. */
  valueOf(row: number): unknown {
    return row < this.codedRows
      ? this.valueOfCode(this.data.codes[row] as number)
      : (this.later[row - this.codedRows] ?? null);
  }

  valueOfCode(code: number): unknown {
    if (code === 0) return null;
    const { numbers, ends, textCount } = this.data;
    if (code <= numbers.length) return numbers[code - 1];
    const at = code - numbers.length - 1;
    const text = this.#bytes.toString('utf8', at === 0 ? 0 : ends[at - 1], ends[at]);
    return at < textCount ? text : (JSON.parse(text) as unknown);
  }

  order(sign: 1 | -1): RowOrder {
    return orderByPlace(
      {
        codes: this.data.codes,
        placeOf: (row) => this.placeOf(row),
        compareAtPlace: (a, b, place) => (place % 1 === 0 ? 0 : compareValues(this.valueOf(a), this.valueOf(b), sign)),
      },
      sign,
    );
  }

  /** The code of the row's value; half a step before the next one where none is equal, as of items that came since. */
  placeOf(row: number): number {
    const code = this.data.codes[row];
    if (code !== undefined) return code;
    const at = row - this.codedRows;
    // It may have come since the others were put behind.
    return at < this.later.length ? (this.#places[at] ??= this.#placeOf(this.later[at])) : 0;
  }

  #placeOf(value: unknown): number {
    if ((value ?? null) === null) return 0;
    const code = this.firstCodeFrom(value);
    const isThere = code <= this.valueCount && compareValues(this.valueOfCode(code), value, 1) === 0;
    return isThere ? code : code - 0.5;
  }

  /** The first code of a value that is not before `value`; of a later kind where there is none. */
  firstCodeFrom(value: unknown): number {
    const { numbers, textCount } = this.data;
    const [firstText, firstOther] = [numbers.length + 1, numbers.length + textCount + 1];
    let [low, high] =
      typeof value === 'number'
        ? [1, firstText]
        : typeof value === 'string'
          ? [firstText, firstOther]
          : [firstOther, this.valueCount + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareValues(this.valueOfCode(middle), value, 1) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
