import { link, mkdir, rm, symlink } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { codeOf } from '../files/index.ts';

/** A foreign file that a job is to open. */
export interface LentFile {
  readonly path: string;
  /** Its own name: GDAL's drivers judge by names. */
  readonly name: string;
  /** Files of our own that may be next to this one. Each has the file's name with the suffix appended. */
  readonly beside?: readonly { readonly suffix: string; readonly path: string }[];
}

/** Room for what GDAL appends to names. */
const longestName = 200;

/** A name of one path segment, as its owner wrote it where that is possible. */
function plainName(name: string): string {
  const isPlain = name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name);
  if (isPlain && Buffer.byteLength(name) <= longestName) return name;
  return `file${/^\.[A-Za-z0-9]{1,20}$/.test(extname(name)) ? extname(name) : ''}`;
}

export interface Lend {
  readonly from: string;
  readonly to: string;
}

/** Plans a path for each file below `folder`, alone with the files that may be next to it. `lends` lists every link to make. */
export function planLending(files: readonly LentFile[], folder: string): { paths: string[]; lends: Lend[] } {
  const paths = files.map(({ name }, i) => join(folder, String(i), plainName(name)));
  const lends = files.flatMap(({ path, beside = [] }, i) => {
    const to = paths[i] ?? '';
    return [{ from: path, to }, ...beside.map((one) => ({ from: one.path, to: to + one.suffix }))];
  });
  return { paths, lends };
}

/** No link can be made from here to there; the file has to be given in another way. */
export class CannotLinkError extends Error {}

/** Makes every place by a hard link; by a symbolic one, where `mayBeSymbolic`, on another file system. Throws `CannotLinkError`. */
export async function makeLinks(lends: readonly Lend[], { mayBeSymbolic }: { mayBeSymbolic: boolean }): Promise<void> {
  for (const { from, to } of lends) {
    await mkdir(join(to, '..'), { recursive: true });
    await link(from, to).catch((cause: unknown) => {
      // Another file system, one that has no links, or another owner's file.
      if (!['EXDEV', 'EPERM', 'EACCES', 'EMLINK', 'ENOTSUP'].includes(codeOf(cause) ?? '')) throw cause;
      if (!mayBeSymbolic) throw new CannotLinkError(`${from} cannot be linked`, { cause });
      return symlink(from, to);
    });
  }
}

/** Takes back what was lent. */
export async function removeLinks(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}
