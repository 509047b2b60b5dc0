import * as z from 'zod';
import { fileName, sourceType } from '../file.ts';
import { fillPath, tolerant, type Call } from '../wire.ts';

const path = '/public/external-app/file/:token/upload/initiate';

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
export const initiateUpload = {
  endpoint: 'upload.initiate',
  method: 'POST',
  path,
  request,
  response,
  encode: ({ token, upload }: InitiateUploadInput) => ({
    method: 'POST',
    path: fillPath(path, { token }),
    body: { kind: 'json', value: upload },
  }),
  decode: (body: unknown): InitiatedUpload => read.parse(body),
} as const satisfies Call<InitiateUploadInput, InitiatedUpload> & Record<string, unknown>;
