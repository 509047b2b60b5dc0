/** Only for child processes: the one file that another holds. */
import { createReadStream, createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, extname, join, parse } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { isTransient } from '../files/index.ts';
import { ArchiveError, smallArchive, unpack } from './unpack.ts';

/** A gzip file that nobody can read: it is nothing else. */
export class GzipError extends ArchiveError {}

export interface Unwrapped {
  /** In the folder. */
  readonly path: string;
  /** Media type of the wrapper. */
  readonly mediaType: 'application/gzip' | 'application/zip';
}

/**
 * Brings what a wrapped file holds into `folder`: a gzip file's content, or the data and the header of an ENVI raster
 * that come in a zip archive. Null where the file is neither. Throws `ArchiveError` where it is damaged or too large.
 */
export async function unwrap(path: string, folder: string, signal?: AbortSignal): Promise<Unwrapped | null> {
  const start = await readStart(path);
  if (start.readUInt16BE(0) === 0x1f8b)
    return { path: await gunzip(path, folder, signal), mediaType: 'application/gzip' };
  if (start.toString('latin1') !== 'PK\u0003\u0004') return null;
  const envi = await unpackEnvi(path, folder, signal);
  return envi === null ? null : { path: envi, mediaType: 'application/zip' };
}

/** Unpacks a gzip file as its name without `.gz`; answers the path. Throws `ArchiveError` where it is damaged, or larger than `maxBytes`. */
export async function gunzip(
  path: string,
  folder: string,
  signal?: AbortSignal,
  maxBytes = smallArchive.bytes,
): Promise<string> {
  const { name, ext, base } = parse(path);
  const content = join(folder, /^\.(gz|gzip)$/i.test(ext) && name !== '' ? name : `${base}.content`);
  let left = maxBytes;
  const counted = new Transform({
    transform(bytes: Buffer, _encoding, done) {
      left -= bytes.length;
      done(
        left < 0 ? new GzipError('archive_too_large', `the gzip file unpacks to more than ${maxBytes} bytes`) : null,
        bytes,
      );
    },
  });
  try {
    await pipeline(createReadStream(path), createGunzip(), counted, createWriteStream(content, { flags: 'wx' }), {
      signal,
    });
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof ArchiveError || isTransient(error)) throw error;
    throw new GzipError('archive_broken', 'the gzip file cannot be read: it is damaged', error);
  }
  return content;
}

/** Endings that data of an ENVI raster have; its header is called like them, with `.hdr` for the ending or after it. */
const enviData: ReadonlySet<string> = new Set(['', '.dat', '.img', '.bin', '.raw', '.bsq', '.bil', '.bip', '.envi']);

/** Null where the archive does not hold just one pair. */
async function unpackEnvi(path: string, folder: string, signal?: AbortSignal): Promise<string | null> {
  const entries: string[] = [];
  await unpack(path, folder, (entry) => (entries.push(entry), null), smallArchive, signal);
  const [header, second] = entries.filter((entry) => extname(entry).toLowerCase() === '.hdr');
  if (header === undefined || second !== undefined) return null;
  const stem = header.slice(0, -'.hdr'.length);
  const data = entries.filter(
    (entry) =>
      entry === stem || (entry !== header && parsedStem(entry) === stem && enviData.has(extname(entry).toLowerCase())),
  );
  if (data.length !== 1) return null;
  const name = `${parse(basename(stem)).name || 'raster'}.img`;
  await unpack(
    path,
    folder,
    (entry) => (entry === header ? `${parse(name).name}.hdr` : entry === data[0] ? name : null),
    smallArchive,
    signal,
  );
  return join(folder, name);
}

const parsedStem = (entry: string) => entry.slice(0, entry.length - extname(entry).length);

async function readStart(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    return (await file.read(Buffer.alloc(4), 0, 4, 0)).buffer;
  } finally {
    await file.close();
  }
}
