/** Runs in a child process: what a foreign archive holds. */
import { open } from 'node:fs/promises';
import { basename, extname, parse } from 'node:path';
import type { Job } from './child/protocol.ts';
import { rasterExtensions } from './raster-files.ts';
import { vectorExtensions } from './vector-files.ts';
import { unpack, type UnpackInput } from './unpack.ts';

/** Job: unpacks rasters, or features, into the work folder and answers their names, sorted; null where the file is no zip archive. */
const job: Job<UnpackInput, readonly string[] | null> = async (
  { limits, kind },
  { files: [path = ''], workFolder, signal },
) => {
  if (!(await isZip(path))) return null;
  return (
    await unpack(path, workFolder, namesOf(kind === 'vector' ? vectorExtensions : rasterExtensions), limits, signal)
  ).sort();
};
export default job;

/** Names for the files of an archive that have these endings: their own, without their folders; made different where two are alike. */
function namesOf(extensions: ReadonlySet<string>): (entryName: string) => string | null {
  const taken = new Set<string>();
  return (entry) => {
    const name = basename(entry);
    // Folders, and what macOS puts beside every file.
    if (entry.endsWith('/') || name.startsWith('._') || !extensions.has(extname(name).toLowerCase())) return null;
    const { name: stem, ext } = parse(name);
    let free = name;
    for (let n = 2; taken.has(free.toLowerCase()); n++) free = `${stem}-${n}${ext}`;
    taken.add(free.toLowerCase());
    return free;
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
