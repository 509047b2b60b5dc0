import { link, rm, symlink } from 'node:fs/promises';
import { dirname, extname, join } from 'node:path';
import { codeOf } from '../files/index.ts';
import { makeReadableFolder, readableFile } from './child-user.ts';

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
    return [{ from: path, to }, ...beside.map((sidecar) => ({ from: sidecar.path, to: to + sidecar.suffix }))];
  });
  return { paths, lends };
}

/** No link can be made from here to there; the file has to be given in another way. */
export class CannotLinkError extends Error {}

export interface LinkOptions {
  /** True if a symbolic link may take the place of a hard one. */
  readonly mayBeSymbolic: boolean;
  /** The server's own folders, if children run as other users than the server; see `readableFile`. Null if they do not. */
  readonly readableIn: readonly string[] | null;
}

/** Makes every place by a hard link; by a symbolic one, where `mayBeSymbolic`, on another file system. Throws `CannotLinkError`. */
export async function makeLinks(lends: readonly Lend[], { mayBeSymbolic, readableIn }: LinkOptions): Promise<void> {
  for (const { from, to } of lends) {
    await makeReadableFolder(dirname(to));
    // A copy is in its place already.
    if (readableIn !== null && (await readableFile(from, { folders: readableIn, copyPath: to })) === to) continue;
    await link(from, to).catch((cause: unknown) => {
      // Another file system, one that has no links, or another owner's file.
      if (!['EXDEV', 'EPERM', 'EACCES', 'EMLINK', 'ENOTSUP'].includes(codeOf(cause) ?? '')) throw cause;
      if (!mayBeSymbolic) throw new CannotLinkError(`${from} cannot be linked`, { cause });
      return symlink(from, to);
    });
  }
}

/** Makes every file readable for children that run as other users; copies go to `copyFolder`. See `readableFile`. */
export async function readableLends(
  lends: readonly Lend[],
  { folders, copyFolder }: { readonly folders: readonly string[]; readonly copyFolder: string },
): Promise<Lend[]> {
  const readable: Lend[] = [];
  for (const [i, { from, to }] of lends.entries())
    readable.push({ from: await readableFile(from, { folders, copyPath: join(copyFolder, String(i)) }), to });
  return readable;
}

/** Takes back what was lent. */
export async function removeLinks(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}
