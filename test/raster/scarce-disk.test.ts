// @module-tag all
/** A disk with room for some of what a job writes, which the job itself fills and makes free again. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mountSmallDisk } from '../../lab/drill/small-disk.ts';
import { runInChild } from '../../src/child/index.ts';
import type { SyntheticScene } from '../../src/raster/synthetic-scene.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testConfinement } from '../support/confinement.ts';
import { makeFolder } from '../support/folders.ts';
import { needing, smallDisk } from '../support/needs.ts';

const sceneJob = new URL('../../src/sandbox/stac/scene-job.ts', import.meta.url);
const mebibyte = 1024 ** 2;
const folder = await makeFolder();
const disk = mountSmallDisk(folder, 64);
cleanUpLater(async () => {
  disk?.remove();
  await rm(folder, { recursive: true, force: true });
});

const fillingJob = new URL('../support/filling-job.ts', import.meta.url);

test('is seen while the job has it, and not only before and after', needing(smallDisk(disk)), async () => {
  const job = async (name: string, bytes: number) => {
    const workFolder = join(folder, name);
    await mkdir(workFolder);
    const run = runInChild<null>({
      module: fillingJob,
      input: { bytes, forMs: 800 },
      imports: [fillingJob],
      workFolder,
      confinement: await testConfinement(),
    });
    return run.finally(() => rm(workFolder, { recursive: true, force: true }));
  };
  await job('little', 4 * mebibyte);
  await expect(job('much', 52 * mebibyte)).rejects.toMatchObject({ code: 'disk_full', kind: 'transient' });
});

test(
  'is told as full, whatever the job makes of it; with room the same job is well',
  needing(smallDisk(disk)),
  async () => {
    const input: SyntheticScene = { kind: 'multispectral', size: 256 };
    const job = async (name: string) => {
      const workFolder = join(folder, name);
      await mkdir(workFolder);
      return runInChild<null>({ module: sceneJob, input, workFolder, confinement: await testConfinement() });
    };
    // The job writes 2.5 MiB of pixels, packs them beside, and removes them: 3 MiB are room for the first alone.
    await writeFile(join(folder, 'others'), Buffer.alloc(61.2 * mebibyte));
    await expect(job('scarce')).rejects.toMatchObject({ code: 'disk_full', kind: 'transient' });
    await rm(join(folder, 'others'));
    await job('ample');
  },
);
