import { mkdir, rename, rm } from 'node:fs/promises';
import { join, parse } from 'node:path';
import type { Logger } from 'pino';
import type { Geometry } from 'geojson';
import { ChildJobError, lendFile, runInChild, type ChildLimits } from '../../raster/index.ts';
import type { Files } from '../files/files.ts';
import { WorkLoop } from '../work-loop.ts';
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
  #loop: WorkLoop<InferenceJob>;

  constructor(options: InferenceRunnerOptions) {
    this.#options = options;
    this.#loop = new WorkLoop({
      take: () => options.jobs.takeSubmitted(),
      run: (job, signal) => this.#run(job, signal),
      onError: (error) => options.log.error({ err: error }, 'inference stopped; it goes on with the next job'),
    });
  }

  /** Begins with what was submitted. */
  wake(): void {
    this.#loop.wake();
  }

  /** Leaves what is under way to be begun anew at the next start. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  restart(): Promise<void> {
    return this.#loop.restart();
  }

  resultPath(job: InferenceJob): string {
    return join(this.#options.resultDir, job.id);
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
      const rasterPath = await lendFile(join(blobDir, file.blob), join(workFolder, 'file'), file.originalName);
      const input: InferenceInput = { model, rasterPath, geometry, resultPath, workFolder };
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
