import pLimit from 'p-limit';
import type { CatalogNode } from '../contract/index.ts';
import { PlatformError } from './platform-error.ts';

/** A collection of the catalog, with the path of catalogs that leads to it. */
export interface CollectionEntry {
  readonly id: string;
  readonly title: string;
  readonly description: string;
}

interface CatalogCalls {
  /** Null: the root. */
  getCatalog(catalogId: string | null): Promise<CatalogNode>;
  getCollection(collectionId: string): Promise<CatalogNode>;
}

/** A hierarchy that is larger, or goes in circles, is not walked further. */
const most = { catalogs: 200, collections: 1_000 };
const callsAtOnce = 6;

/**
 * Every collection below the root, in the order of the links (spec 2.1: the interface has no list of them).
 * Leaves out what it cannot read; throws if that is the root, or everything below a level.
 */
export async function listCollections(calls: CatalogCalls): Promise<CollectionEntry[]> {
  const limit = pLimit(callsAtOnce);
  const collections = new Set<string>();
  const asked = new Set<string>();
  let level: CatalogNode[] = [await calls.getCatalog(null)];
  while (level.length > 0) {
    const children = level.flatMap((node) => node.children);
    for (const child of children)
      if (child.kind === 'collection' && collections.size < most.collections) collections.add(child.id);
    // By the link's own id: what the catalog calls itself may be another.
    const next = [
      ...new Set(children.filter(({ kind, id }) => kind === 'catalog' && !asked.has(id)).map(({ id }) => id)),
    ].slice(0, most.catalogs - asked.size);
    for (const id of next) asked.add(id);
    level = await readable(next.map((id) => limit(() => calls.getCatalog(id))));
  }
  return readable(
    [...collections].map((id) =>
      limit(async () => {
        const { title = id, description = '' } = await calls.getCollection(id);
        return { id, title, description };
      }),
    ),
  );
}

/** Returns the nodes that this key can read. Throws if all of them fail, and one fails for another reason than 403, 404 or 410. */
async function readable<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(promises);
  const read = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const failures = results.flatMap((result): unknown[] => (result.status === 'rejected' ? [result.reason] : []));
  const unexpected = failures.find((error) => !isNotShown(error));
  if (unexpected !== undefined && (read.length === 0 || !(unexpected instanceof PlatformError))) throw unexpected;
  return read;
}

const isNotShown = (error: unknown) =>
  error instanceof PlatformError && [403, 404, 410].includes(error.platformStatus ?? 0);
