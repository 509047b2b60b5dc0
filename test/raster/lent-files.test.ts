/** What a child process is lent is not what it has written. */
import { link, open, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runInChild } from '../../src/raster/index.ts';
import { testFolder } from '../support/folders.ts';

const module = new URL('../support/lingering-job.ts', import.meta.url);

async function sparseFile(path: string, bytes: number): Promise<string> {
  const file = await open(path, 'w');
  await file.truncate(bytes);
  await file.close();
  return path;
}

test('a file that is linked into the work folder does not count against the disk limit; one of its own does', async () => {
  const [outside, workFolder] = [await testFolder(), await testFolder()];
  const large = await sparseFile(join(outside, 'large'), 5 * 1024 ** 3);
  await link(large, join(workFolder, 'linked'));
  await symlink(large, join(workFolder, 'symlinked'));
  const limits = { diskBytes: 1024 ** 2 };
  expect(await runInChild({ module, input: null, workFolder, limits })).toBe('done');
  await sparseFile(join(workFolder, 'own'), 2 * 1024 ** 2);
  await expect(runInChild({ module, input: null, workFolder, limits })).rejects.toMatchObject({ code: 'job_disk_exceeded' });
});
