/** Runs in a thread: SHA-256 of files, so that its other thread can go on meanwhile. */
import { parentPort } from 'node:worker_threads';
import { digestOf } from './file-digests.ts';

parentPort?.on('message', ({ id, paths }: { id: number; paths: readonly string[] }) => {
  try {
    parentPort?.postMessage({ id, digests: paths.map(digestOf) });
  } catch (error) {
    // A copy of the system's error would lose its code.
    const { message, code } = error as NodeJS.ErrnoException;
    parentPort?.postMessage({ id, error: { message, code } });
  }
});
