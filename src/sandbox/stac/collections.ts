import { isPathSegment } from '../../contract/index.ts';
import type { SandboxDatabase } from '../database.ts';
import { ownJson } from '../../files/index.ts';

export interface CatalogRecord {
  readonly id: string;
  /** Null of the root. */
  readonly parentId: string | null;
  readonly title: string;
  readonly description: string;
}

export interface CollectionRecord {
  readonly id: string;
  readonly catalogId: string;
  readonly title: string;
  readonly description: string;
  /** SPDX identifier, or `proprietary` or `various`. */
  readonly license: string;
  readonly keywords: readonly string[];
  readonly createdAtMs: number;
}

interface CollectionRow {
  id: string;
  catalog_id: string;
  title: string;
  description: string;
  license: string;
  keywords: string;
  created_at: number;
}

export const rootCatalogId = 'root';
export const uploadsCatalogId = 'uploads';
export const importsCatalogId = 'imports';
/** Keyword of collections with recorded data, not data that code made. */
export const realKeyword = 'real';

const always: readonly CatalogRecord[] = [
  {
    id: rootCatalogId,
    parentId: null,
    title: 'Sandbox catalog',
    description: 'Everything that this sandbox holds: seeded, imported and uploaded data.',
  },
  {
    id: uploadsCatalogId,
    parentId: rootCatalogId,
    title: 'Uploads',
    description: 'Files that users and apps uploaded, one collection for each user.',
  },
];

/** The hierarchy above the items (spec 2.1, 2.2): the root, its catalogs, and the collections of each. */
export class Collections {
  #database: SandboxDatabase;
  #uploadsCollection: (userId: string) => string;

  constructor(database: SandboxDatabase, uploadsCollection: (userId: string) => string) {
    this.#database = database;
    this.#uploadsCollection = uploadsCollection;
    always.forEach((catalog) => this.putCatalog(catalog));
  }

  /** Inserts, or replaces the one of that id. */
  putCatalog(catalog: CatalogRecord): void {
    this.#database
      .prepare(
        `insert into catalogs values (@id, @parentId, @title, @description, (select count(*) from catalogs))
         on conflict (id) do update set parent_id = @parentId, title = @title, description = @description`,
      )
      .run(catalog);
  }

  /** Inserts, or replaces the one of that id; its items stay. */
  put(collection: CollectionRecord): void {
    this.#database
      .prepare(
        `insert into collections values (@id, @catalogId, @title, @description, @license, @keywords, @createdAtMs, (select count(*) from collections))
         on conflict (id) do update set catalog_id = @catalogId, title = @title, description = @description, license = @license, keywords = @keywords`,
      )
      .run({ ...collection, keywords: JSON.stringify(collection.keywords) });
  }

  /** Returns the id of a user's uploads collection, which it creates if missing. */
  ensureUploadsOf(user: { id: string; name: string }, nowMs: number): string {
    const id = this.#uploadsCollection(user.id);
    if (!this.find(id)) {
      this.put({
        id,
        catalogId: uploadsCatalogId,
        title: `Uploads of ${user.name}`,
        description: `Files that ${user.name}, or an app on their behalf, uploaded.`,
        license: 'proprietary',
        keywords: ['upload'],
        createdAtMs: nowMs,
      });
    }
    return id;
  }

  findCatalog(id: string): CatalogRecord | null {
    const row = this.#database
      .prepare<[string], CatalogRecord>(
        'select id, parent_id as parentId, title, description from catalogs where id = ?',
      )
      .get(id);
    return row ?? null;
  }

  listCatalogs(parentId: string): CatalogRecord[] {
    return this.#database
      .prepare<[string], CatalogRecord>(
        'select id, parent_id as parentId, title, description from catalogs where parent_id = ? order by position',
      )
      .all(parentId);
  }

  find(id: string): CollectionRecord | null {
    const row = this.#database.prepare<[string], CollectionRow>('select * from collections where id = ?').get(id);
    return row ? fromRow(row) : null;
  }

  /** Returns the collections of one catalog, or all, without rows of older versions that no address can name. */
  list(catalogId: string | null = null): CollectionRecord[] {
    return this.#database
      .prepare<{ catalogId: string | null }, CollectionRow>(
        'select * from collections where @catalogId is null or catalog_id = @catalogId order by position',
      )
      .all({ catalogId })
      .filter(({ id }) => isPathSegment(id))
      .map(fromRow);
  }
}

function fromRow(row: CollectionRow): CollectionRecord {
  return {
    id: row.id,
    catalogId: row.catalog_id,
    title: row.title,
    description: row.description,
    license: row.license,
    keywords: ownJson<string[]>(row.keywords),
    createdAtMs: row.created_at,
  };
}
