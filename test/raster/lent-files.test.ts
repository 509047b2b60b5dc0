/** Files that are lent to a child process are not its output, and it may not write to them. */
import { mkdtemp, open, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runInChild, type ConfinementMode } from '../../src/child/index.ts';
import { testConfinement } from '../support/confinement.ts';
import { testFolder } from '../support/folders.ts';

const module = new URL('../support/lingering-job.ts', import.meta.url);

async function sparseFile(path: string, bytes: number): Promise<string> {
  const file = await open(path, 'w');
  await file.truncate(bytes);
  await file.close();
  return path;
}

describe.each<ConfinementMode>(['auto', 'none'])('confinement %s', (mode) => {
  test('a file that is lent does not count against the disk limit; one of its own does, under as many names as it has', async () => {
    const [outside, workFolder, confinement] = [await testFolder(), await testFolder(), await testConfinement(mode)];
    const large = await sparseFile(join(outside, 'large'), 5 * 1024 ** 3);
    await symlink(large, join(workFolder, 'link'));
    const limits = { diskBytes: 1024 ** 2 };
    const files = [{ path: large, name: 'large.tif' }];
    expect(await runInChild({ module, input: null, files, workFolder, confinement, limits })).toBe('done');
    await sparseFile(join(workFolder, 'own'), 2 * 1024 ** 2);
    await expect(runInChild({ module, input: null, files, workFolder, confinement, limits })).rejects.toMatchObject({
      code: 'job_disk_exceeded',
    });
  });

  test('a folder full of links, round in circles and out into the machine, is measured in a moment', async () => {
    const workFolder = await testFolder();
    for (const [name, target] of [
      ['round', '.'],
      ['root', '/'],
      ['up', '..'],
    ] as const)
      await symlink(target, join(workFolder, name));
    await writeFile(join(await mkdtemp(join(workFolder, 'deep-')), 'file'), 'x');
    expect(
      await runInChild({
        module,
        input: null,
        workFolder,
        confinement: await testConfinement(mode),
        // A file of one byte takes up a block.
        limits: { diskBytes: 20_000 },
      }),
    ).toBe('done');
  });
});
