import pLimit from 'p-limit';
import type { CatalogNode } from '../contract/index.ts';

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

/** Every collection below the root, in the order of the links (spec 2.1: the interface has no list of them). */
export async function listCollections(calls: CatalogCalls): Promise<CollectionEntry[]> {
  const limit = pLimit(callsAtOnce);
  const collections = new Set<string>();
  const catalogs = new Set<string>();
  let level: (string | null)[] = [null];
  while (level.length > 0) {
    const nodes = await Promise.all(level.map((id) => limit(() => calls.getCatalog(id))));
    for (const node of nodes) catalogs.add(node.id);
    const children = nodes.flatMap((node) => node.children);
    for (const child of children) if (child.kind === 'collection' && collections.size < most.collections) collections.add(child.id);
    const next = new Set(children.filter(({ kind, id }) => kind === 'catalog' && !catalogs.has(id)).map(({ id }) => id));
    level = [...next].slice(0, most.catalogs - catalogs.size);
  }
  return Promise.all(
    [...collections].map(async (id) => {
      const { title = id, description = '' } = await limit(() => calls.getCollection(id));
      return { id, title, description };
    }),
  );
}
