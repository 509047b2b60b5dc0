import { link, mkdir, symlink } from 'node:fs/promises';
import { extname, join } from 'node:path';

/** Room for what GDAL appends to names. */
const longestName = 200;

/**
 * Gives the file at `path` into `folder` under its own name, by link: GDAL's drivers judge by names, and read
 * what lies beside. `folder` is made, and should hold nothing else. Answers where it is now.
 */
export async function lendFile(path: string, folder: string, fileName: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const isLong = Buffer.byteLength(fileName) > longestName;
  const lent = join(folder, isLong ? `file${extname(fileName).slice(0, 20)}` : fileName);
  await link(path, lent).catch((error: NodeJS.ErrnoException) => {
    // Another file system, or one that has no links.
    if (!['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP'].includes(error.code ?? '')) throw error;
    return symlink(path, lent);
  });
  return lent;
}
