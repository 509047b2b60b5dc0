import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cleanUpAfterFile, cleanUpLater } from './cleanup.ts';

/** A folder of the test's own, removed when it ends. */
export async function testFolder(): Promise<string> {
  const folder = await makeFolder();
  cleanUpLater(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder that the file's tests share, removed when they have ended. */
export async function sharedFolder(): Promise<string> {
  const folder = await makeFolder();
  cleanUpAfterFile(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder that the caller removes. */
export function makeFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'marketplace-app-kit-test-'));
}

export const projectRoot = fileURLToPath(new URL('../..', import.meta.url));

/** Real rasters that lie beside the project on the makers' machines; tests that use them skip, visibly, elsewhere. */
export const landsatFolder = join(projectRoot, '../shared/data/landsat8');

/** The catalogue Awesome Spectral Indices, which is not part of the kit. */
export const indexCatalogueFolder = join(projectRoot, '../shared/data/spectral-indices');
