import { join } from 'node:path';
import type { WireProfile } from '../../contract/index.ts';
import { removeFolder, runInChild, type Confinement } from '../../raster/index.ts';
import type { SyntheticScene } from '../../raster/synthetic-scene.ts';
import { bringFile, type BroughtItem } from '../bring-file.ts';
import type { OwnSandbox } from '../own-sandbox.ts';
import type { Challenge } from './challenge.ts';

const sceneJob = new URL('../../sandbox/stac/scene-job.ts', import.meta.url);
const sceneLimits = { timeoutMs: 60_000, memoryBytes: 1024 ** 3, diskBytes: 512 * 1024 ** 2 };

export interface ChallengeItemsOptions {
  readonly sandbox: Pick<OwnSandbox, 'url' | 'apiKey' | 'adminKey'>;
  readonly profile: WireProfile;
  readonly confinement: Confinement;
  /** For what is on its way. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/** Makes the scenes of a challenge and uploads them into the sandbox's catalog, in their order. */
export async function bringChallengeItems(
  items: Challenge['items'],
  { sandbox, profile, confinement, folder, signal }: ChallengeItemsOptions,
): Promise<BroughtItem[]> {
  const brought: BroughtItem[] = [];
  for (const { fileName, sizePixels, shift } of items) {
    try {
      const input = { kind: 'multispectral', size: sizePixels, shift } satisfies SyntheticScene;
      const limits = sceneLimits;
      await runInChild<null>({ module: sceneJob, input, workFolder: folder, confinement, limits, signal });
      const scene = { path: join(folder, 'scene.tif'), fileName, sourceType: 'MULTISPECTRAL' } as const;
      brought.push(await bringFile(sandbox, profile, scene, signal));
    } finally {
      await removeFolder(folder);
    }
  }
  return brought;
}
