import { createWriteStream } from 'node:fs';
import { basename, join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import yauzl from 'yauzl';
import { KitError } from '../contract/kit-error.ts';
import { isTransient } from '../files/index.ts';

/** An archive that is broken, larger than it may be, or holds what it may not. */
export class ArchiveError extends KitError {
  constructor(code: 'archive_too_large' | 'archive_broken', message: string, cause?: unknown) {
    super(code, message, { status: 422, cause });
  }
}

export interface UnpackLimits {
  readonly entries: number;
  /** Unpacked, all together, as the bytes come and not as the archive says. */
  readonly bytes: number;
}

/** Input of the job in `unpack-job.ts`. */
export interface UnpackInput {
  /** Kind of data to take from the archive. */
  readonly kind: 'raster' | 'vector';
  readonly limits: UnpackLimits;
}

export const smallArchive: UnpackLimits = { entries: 10_000, bytes: 512 * 1024 * 1024 };

/**
 * Unpacks the entries of a zip archive that `wanted` names into `folder`, each under the name that it gives
 * (never a path); answers those names. Throws `ArchiveError`, and what `signal` was aborted with.
 */
export async function unpack(
  path: string,
  folder: string,
  wanted: (entryName: string) => string | null,
  limits: UnpackLimits = smallArchive,
  signal?: AbortSignal,
): Promise<string[]> {
  const names: string[] = [];
  let left = limits.bytes;
  const tooLarge = (what: string) => new ArchiveError('archive_too_large', `the archive ${what}`);
  let archive: Awaited<ReturnType<typeof yauzl.openPromise>> | null = null;
  try {
    // Names that are absolute, or lead out of the folder, end it here.
    archive = await yauzl.openPromise(path);
    let entries = 0;
    for await (const entry of archive.eachEntry()) {
      if ((entries += 1) > limits.entries) throw tooLarge(`has more than ${limits.entries} entries`);
      const name = wanted(entry.fileName);
      if (name === null) continue;
      const counted = new Transform({
        transform(bytes: Buffer, _encoding, done) {
          left -= bytes.length;
          done(left < 0 ? tooLarge(`unpacks to more than ${limits.bytes} bytes`) : null, bytes);
        },
      });
      await pipeline(
        await archive.openReadStreamPromise(entry),
        counted,
        createWriteStream(join(folder, basename(name)), { flags: 'wx' }),
        { signal },
      );
      names.push(basename(name));
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof KitError || isTransient(error)) throw error;
    // A system's error would tell a path of this machine.
    const reason = error instanceof Error && !('code' in error) ? error.message : 'it is damaged';
    throw new ArchiveError('archive_broken', `the archive cannot be read: ${reason}`, error);
  } finally {
    archive?.close();
  }
  return names;
}
