import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { KitError } from '../contract/kit-error.ts';
import { codeOf, ensurePrivateFile } from '../files/index.ts';

/** Another process works in the data folder. */
export class FolderInUseError extends KitError {
  constructor(folder: string, pid: string) {
    super(
      'data_folder_in_use',
      `the data folder ${folder} belongs to process ${pid}, which is running: stop it, or take another folder`,
    );
  }
}

/**
 * Takes a data folder for this process until the caller calls the returned function, or the process ends in any way:
 * the lock is the system's, on an open file. Throws `FolderInUseError`.
 */
export function ownFolder(folder: string): () => void {
  const [lockPath, pidPath] = [join(folder, 'owner.lock'), join(folder, 'owner.pid')];
  ensurePrivateFile(lockPath);
  const lock = new Sqlite(lockPath, { timeout: 0 });
  try {
    lock.exec('begin exclusive');
  } catch (error) {
    lock.close();
    if (codeOf(error) !== 'SQLITE_BUSY') throw error;
    throw new FolderInUseError(folder, pidIn(pidPath));
  }
  writeFileSync(pidPath, String(process.pid), { mode: 0o600 });
  return () => void lock.close();
}

function pidIn(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return 'unknown';
  }
}
