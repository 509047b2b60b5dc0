import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Router } from 'express';
import { removeFolder } from '../../files/index.ts';
import type { BeforeCall } from '../call/before-call.ts';
import type { IdentityStores } from '../identity/identity-slice.ts';
import type { Services, Slice } from '../slices.ts';
import { AssetLinks } from './asset-links.ts';
import { catalogPages } from './catalog-pages.ts';
import { Catalog } from './catalog.ts';
import type { ImportProgress, ImportResult } from './import/import-items.ts';
import { importPath } from './import/import-path.ts';
import { ItemSources } from './item-sources.ts';
import { stacRoutes } from './routes.ts';
import { seedDemo } from './seed.ts';
import { StacObjects } from './stac-objects.ts';

export interface CatalogStores {
  readonly catalog: Catalog;
  readonly sources: ItemSources;
  readonly assets: AssetLinks;
  readonly objects: StacObjects;
  /** Imports a file of items, a raster, or a folder of both. */
  readonly importFolder: (path: string, progress: ImportProgress) => Promise<ImportResult>;
}

/** Opens the STAC catalog (sections 4.1 and 4.2). */
export function openCatalog(
  { config, database, clock, signer, profile, confinement, folders, publicUrl }: Services,
  { users, keys }: IdentityStores,
): Slice<CatalogStores, { readonly before: BeforeCall }> {
  const { blobDir, overviewDir, workDir, uploadedScenes } = folders;
  const catalog = new Catalog(database, { uploadsCollection: (userId) => profile.uploadsCollection(userId) });
  const sources = new ItemSources({ dataDir: config.dataDir, blobDir, overviewDir, confinement });
  const assets = new AssetLinks(signer, clock, publicUrl);
  const objects = new StacObjects({ catalog, assets, publicUrl, strict: config.stacStrict });
  return {
    stores: {
      ...{ catalog, sources, assets, objects },
      importFolder: (path, progress) =>
        importPath(catalog, path, { workFolder: join(workDir, 'import'), confinement }, progress, clock.now()),
    },
    routes: ({ before }) =>
      Router({ caseSensitive: true }).use(
        stacRoutes({ before, catalog, objects, assets, sources, keys, strict: config.stacStrict }),
        catalogPages(catalog, sources, publicUrl),
      ),
    async start() {
      // Versions up to 0.2.0 kept an index of the catalog there.
      await removeFolder(join(config.dataDir, 'index'));
      for (const user of users.list()) catalog.collections.ensureUploadsOf(user, clock.now());
      if (config.seed === 'demo' && catalog.items.count() === 0) seedDemo(catalog);
    },
    forget() {
      catalog.items.removeOfFiles();
      if (existsSync(uploadedScenes)) catalog.items.removeBelow(uploadedScenes);
    },
    afterForget: () => rm(uploadedScenes, { recursive: true, force: true }),
    async close() {
      await Promise.all([sources.close(), catalog.close()]);
    },
  };
}
