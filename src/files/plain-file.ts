import { randomUUID } from 'node:crypto';
import { constants, createWriteStream } from 'node:fs';
import { chmod, chown, lstat, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { KitError } from '../contract/kit-error.ts';

/** A child process left something else than a file of its own where its output should be. */
export class NotAPlainFileError extends KitError {
  constructor() {
    super('job_output_unsafe', 'the processing wrote no plain file as its output', { status: 422 });
  }
}

const ofOwnerOnly = 0o600;

/**
 * Makes sure that what a child process left at `path` is a file of its own, and no link to somebody else's, no pipe
 * and no device: the host, which may read more than the child, is about to open it. Call it when the child is gone, or
 * where the child cannot reach. Its size in bytes. Throws `NotAPlainFileError`.
 */
export async function requirePlainFile(path: string): Promise<number> {
  const found = await lstat(path).catch(() => null);
  if (!found?.isFile() || found.nlink !== 1) throw new NotAPlainFileError();
  return found.size;
}

/**
 * Moves a file out of the folder of a child that is gone. The file becomes the server's own, and runs as nobody. A living
 * child could still write to it: copy then, by `copyPlainFile`. Throws `NotAPlainFileError`.
 */
export async function movePlainFile(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  await requirePlainFile(from);
  await takeOver(from);
  await rename(from, to);
}

/**
 * Copies a file out of the folder of a child that lives, and may change file and folder at any time: what counts is the
 * file that was opened, its size at that moment, and at most `maxBytes`. Throws `NotAPlainFileError`.
 */
export async function copyPlainFile(from: string, to: string, { maxBytes = Infinity } = {}): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  const aside = `${to}.${randomUUID()}`;
  // Without waiting, which a pipe would have the server do for ever.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const source = await open(from, flags).catch(() => {
    throw new NotAPlainFileError();
  });
  try {
    const found = await source.stat();
    if (!found.isFile() || found.nlink !== 1 || found.size > maxBytes) throw new NotAPlainFileError();
    const target = createWriteStream(aside, { flags: 'wx', mode: ofOwnerOnly });
    if (found.size === 0) await new Promise((resolve) => target.end(resolve));
    else await pipeline(source.createReadStream({ autoClose: false, end: found.size - 1 }), target);
    if ((await lstat(aside)).size !== found.size) throw new NotAPlainFileError();
    await rename(aside, to);
  } finally {
    await source.close();
    await rm(aside, { force: true });
  }
}

/** Makes a file of a child that is gone the server's own. */
async function takeOver(path: string): Promise<void> {
  const [uid, gid] = [process.getuid?.(), process.getgid?.()];
  const { uid: owner } = await lstat(path);
  if (uid !== undefined && gid !== undefined && owner !== uid) await chown(path, uid, gid);
  await chmod(path, ofOwnerOnly);
}
