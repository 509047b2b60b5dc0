import * as z from 'zod';
import { uploadFileChunk } from '../files/chunked-upload.ts';
import { fillPath, tolerant, type Call, type Content } from '../wire.ts';

const path = '/public/external-app/file/:token/upload/chunk';
/** @assumed chunk-request: step 6 takes the form of uploadChunk (spec 4.4) */
const { fields, fileField } = uploadFileChunk;

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
  content: Content;
};
/** Answer to step 6, upload a chunk (spec 4.8). The size is in bytes. */
export type UploadedChunk = z.output<typeof read>;

/** Step 6: POST /file/{token}/upload/chunk (spec 4.8). */
export const uploadChunk = {
  endpoint: 'upload.chunk',
  method: 'POST',
  path,
  fileField,
  fields,
  response,
  encode: ({ token, uploadId, key, partNumber, content }: UploadChunkInput) => ({
    method: 'POST',
    path: fillPath(path, { token }),
    body: {
      kind: 'multipart',
      fields: { uploadId, key, partNumber: String(partNumber) },
      file: { field: fileField, fileName: `part-${partNumber}`, content },
    },
  }),
  decode: (body: unknown): UploadedChunk => read.parse(body || {}),
} as const satisfies Call<UploadChunkInput, UploadedChunk> & Record<string, unknown>;
