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
 * the lock is the system's, on an open file. Throws `FolderInUseError`, and `KitError` if the folder cannot be made or
 * written to.
 */
export function ownFolder(folder: string): () => void {
  const [lockPath, pidPath] = [join(folder, 'owner.lock'), join(folder, 'owner.pid')];
  const lock = opened(folder, () => {
    ensurePrivateFile(lockPath);
    return new Sqlite(lockPath, { timeout: 0 });
  });
  try {
    lock.exec('begin exclusive');
  } catch (error) {
    lock.close();
    if (codeOf(error) !== 'SQLITE_BUSY') throw error;
    throw new FolderInUseError(folder, pidIn(pidPath));
  }
  opened(folder, () => writeFileSync(pidPath, String(process.pid), { mode: 0o600 }));
  return () => void lock.close();
}

/** Reasons of the system, in words. */
const reasons: Readonly<Record<string, string>> = {
  ENOTDIR: 'a file is in its way',
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'its disk is read-only',
  ENOSPC: 'its disk is full',
  ELOOP: 'its links lead in a circle',
  ENAMETOOLONG: 'its name is too long',
};

function opened<T>(folder: string, open: () => T): T {
  try {
    return open();
  } catch (cause) {
    const code = codeOf(cause) ?? '';
    const reason = reasons[code] ?? code;
    throw new KitError(
      'data_folder_unusable',
      `the data folder ${folder} cannot be used: ${reason}; choose another one (DATA_DIR of the app, --data of the sandbox)`,
      { cause },
    );
  }
}

function pidIn(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return 'unknown';
  }
}
