/** Runs in a thread of a child process: SHA-256 of files, so that its other thread can go on meanwhile. */
import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import type { FileDigest } from './file-digests.ts';

const buffer = Buffer.allocUnsafe(1024 * 1024);

parentPort?.on('message', ({ id, paths }: { id: number; paths: readonly string[] }) => {
  try {
    parentPort?.postMessage({ id, digests: paths.map(digestOf) });
  } catch (error) {
    // A copy of an error would lose its code.
    const { message, code } = error as NodeJS.ErrnoException;
    parentPort?.postMessage({ id, error: { message, code } });
  }
});

function digestOf(path: string): FileDigest {
  const file = openSync(path, 'r');
  try {
    const hash = createHash('sha256');
    let sizeBytes = 0;
    for (;;) {
      const bytes = readSync(file, buffer, 0, buffer.length, null);
      if (bytes === 0) break;
      hash.update(buffer.subarray(0, bytes));
      sizeBytes += bytes;
    }
    return { sizeBytes, sha256: hash.digest('hex') };
  } finally {
    closeSync(file);
  }
}
