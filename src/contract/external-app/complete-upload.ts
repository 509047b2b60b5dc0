import type * as z from 'zod';
import { completeFileUpload } from '../files/chunked-upload.ts';
import { fillPath, tolerant, type Call } from '../wire.ts';

const path = '/public/external-app/file/:token/upload/complete';

/** The body of completeUpload (spec 4.4). @assumed completion: step 7 takes and answers the same */
const { request, response } = completeFileUpload;
const read = tolerant(response, []);

/** Body of step 7, complete (spec 4.8). */
export type CompleteUploadRequest = z.output<typeof request>;
/** The optional fields of a completion that the app fills (spec 4.4). */
export const completionFields = ['acquisitionDate', 'geometry', 'layerProperties'] as const;
/** Name of one of `completionFields`. */
export type CompletionField = (typeof completionFields)[number];

/** Input of step 7, complete (spec 4.8). */
export type CompleteUploadInput = { token: string; completion: CompleteUploadRequest };
/** Answer to step 7, complete (spec 4.8). The size is in bytes. */
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
