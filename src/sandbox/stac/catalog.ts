import { collectionOfUploads } from '../../contract/index.ts';
import type { SandboxDatabase } from '../database.ts';
import { Slices } from '../slices.ts';
import { Collections } from './collections.ts';
import { ItemIndex } from './item-index.ts';
import { Items } from './items.ts';
import { PropertyColumns } from './property-columns.ts';

/** Everything that can be browsed and searched: collections and items on disk, the items' index in memory. */
export class Catalog {
  readonly collections: Collections;
  readonly items: Items;
  readonly index: ItemIndex;
  readonly columns: PropertyColumns;
  /** Searches share the event loop by it. */
  readonly slices = new Slices();
  #extents: { version: number; value: ReturnType<ItemIndex['extents']> } | null = null;

  /** `uploadsCollection`: the collection of a user's uploads. */
  constructor(database: SandboxDatabase, uploadsCollection = collectionOfUploads) {
    this.collections = new Collections(database, uploadsCollection);
    this.items = new Items(database);
    this.index = new ItemIndex(this.items);
    this.columns = new PropertyColumns(this.items, this.index);
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
