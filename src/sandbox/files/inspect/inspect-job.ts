/** Runs in a child process: what an uploaded file is, by its own bytes. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { Job } from '../../../raster/child-protocol.ts';
import { kindOf, type FileKind } from '../file-kinds.ts';
import { notA, type FileFacts, type Found, type Inspector, type InspectInput } from './facts.ts';
import { inspectCzml } from './czml.ts';
import { inspectImage } from './image.ts';
import { inspectPdf } from './pdf.ts';
import { inspectRaster } from './raster.ts';
import { inspectTiles3d } from './tiles3d.ts';
import { inspectVector } from './vector.ts';
import { inspectVideo } from './video.ts';

const inspectors: Readonly<Record<Exclude<FileKind, 'any'>, Inspector>> = {
  raster: inspectRaster,
  pdf: inspectPdf,
  image: inspectImage,
  czml: inspectCzml,
  tiles3d: inspectTiles3d,
  video: inspectVideo,
  vector: inspectVector,
};

/** In the order of `inspectors`: a GeoTIFF is a raster before it is a picture. */
async function detect(input: InspectInput): Promise<Found> {
  for (const inspect of Object.values(inspectors)) {
    try {
      return await inspect(input);
    } catch {
      continue;
    }
  }
  throw notA('file of a known kind');
}

/** Job: reads the file as what its source type claims; UNKNOWN tries all. Throws where nothing fits. */
const job: Job<InspectInput, FileFacts> = async (input) => {
  const kind = kindOf[input.sourceType];
  const found = kind === 'any' ? await detect(input) : await inspectors[kind](input);
  return { ...found, sha256: await digest(input.path) };
};
export default job;

async function digest(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const bytes of createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(bytes as Buffer);
  return hash.digest('hex');
}
