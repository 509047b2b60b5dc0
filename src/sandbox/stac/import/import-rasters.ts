import { randomUUID } from 'node:crypto';
import { basename, join, relative } from 'node:path';
import { ChildJobError, removeFolder, runInChild, type Confinement } from '../../../raster/index.ts';
import { readFacts, type FileFacts, type InspectInput } from '../../files/inspect/facts.ts';
import type { Catalog } from '../catalog.ts';
import { gridOf } from '../file-items.ts';
import { itemProperties } from '../item-properties.ts';
import { ensureCollection, type ImportProgress, type ImportResult } from './import-items.ts';

const inspectJob = new URL('../../files/inspect/inspect-job.ts', import.meta.url);

/** Where and how rasters are looked at. */
export interface ImportPlace {
  readonly workFolder: string;
  readonly confinement: Confinement;
}

/** Imports rasters where they lie: each becomes an item, its data and preview read from there. The collection is named after their folder. */
export async function importRasters(catalog: Catalog, paths: readonly string[], root: string, { workFolder, confinement }: ImportPlace, progress: ImportProgress, nowMs: number): Promise<ImportResult> {
  const collectionId = slug(basename(root));
  let [imported, refused] = [0, 0];
  for (const [i, path] of paths.entries()) {
    const name = relative(root, path) || basename(path);
    try {
      const facts = await inspect(path, { workFolder, confinement });
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

async function inspect(path: string, { workFolder, confinement }: ImportPlace): Promise<FileFacts> {
  // Files of different folders may have the same name.
  const own = join(workFolder, randomUUID());
  const input: InspectInput = { sourceType: 'MULTISPECTRAL', buildOverviews: false };
  try {
    return readFacts(await runInChild<unknown>({ module: inspectJob, input, files: [{ path, name: basename(path) }], workFolder: own, confinement }));
  } finally {
    await removeFolder(own);
  }
}

function slug(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '') || 'imported';
}
