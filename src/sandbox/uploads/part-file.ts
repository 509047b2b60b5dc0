import { createHash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';

/** Bytes gathered before they are written: batches of a mebibyte are up to twice as fast as what the socket gives. */
const batchBytes = 1024 * 1024;

export interface WrittenPart {
  readonly size: number;
  readonly sha256: string;
}

/** Takes the bytes of one part and tells their size and digest. */
export interface PartSink {
  /** Takes bytes. A promise: wait for it before giving more. */
  write(bytes: Buffer): Promise<void> | null;
  /** Everything is written. */
  finish(): Promise<WrittenPart>;
  /** Leaves the file as it was before. Safe after `finish` too, while nothing was committed. */
  undo(): Promise<void>;
}

/**
 * Appends a part to the upload's file at `offset`. What an earlier broken try left behind the offset is
 * cut off first. One batch is written while the next is gathered, so at most two are in memory.
 */
export async function appendPart(path: string, offset: number): Promise<PartSink> {
  const file = await open(path, offset === 0 ? 'w' : 'r+');
  await file.truncate(offset);
  const hash = createHash('sha256');
  let size = 0;
  let batch: Buffer[] = [];
  let batched = 0;
  let writing: Promise<void> = Promise.resolve();

  /** Begins to write the batch; resolves when the one before it is written. */
  const flush = (): Promise<void> => {
    const [buffers, length, position] = [batch, batched, offset + size - batched];
    const before = writing;
    writing = before.then(() => writeAll(file, buffers, length, position));
    writing.catch(() => {}); // thrown by whoever waits for it next
    batch = [];
    batched = 0;
    return before;
  };

  return {
    write(bytes) {
      hash.update(bytes);
      batch.push(bytes);
      batched += bytes.length;
      size += bytes.length;
      return batched >= batchBytes ? flush() : null;
    },
    async finish() {
      if (batched > 0) await flush();
      await writing;
      await file.close();
      return { size, sha256: hash.digest('hex') };
    },
    async undo() {
      await writing.catch(() => {});
      await file.close().catch(() => {}); // closed already where finish was reached
      const again = await open(path, 'r+').catch(() => null);
      await again?.truncate(offset).catch(() => {});
      await again?.close();
    },
  };
}

/** Only tells size and digest: for a part that is stored already. */
export function digestPart(): PartSink {
  const hash = createHash('sha256');
  let size = 0;
  return {
    write: (bytes) => {
      hash.update(bytes);
      size += bytes.length;
      return null;
    },
    finish: async () => ({ size, sha256: hash.digest('hex') }),
    undo: async () => {},
  };
}

async function writeAll(file: FileHandle, buffers: readonly Buffer[], length: number, position: number): Promise<void> {
  const { bytesWritten } = await file.writev(buffers, position);
  // A short write is rare, and what follows it (a full disk, mostly) says why.
  if (bytesWritten < length)
    await file.write(Buffer.concat(buffers), bytesWritten, length - bytesWritten, position + bytesWritten);
}

/** Reads `content` to its end into `sink`, at the sink's pace. By events: an iterator would copy small reads together. */
export async function drainInto(sink: PartSink, content: Readable): Promise<WrittenPart> {
  const { promise: writeFailed, reject } = Promise.withResolvers<never>();
  content.on('data', (bytes: Buffer) => {
    const pace = sink.write(bytes);
    if (!pace) return;
    content.pause();
    pace.then(() => content.resume(), reject);
  });
  // `finished` also knows a stream that was destroyed before anybody listened.
  await Promise.race([finished(content, { writable: false }), writeFailed]);
  return sink.finish();
}
