import type { BeforeCall } from '../call/before-call.ts';
import type { FilesStores } from '../files/files-slice.ts';
import type { Services, Slice } from '../slices.ts';
import { InferenceJobs } from './inference-jobs.ts';
import { InferenceRunner } from './inference-runner.ts';
import { loadModels } from './models.ts';
import { inferenceRoutes, type InferenceRoutesOptions } from './routes.ts';

export interface InferenceStores {
  readonly models: InferenceRoutesOptions['models'];
  readonly jobs: InferenceJobs;
  readonly runner: InferenceRunner;
  /** Options of the inference routes, for the platform and for the sandbox's own pages. */
  readonly inferenceApi: Omit<InferenceRoutesOptions, 'before'>;
}

/** Opens the models and their jobs (section 4.7). `unavailable`: the reason why no model can run, else null. */
export async function openInference(
  { config, database, clock, confinement, folders, log }: Services,
  { files }: FilesStores,
  unavailable: string | null,
): Promise<Slice<InferenceStores, { readonly before: BeforeCall }>> {
  const { blobDir, resultDir, workDir } = folders;
  const models = await loadModels(config.dataDir, log);
  const jobs = new InferenceJobs(database, clock);
  const runner = new InferenceRunner({ jobs, files, models, blobDir, resultDir, workDir, confinement, log });
  const inferenceApi = { models, jobs, runner, files, unavailable };
  return {
    stores: { models, jobs, runner, inferenceApi },
    topics: [['jobs', ['inference_jobs']]],
    routes: ({ before }) => inferenceRoutes({ ...inferenceApi, before }),
    start() {
      jobs.requeueUnfinished();
      runner.wake();
    },
    pause: () => runner.stop(),
    async resume() {
      await runner.restart();
      runner.wake();
    },
    forget: () => void database.exec('delete from inference_jobs'),
    results: [resultDir],
    close: () => runner.stop(),
  };
}
