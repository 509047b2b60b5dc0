/** Runs in a child process: what an uploaded file is, by its own bytes. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { rename, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Job } from '../../child/in-child.ts';
import { ArchiveError } from '../../raster/unpack.ts';
import { GzipError, unwrap } from '../../raster/unwrap.ts';
import { kindOf, type FileKind } from './file-kinds.ts';
import {
  notA,
  overviewsName,
  type FileFacts,
  type Found,
  type InspectedFile,
  type Inspector,
  type InspectInput,
} from './facts.ts';

/** A process loads the libraries of the kinds that it judges. */
const inspectors: Readonly<Record<Exclude<FileKind, 'any'>, () => Promise<Inspector>>> = {
  raster: async () => (await import('./raster.ts')).inspectRaster,
  pdf: async () => (await import('./pdf.ts')).inspectPdf,
  image: async () => (await import('./image.ts')).inspectImage,
  czml: async () => (await import('./czml.ts')).inspectCzml,
  tiles3d: async () => (await import('./tiles3d.ts')).inspectTiles3d,
  video: async () => (await import('./video.ts')).inspectVideo,
  vector: async () => (await import('./vector.ts')).inspectVector,
};

/** In the order of `inspectors`: a GeoTIFF is a raster before it is a picture. */
async function detect(file: InspectedFile): Promise<Found> {
  for (const load of Object.values(inspectors)) {
    const inspect = await load();
    try {
      return await inspect(file);
    } catch {
      continue;
    }
  }
  throw notA('file of a known kind');
}

/** Job: reads the file as what its source type claims; UNKNOWN tries all. Throws where nothing fits. */
const job: Job<InspectInput, FileFacts> = async (input, { files: [lent = ''], workFolder }) => {
  // The file itself may only be read: beside this link, in the work folder, GDAL may write.
  const path = join(workFolder, basename(lent));
  await symlink(lent, path);
  const kind = kindOf[input.sourceType];
  const wrapped = await unwrap(path, workFolder).catch((error: unknown) => {
    // A damaged archive may still be another kind's to judge.
    if (error instanceof ArchiveError && !(error instanceof GzipError)) return null;
    throw error;
  });
  const file: InspectedFile = wrapped
    ? { ...input, path: wrapped.path, workFolder, buildOverviews: false }
    : { ...input, path, workFolder };
  const found = kind === 'any' ? await detect(file) : await (await inspectors[kind]())(file);
  if (found.raster?.builtOverviews) await rename(`${path}.ovr`, join(workFolder, overviewsName));
  return { ...found, ...(wrapped ? { mediaType: wrapped.mediaType } : {}), sha256: await digest(lent) };
};
export default job;

async function digest(path: string): Promise<string> {
  const hash = createHash('sha256');
  // A stream without an encoding gives buffers.
  for await (const bytes of createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(bytes as Buffer);
  return hash.digest('hex');
}
