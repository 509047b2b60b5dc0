import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Removes a folder that a child process could write to, whatever it has made there: folders too deep for a path, or without
 * a right to look into them. Resolves also where something is left; false then.
 */
export async function removeFolder(path: string): Promise<boolean> {
  const remove = () => rm(path, { recursive: true, force: true });
  try {
    await remove();
    return true;
  } catch {
    // The system's own tools walk by steps, not by whole paths.
    await run('chmod', ['-R', 'u+rwX', '--', path]).catch(() => {});
    await run('rm', ['-rf', '--', path]).catch(() => {});
    return remove().then(
      () => true,
      () => false,
    );
  }
}
