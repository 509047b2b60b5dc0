/** Runs in a child process: what a foreign archive holds. */
import { open, rm } from 'node:fs/promises';
import { basename, extname, join, parse } from 'node:path';
import type { Job } from '../child/in-child.ts';
import { rasterExtensions } from './raster-files.ts';
import { gunzip } from './unwrap.ts';
import { vectorExtensions } from './vector-files.ts';
import { unpack, type UnpackInput } from './unpack.ts';

/** Job: unpacks rasters, or features, into the work folder and answers their names, sorted; null where the file is no zip archive. A gzip file among them counts as what it holds. */
const job: Job<UnpackInput, readonly string[] | null> = async (
  { limits, kind },
  { files: [path = ''], workFolder, signal },
) => {
  if (!(await isZip(path))) return null;
  const extensions = kind === 'vector' ? vectorExtensions : rasterExtensions;
  const names = await unpack(path, workFolder, namesOf(extensions), limits, signal);
  for (const [i, name] of names.entries()) {
    if (!gzipped.test(name)) continue;
    names[i] = basename(await gunzip(join(workFolder, name), workFolder, signal, limits.bytes));
    await rm(join(workFolder, name));
  }
  return names.sort();
};
export default job;

const gzipped = /\.(gz|gzip)$/i;

/** Names for the files of an archive that have these endings: their own, without their folders; made different where two are alike. */
function namesOf(extensions: ReadonlySet<string>): (entryName: string) => string | null {
  const taken = new Set<string>();
  return (entry) => {
    const name = basename(entry);
    // Folders, and what macOS puts beside every file.
    const content = name.replace(gzipped, '');
    if (entry.endsWith('/') || name.startsWith('._') || !extensions.has(extname(content).toLowerCase())) return null;
    const { name: stem, ext } = parse(content);
    const wrapping = name.slice(content.length);
    let free = content;
    for (let n = 2; taken.has(free.toLowerCase()); n++) free = `${stem}-${n}${ext}`;
    taken.add(free.toLowerCase());
    return free + wrapping;
  };
}

async function isZip(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
    return bytesRead === 4 && buffer.toString('latin1') === 'PK\u0003\u0004';
  } finally {
    await file.close();
  }
}
