import { createReadStream, type ReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { once } from 'node:events';
import { Transform, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Request, Response } from 'express';
import yazl from 'yazl';
import { readRange } from '../web/ranges.ts';
import { SandboxError } from '../web/sandbox-error.ts';

/**
 * Streams an item's data as a zip archive: its source files, stored as they are (rasters do not shrink), or
 * its metadata alone where it was made of none. Nothing is held in memory, whatever the file's size.
 */
export async function sendItemZip(
  req: Request,
  res: Response,
  files: readonly { path: string; name: string }[],
  metadataName: string,
  metadata: unknown,
): Promise<void> {
  // The same bytes whenever they are asked for, so that they can be asked for in parts.
  const mtime = new Date(Date.UTC(1980, 0, 1));
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
      archive.addReadStreamLazy(
        entryName(file.name),
        { compress: false, mtime, size: (await stat(file.path)).size },
        (done) => done(null, open(file)),
      );
    }
    if (files.length === 0)
      archive.addBuffer(Buffer.from(JSON.stringify(metadata, null, 2)), entryName(metadataName), {
        compress: false,
        mtime,
      });
    archive.on('error', fail.reject);
    const whole = Promise.withResolvers<number>();
    // The types of yazl leave out that the callback is given the size.
    archive.end({ forceZip64Format: false, comment: '' }, whole.resolve as () => void);
    const part = await Promise.race([whole.promise.then((size) => beginPart(req, res, size)), fail.promise]);
    if (req.method === 'HEAD') return void res.end();
    const sent = pipeline(archive.outputStream, cutOut(part), res);
    sent.catch(() => {});
    // The rest of the archive after a part stays unread.
    await Promise.race([sent, once(res, 'finish'), fail.promise]).catch((error: unknown) => {
      // A reader that left is no failure; a file that went away ends the answer short, which its length tells.
      if (!res.headersSent) throw error;
      res.destroy();
    });
  } finally {
    for (const source of sources) source.destroy();
    // The types of yazl name the interface of older streams.
    (archive.outputStream as Readable).destroy();
  }
}

interface Part {
  readonly start: number;
  /** Not included. */
  readonly end: number;
}

/** Says what comes: all of it, or the part that `Range` wants (RFC 9110, 14.2). Throws 416 if it wants bytes that are not there. If it wants several parts, all comes. */
function beginPart(req: Request, res: Response, size: number): Part {
  const all = { start: 0, end: size };
  // Not known before it is made.
  if (!(size >= 0)) return { start: 0, end: Infinity };
  res.set('Accept-Ranges', 'bytes');
  readRange(req, size);
  const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(req.headers.range ?? '') ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) {
    res.set('Content-Length', String(size));
    return all;
  }
  const start = first === '' ? size - Number(last) : Number(first);
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1);
  if (start >= end) {
    res.set('Content-Range', `bytes */${size}`);
    throw new SandboxError('validation_failed', {
      status: 416,
      message: 'Range Not Satisfiable',
      details: [{ path: 'Range', message: `lies beyond the ${size} bytes of the file` }],
    });
  }
  res.status(206).set({ 'Content-Range': `bytes ${start}-${end - 1}/${size}`, 'Content-Length': String(end - start) });
  return { start, end };
}

/** Lets those bytes through, and ends after the last. */
function cutOut({ start, end }: Part): Transform {
  let at = 0;
  return new Transform({
    // A whole archive ends by itself.
    highWaterMark: 256 * 1024,
    transform(bytes: Buffer, _encoding, done) {
      const [from, to] = [Math.max(0, start - at), Math.min(bytes.length, end - at)];
      at += bytes.length;
      if (from < to) this.push(bytes.subarray(from, to));
      if (at < end) return done();
      this.push(null);
    },
  });
}

/** A plain file name: no path, no drive, nothing that an archive may not hold. */
function entryName(name: string): string {
  return name.split(/[\\/]/).at(-1)?.replaceAll(':', '_') || 'data';
}
