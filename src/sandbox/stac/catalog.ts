import { join } from 'node:path';
import { collectionOfUploads } from '../../contract/index.ts';
import type { SandboxDatabase } from '../database.ts';
import { Slices } from '../slices.ts';
import { Collections } from './collections.ts';
import { ItemIndex } from './item-index.ts';
import { Items } from './items.ts';
import { PropertyColumns } from './property-columns.ts';

/** Of fewer items everything is made anew in a moment. */
const many = 20_000;
/** Properties that are read before anybody asks. */
const mostPrepared = 64;

/** Everything that can be browsed and searched: collections and items on disk, the items' index in memory. */
export class Catalog {
  readonly collections: Collections;
  readonly items: Items;
  readonly index: ItemIndex;
  readonly columns: PropertyColumns;
  /** Searches share the event loop by it. */
  readonly slices: Slices;
  #prepared: Promise<void> = Promise.resolve();
  #isClosed = false;
  #extents: { version: number; value: ReturnType<ItemIndex['extents']> } | null = null;

  /** `indexFolder`: of files that can be made again. `uploadsCollection`: the collection of a user's uploads. */
  constructor(
    database: SandboxDatabase,
    indexFolder: string,
    { uploadsCollection = collectionOfUploads, slices = new Slices() } = {},
  ) {
    this.slices = slices;
    this.collections = new Collections(database, uploadsCollection);
    this.items = new Items(database);
    this.index = new ItemIndex(this.items, indexFolder);
    this.columns = new PropertyColumns(database, join(indexFolder, 'properties'), this.items, this.index);
  }

  /** Whether a start, or a search, takes long enough to prepare for it. */
  get isLarge(): boolean {
    return this.index.size >= many;
  }

  /** Keeps in files what a large catalog's next start and its first searches need. Rejects where it cannot. */
  prepare(): Promise<void> {
    const prepared = this.#prepared.then(() => this.#prepare());
    this.#prepared = prepared.catch(() => {});
    return prepared;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.columns.close();
    await this.#prepared;
  }

  async #prepare(): Promise<void> {
    if (this.#isClosed || !this.isLarge) return;
    try {
      await this.index.save();
      await this.columns.prepare(['collection', ...this.items.propertyNames()].slice(0, mostPrepared));
    } catch (error) {
      if (!this.#isClosed) throw error;
    }
  }

  /** After new items were put, a few at a time. */
  refresh(): void {
    this.index.refresh();
  }

  /** After items were put in bulk, replaced or removed. */
  reload(): void {
    this.index.reload();
  }

  /** Extent of a collection, null where it has no item. */
  extentOf(collectionId: string) {
    if (this.#extents?.version !== this.index.version)
      this.#extents = { version: this.index.version, value: this.index.extents() };
    return this.#extents.value.get(collectionId) ?? null;
  }
}
