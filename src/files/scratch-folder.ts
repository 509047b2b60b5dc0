import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeFolder } from './remove-folder.ts';

/** A temporary folder. */
export interface ScratchFolder {
  readonly path: string;
  remove(): Promise<void>;
}

const standing = new Set<string>();
const maxTries = 20;
const pauseMs = 50;

function removeAll(): void {
  for (let tries = 0; tries < maxTries; tries++) {
    // Unlike a walk by paths, `rm` does not follow a link that a child swaps in.
    if (spawnSync('rm', ['-rf', '--', ...standing], { stdio: 'ignore' }).status === 0) return;
    // A killed child that is not gone yet may add a file to a folder that `rm` has just emptied.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
  }
}

/** Creates a temporary folder. It is removed at the latest when the process exits. */
export function scratchFolder(name: string): ScratchFolder {
  // Synchronous, because an exit during an asynchronous call would leave the folder behind.
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
