import { rm } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { ChildJobError, lendFile, runInChild } from '../../../raster/index.ts';
import type { FileFacts, InspectInput } from '../../files/inspect/facts.ts';
import type { Catalog } from '../catalog.ts';
import { gridOf } from '../file-items.ts';
import { itemProperties } from '../item-properties.ts';
import { ensureCollection, type ImportProgress, type ImportResult } from './import-items.ts';

const inspectJob = new URL('../../files/inspect/inspect-job.ts', import.meta.url);

/** Imports rasters where they lie: each becomes an item, its data and preview read from there. The collection is named after their folder. */
export async function importRasters(catalog: Catalog, paths: readonly string[], root: string, workFolder: string, progress: ImportProgress, nowMs: number): Promise<ImportResult> {
  const collectionId = slug(basename(root));
  let [imported, refused] = [0, 0];
  for (const [i, path] of paths.entries()) {
    const name = relative(root, path) || basename(path);
    try {
      const facts = await inspect(path, workFolder);
      if (facts.footprint === null) throw new ChildJobError('no_footprint', 'says no place: it has no reference system or no transformation');
      ensureCollection(catalog, collectionId, nowMs);
      catalog.items.put({
        id: slug(name.replace(/\.[^.]+$/, '')),
        collectionId,
        title: basename(path),
        datetimeMs: facts.acquiredAt === null ? nowMs : Date.parse(facts.acquiredAt),
        footprint: facts.footprint,
        properties: itemProperties({
          name: basename(path),
          description: `${facts.raster?.width} x ${facts.raster?.height} pixels, ${facts.raster?.bands.length} band(s)`,
          layerType: 'RASTER',
          ingestedAtMs: nowMs,
          provider: 'import',
          sourceType: 'UNKNOWN',
        }),
        source: { kind: 'path', path, isRaster: true, grid: gridOf(facts) },
      });
      imported += 1;
    } catch (error) {
      if (!(error instanceof ChildJobError)) throw error;
      refused += 1;
      progress.onRefused(name, error.message);
    }
    progress.onProgress(i + 1, paths.length);
  }
  return { imported, refused };
}

async function inspect(path: string, workFolder: string): Promise<FileFacts> {
  const folder = join(workFolder, 'file');
  try {
    const lent = await lendFile(path, folder, basename(path));
    const input: InspectInput = { path: lent, workFolder, sourceType: 'MULTISPECTRAL', buildOverviews: false };
    return await runInChild<FileFacts>({ module: inspectJob, input, workFolder });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function slug(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '') || 'imported';
}
