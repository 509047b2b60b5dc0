import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from './system-error.ts';

const ofOwnerOnly = 0o600;

/**
 * Makes sure that a folder is there, for its owner alone: one that was there with other rights too. What a foreign user
 * owns, as a volume in a container may be, stays as it is.
 */
export function ensurePrivateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  try {
    chmodSync(path, 0o700);
  } catch (error) {
    if (codeOf(error) !== 'EPERM') throw error;
  }
}

/** Makes sure that a file is there and its owner's alone, and the folder too where it is made here: for databases, which take their other files' rights from it. */
export function ensurePrivateFile(path: string): void {
  ensurePrivateFolder(dirname(path));
  closeSync(openSync(path, 'a', ofOwnerOnly));
  // Files that SQLite left next to it need the same rights.
  for (const file of [path, `${path}-wal`, `${path}-shm`]) if (existsSync(file)) chmodSync(file, ofOwnerOnly);
}
