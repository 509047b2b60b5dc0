import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** More entries than this are no work of an honest job: the folder counts as endless. */
const mostEntries = 100_000;

/** Counts the bytes of the files in a folder and below it. Follows no link, since whoever writes there can point it anywhere; skips files that vanish meanwhile. */
export async function folderBytes(folder: string): Promise<number> {
  return (await folderUse(folder)).bytes;
}

/** As `folderBytes`, with those of the largest file. */
export async function folderUse(folder: string): Promise<{ bytes: number; largestFileBytes: number }> {
  const folders = [folder];
  let [bytes, largestFileBytes, count] = [0, 0, 0];
  for (const one of folders) {
    const entries = await readdir(one, { withFileTypes: true }).catch(() => []);
    if ((count += entries.length) > mostEntries) return { bytes: Infinity, largestFileBytes };
    folders.push(...entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(one, name)));
    const files = entries
      .filter((entry) => entry.isFile())
      .map(({ name }) =>
        lstat(join(one, name)).then(
          ({ size }) => size,
          () => 0,
        ),
      );
    const sizes = await Promise.all(files);
    bytes += sizes.reduce((sum, size) => sum + size, 0);
    largestFileBytes = sizes.reduce((most, size) => Math.max(most, size), largestFileBytes);
  }
  return { bytes, largestFileBytes };
}
