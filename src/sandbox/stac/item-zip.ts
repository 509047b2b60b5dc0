import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Response } from 'express';
import { pipeline } from 'node:stream/promises';
import yazl from 'yazl';

/**
 * Streams an item's data as a zip archive: its source file, stored as it is (rasters do not shrink), or
 * its metadata alone where it was made of no file. Nothing is held in memory, whatever the file's size.
 */
export async function sendItemZip(res: Response, file: { path: string; name: string } | null, metadataName: string, metadata: unknown): Promise<void> {
  const archive = new yazl.ZipFile();
  // Opened here and not by yazl, which would leave it open where the reader goes away.
  const source = file && createReadStream(file.path, { highWaterMark: 256 * 1024 });
  try {
    if (file && source) archive.addReadStream(source, entryName(file.name), { compress: false, size: (await stat(file.path)).size });
    else archive.addBuffer(Buffer.from(JSON.stringify(metadata, null, 2)), entryName(metadataName), { compress: false });
    const failed = new Promise<never>((_resolve, reject) => {
      archive.on('error', reject);
      source?.on('error', reject);
    });
    const tellSize = (size: number) => {
      if (size >= 0 && !res.headersSent) res.set('Content-Length', String(size));
    };
    // The types of yazl leave out that the callback is given the size.
    archive.end({ forceZip64Format: false, comment: '' }, tellSize as () => void);
    await Promise.race([pipeline(archive.outputStream, res), failed]).catch((error: unknown) => {
      // A reader that left is no failure; a file that went away ends the answer short, which its length tells.
      if (!res.headersSent) throw error;
      res.destroy();
    });
  } finally {
    source?.destroy();
  }
}

/** A plain file name: no path, no drive, nothing that an archive may not hold. */
function entryName(name: string): string {
  return name.split(/[\\/]/).at(-1)?.replaceAll(':', '_') || 'data';
}
