import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { Router } from 'express';
import {
  downloadInference,
  getInferenceStatus,
  listModels,
  runInference,
  type InferenceJobView,
} from '../../contract/index.ts';
import { iso } from '../clock.ts';
import type { BeforeCall, PlatformRoute } from '../call/before-call.ts';
import { CallRouter } from '../call/call-router.ts';
import type { Files } from '../uploads/files.ts';
import { sendAsDownload } from '../web/untrusted-content.ts';
import { parseValues, SandboxError } from '../web/sandbox-error.ts';
import type { InferenceJob, InferenceJobs } from './inference-jobs.ts';
import type { InferenceRunner } from './inference-runner.ts';
import type { Model } from './models.ts';

export interface InferenceRoutesOptions {
  readonly models: ReadonlyMap<string, Model>;
  readonly jobs: InferenceJobs;
  readonly runner: InferenceRunner;
  readonly files: Files;
  readonly before: BeforeCall;
  /** Reason why no model can run; null if models can. */
  readonly unavailable: string | null;
}

/** The inference endpoints (spec 4.7, 7). */
export function inferenceRoutes({ models, jobs, runner, files, before, unavailable }: InferenceRoutesOptions): Router {
  const calls = new CallRouter<PlatformRoute>(before);
  const jobNotFound = () => new SandboxError('inference_job_not_found');

  calls.on(
    listModels,
    (_req, res) =>
      void res.json(
        [...models.values()]
          .filter(({ active }) => active)
          .map(({ id, name, version, type, labels }) => ({ id, name, version, type, labels })),
      ),
  );

  calls.on(runInference, (req, res) => {
    const { modelId, fileId, geometry } = parseValues(runInference.fields, req.body);
    // The file first: its answer is the one that the spec knows (section 7).
    if (!files.find(fileId)) throw new SandboxError('file_not_found');
    const model = models.get(modelId);
    if (!model) throw new SandboxError('model_not_found');
    if (!model.active) throw new SandboxError('model_not_active', { message: `Model ${modelId} is not active` });
    if (unavailable !== null)
      throw new SandboxError('inference_unavailable', {
        message: unavailable,
        details: [{ path: '', message: unavailable }],
      });
    const job = jobs.submit(model, fileId, geometry ? JSON.stringify(geometry) : null);
    runner.wake();
    res.json(view(job));
  });

  calls.on(getInferenceStatus, (req, res) => {
    const { inferenceId } = parseValues(getInferenceStatus.query, req.query);
    const job = jobs.find(inferenceId);
    if (!job) throw jobNotFound();
    res.json(view(job));
  });

  calls.on(downloadInference, async (req, res) => {
    const query = downloadInference.query.safeParse(req.query);
    if (!query.success)
      throw new SandboxError('validation_failed', {
        message: 'InferenceJob id cannot be null or empty',
        details: [{ path: 'inferenceJobId', message: 'is required' }],
      });
    const job = jobs.find(query.data.inferenceJobId);
    if (!job) throw jobNotFound();
    if (job.status !== 'DONE' || job.resultName === null)
      throw new SandboxError('inference_job_not_done', { message: `Inference Job is ${job.status}` });
    const content = createReadStream(runner.resultPath(job), { highWaterMark: 256 * 1024 });
    await new Promise<void>((resolve, reject) => void content.once('open', () => resolve()).once('error', reject));
    sendAsDownload(res, job.resultName, 'application/octet-stream');
    // A reader that left is no failure.
    await pipeline(content, res).catch(() => {});
  });

  return calls.finish();
}

function view({ id, status, type, startedAtMs }: InferenceJob): InferenceJobView {
  return { id, status, type, startedAt: iso(startedAtMs) };
}

/** Returns the reason why onnxruntime cannot be used; null if it is installed. Only inference needs this large package. */
export function inferenceProblem(): string | null {
  try {
    import.meta.resolve('onnxruntime-node');
    return null;
  } catch {
    return 'onnxruntime-node is not installed: npm install --no-save onnxruntime-node, and start the sandbox again';
  }
}
