import * as z from 'zod';
import { sourceType } from '../file.ts';
import { uploadedFile } from '../files/uploaded-file.ts';
import type { CallFacts } from './define-call.ts';
import { noFile, ofBody, ofFiles } from './errors.ts';

/** `sourceType` from the query or the form. @assumed direct-upload-form: the form; the spec's sample has it in the query */
const fields = z.object({ sourceType: sourceType.default('UNKNOWN') });

/** POST /public/file/upload (spec 4.3): one multipart request of at most `limits.directUploadBytes`. The kit's client does not make it. */
export const uploadFile = {
  endpoint: 'file.upload',
  group: 'Files',
  section: '4.3',
  summary: 'Upload in one request',
  description:
    'Uploads a file of at most 100 MB in one request. Larger files go in chunks. The source type comes in the query or in the form.',
  method: 'POST',
  path: '/public/file/upload',
  query: z.object({ sourceType: sourceType.optional() }),
  fields,
  fileField: 'file',
  response: uploadedFile,
  errors: { ...ofFiles, ...noFile, ...ofBody, 413: null, 500: 'Internal Server Error', 507: null },
  assumptions: [
    {
      id: 'direct-upload-form',
      assumes: '`sourceType` of a direct upload may stand in the form',
      probe: 'direct-upload',
      about: 'request',
    },
  ],
  example: { sourceType: 'MULTISPECTRAL' },
} as const satisfies CallFacts;
