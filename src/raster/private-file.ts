import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';

const ofOwnerOnly = 0o600;

/** Makes sure that a file is there and its owner's alone, and the folder too where it is made here: for databases, which take their other files' rights from it. */
export function ensurePrivateFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  closeSync(openSync(path, 'a', ofOwnerOnly));
  // What SQLite left beside it, too.
  for (const one of [path, `${path}-wal`, `${path}-shm`]) if (existsSync(one)) chmodSync(one, ofOwnerOnly);
}
