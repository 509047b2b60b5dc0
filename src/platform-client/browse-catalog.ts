import pLimit from 'p-limit';
import type { CatalogNode } from '../contract/index.ts';
import { PlatformError } from './platform-error.ts';

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
 * Leaves out links that lead to nothing; throws if it cannot read the root.
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
    level = await allThere(next.map((id) => limit(() => calls.getCatalog(id))));
  }
  return allThere(
    [...collections].map((id) =>
      limit(async () => {
        const { title = id, description = '' } = await calls.getCollection(id);
        return { id, title, description };
      }),
    ),
  );
}

/** Without those that the platform does not have. */
async function allThere<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const isMissing = (error: unknown) => error instanceof PlatformError && error.platformStatus === 404;
  const results = await Promise.allSettled(promises);
  return results.flatMap((result) => {
    if (result.status === 'fulfilled') return [result.value];
    if (isMissing(result.reason)) return [];
    throw result.reason;
  });
}
