import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { ChildJobError, runInChild, type ChildLimits } from '../../raster/index.ts';
import type { FileRecord, Files } from './files.ts';
import type { FileFacts, InspectInput } from './inspect-job.ts';

const inspectJob = new URL('./inspect-job.ts', import.meta.url);
const childLimits: ChildLimits = { timeoutMs: 10 * 60_000, memoryBytes: 1024 ** 3, diskBytes: 1024 ** 3 };

/** Processes completed uploads, one at a time, each in a child process: QUEUED, IN_PROGRESS, COMPLETED or FAILED (spec 3.2). */
export class FileProcessing {
  #files: Files;
  #blobDir: string;
  #workDir: string;
  #log: Logger;
  #abort = new AbortController();
  #running: Promise<void> | null = null;

  constructor(options: { files: Files; blobDir: string; workDir: string; log: Logger }) {
    this.#files = options.files;
    this.#blobDir = options.blobDir;
    this.#workDir = options.workDir;
    this.#log = options.log;
  }

  /** Begins with what is queued, if nothing runs yet. */
  wake(): void {
    this.#running ??= this.#processAll()
      .catch((error: unknown) => this.#log.error({ err: error }, 'file processing stopped; it goes on with the next file'))
      .finally(() => (this.#running = null));
  }

  /** Leaves what is under way to be queued again, and waits until nothing runs. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error('the sandbox is stopping'));
    await this.#running;
  }

  /** Leaves what is under way, as `stop`, and is ready for more. */
  async restart(): Promise<void> {
    await this.stop();
    this.#abort = new AbortController();
  }

  async #processAll(): Promise<void> {
    const { signal } = this.#abort;
    for (let file = this.#files.nextQueued(); file && !signal.aborted; file = this.#files.nextQueued()) {
      this.#files.start(file.id);
      await this.#process(file, signal);
    }
  }

  async #process(file: FileRecord, signal: AbortSignal): Promise<void> {
    const workFolder = join(this.#workDir, file.id);
    try {
      await mkdir(workFolder, { recursive: true });
      const input: InspectInput = { path: join(this.#blobDir, file.blob), sourceType: file.sourceType };
      const facts = await runInChild<FileFacts>({ module: inspectJob, input, workFolder, limits: childLimits, signal });
      this.#files.complete(file.id, facts);
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof ChildJobError ? error.message : 'the file could not be processed';
      this.#log.info({ fileId: file.id, reason, err: error instanceof ChildJobError ? undefined : error }, 'file failed');
      this.#files.fail(file.id, reason);
    } finally {
      await rm(workFolder, { recursive: true, force: true });
    }
  }
}
