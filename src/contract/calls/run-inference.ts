import * as z from 'zod';
import { wktGeometry } from '../geometry.ts';
import { inferenceJob, readJob, type KnownJob } from '../inference/inference.ts';
import { defineCall } from './define-call.ts';
import { noFile, ofBody, ofFiles } from './errors.ts';

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
export const runInference = defineCall<RunInferenceInput, KnownJob>()({
  endpoint: 'inference.run',
  group: 'Inference',
  section: '4.7',
  summary: 'Run a model on a file',
  description:
    'Starts a job that runs a model over an uploaded file, or over the part of it that `geometry` (WKT) names. Poll the status of the job, then download its result.',
  method: 'POST',
  path: '/public/inference/run',
  fields: z.object({
    modelId: z.string('is required, once').min(1, 'must not be empty'),
    fileId: z.string('is required, once').min(1, 'must not be empty'),
    geometry: area.optional(),
  }),
  response: inferenceJob,
  descriptions: {
    type: 'Task of the model that runs.',
    'in.application/x-www-form-urlencoded.geometry':
      'Area in which the model looks, as well-known text in longitude and latitude. Default: the whole file.',
    'in.multipart/form-data.geometry':
      'Area in which the model looks, as well-known text in longitude and latitude. Default: the whole file.',
    status: 'State of the job.',
  },
  errors: { ...ofFiles, ...noFile, ...ofBody, 500: 'Error occurred while running inference.' },
  example: { modelId: 'water', fileId: 'file_Z2I7HvYj5XSEmCkE9_DT4Q' },
  decode: (body) => readJob.parse(body),
});
