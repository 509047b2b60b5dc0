import { mkdir, rename } from 'node:fs/promises';
import { join, parse } from 'node:path';
import { KitError } from '../../contract/index.ts';
import { runInChild, type Confinement } from '../../child/index.ts';
import { removeFolder } from '../../files/index.ts';
import type { SyntheticScene } from '../../raster/synthetic-scene.ts';
import type { Sandbox } from '../../sandbox/create-sandbox.ts';
import type { Challenge } from './challenge.ts';

/** An item of the catalog. */
export interface BroughtItem {
  readonly collectionId: string;
  readonly itemId: string;
}

const sceneJob = new URL('../../sandbox/stac/scene-job.ts', import.meta.url);
const sceneLimits = { timeoutMs: 60_000, memoryBytes: 1024 ** 3, diskBytes: 512 * 1024 ** 2 };
const collectionId = 'challenge';

export interface ChallengeItemsOptions {
  readonly sandbox: Pick<Sandbox, 'importPath'>;
  readonly confinement: Confinement;
  /** Folder of the scenes. It must exist as long as the sandbox runs. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/** Makes the scenes of a challenge and imports them into the sandbox's catalog, in their order. Every user may use them, unlike uploads. */
export async function bringChallengeItems(
  items: Challenge['items'],
  { sandbox, confinement, folder, signal }: ChallengeItemsOptions,
): Promise<BroughtItem[]> {
  const scenes = join(folder, collectionId);
  await mkdir(scenes, { recursive: true });
  for (const { fileName, sizePixels, shift } of items) {
    const workFolder = join(folder, 'work');
    try {
      const input = { kind: 'multispectral', size: sizePixels, shift } satisfies SyntheticScene;
      await runInChild<null>({ module: sceneJob, input, workFolder, confinement, limits: sceneLimits, signal });
      await rename(join(workFolder, 'scene.tif'), join(scenes, fileName));
    } finally {
      await removeFolder(workFolder);
    }
  }
  const onRefused = (name: string, reason: string) => {
    throw new KitError('no_item', `${name} became no item of the catalog: ${reason}`);
  };
  await sandbox.importPath(scenes, { onProgress: () => {}, onRefused });
  return items.map(({ fileName }) => ({ collectionId, itemId: parse(fileName).name }));
}
