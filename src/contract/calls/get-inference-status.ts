import * as z from 'zod';
import { inferenceJob, readJob, type KnownJob } from '../inference/inference.ts';
import { defineCall } from './define-call.ts';
import { ofInference } from './errors.ts';

/** GET /public/inference/status (spec 4.7). */
export const getInferenceStatus = defineCall<{ inferenceId: string }, KnownJob>()({
  endpoint: 'inference.status',
  group: 'Inference',
  section: '4.7',
  summary: 'Status of a job',
  description: 'Tells how far a job is: SUBMITTED, RUNNING, then DONE or FAILED. Poll it every few seconds.',
  method: 'GET',
  path: '/public/inference/status',
  query: z.object({ inferenceId: z.string('is required, once').min(1, 'must not be empty') }),
  response: inferenceJob,
  descriptions: { type: 'Task of the model that runs.', status: 'State of the job.' },
  errors: { ...ofInference, 400: null, 500: 'Internal Server Error' },
  // After a lost answer the next poll asks again.
  retries: false,
  decode: (body) => readJob.parse(body),
});
