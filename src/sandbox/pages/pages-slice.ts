import { join } from 'node:path';
import type { Services, Slice } from '../slices.ts';
import type { CatalogStores } from '../stac/catalog-slice.ts';
import { importsCatalogId } from '../stac/collections.ts';
import { collectionOfFolder } from '../stac/import/import-rasters.ts';
import { sandboxPages, type SandboxPagesOptions } from './routes.ts';

type Needs = Omit<
  SandboxPagesOptions,
  'adminKey' | 'clock' | 'database' | 'limits' | 'mapTiles' | 'publicUrl' | 'sceneUploads' | 'signer'
> &
  Pick<CatalogStores, 'importFolder'>;

/** The sandbox's pages. */
export function openPages(services: Services): Slice<object, Needs> {
  const { config, database, clock, signer, profile, folders, publicUrl, freeBytes } = services;
  return {
    stores: {},
    routes: (needs) =>
      sandboxPages({
        ...needs,
        ...{ database, clock, signer, publicUrl },
        adminKey: config.adminKey,
        mapTiles: config.mapTiles,
        limits: profile.limits,
        sceneUploads: {
          workFolder: join(folders.workDir, 'scenes'),
          folder: folders.uploadedScenes,
          importPath: needs.importFolder,
          isForeign(name) {
            const { collections } = needs.catalog;
            return (collections.find(collectionOfFolder(name))?.catalogId ?? importsCatalogId) !== importsCatalogId;
          },
          freeBytes,
        },
      }),
  };
}
