import type * as z from 'zod';
import { tolerant } from '../wire.ts';
import { completeFileUpload } from './complete-file-upload.ts';
import { defineCall } from './define-call.ts';
import { noSession, ofBody, ofToken } from './errors.ts';

/** The body of completeUpload (spec 4.4). @assumed completion: step 7 takes and answers the same */
const { request, response } = completeFileUpload;
const read = tolerant(response, []);

/** Body of step 7, complete (spec 4.8). */
export type CompleteUploadRequest = z.output<typeof request>;
/** Input of step 7, complete (spec 4.8). */
export type CompleteUploadInput = {
  token: string;
  /** With the number of parts, for platforms that want it. */
  completion: CompleteUploadRequest & { partCount?: number };
};
/** Answer to step 7, complete (spec 4.8). The size is in bytes. */
export type CompletedUpload = z.output<typeof read>;

/** Step 7: POST /file/{token}/upload/complete (spec 4.8). */
export const completeUpload = defineCall<CompleteUploadInput, CompletedUpload>()({
  endpoint: 'upload.complete',
  group: 'External app',
  section: '4.8',
  step: 7,
  summary: 'Complete the upload',
  description:
    'Joins the chunks to one file, which the platform then processes and shows in the catalog. `fileSize` is the sum of the parts. The optional fields say when and where the data was acquired and what it is. Completing again gives the same file.',
  method: 'POST',
  path: '/public/external-app/file/:token/upload/complete',
  request,
  response,
  errors: { ...ofToken, ...noSession, ...ofBody, 500: 'Failed to complete upload' },
  example: completeFileUpload.example,
  isLong: true,
  extraFields: ['partCount'],
  canFailInWork: true,
  needsNoField: true,
  body: 'completion',
  assumptions: [
    {
      id: 'completion',
      assumes: 'step 7 takes and answers what `completeUpload` (4.4) does',
      probe: 'complete-upload',
      about: 'both',
    },
  ],
  decode: (body) => read.parse(body || {}),
});
