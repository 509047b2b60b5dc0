import { createHash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';

/** Bytes gathered before they are written: batches of a mebibyte are up to twice as fast as what the socket gives. */
const batchBytes = 1024 * 1024;

export interface WrittenPart {
  readonly size: number;
  readonly sha256: string;
}

/** Takes the bytes of one part and tells their size and digest. */
export interface PartSink {
  write(bytes: Buffer): Promise<void>;
  /** Everything is on its way to the disk. */
  finish(): Promise<WrittenPart>;
  /** Leaves the file as it was before. Safe after `finish` too, while nothing was committed. */
  undo(): Promise<void>;
}

/** Appends a part to the upload's file at `offset`. What an earlier broken try left behind the offset is cut off first. */
export async function appendPart(path: string, offset: number): Promise<PartSink> {
  const file = await open(path, offset === 0 ? 'w' : 'r+');
  await file.truncate(offset);
  const hash = createHash('sha256');
  let size = 0;
  let batch: Buffer[] = [];
  let batched = 0;
  const flush = async () => {
    if (batched > 0) await writeAll(file, batch, batched, offset + size - batched);
    batch = [];
    batched = 0;
  };
  return {
    async write(bytes) {
      hash.update(bytes);
      batch.push(bytes);
      batched += bytes.length;
      size += bytes.length;
      if (batched >= batchBytes) await flush();
    },
    async finish() {
      await flush();
      await file.close();
      return { size, sha256: hash.digest('hex') };
    },
    async undo() {
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
    write: async (bytes) => {
      hash.update(bytes);
      size += bytes.length;
    },
    finish: async () => ({ size, sha256: hash.digest('hex') }),
    undo: async () => {},
  };
}

async function writeAll(file: FileHandle, buffers: readonly Buffer[], length: number, position: number): Promise<void> {
  const { bytesWritten } = await file.writev(buffers, position);
  // A short write is rare, and what follows it (a full disk, mostly) says why.
  if (bytesWritten < length) await file.write(Buffer.concat(buffers), bytesWritten, length - bytesWritten, position + bytesWritten);
}
