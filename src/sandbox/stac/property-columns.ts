import { createHash } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import type { SandboxDatabase } from '../database.ts';
import type { Slice } from '../slices.ts';
import { ArrayFiles } from './array-files.ts';
import type { ColumnAnswer, ColumnOrder } from './column-worker.ts';
import type { ItemIndex } from './item-index.ts';
import type { Items } from './items.ts';
import { CodeColumn, PropertyColumn, type ColumnData, type Sortable } from './property-column.ts';
import { readColumn } from './read-column.ts';

/** Columns in memory take about so many bytes; those that nobody asked for the longest go. */
const keptBytes = 96 * 1024 * 1024;
/** So many items are read at once, on the thread of the requests. */
const fewItems = 5_000;

const codeTypes = ['Uint8Array', 'Uint16Array', 'Uint32Array'] as const;

/** Of which items a column is. */
interface ColumnPlace {
  readonly rewrites: number;
  readonly size: number;
  readonly lastNumber: number;
  readonly lastId: string | null;
}

interface ColumnKey extends ColumnPlace {
  readonly property: string;
  readonly textCount: number;
}

/**
 * Columns of properties that somebody filters or sorts by. They are read from the database once, in a thread where
 * there are many items, and kept in files beside it until an item changes; items that come in are put behind.
 */
export class PropertyColumns {
  #items: Items;
  #index: ItemIndex;
  #database: SandboxDatabase;
  #files: ArrayFiles<ColumnKey>;
  #columns = new Map<string, PropertyColumn | CodeColumn>();
  #opening = new Map<string, Promise<PropertyColumn>>();
  #generation = -1;
  #reader: ColumnReader;

  /** `folder`: of the files. */
  constructor(database: SandboxDatabase, folder: string, items: Items, index: ItemIndex) {
    this.#database = database;
    this.#files = new ArrayFiles(folder);
    this.#items = items;
    this.#index = index;
    this.#reader = new ColumnReader(database.name);
  }

