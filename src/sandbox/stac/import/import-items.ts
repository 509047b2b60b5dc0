import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Catalog } from '../catalog.ts';
import { importsCatalogId, rootCatalogId } from '../collections.ts';
import type { NewItem } from '../items.ts';
import { ItemLineError, readItem } from './read-item.ts';

/** Receives the progress of an import. */
export interface ImportProgress {
  /** Bytes of the file, or files of the folder, that are done, of how many. */
  onProgress(done: number, total: number): void;
  /** A line or file that is left out, and why. */
  onRefused(where: string, reason: string): void;
}

export interface ImportResult {
  readonly imported: number;
  readonly refused: number;
}

const batchSize = 5_000;

/** Imports a file of STAC items, one to a line (NDJSON). A line that is none is told and left out; an item of the same id is replaced. */
export async function importItems(
  catalog: Catalog,
  path: string,
  totalBytes: number,
  progress: ImportProgress,
  nowMs: number,
): Promise<ImportResult> {
  const known = new Set(catalog.collections.list().map(({ id }) => id));
  let [imported, refused, line, bytes] = [0, 0, 0, 0];
  let batch: NewItem[] = [];
  const flush = () => {
    catalog.items.inTransaction(() => {
      for (const item of batch) {
        if (!known.has(item.collectionId)) ensureCollection(catalog, item.collectionId, nowMs);
        known.add(item.collectionId);
        catalog.items.put(item);
      }
    });
    imported += batch.length;
    batch = [];
    progress.onProgress(bytes, totalBytes);
  };
  for await (const text of createInterface({
    input: createReadStream(path, { highWaterMark: 1024 * 1024 }),
    crlfDelay: Infinity,
  })) {
    line += 1;
    bytes += Buffer.byteLength(text) + 1;
    if (text.trim() === '') continue;
    try {
      batch.push(readItem(parse(text), path, nowMs));
    } catch (error) {
      if (!(error instanceof ItemLineError)) throw error;
      refused += 1;
      progress.onRefused(`line ${line}`, error.message);
    }
    if (batch.length >= batchSize) flush();
  }
  flush();
  return { imported, refused };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ItemLineError('is not JSON');
  }
}

/** A collection that nobody described is made, under the catalog of imports. */
export function ensureCollection(catalog: Catalog, id: string, nowMs: number): void {
  if (catalog.collections.find(id)) return;
  catalog.collections.putCatalog({
    id: importsCatalogId,
    parentId: rootCatalogId,
    title: 'Imports',
    description: 'Collections that were imported into this sandbox.',
  });
  catalog.collections.put({
    id,
    catalogId: importsCatalogId,
    title: id,
    description: `Imported items of ${id}.`,
    license: 'proprietary',
    keywords: ['import'],
    createdAtMs: nowMs,
  });
}
