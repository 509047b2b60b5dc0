import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { ChildJobError, lendFile, runInChild, type ChildLimits } from '../../raster/index.ts';
import { WorkLoop } from '../work-loop.ts';
import type { FileRecord, Files } from './files.ts';
import type { FileFacts, InspectInput } from './inspect/facts.ts';

const defaultJob = new URL('./inspect/inspect-job.ts', import.meta.url);
const defaultLimits: ChildLimits = { timeoutMs: 10 * 60_000, memoryBytes: 1024 ** 3, diskBytes: 1024 ** 3 };

export interface FileProcessingOptions {
  readonly files: Files;
  readonly blobDir: string;
  /** Where overviews go that were built beside a raster, `<blob>.ovr`. */
  readonly overviewDir: string;
  readonly workDir: string;
  readonly log: Logger;
  /** Publishes a file that was read; runs in the transaction that completes it. */
  readonly publish: (file: FileRecord, facts: FileFacts) => void;
  /** Told when that is committed. */
  readonly afterPublishing: () => void;
  /** Default: the inspection of this folder. */
  readonly job?: URL;
  readonly limits?: ChildLimits;
}

/** Processes completed uploads, one at a time, each in a child process: QUEUED, IN_PROGRESS, COMPLETED or FAILED (spec 3.2). */
export class FileProcessing {
  #options: FileProcessingOptions;
  #loop: WorkLoop<FileRecord>;

  constructor(options: FileProcessingOptions) {
    this.#options = options;
    this.#loop = new WorkLoop({
      take: () => options.files.takeQueued(),
      run: (file, signal) => this.#process(file, signal),
      onError: (error) => options.log.error({ err: error }, 'file processing stopped; it goes on with the next file'),
    });
  }

  /** Begins with what is queued. */
  wake(): void {
    this.#loop.wake();
  }

  /** Leaves what is under way to be queued again at the next start. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  restart(): Promise<void> {
    return this.#loop.restart();
  }

  async #process(file: FileRecord, signal: AbortSignal): Promise<void> {
    const { files, log, publish, afterPublishing } = this.#options;
    try {
      const facts = await this.#inspect(file, signal);
      files.complete(file.id, facts, () => publish(file, facts));
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof ChildJobError ? error.message : 'the file could not be processed';
      log.info({ fileId: file.id, reason, err: error instanceof ChildJobError ? undefined : error }, 'file failed');
      return files.fail(file.id, reason);
    }
    // At once: whoever reads COMPLETED finds the item.
    afterPublishing();
  }

  async #inspect(file: FileRecord, signal: AbortSignal): Promise<FileFacts> {
    const { workDir, blobDir, job = defaultJob, limits = defaultLimits } = this.#options;
    const workFolder = join(workDir, file.id);
    try {
      const path = await lendFile(join(blobDir, file.blob), join(workFolder, 'file'), file.originalName);
      const input: InspectInput = { path, workFolder, sourceType: file.sourceType };
      const facts = await runInChild<FileFacts>({ module: job, input, workFolder, limits, signal });
      if (facts.raster?.builtOverviews) await this.#keepOverviews(file, path);
      return facts;
    } finally {
      await rm(workFolder, { recursive: true, force: true });
    }
  }

  async #keepOverviews(file: FileRecord, path: string): Promise<void> {
    await mkdir(this.#options.overviewDir, { recursive: true });
    await rename(`${path}.ovr`, join(this.#options.overviewDir, `${file.blob}.ovr`));
  }
}
