import { open, type FileHandle } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';

/** Bytes gathered before they are written. What waits longer outlives its generation and lies about: a mebibyte takes 20 MiB more at the peak, and is no faster. */
const batchBytes = 256 * 1024;

/** Takes the bytes of one part. */
export interface PartSink {
  /** Takes bytes. A promise: wait for it before giving more. */
  write(bytes: Buffer): Promise<void> | null;
  /** Everything is taken; gives how much. */
  finish(): Promise<number>;
  /** Leaves the file as it was before. Safe after `finish` too, while nothing was committed. */
  undo(): Promise<void>;
}

/**
 * Appends a part to the upload's file at `offset`. What an earlier broken try left behind the offset is
 * cut off first. One batch is written while the next is gathered, so at most two are in memory.
 */
export async function appendPart(path: string, offset: number): Promise<PartSink> {
  const file = await open(path, offset === 0 ? 'w' : 'r+');
  await file.truncate(offset).catch(async (error: unknown) => {
    await file.close();
    throw error;
  });
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
      batch.push(bytes);
      batched += bytes.length;
      size += bytes.length;
      return batched >= batchBytes ? flush() : null;
    },
    async finish() {
      if (batched > 0) await flush();
      await writing;
      await file.close();
      return size;
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

/** Location of a stored part. */
export interface StoredBytes {
  readonly path: string;
  readonly offset: number;
  readonly size: number;
}

/** Holds a part that comes again against the bytes that are stored: `isSame`, when it is finished. Writes nothing. */
export async function comparePart({ path, offset, size }: StoredBytes): Promise<PartSink & { isSame(): boolean }> {
  const file = await open(path, 'r');
  const stored = Buffer.allocUnsafe(batchBytes);
  let [taken, isAlike] = [0, true];
  const close = () => file.close().catch(() => {}); // closed already where finish was reached

  /** Reads as much as came, piece by piece. */
  async function compare(bytes: Buffer, at: number): Promise<void> {
    for (let done = 0; done < bytes.length && isAlike;) {
      const piece = Math.min(stored.length, bytes.length - done);
      const { bytesRead } = await file.read(stored, 0, piece, offset + at + done);
      isAlike = bytesRead > 0 && stored.subarray(0, bytesRead).equals(bytes.subarray(done, done + bytesRead));
      done += bytesRead;
    }
  }

  return {
    write(bytes) {
      const at = taken;
      taken += bytes.length;
      isAlike &&= taken <= size;
      return isAlike ? compare(bytes, at) : null;
    },
    async finish() {
      await close();
      return taken;
    },
    undo: close,
    isSame: () => isAlike && taken === size,
  };
}

async function writeAll(file: FileHandle, buffers: readonly Buffer[], length: number, position: number): Promise<void> {
  const { bytesWritten } = await file.writev(buffers, position);
  // A short write is rare, and what follows it (a full disk, mostly) says why.
  if (bytesWritten < length)
    await file.write(Buffer.concat(buffers), bytesWritten, length - bytesWritten, position + bytesWritten);
}

/** Reads `content` to its end into `sink`, at the sink's pace; gives how many bytes came. By events: an iterator would copy small reads together. */
export async function drainInto(sink: PartSink, content: Readable): Promise<number> {
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
