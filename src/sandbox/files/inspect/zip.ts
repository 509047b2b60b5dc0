import { createWriteStream } from 'node:fs';
import { basename, join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import yauzl from 'yauzl';
import { KitError } from '../../../contract/kit-error.ts';

const maxEntries = 10_000;
/** Unpacked, all together. */
const maxBytes = 512 * 1024 * 1024;

/**
 * Unpacks the entries that `wanted` names into `folder`, each under the name that it gives (never a path);
 * answers those names. Throws where the archive is broken, or larger than it may be.
 */
export async function unpack(path: string, folder: string, wanted: (entryName: string) => string | null): Promise<string[]> {
  const archive = await yauzl.openPromise(path);
  const names: string[] = [];
  let left = maxBytes;
  try {
    let entries = 0;
    for await (const entry of archive.eachEntry()) {
      if ((entries += 1) > maxEntries) throw new KitError('archive_too_large', `the archive has more than ${maxEntries} entries`);
      const name = wanted(entry.fileName);
      if (name === null) continue;
      const counted = new Transform({
        transform(bytes: Buffer, _encoding, done) {
          left -= bytes.length;
          done(left < 0 ? new KitError('archive_too_large', `the archive unpacks to more than ${maxBytes} bytes`) : null, bytes);
        },
      });
      await pipeline(await archive.openReadStreamPromise(entry), counted, createWriteStream(join(folder, basename(name)), { flags: 'wx' }));
      names.push(basename(name));
    }
  } finally {
    archive.close();
  }
  return names;
}
