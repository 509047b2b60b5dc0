import { mkdir, rename, rm } from 'node:fs/promises';
import { join, parse } from 'node:path';
import type { Logger } from 'pino';
import type { Geometry } from 'geojson';
import { ChildJobError, runInChild, type ChildLimits } from '../../raster/index.ts';
import type { Files } from '../files/files.ts';
import type { InferenceInput, InferenceOutput } from './inference-job.ts';
import type { InferenceJob, InferenceJobs } from './inference-jobs.ts';
import type { Model } from './models.ts';

const inferenceJob = new URL('./inference-job.ts', import.meta.url);
const limits: ChildLimits = { timeoutMs: 3_600_000, memoryBytes: 2 * 1024 ** 3 };

export interface InferenceRunnerOptions {
  readonly jobs: InferenceJobs;
  readonly files: Files;
  readonly models: ReadonlyMap<string, Model>;
  readonly blobDir: string;
  /** Results, by job id. */
  readonly resultDir: string;
  readonly workDir: string;
  readonly log: Logger;
}

/** Runs inference jobs, one at a time, each in a child process. Goes on after a restart. */
export class InferenceRunner {
  #options: InferenceRunnerOptions;
  #abort = new AbortController();
  #running: Promise<void> | null = null;

  constructor(options: InferenceRunnerOptions) {
    this.#options = options;
  }

  /** Begins with what was submitted, if nothing runs yet. */
  wake(): void {
    this.#running ??= this.#runAll()
      .catch((error: unknown) => this.#options.log.error({ err: error }, 'inference stopped; it goes on with the next job'))
      .finally(() => (this.#running = null));
  }

  /** Leaves what is under way to be begun anew, and waits until nothing runs. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error('the sandbox is stopping'));
    await this.#running;
  }

  /** As `stop`, and ready for more. */
  async restart(): Promise<void> {
    await this.stop();
    this.#abort = new AbortController();
  }

  resultPath(job: InferenceJob): string {
    return join(this.#options.resultDir, job.id);
  }

  async #runAll(): Promise<void> {
    const { signal } = this.#abort;
    const { jobs } = this.#options;
    for (let job = jobs.nextSubmitted(); job && !signal.aborted; job = jobs.nextSubmitted()) {
      jobs.start(job.id);
      await this.#run(job, signal);
    }
  }

  async #run(job: InferenceJob, signal: AbortSignal): Promise<void> {
    const { jobs, files, models, blobDir, resultDir, workDir, log } = this.#options;
    const workFolder = join(workDir, job.id);
    try {
      const [model, file] = [models.get(job.modelId), files.find(job.fileId)];
      if (!model || !file) throw new ChildJobError('input_gone', 'the model or the file is not there any more');
      await Promise.all([mkdir(workFolder, { recursive: true }), mkdir(resultDir, { recursive: true })]);
      const geometry = job.geometry === null ? null : (JSON.parse(job.geometry) as Geometry);
      const resultPath = join(workFolder, 'result');
      const input: InferenceInput = { model, rasterPath: join(blobDir, file.blob), geometry, resultPath, workFolder };
      const { extension } = await runInChild<InferenceOutput>({ module: inferenceJob, input, workFolder, limits, signal });
      await rename(resultPath, this.resultPath(job));
      jobs.complete(job.id, `${parse(file.originalName).name}-${model.id}.${extension}`);
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof ChildJobError ? error.message : 'the model could not be run';
      log.info({ inferenceId: job.id, reason, err: error instanceof ChildJobError ? undefined : error }, 'inference failed');
      jobs.fail(job.id, reason);
    } finally {
      await rm(workFolder, { recursive: true, force: true });
    }
  }
}
