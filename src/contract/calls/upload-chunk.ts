import * as z from 'zod';
import { chunkFields, chunkFileField } from '../files/chunk-form.ts';
import { tolerant, type Content } from '../wire.ts';
import { defineCall } from './define-call.ts';
import { noSession, ofBody, ofToken } from './errors.ts';

/** @assumed chunk-answer: response of step 6, but for `message` (spec 4.4) */
const response = z.object({ message: z.string(), partNumber: z.int(), size: z.int() });
const read = tolerant(response, []);

/** Input of step 6, upload a chunk (spec 4.8). */
export type UploadChunkInput = {
  token: string;
  uploadId: string;
  key: string;
  /** From 1, without a gap. */
  partNumber: number;
  /** Number of parts of the upload, for platforms that want it. */
  partCount?: number;
  content: Content;
};
/** Answer to step 6, upload a chunk (spec 4.8). The size is in bytes. */
export type UploadedChunk = z.output<typeof read>;

/** Step 6: POST /file/{token}/upload/chunk (spec 4.8). @assumed chunk-request: step 6 takes the form of uploadChunk (spec 4.4) */
export const uploadChunk = defineCall<UploadChunkInput, UploadedChunk>()({
  endpoint: 'upload.chunk',
  group: 'External app',
  section: '4.8',
  step: 6,
  summary: 'Upload a chunk',
  description:
    'Sends the next part of the file, of at most 512 MiB, numbered from 1 without a gap. The same part with the same bytes may come again, so that a chunk is safe to repeat after a lost answer.',
  method: 'POST',
  path: '/public/external-app/file/:token/upload/chunk',
  fields: chunkFields,
  fileField: chunkFileField,
  response,
  descriptions: { 'in.multipart/form-data.file': 'Bytes of this chunk, at least 1 and at most 512 MiB.' },
  errors: { ...ofToken, ...noSession, ...ofBody },
  example: { uploadId: 'up_3q2hH0b8QyW7yqv1mZJ5mA', key: 'uploads/3q2hH0b8QyW7yqv1mZJ5mA', partNumber: '1' },
  isLong: true,
  extraFields: ['partCount'],
  needsNoField: true,
  assumptions: [
    {
      id: 'chunk-request',
      assumes: 'step 6 takes the form of `uploadChunk` (4.4)',
      probe: 'upload-chunk',
      about: 'request',
    },
    {
      id: 'chunk-answer',
      assumes: 'step 6 answers `{message, partNumber, size}`',
      probe: 'upload-chunk',
      about: 'answer',
    },
  ],
  decode: (body) => read.parse(body || {}),
});