  /** Of all items that there are. */
  async get(name: string, slice: Slice): Promise<PropertyColumn> {
    for (;;) {
      this.#forgetOldRows();
      const { generation } = this.#index;
      const known = this.#columns.get(name);
      const column = known instanceof PropertyColumn ? known : await slice.until(this.#open(name));
      // Numbered anew meanwhile: its rows are others.
      if (generation !== this.#index.generation) continue;
      this.#addLater(name, column);
      this.#keep(name, column);
      return column;
    }
  }

  /** The same, to sort by: the values themselves, most of a column, are read only where some have no code yet. */
  getSortable(name: string, slice: Slice): Promise<Sortable> {
    this.#forgetOldRows();
    const known = this.#columns.get(name) ?? this.#codesFromFile(name);
    if (!(known instanceof CodeColumn) || known.codes.length < this.#index.size) return this.get(name, slice);
    this.#keep(name, known);
    return Promise.resolve(known);
  }

  /** Reads what there is no file of yet, so that the first who asks need not wait. */
  async prepare(names: readonly string[]): Promise<void> {
    const { generation } = this.#index;
    const isMissing = (name: string) => !this.#files.load(fileOf(name), this.#isCurrent(name), () => true);
    const missing = names.filter(isMissing);
    if (missing.length > 1) {
      const place = this.#place();
      const columns = await this.#reader.read(missing, place.lastNumber);
      for (const [i, data] of columns.entries()) if (data) await this.#save(missing[i] as string, place, data);
    }
    for (const name of missing.filter(isMissing)) {
      if (generation !== this.#index.generation) return;
      await this.#read(name);
    }
    await this.#files.keepOnly(names.map(fileOf));
  }

  close(): Promise<void> {
    return this.#reader.close();
  }

  #forgetOldRows(): void {
    if (this.#generation === this.#index.generation) return;
    this.#generation = this.#index.generation;
    this.#columns.clear();
    this.#opening.clear();
  }

  /** Once, however many ask for it meanwhile. */
  #open(name: string): Promise<PropertyColumn> {
    const known = this.#opening.get(name);
    if (known) return known;
    const opening = this.#fromFile(name) ?? this.#read(name);
    this.#opening.set(name, opening);
    const done = (column: PropertyColumn | null) => {
      // Its rows are others by now.
      if (this.#opening.get(name) !== opening) return;
      this.#opening.delete(name);
      if (column) this.#columns.set(name, column);
    };
    opening.then(done, () => done(null));
    return opening;
  }

  #codesFromFile(name: string): CodeColumn | null {
    // Somebody needs its values already.
    if (this.#opening.has(name)) return null;
    const isCurrent = this.#isCurrent(name);
    const isWhole = (key: ColumnKey) => key.size === this.#index.size && isCurrent(key);
    return this.#files.load(fileOf(name), isWhole, (arrays) => {
      const hasValues = arrays.lengthOf('numbers') + arrays.lengthOf('ends') > 0;
      return new CodeColumn(arrays.take('codes', codeTypes), hasValues);
    });
  }

  #fromFile(name: string): Promise<PropertyColumn> | null {
    const column = this.#files.load(fileOf(name), this.#isCurrent(name), (arrays, { textCount }) => {
      return new PropertyColumn({
        codes: arrays.take('codes', codeTypes),
        numbers: arrays.take('numbers', ['Float64Array']),
        texts: arrays.take('texts', ['Uint8Array']),
        ends: arrays.take('ends', ['Uint32Array']),
        instants: arrays.take('instants', ['Float64Array']),
        textCount,
      });
    });
    return column && Promise.resolve(column);
  }

  async #read(name: string): Promise<PropertyColumn> {
    const place = this.#place();
    if (place.size <= fewItems) return new PropertyColumn(readColumn(this.#database, name, place.lastNumber));
    const [data] = await this.#reader.read([name], place.lastNumber);
    if (!data) throw new Error(`no column of ${name} was read`);
    await this.#save(name, place, data);
    return new PropertyColumn(data);
  }

  /** Which items there are. */
  #place(): ColumnPlace {
    const { size, rewrites } = this.#index;
    const lastNumber = size === 0 ? 0 : this.#index.numberOf(size - 1);
    return { rewrites, size, lastNumber, lastId: this.#items.idOf(lastNumber) };
  }

  /** Without room for it on the disk it is read again after the next start. */
  async #save(property: string, place: ColumnPlace, { textCount, ...arrays }: ColumnData): Promise<void> {
    await this.#files.save(fileOf(property), { ...place, property, textCount }, arrays).catch(() => {});
  }

  /** Of items that are as they were then; those that came since are put behind. */
  #isCurrent(name: string): (key: ColumnKey) => boolean {
    return ({ property, rewrites, size, lastNumber, lastId }) =>
      property === name &&
      rewrites === this.#index.rewrites &&
      this.#index.rowOf(lastNumber) === size - 1 &&
      this.#items.idOf(lastNumber) === lastId;
  }

  #addLater(name: string, column: PropertyColumn): void {
    const rows = column.codedRows + column.later.length;
    const more = this.#index.size - rows;
    if (more <= 0) return;
    for (const [, value] of this.#items.column(name, rows === 0 ? 0 : this.#index.numberOf(rows - 1), more))
      column.later.push(value);
  }

  #keep(name: string, column: PropertyColumn | CodeColumn): void {
    this.#columns.delete(name);
    this.#columns.set(name, column);
    let bytes = [...this.#columns.values()].reduce((sum, one) => sum + one.byteLength, 0);
    for (const [oldest, one] of this.#columns) {
      if (bytes <= keptBytes || one === column) return;
      this.#columns.delete(oldest);
      bytes -= one.byteLength;
    }
  }
}

function fileOf(name: string): string {
  return `property-${createHash('sha256').update(name).digest('hex').slice(0, 32)}`;
}

type Columns = readonly (ColumnData | null)[];

/** A thread that reads columns, one after the other; it ends when none is wanted. */
class ColumnReader {
  #databasePath: string;
  #worker: Worker | null = null;
  #wanted = new Map<number, { resolve: (columns: Columns) => void; reject: (error: Error) => void }>();
  #asked = 0;
  #isClosed = false;

  constructor(databasePath: string) {
    this.#databasePath = databasePath;
  }

  /** Rejects where the database cannot be read, and once it is closed. */
  read(names: readonly string[], lastNumber: number): Promise<Columns> {
    if (this.#isClosed) return Promise.reject(new Error('the catalog is closed'));
    this.#worker ??= this.#start();
    const order: ColumnOrder = { id: (this.#asked += 1), names, lastNumber };
    const answered = new Promise<Columns>((resolve, reject) => this.#wanted.set(order.id, { resolve, reject }));
    this.#worker.postMessage(order);
    return answered;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(new URL('./column-worker.ts', import.meta.url), { workerData: this.#databasePath });
    worker.on('message', (answer: ColumnAnswer) => {
      const wanted = this.#wanted.get(answer.id);
      this.#wanted.delete(answer.id);
      if (this.#wanted.size === 0) {
        this.#worker = null;
        void worker.terminate();
      }
      if ('columns' in answer) wanted?.resolve(answer.columns);
      else wanted?.reject(new Error(answer.error));
    });
    const end = (error: Error) => {
      if (this.#worker !== worker) return;
      this.#worker = null;
      for (const { reject } of this.#wanted.values()) reject(error);
      this.#wanted.clear();
    };
    worker.on('error', end);
    worker.on('exit', () => end(new Error('the thread that reads columns has ended')));
    return worker;
  }
}
