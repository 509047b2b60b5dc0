import * as z from 'zod';
import { wktGeometry } from '../geometry.ts';
import { instant } from '../wire.ts';

/** Task of a model. @assumed (spec 2.6: InferenceJobType not shown) */
export const inferenceTypes = ['SEGMENTATION', 'CLASSIFICATION', 'DETECTION'] as const;
export type InferenceType = (typeof inferenceTypes)[number];

/** What this platform says of a job. @assumed the complete set; the spec names both spellings, and leaves the list open (3.3) */
export const inferenceStatuses = ['SUBMITTED', 'RUNNING', 'DONE', 'FAILED'] as const;
export type InferenceStatus = (typeof inferenceStatuses)[number];

export type InferenceState = 'waiting' | 'running' | 'done' | 'failed';

/** A status as a client understands it: both spellings of the spec's lists (3.3), and an unknown word as still going. */
export function inferenceState(status: string): InferenceState {
  switch (status.toUpperCase()) {
    case 'SUBMITTED':
    case 'PENDING':
      return 'waiting';
    case 'DONE':
    case 'COMPLETED':
      return 'done';
    case 'FAILED':
      return 'failed';
    default:
      return 'running';
  }
}

/** GET /public/inference/models (spec 4.7). @assumed the names of the fields, and that it answers an array */
export const listModels = {
  path: '/public/inference/models',
  response: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      version: z.string(),
      type: z.enum(inferenceTypes),
      labels: z.array(z.string()),
    }),
  ),
} as const;
export type ModelView = z.infer<typeof listModels.response>[number];

/** Spec 2.6 */
export const inferenceJob = z.object({
  id: z.string(),
  status: z.enum(inferenceStatuses),
  type: z.enum(inferenceTypes),
  startedAt: instant,
});
export type InferenceJobView = z.infer<typeof inferenceJob>;

const area = wktGeometry.refine(
  ({ type }) => type === 'Polygon' || type === 'MultiPolygon',
  'must be a POLYGON or a MULTIPOLYGON',
);

/** POST /public/inference/run (spec 4.7), a form. `geometry` restricts the run to an area. */
export const runInference = {
  path: '/public/inference/run',
  fields: z.object({
    modelId: z.string('is required, once').min(1, 'must not be empty'),
    fileId: z.string('is required, once').min(1, 'must not be empty'),
    geometry: area.optional(),
  }),
  response: inferenceJob,
} as const;

/** GET /public/inference/status (spec 4.7) */
export const getInferenceStatus = {
  path: '/public/inference/status',
  query: z.object({ inferenceId: z.string('is required, once').min(1, 'must not be empty') }),
  response: inferenceJob,
} as const;

/** GET /public/inference/download (spec 4.7) */
export const downloadInference = {
  path: '/public/inference/download',
  query: z.object({ inferenceJobId: z.string().min(1) }),
} as const;
