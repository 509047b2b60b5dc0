import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { ChildPool, isJobFailure, type ChildLimits, type Confinement } from '../../child/index.ts';
import { copyPlainFile } from '../../files/index.ts';
import { isOfTheMachine } from '../machine-error.ts';
import { WorkLoop } from '../work-loop.ts';
import type { FileRecord, Files } from '../uploads/files.ts';
import { overviewsName, type FileFacts, type InspectInput } from '../inspect/facts.ts';
import { inspection, readFacts } from '../inspect/read-facts.ts';
import { unreadFacts } from '../inspect/unread-facts.ts';

const defaultLimits: ChildLimits = { timeoutMs: 10 * 60_000, memoryBytes: 1024 ** 3, diskBytes: 1024 ** 3 };

export interface FileProcessingOptions {
  readonly files: Files;
  readonly confinement: Confinement;
  readonly blobDir: string;
  /** Folder for overviews built for rasters, `<blob>.ovr`. */
  readonly overviewDir: string;
  readonly workDir: string;
  readonly log: Logger;
  /** Publishes a file that was read; runs in the transaction that completes it. */
  readonly publish: (file: FileRecord, facts: FileFacts) => void;
  /** Default: the inspection of this folder. */
  readonly job?: URL;
  readonly limits?: ChildLimits;
}

/** Files that are processed at a time: one more than a single user may have, so that nobody's large one keeps another's waiting. */
const workers = Math.max(2, availableParallelism());
const maxOfOneUser = workers - 1;

/** Processes completed uploads, a few at a time, each in a child process: QUEUED, IN_PROGRESS, COMPLETED or FAILED (spec 3.2). */
export class FileProcessing {
  #options: FileProcessingOptions;
  #loop: WorkLoop<FileRecord>;
  #pool: ChildPool;

  constructor(options: FileProcessingOptions) {
    this.#options = options;
    const { confinement, workDir, files, log, limits = defaultLimits } = options;
    this.#pool = new ChildPool({ confinement, folder: join(workDir, 'inspection'), size: workers, limits });
    this.#loop = new WorkLoop({
      take: () => files.takeQueued(maxOfOneUser),
      run: (file, signal, isLastTry) => this.#process(file, signal, isLastTry),
      onError: (error) => log.error({ err: error }, 'file processing stopped; it continues with the next file'),
      concurrency: workers,
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

  /** Leaves what is under way, and is ready for more. */
  restart(): Promise<void> {
    return this.#loop.restart();
  }

  /** Stops processing for good. */
  async close(): Promise<void> {
    await this.#loop.stop();
    await this.#pool.close();
  }

  async #process(file: FileRecord, signal: AbortSignal, isLastTry: boolean): Promise<void> {
    const { files, log, publish } = this.#options;
    try {
      const facts = await this.#inspect(file, signal);
      files.complete(file.id, facts, () => publish(file, facts));
    } catch (error) {
      if (signal.aborted) return;
      // The machine failed, not the file, so the sandbox tries the file again.
      if (isOfTheMachine(error) && !isLastTry) throw error;
      const reason = isJobFailure(error) ? error.message : 'the sandbox could not process the file';
      log.info({ fileId: file.id, reason, err: isJobFailure(error) ? undefined : error }, 'file failed');
      return files.fail(file.id, reason);
    }
  }

  async #inspect(file: FileRecord, signal: AbortSignal): Promise<FileFacts> {
    const { blobDir, confinement, overviewDir, job } = this.#options;
    if (confinement.kind === 'absent') return unreadFacts(join(blobDir, file.blob), file.sourceType, signal);
    const input: InspectInput = { sourceType: file.sourceType };
    const answer = await this.#pool.run<unknown>({
      ...inspection,
      ...(job && { module: job }),
      input,
      owner: file.userId,
      files: [{ path: join(blobDir, file.blob), name: file.originalName }],
      signal,
      collect: async (workFolder, found) => {
        if (readFacts(found).raster?.builtOverviews)
          await copyPlainFile(join(workFolder, overviewsName), join(overviewDir, `${file.blob}.ovr`));
      },
    });
    return readFacts(answer);
  }
}
