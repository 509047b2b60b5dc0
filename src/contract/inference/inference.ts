import * as z from 'zod';
import { instant, tolerant } from '../wire.ts';

/** Task of a model. @assumed inference-types (spec 2.6: InferenceJobType not shown) */
export const inferenceTypes = ['SEGMENTATION', 'CLASSIFICATION', 'DETECTION'] as const;
/** The kind of a model's result (spec 4.7). */
export type InferenceType = (typeof inferenceTypes)[number];

/** The words of this platform for the state of a job. @assumed inference-statuses: the complete set; the spec names both spellings, and leaves the list open (3.3) */
export const inferenceStatuses = ['SUBMITTED', 'RUNNING', 'DONE', 'FAILED'] as const;
/** The status of an inference job in the platform's words (spec 3.3). */
export type InferenceStatus = (typeof inferenceStatuses)[number];

/** The state of an inference job, as the client understands it (spec 3.3). */
export type InferenceState = 'waiting' | 'running' | 'done' | 'failed';

/** A status as a client understands it: both spellings of the spec's lists (3.3), the usual words for an end without a result, and any other word as still going. */
export function inferenceState(status: string): InferenceState {
  switch (status.toUpperCase()) {
    case 'SUBMITTED':
    case 'PENDING':
      return 'waiting';
    case 'DONE':
    case 'COMPLETED':
      return 'done';
    case 'FAILED':
    case 'ERROR':
    case 'CANCELLED':
    case 'CANCELED':
    case 'ABORTED':
    case 'TIMEOUT':
    case 'EXPIRED':
      return 'failed';
    default:
      return 'running';
  }
}

const model = z.object({
  id: z.string(),
  name: z.string(),
  version: z.string(),
  type: z.enum(inferenceTypes),
  labels: z.array(z.string()),
});
/** Models as the platform lists them (spec 4.7). */
export const models = z.array(model);
/** A model as the platform lists it (spec 4.7). */
export type ModelView = z.infer<typeof model>;
/** Models as a client reads them. */
export const readModels = z.array(tolerant(model, ['id']));
/** Models as the client reads them (spec 4.7). */
export type KnownModels = z.output<typeof readModels>;

/** Spec 2.6 */
export const inferenceJob = z.object({
  id: z.string(),
  status: z.enum(inferenceStatuses),
  type: z.enum(inferenceTypes),
  startedAt: instant,
});
/** An inference job as the platform shows it (spec 4.7). */
export type InferenceJobView = z.infer<typeof inferenceJob>;
/** The job as a client reads it. Any word is a valid status. */
export const readJob = tolerant(inferenceJob.extend({ status: z.string() }), ['id', 'status']);
/** An inference job as the client reads it (spec 4.7). */
export type KnownJob = z.output<typeof readJob>;
