import type { ItemIndex } from './item-index.ts';
import type { Items } from './items.ts';

/** One value of every item, by row of the index. */
export type PropertyColumn = readonly unknown[];

/** At most so many are kept; the one that was not asked for the longest goes. */
const keptColumns = 16;

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

  get(name: string): PropertyColumn {
    if (this.#version !== this.#index.version) this.#columns.clear();
    this.#version = this.#index.version;
    const column = this.#columns.get(name) ?? this.#read(name);
    this.#columns.delete(name);
    this.#columns.set(name, column);
    const [oldest] = this.#columns.keys();
    if (this.#columns.size > keptColumns && oldest !== undefined) this.#columns.delete(oldest);
    return column;
  }

  #read(name: string): PropertyColumn {
    const column = new Array<unknown>(this.#index.size).fill(null);
    // The time stands in a column of its own.
    if (name === 'datetime') return column.map((_, row) => new Date(this.#index.datetimeMsOf(row)).toISOString());
    let row = 0;
    for (const [, value] of this.#items.column(name)) column[row++] = value;
    return column;
  }
}
