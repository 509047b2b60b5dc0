import { dirname, join, parse } from 'node:path';
import type { Logger } from 'pino';
import type { Geometry } from 'geojson';
import { ChildJobError, isJobFailure, runInChild, type ChildLimits, type Confinement } from '../../child/index.ts';
import { movePlainFile, ownJson, removeFolder } from '../../files/index.ts';
import type { Files } from '../uploads/files.ts';
import { isOfTheMachine } from '../machine-error.ts';
import { WorkLoop } from '../work-loop.ts';
import type { InferenceInput } from './inference-job.ts';
import type { InferenceJob, InferenceJobs } from './inference-jobs.ts';
import type { Model } from './models.ts';

const inferenceJob = new URL('./inference-job.ts', import.meta.url);
const limits: ChildLimits = { timeoutMs: 3_600_000, memoryBytes: 2 * 1024 ** 3 };

/** Schema for the answer of the job's process, which a file may have taken over. */

export interface InferenceRunnerOptions {
  readonly jobs: InferenceJobs;
  readonly files: Files;
  readonly confinement: Confinement;
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
      run: (job, signal, isLastTry) => this.#run(job, signal, isLastTry),
      onError: (error) => options.log.error({ err: error }, 'inference stopped; it continues with the next job'),
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

  async #run(job: InferenceJob, signal: AbortSignal, isLastTry: boolean): Promise<void> {
    const { jobs, files, models, blobDir, workDir, confinement, log } = this.#options;
    const workFolder = join(workDir, job.id);
    try {
      const [model, file] = [models.get(job.modelId), files.find(job.fileId)];
      if (!model || !file) throw new ChildJobError('input_gone', 'the model or the file no longer exists');
      const geometry = job.geometry === null ? null : ownJson<Geometry>(job.geometry);
      const input: InferenceInput = { model, geometry };
      const lent = { path: join(blobDir, file.blob), name: file.originalName };
      await runInChild<unknown>({
        module: inferenceJob,
        input,
        files: [lent],
        reads: [dirname(model.onnxPath)],
        workFolder,
        confinement,
        limits,
        signal,
      });
      await movePlainFile(join(workFolder, 'result'), this.resultPath(job));
      jobs.complete(job.id, `${parse(file.originalName).name}-${model.id}.tif`);
    } catch (error) {
      if (signal.aborted) return;
      // The machine failed, not the file, so the sandbox tries the job again.
      if (isOfTheMachine(error) && !isLastTry) throw error;
      const reason = isJobFailure(error) ? error.message : 'the sandbox could not run the model';
      log.info({ inferenceId: job.id, reason, err: isJobFailure(error) ? undefined : error }, 'inference failed');
      jobs.fail(job.id, reason);
    } finally {
      await removeFolder(workFolder);
    }
  }
}
