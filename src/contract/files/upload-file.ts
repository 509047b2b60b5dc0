import * as z from 'zod';
import { fileName, sourceType } from '../file.ts';
import { instant } from '../wire.ts';

/** The answer to every finished upload (spec 2.4). */
export const uploadedFile = z.object({
  fileId: z.string().min(1),
  originalName: z.string(),
  createdAt: instant,
  size: z.int(),
});

/** POST /public/file/upload (spec 4.3): one multipart request of at most `limits.directUploadBytes`. */
export const uploadFile = {
  path: '/public/file/upload',
  fileField: 'file',
  fileName,
  /** `sourceType` from the query or the form. @assumed direct-upload-form: the form; the spec's sample has it in the query */
  fields: z.object({ sourceType: sourceType.default('UNKNOWN') }),
  response: uploadedFile,
} as const;
