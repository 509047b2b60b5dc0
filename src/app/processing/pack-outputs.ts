import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import yazl from 'yazl';
import type { Provenance } from './provenance.ts';
import type { RunOutput } from './take-outputs.ts';

/** Modification time of every entry, so that the same outputs make the same archive. */
const mtime = new Date('1980-01-01T12:00:00Z');

/** Puts a run's outputs, and what made them, into one zip at `path`, stored as they are (rasters do not shrink), and removes them. */
export async function packOutputs(
  outputs: readonly RunOutput[],
  provenance: Provenance,
  path: string,
  signal: AbortSignal,
): Promise<RunOutput> {
  const archive = new yazl.ZipFile();
  const failed = new Promise<never>((_resolve, reject) => archive.on('error', reject));
  failed.catch(() => {});
  for (const output of outputs) archive.addFile(output.path, basename(output.path), { compress: false, mtime });
  archive.addBuffer(Buffer.from(`${JSON.stringify(provenance, null, 2)}\n`), 'provenance.json', {
    compress: false,
    mtime,
  });
  archive.end();
  const hash = createHash('sha256');
  let sizeBytes = 0;
  const counted = new Transform({
    transform(bytes: Buffer, _encoding, done) {
      hash.update(bytes);
      sizeBytes += bytes.length;
      done(null, bytes);
    },
  });
  await Promise.race([pipeline(archive.outputStream, counted, createWriteStream(path), { signal }), failed]);
  for (const output of outputs) await rm(output.path);
  return { path, sizeBytes, sha256: hash.digest('hex') };
}
