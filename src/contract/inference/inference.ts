import * as z from 'zod';
import { wktGeometry } from '../geometry.ts';
import { instant, tolerant, type Call } from '../wire.ts';

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
const models = z.array(model);
/** A model as the platform lists it (spec 4.7). */
export type ModelView = z.infer<typeof model>;
const readModels = z.array(tolerant(model, ['id']));
/** Models as the client reads them (spec 4.7). */
export type KnownModels = z.output<typeof readModels>;

/** GET /public/inference/models (spec 4.7). @assumed model-fields: the names of the fields, and that it answers an array */
export const listModels = {
  endpoint: 'inference.models',
  method: 'GET',
  path: '/public/inference/models',
  response: models,
  encode: () => ({ method: 'GET', path: '/public/inference/models' }),
  decode: (body: unknown): KnownModels => readModels.parse(body),
} as const satisfies Call<object, KnownModels> & Record<string, unknown>;

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
const readJob = tolerant(inferenceJob.extend({ status: z.string() }), ['id', 'status']);
/** An inference job as the client reads it (spec 4.7). */
export type KnownJob = z.output<typeof readJob>;

const area = wktGeometry.refine(
  ({ type }) => type === 'Polygon' || type === 'MultiPolygon',
  'must be a POLYGON or a MULTIPOLYGON',
);

/** Input of `runInference` (spec 4.7). */
export type RunInferenceInput = {
  modelId: string;
  fileId: string;
  /** WKT, a polygon in longitude and latitude. */
  geometry?: string;
};

/** POST /public/inference/run (spec 4.7), a form. `geometry` restricts the run to an area. */
export const runInference = {
  endpoint: 'inference.run',
  method: 'POST',
  path: '/public/inference/run',
  fields: z.object({
    modelId: z.string('is required, once').min(1, 'must not be empty'),
    fileId: z.string('is required, once').min(1, 'must not be empty'),
    geometry: area.optional(),
  }),
  response: inferenceJob,
  encode: ({ modelId, fileId, geometry }: RunInferenceInput) => ({
    method: 'POST',
    path: '/public/inference/run',
    body: { kind: 'form', fields: { modelId, fileId, ...(geometry !== undefined && { geometry }) } },
  }),
  decode: (body: unknown): KnownJob => readJob.parse(body),
} as const satisfies Call<RunInferenceInput, KnownJob> & Record<string, unknown>;

/** GET /public/inference/status (spec 4.7) */
export const getInferenceStatus = {
  endpoint: 'inference.status',
  method: 'GET',
  path: '/public/inference/status',
  query: z.object({ inferenceId: z.string('is required, once').min(1, 'must not be empty') }),
  response: inferenceJob,
  encode: (query: { inferenceId: string }) => ({ method: 'GET', path: '/public/inference/status', query }),
  decode: (body: unknown): KnownJob => readJob.parse(body),
} as const satisfies Call<{ inferenceId: string }, KnownJob> & Record<string, unknown>;

/** GET /public/inference/download (spec 4.7): the file itself. */
export const downloadInference = {
  endpoint: 'inference.download',
  method: 'GET',
  path: '/public/inference/download',
  query: z.object({ inferenceJobId: z.string().min(1) }),
  encode: (query: { inferenceJobId: string }) => ({ method: 'GET', path: '/public/inference/download', query }),
  decode: (body: unknown) => body,
} as const satisfies Call<{ inferenceJobId: string }, unknown> & Record<string, unknown>;
