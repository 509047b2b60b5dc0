import * as z from 'zod';
import { defineCall } from './define-call.ts';
import { ofInference } from './errors.ts';

/** GET /public/inference/download (spec 4.7): the file itself. */
export const downloadInference = defineCall<{ inferenceJobId: string }, unknown>()({
  endpoint: 'inference.download',
  group: 'Inference',
  section: '4.7',
  summary: 'Result of a job',
  description: 'Answers the result of a job that is DONE: a GeoTIFF of classes on the grid of the file.',
  method: 'GET',
  path: '/public/inference/download',
  query: z.object({ inferenceJobId: z.string().min(1) }),
  mediaType: 'application/octet-stream',
  answerFields: [],
  errors: {
    ...ofInference,
    400: 'InferenceJob id cannot be null or empty',
    500: 'Error occurred while streaming the file',
  },
  decode: (body) => body,
});
