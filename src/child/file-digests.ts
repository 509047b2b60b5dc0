/** Only for child processes. */
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

/** SHA-256 of files, one batch after the other, on a thread of its own: GDAL's calls hold the process's first. */
export class FileDigests {
  #worker: Worker;
  #waiting = new Map<number, { resolve: (digests: readonly FileDigest[]) => void; reject: (error: unknown) => void }>();
  #asked = 0;
  #ended: { readonly error: unknown } | undefined;

  constructor() {
    this.#worker = new Worker(new URL('./digest-worker.ts', import.meta.url));
    // What waits for it keeps the process alive.
    this.#worker.unref();
    this.#worker.on('message', ({ id, digests, error }: Answer) => {
      const asked = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (digests) asked?.resolve(digests);
      else asked?.reject(Object.assign(new Error(error?.message), { code: error?.code }));
    });
    this.#worker.on('error', (error) => this.#end(error));
    this.#worker.on('exit', () => this.#end(new Defect(new Error('the thread that takes digests has ended'))));
  }

  /** In the order of `paths`. Rejects with the system's error. */
  of(paths: readonly string[]): Promise<readonly FileDigest[]> {
    if (this.#ended) return Promise.reject(this.#ended.error);
    const id = (this.#asked += 1);
    const answered = new Promise<readonly FileDigest[]>((resolve, reject) =>
      this.#waiting.set(id, { resolve, reject }),
    );
    // Who waits for it later finds it then.
    answered.catch(() => {});
    this.#worker.postMessage({ id, paths });
    return answered;
  }

  #end(error: unknown): void {
    this.#ended ??= { error };
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
