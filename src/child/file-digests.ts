import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { Defect } from './failure-kind.ts';

export interface FileDigest {
  readonly sizeBytes: number;
  readonly sha256: string;
}

interface Answer {
  readonly id: number;
  readonly digests?: readonly FileDigest[];
  readonly error?: { readonly message: string; readonly code?: string };
}

/** Default for `smallBytes`: this takes less time than the start of a thread. */
const defaultSmallBytes = 8 * 1024 * 1024;

/** Computes the SHA-256 of files. A thread hashes large batches, one after the other, so that the main thread can do other work. */
export class FileDigests {
  /** Maximum size of a batch that is hashed without the thread, in bytes. */
  #smallBytes: number;
  #worker: Worker | undefined;
  #waiting = new Map<number, { resolve: (digests: readonly FileDigest[]) => void; reject: (error: unknown) => void }>();
  #asked = 0;
  #ended: { readonly error: unknown } | undefined;

  constructor({ smallBytes = defaultSmallBytes }: { readonly smallBytes?: number } = {}) {
    this.#smallBytes = smallBytes;
  }

  /** In the order of `paths`. Rejects with the system's error. */
  of(paths: readonly string[]): Promise<readonly FileDigest[]> {
    const answered = (async () => (this.#isSmall(paths) ? paths.map(digestOf) : this.ofLarge(paths)))();
    // The caller awaits this promise later. Without a handler, Node would end the process for a rejection.
    answered.catch(() => {});
    return answered;
  }

  /** Does the same as `of`, always on the thread. */
  ofLarge(paths: readonly string[]): Promise<readonly FileDigest[]> {
    if (this.#ended) return Promise.reject(this.#ended.error);
    this.#worker ??= this.#started();
    const id = (this.#asked += 1);
    const answered = new Promise<readonly FileDigest[]>((resolve, reject) =>
      this.#waiting.set(id, { resolve, reject }),
    );
    this.#worker.postMessage({ id, paths });
    return answered;
  }

  #isSmall(paths: readonly string[]): boolean {
    const sizes = paths.map((path) => statSync(path, { throwIfNoEntry: false })?.size ?? 0);
    return sizes.reduce((sum, size) => sum + size, 0) <= this.#smallBytes;
  }

  #started(): Worker {
    const worker = new Worker(new URL('./digest-worker.ts', import.meta.url));
    worker.unref();
    worker.on('message', ({ id, digests, error }: Answer) => {
      const asked = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (digests) asked?.resolve(digests);
      else asked?.reject(Object.assign(new Error(error?.message), { code: error?.code }));
    });
    worker.on('error', (error) => this.#end(error));
    worker.on('exit', () => this.#end(new Defect(new Error('the thread that takes digests has ended'))));
    return worker;
  }

  #end(error: unknown): void {
    this.#ended ??= { error };
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }
}

let buffer: Buffer | undefined;

export function digestOf(path: string): FileDigest {
  buffer ??= Buffer.allocUnsafe(1024 * 1024);
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
