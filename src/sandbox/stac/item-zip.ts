import type { Response } from 'express';
import { pipeline } from 'node:stream/promises';
import yazl from 'yazl';

/**
 * Streams an item's data as a zip archive: its source file, stored as it is (rasters do not shrink), or
 * its metadata alone where it was made of no file. Nothing is held in memory, whatever the file's size.
 */
export async function sendItemZip(res: Response, file: { path: string; name: string } | null, metadataName: string, metadata: unknown): Promise<void> {
  const archive = new yazl.ZipFile();
  if (file) archive.addFile(file.path, file.name, { compress: false });
  else archive.addBuffer(Buffer.from(JSON.stringify(metadata, null, 2)), metadataName, { compress: false });
  const failed = new Promise<never>((_resolve, reject) => archive.on('error', reject));
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
}
