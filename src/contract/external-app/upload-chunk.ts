import * as z from 'zod';
import { limits } from '../limits.ts';
import { fillPath, tolerant, type Call, type Content } from '../wire.ts';

const path = '/public/external-app/file/:token/upload/chunk';
/** Name of the form's file field (spec 4.4). */
const fileField = 'file';

const partNumberRule = `must be an integer from ${limits.firstPartNumber} to ${limits.maxPartNumber}`;

/** @assumed form fields of step 6, as uploadChunk has them (spec 4.4), beside the file itself */
const fields = z.object({
  uploadId: z.string('is required, once').min(1, 'must not be empty'),
  key: z.string('is required, once').min(1, 'must not be empty'),
  partNumber: z
    .string(`is required, once, and ${partNumberRule}`)
    .regex(/^[0-9]{1,9}$/, partNumberRule)
    .transform(Number)
    .refine((n) => n >= limits.firstPartNumber && n <= limits.maxPartNumber, partNumberRule),
});

/** @assumed response of step 6, but for `message` (spec 4.4) */
const response = z.object({ message: z.string(), partNumber: z.int(), size: z.int() });
const read = tolerant(response, []);

export type UploadChunkInput = {
  token: string;
  uploadId: string;
  key: string;
  /** From 1, without a gap. */
  partNumber: number;
  content: Content;
};
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
