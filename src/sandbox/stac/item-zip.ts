import { createReadStream, type ReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Response } from 'express';
import { pipeline } from 'node:stream/promises';
import yazl from 'yazl';

/**
 * Streams an item's data as a zip archive: its source files, stored as they are (rasters do not shrink), or
 * its metadata alone where it was made of none. Nothing is held in memory, whatever the file's size.
 */
export async function sendItemZip(
  res: Response,
  files: readonly { path: string; name: string }[],
  metadataName: string,
  metadata: unknown,
): Promise<void> {
  const archive = new yazl.ZipFile();
  // Opened here and not by yazl, which would leave it open where the reader goes away.
  const sources: ReadStream[] = [];
  const fail = Promise.withResolvers<never>();
  // One after the other: each is opened when those before it have been read.
  const open = ({ path }: { path: string }) => {
    const source = createReadStream(path, { highWaterMark: 256 * 1024 });
    sources.push(source);
    source.on('error', fail.reject);
    return source;
  };
  fail.promise.catch(() => {});
  try {
    for (const file of files) {
      archive.addReadStreamLazy(entryName(file.name), { compress: false, size: (await stat(file.path)).size }, (done) =>
        done(null, open(file)),
      );
    }
    if (files.length === 0)
      archive.addBuffer(Buffer.from(JSON.stringify(metadata, null, 2)), entryName(metadataName), { compress: false });
    archive.on('error', fail.reject);
    const tellSize = (size: number) => {
      if (size >= 0 && !res.headersSent) res.set('Content-Length', String(size));
    };
    // The types of yazl leave out that the callback is given the size.
    archive.end({ forceZip64Format: false, comment: '' }, tellSize as () => void);
    await Promise.race([pipeline(archive.outputStream, res), fail.promise]).catch((error: unknown) => {
      // A reader that left is no failure; a file that went away ends the answer short, which its length tells.
      if (!res.headersSent) throw error;
      res.destroy();
    });
  } finally {
    for (const source of sources) source.destroy();
  }
}

/** A plain file name: no path, no drive, nothing that an archive may not hold. */
function entryName(name: string): string {
  return name.split(/[\\/]/).at(-1)?.replaceAll(':', '_') || 'data';
}
