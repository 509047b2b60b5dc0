import { mkdir, open, rename, rm } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import type { CatalogItem } from '../../contract/index.ts';
import { PlatformError, type PlatformClient } from '../../platform-client/index.ts';
import { rasterExtensions, unpack } from '../../raster/index.ts';
import { InputError, type ItemReference } from './run-input.ts';

/** Rasters of the platform's items as a run's input. */
export interface PlatformInput {
  /** Throws `InputError` for an item that is not there, or that has no data. */
  check(items: readonly ItemReference[]): Promise<void>;
  /** Fetches the items' data into `folder`, which is emptied first; the rasters' absolute paths. Throws `InputError`, `DownloadError`, `ArchiveError` or `PlatformError`. */
  fetch(items: readonly ItemReference[], folder: string, options: { signal: AbortSignal; onProgress: (fraction: number) => void }): Promise<string[]>;
}

export interface PlatformInputOptions {
  readonly client: Pick<PlatformClient, 'getItem' | 'download'>;
  readonly allowedOrigins: readonly string[];
  /** Of one item, packed and unpacked. */
  readonly maxBytes: number;
}

const maxEntries = 10_000;

export function createPlatformInput({ client, allowedOrigins, maxBytes }: PlatformInputOptions): PlatformInput {
  /** The item with a fresh link: those that a search gave may have ended since. */
  async function find({ collectionId, itemId }: ItemReference, signal?: AbortSignal): Promise<CatalogItem & { dataHref: string }> {
    const item = await client.getItem(collectionId, itemId, { signal }).catch((error: unknown) => {
      if (error instanceof PlatformError && error.platformStatus === 404) throw new InputError(`the platform has no item ${JSON.stringify(itemId)} in collection ${JSON.stringify(collectionId)}`);
      throw error;
    });
    if (item.dataHref === undefined) throw new InputError(`item ${JSON.stringify(itemId)} has no data that could be fetched`);
    return { ...item, dataHref: item.dataHref };
  }

  async function fetchOne(reference: ItemReference, folder: string, signal: AbortSignal, onProgress: (fraction: number) => void): Promise<string[]> {
    await mkdir(folder, { recursive: true });
    const item = await find(reference, signal);
    const path = join(folder, 'data');
    const onBytes = (bytes: number, total: number | null) => onProgress(total === null ? 0 : bytes / total);
    await client.download({ href: item.dataHref, allowedOrigins, path, maxBytes, onProgress: onBytes }, { signal });
    if (!(await isZip(path))) {
      // Not what the interface says, but a raster all the same: whether it can be read, opening it tells.
      const named = join(folder, plainName(item.title ?? item.id));
      await rename(path, named);
      return [named];
    }
    const names = await unpack(path, folder, (entry) => (rasterExtensions.has(extname(entry).toLowerCase()) ? basename(entry) : null), { entries: maxEntries, bytes: maxBytes }, signal);
    await rm(path);
    if (names.length === 0) throw new InputError(`the data of item ${JSON.stringify(reference.itemId)} holds no raster; looked for ${[...rasterExtensions].join(' ')}`);
    return names.sort().map((name) => join(folder, name));
  }

  return {
    async check(items) {
      for (const item of items) await find(item);
    },
    async fetch(items, folder, { signal, onProgress }) {
      await rm(folder, { recursive: true, force: true });
      const paths: string[] = [];
      for (const [i, item] of items.entries()) {
        paths.push(...(await fetchOne(item, join(folder, String(i)), signal, (fraction) => onProgress((i + fraction) / items.length))));
      }
      return paths;
    },
  };
}

async function isZip(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
    return bytesRead === 4 && buffer.toString('latin1') === 'PK\u0003\u0004';
  } finally {
    await file.close();
  }
}

/** A file name of a foreign title. */
function plainName(title: string): string {
  const plain = title.replace(/[^\p{L}\p{N}._-]+/gu, '_').slice(0, 100);
  return rasterExtensions.has(extname(plain).toLowerCase()) ? plain : `${plain || 'data'}.tif`;
}
