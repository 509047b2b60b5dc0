import { constants } from 'node:fs';
import { lstat, open, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from './system-error.ts';

/** An honest job makes fewer entries, and folders less deep: beyond that a folder counts as endless. */
const maxEntries = 20_000;
const maxDepth = 64;
/** Unit of `Stats.blocks`, on every file system. */
const blockBytes = 512;
/** A folder of few names takes up no more, and counts nothing. */
const smallFolderBytes = 4_096;

/** Counts the bytes that a folder takes up on its disk; see `folderUse`. */
export async function folderBytes(folder: string): Promise<number> {
  return (await folderUse(folder)).bytes;
}

interface FolderUse {
  bytes: number;
  largestFileBytes: number;
  entries: number;
}

/**
 * Counts bytes in a folder that a hostile child may be writing to: of each file, folder and link, its size or its blocks,
 * whichever is more, since a file may have blocks beyond its end, and a hole is filled when it is uploaded. It follows no link, by the descriptor of each folder; it
 * skips what vanishes meanwhile. A folder that cannot be read, is too deep or has too many entries counts as infinite.
 */
export async function folderUse(folder: string): Promise<{ bytes: number; largestFileBytes: number }> {
  const use: FolderUse = { bytes: 0, largestFileBytes: 0, entries: 0 };
  await count(folder, 0, use);
  return use;
}

async function count(path: string, depth: number, use: FolderUse): Promise<void> {
  if (use.bytes === Infinity) return;
  const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW).catch(
    (error: unknown) => {
      if (!isGone(error)) use.bytes = Infinity;
      return null;
    },
  );
  if (folder === null) return;
  try {
    // The descriptor stands for this very folder, whatever its path leads to by now; and its path stays short.
    const own = process.platform === 'linux' ? `/proc/self/fd/${folder.fd}` : path;
    if (depth > maxDepth) use.bytes = Infinity;
    const { blocks } = await folder.stat();
    use.bytes += Math.max(0, blocks * blockBytes - smallFolderBytes);
    for await (const entry of await opendir(own)) {
      if (++use.entries > maxEntries) use.bytes = Infinity;
      if (use.bytes === Infinity) return;
      if (entry.isDirectory()) await count(join(own, entry.name), depth + 1, use);
      else {
        const found = await lstat(join(own, entry.name)).catch(() => null);
        if (found === null) continue;
        use.bytes += Math.max(found.size, found.blocks * blockBytes);
        if (found.isFile()) use.largestFileBytes = Math.max(use.largestFileBytes, found.size);
      }
    }
  } catch (error) {
    if (!isGone(error)) use.bytes = Infinity;
  } finally {
    await folder.close();
  }
}

/** Removed meanwhile, or replaced by something that is no folder: the next look sees what is there then. */
const isGone = (error: unknown) => ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(codeOf(error) ?? '');
