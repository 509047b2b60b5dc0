import * as z from 'zod';
import { fileName, sourceType } from '../file.ts';
import { tolerant } from '../wire.ts';
import { defineCall } from './define-call.ts';
import { noOperation, ofBody, ofToken } from './errors.ts';

/** @assumed initiate-request: body of step 5; `sourceType` is a hint here, the one at complete counts */
const request = z.object({
  operationId: z.string().min(1, 'must not be empty'),
  fileName,
  sourceType: sourceType.optional(),
});
/** Spec 4.8: "The upload uses an `uploadId` and a `key`." */
const response = z.object({ uploadId: z.string().min(1), key: z.string().min(1) });
const read = tolerant(response, ['uploadId', 'key']);

/** Input of step 5, initiate an upload (spec 4.8). */
export type InitiateUploadInput = { token: string; upload: z.output<typeof request> };
/** Answer to step 5, initiate an upload (spec 4.8). */
export type InitiatedUpload = z.output<typeof read>;

/** Step 5: POST /file/{token}/upload/initiate (spec 4.8). */
export const initiateUpload = defineCall<InitiateUploadInput, InitiatedUpload>()({
  endpoint: 'upload.initiate',
  group: 'External app',
  section: '4.8',
  step: 5,
  summary: 'Begin the upload',
  description:
    'Begins the upload of one output of an APPROVED operation. Every chunk and the completion name the `uploadId` and the `key` of the answer. An upload without a chunk for 24 hours is removed.',
  method: 'POST',
  path: '/public/external-app/file/:token/upload/initiate',
  request,
  response,
  errors: { ...ofToken, ...noOperation, ...ofBody },
  example: {
    operationId: 'op_2VLGt6cN8R223C62gUrMSA',
    fileName: 'ndvi_olinda-landsat7_2002-07-01.tif',
    sourceType: 'UNKNOWN',
  },
  body: 'upload',
  shownFields: ['uploadId', 'key'],
  assumptions: [
    {
      id: 'initiate-request',
      assumes: 'step 5 takes `{operationId, fileName, sourceType?}`',
      probe: 'initiate-upload',
      about: 'request',
    },
  ],
  decode: (body) => read.parse(body),
});
