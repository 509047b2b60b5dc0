import { randomUUID } from 'node:crypto';
import { lstat, mkdir, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { KitError } from '../contract/kit-error.ts';

/** A child process left something else than a file of its own where its output should be. */
export class NotAPlainFileError extends KitError {
  constructor() {
    super('job_output_unsafe', 'the processing wrote no plain file as its output', { status: 422 });
  }
}

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

/** Moves what a child process, that may live, has written out of its folder. Throws `NotAPlainFileError`. */
export async function takePlainFile(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  const aside = `${to}.${randomUUID()}`;
  try {
    await rename(from, aside).catch(() => {
      throw new NotAPlainFileError();
    });
    await requirePlainFile(aside);
    await rename(aside, to);
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
}
