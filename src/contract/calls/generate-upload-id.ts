import * as z from 'zod';
import { fileName } from '../file.ts';
import { tolerant } from '../wire.ts';
import { defineCall } from './define-call.ts';
import { ofBody, ofFiles } from './errors.ts';

const begun = z.object({ uploadId: z.string().min(1), key: z.string().min(1) });
const readBegun = tolerant(begun, ['uploadId', 'key']);
/** Input of `generateUploadId` (spec 4.4). */
export type GenerateUploadIdInput = { fileName: string };
/** Answer to `generateUploadId` (spec 4.4). */
export type BegunUpload = z.output<typeof readBegun>;

/** POST /public/file/generateUploadId (spec 4.4), `fileName` from the query or the form; the kit's client sends a form. */
export const generateUploadId = defineCall<GenerateUploadIdInput, BegunUpload>()({
  endpoint: 'file.generate',
  group: 'Files',
  section: '4.4',
  summary: 'Begin a chunked upload',
  description:
    'Begins an upload in chunks. Every chunk and the completion name the `uploadId` and the `key` of the answer. The name comes in the query or in the form.',
  method: 'POST',
  path: '/public/file/generateUploadId',
  fields: z.object({ fileName }),
  response: begun,
  errors: { ...ofFiles, ...ofBody, 500: 'Failed to generate upload ID' },
  example: { fileName: 'scene.tif' },
  decode: (body) => readBegun.parse(body),
});
