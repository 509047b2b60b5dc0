import { collectionOfUploads } from '../../contract/index.ts';
import type { SandboxDatabase } from '../database.ts';
import { Collections } from './collections.ts';
import { Items } from './items.ts';
import { SearchThreads, type SearchThreadsOptions } from './search-threads.ts';

/** Collections and items, with their search. */
export class Catalog {
  readonly collections: Collections;
  readonly items: Items;
  readonly threads: SearchThreads;
  #names: { readonly version: number; readonly names: Promise<readonly string[]> } | null = null;
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

  /** Fields for `sortby`: those of every item, and properties of the first 5,000 items. Throws 503 like a search. */
  async sortables(): Promise<string[]> {
    const { version } = this.items;
    if (this.#names?.version !== version) {
      const names = this.threads.propertyNames();
      this.#names = { version, names };
      names.catch(() => (this.#names = null));
    }
    const names = new Set(['datetime', ...(await this.#names.names)]);
    return ['id', 'collection', ...[...names].map((name) => `properties.${name}`)];
  }
}
