import { statfs } from 'node:fs/promises';
import { noRoom, type UploadRules } from './upload-rules.ts';

/** Left free for the database. */
const reserveBytes = 64 * 1024 * 1024;

/** Free bytes under a folder, as the system says. */
export async function systemFreeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

/** Throws where the disk is as good as full. */
export async function requireRoom(
  folder: string,
  rules: UploadRules,
  freeBytes: (folder: string) => Promise<number> = systemFreeBytes,
): Promise<void> {
  if ((await freeBytes(folder)) < reserveBytes) throw noRoom(rules);
}
