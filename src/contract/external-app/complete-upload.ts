import * as z from 'zod';
import { sourceType } from '../file.ts';
import { fillPath, instant, jsonValue, tolerant, type Call } from '../wire.ts';

const path = '/public/external-app/file/:token/upload/complete';

/** The body of completeUpload (spec 4.4). @assumed that step 7 takes the same */
const request = z.object({
  uploadId: z.string().min(1, 'must not be empty'),
  key: z.string().min(1, 'must not be empty'),
  fileSize: z.int('must be the total size in bytes').nonnegative('must be the total size in bytes'),
  sourceType,
  vectorMappingProperties: jsonValue.optional(),
  layerProperties: jsonValue.optional(),
  geometry: z.string().optional(),
  acquisitionDate: z.union([z.iso.date(), z.iso.datetime({ offset: true })], 'must be an ISO 8601 date').optional(),
});
/** The response of completeUpload (spec 4.4). @assumed that step 7 answers the same */
const response = z.object({ fileId: z.string().min(1), originalName: z.string(), createdAt: instant, size: z.int() });
const read = tolerant(response, []);

export type CompleteUploadRequest = z.output<typeof request>;
export type CompleteUploadInput = { token: string; completion: CompleteUploadRequest };
export type CompletedUpload = z.output<typeof read>;

/** Step 7: POST /file/{token}/upload/complete (spec 4.8). */
export const completeUpload = {
  endpoint: 'upload.complete',
  method: 'POST',
  path,
  request,
  response,
  encode: ({ token, completion }: CompleteUploadInput) => ({
    method: 'POST',
    path: fillPath(path, { token }),
    body: { kind: 'json', value: completion },
  }),
  decode: (body: unknown): CompletedUpload => read.parse(body || {}),
} as const satisfies Call<CompleteUploadInput, CompletedUpload> & Record<string, unknown>;
