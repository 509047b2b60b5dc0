import { collectionOfUploads } from '../../contract/index.ts';
import type { SandboxDatabase } from '../database.ts';
import { Collections } from './collections.ts';
import { Items } from './items.ts';
import { SearchThreads, type SearchThreadsOptions } from './search-threads.ts';

/** Everything that can be browsed and searched. */
export class Catalog {
  readonly collections: Collections;
  readonly items: Items;
  readonly threads: SearchThreads;
  #extents: { readonly version: number; readonly byCollection: ReturnType<Items['extents']> } | null = null;

  /** `uploadsCollection`: the collection of a user's uploads. */
  constructor(
    database: SandboxDatabase,
    {
      uploadsCollection = collectionOfUploads,
      ...options
    }: { uploadsCollection?: typeof collectionOfUploads } & SearchThreadsOptions = {},
  ) {
    this.collections = new Collections(database, uploadsCollection);
    this.items = new Items(database);
    this.threads = new SearchThreads(database.name, options);
  }

  close(): Promise<void> {
    return this.threads.close();
  }

  /** Extent of a collection, null if it has no item. */
  extentOf(collectionId: string) {
    const { version } = this.items;
    if (this.#extents?.version !== version) this.#extents = { version, byCollection: this.items.extents() };
    return this.#extents.byCollection.get(collectionId) ?? null;
  }
}
