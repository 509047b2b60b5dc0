import * as z from 'zod';
import { chunkFields, chunkFileField } from '../files/chunk-form.ts';
import { tolerant, type Content } from '../wire.ts';
import { defineCall } from './define-call.ts';
import { noSession, ofBody, ofFiles } from './errors.ts';

/** The answer of the interface is a message. The other fields are those of step 6. */
const response = z.object({ message: z.string(), partNumber: z.int(), size: z.int() });
const read = tolerant(z.object({ message: z.string() }), []);
/** Input of `uploadFileChunk` (spec 4.4). */
export type UploadFileChunkInput = {
  uploadId: string;
  key: string;
  /** From 1, without a gap. */
  partNumber: number;
  content: Content;
};

/** POST /public/file/uploadChunk (spec 4.4), a multipart form. */
export const uploadFileChunk = defineCall<UploadFileChunkInput, unknown>()({
  endpoint: 'file.chunk',
  group: 'Files',
  section: '4.4',
  summary: 'Upload a chunk',
  description:
    'Sends one part of the file, of at most 512 MiB, numbered from 1. Parts may come in any order, and the same part again with the same bytes.',
  method: 'POST',
  path: '/public/file/uploadChunk',
  fields: chunkFields,
  fileField: chunkFileField,
  response,
  answerFields: ['message'],
  descriptions: { 'in.multipart/form-data.file': 'Bytes of this chunk, at least 1 and at most 512 MiB.' },
  errors: { ...ofFiles, ...noSession, ...ofBody, 413: null, 500: 'Failed to upload chunk', 507: null },
  example: { uploadId: 'up_3q2hH0b8QyW7yqv1mZJ5mA', key: 'uploads/3q2hH0b8QyW7yqv1mZJ5mA', partNumber: '1' },
  isLong: true,
  needsNoField: true,
  decode: (body) => read.parse(body || {}),
});
