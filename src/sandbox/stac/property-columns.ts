import type { Slice } from '../slices.ts';
import type { ItemIndex } from './item-index.ts';
import type { Items } from './items.ts';

/** One value of every item, by row of the index. */
export type PropertyColumn = readonly unknown[];

/** At most so many are kept; the one that was not asked for the longest goes. */
const keptColumns = 16;
const rowsAtOnce = 5_000;

/** Columns of properties that somebody filters or sorts by, read from the database once and kept until the items change. */
export class PropertyColumns {
  #items: Items;
  #index: ItemIndex;
  #columns = new Map<string, PropertyColumn>();
  #version = -1;

  constructor(items: Items, index: ItemIndex) {
    this.#items = items;
    this.#index = index;
  }

  /** Of the items that there are when it is asked for; later ones have no value in it. */
  async get(name: string, slice: Slice): Promise<PropertyColumn> {
    if (this.#version !== this.#index.version) this.#columns.clear();
    this.#version = this.#index.version;
    const version = this.#version;
    const column = this.#columns.get(name) ?? (await this.#read(name, slice));
    if (version !== this.#index.version) return column;
    this.#columns.delete(name);
    this.#columns.set(name, column);
    const [oldest] = this.#columns.keys();
    if (this.#columns.size > keptColumns && oldest !== undefined) this.#columns.delete(oldest);
    return column;
  }

  async #read(name: string, slice: Slice): Promise<PropertyColumn> {
    const { size, generation } = this.#index;
    const column = new Array<unknown>(size).fill(null);
    for (let row = 0; row < size;) {
      const last = Math.min(size, row + rowsAtOnce);
      // The time stands in a column of its own.
      if (name === 'datetime')
        for (; row < last; row++) column[row] = new Date(this.#index.datetimeMsOf(row)).toISOString();
      else
        for (const [, value] of this.#items.column(name, row === 0 ? 0 : this.#index.numberOf(row - 1), last - row))
          column[row++] = value;
      if (slice.isOver) await slice.next();
      // Numbered anew meanwhile: whoever asked begins again.
      if (generation !== this.#index.generation || row < last) return column;
    }
    return column;
  }
}
