import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { folderBytes } from './folder-bytes.ts';

const run = promisify(execFile);

/**
 * Removes a folder that a child process could write to, whatever it has made there: folders too deep for a path, or without
 * a right to look into them, or more entries than this process can hold while it answers others. Resolves also where
 * something is left; false then.
 */
export async function removeFolder(path: string): Promise<boolean> {
  const remove = () =>
    rm(path, { recursive: true, force: true }).then(
      () => true,
      () => false,
    );
  if ((await folderBytes(path)) < Infinity && (await remove())) return true;
  // The system's own tools walk by steps, not by whole paths.
  await run('chmod', ['-R', 'u+rwX', '--', path]).catch(() => {});
  await run('rm', ['-rf', '--', path]).catch(() => {});
  return remove();
}
