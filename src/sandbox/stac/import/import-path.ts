import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { KitError } from '../../../contract/index.ts';
import { rasterExtensions } from '../../../raster/index.ts';
import type { Catalog } from '../catalog.ts';
import { importItems, type ImportProgress, type ImportResult } from './import-items.ts';
import { importRasters, type ImportPlace } from './import-rasters.ts';
import { isMetadataName } from './scene-metadata.ts';

const itemExtensions: ReadonlySet<string> = new Set(['.ndjson', '.jsonl', '.geojsonl']);

/** Imports a file of items, a raster, or a folder of both. Throws `KitError` for a path that is none of them. */
export async function importPath(
  catalog: Catalog,
  path: string,
  place: ImportPlace,
  progress: ImportProgress,
  nowMs: number,
): Promise<ImportResult> {
  const found = await stat(path).catch(() => {
    throw new KitError('bad_arguments', `--import ${path} does not exist`);
  });
  const paths = found.isDirectory()
    ? (await readdir(path, { recursive: true })).map((name) => join(path, name)).sort()
    : [path];
  const ofKind = (extensions: ReadonlySet<string>) =>
    paths.filter((file) => extensions.has(extname(file).toLowerCase()));
  const metadata = found.isDirectory() ? paths.filter((file) => isMetadataName(basename(file))) : [];
  const [items, rasters] = [ofKind(itemExtensions), ofKind(rasterExtensions)];
  if (items.length + rasters.length === 0) {
    throw new KitError(
      'bad_arguments',
      `--import ${path}: give items (${[...itemExtensions].join(', ')}), rasters (${[...rasterExtensions].join(', ')}) or a folder of them`,
    );
  }
  const results: ImportResult[] = [];
  for (const itemsFile of items)
    results.push(await importItems(catalog, itemsFile, (await stat(itemsFile)).size, progress, nowMs));
  if (rasters.length > 0)
    results.push(
      await importRasters(
        catalog,
        rasters,
        metadata,
        found.isDirectory() ? path : dirname(path),
        place,
        progress,
        nowMs,
      ),
    );
  return {
    imported: sum(results.map((result) => result.imported)),
    refused: sum(results.map((result) => result.refused)),
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0);
}
