import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeFolder } from './remove-folder.ts';

/** A folder for files that nobody needs after the work. */
export interface ScratchFolder {
  readonly path: string;
  remove(): Promise<void>;
}

const standing = new Set<string>();
// The system's tool follows no link that a child swaps in meanwhile.
const removeAll = () => spawnSync('rm', ['-rf', '--', ...standing], { stdio: 'ignore' });

/** Makes a folder in the system's temporary folder. It goes with the process, if nobody has removed it before. */
export function scratchFolder(name: string): ScratchFolder {
  // At once: an exit in between would leave it.
  const path = mkdtempSync(join(tmpdir(), `marketplace-app-kit-${name}-`));
  if (standing.size === 0) process.once('exit', removeAll);
  standing.add(path);
  return {
    path,
    async remove() {
      await removeFolder(path);
      standing.delete(path);
      if (standing.size === 0) process.removeListener('exit', removeAll);
    },
  };
}
