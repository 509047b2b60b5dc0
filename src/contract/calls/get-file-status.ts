import * as z from 'zod';
import { fileStatus } from '../file.ts';
import { fillPath, tolerant } from '../wire.ts';
import { defineCall } from './define-call.ts';
import { noFile, ofFiles } from './errors.ts';

/** Spec 4.5; `createdAt` in epoch milliseconds. */
const response = z.object({ id: z.string(), originalName: z.string(), status: fileStatus, createdAt: z.int() });
const read = tolerant(response, ['status']);

/** Input of `getFileStatus` (spec 4.5). */
export type FileStatusInput = { fileId: string };
/** Answer to `getFileStatus` (spec 4.5). */
export type FileStatusView = z.output<typeof read>;

/** GET /public/file/status/{id} (spec 4.5). */
export const getFileStatus = defineCall<FileStatusInput, FileStatusView>()({
  endpoint: 'file.status',
  group: 'Files',
  permissions: ['files_admin'],
  section: '4.5',
  summary: 'Processing status of a file',
  description: 'Tells how far the processing of an uploaded file is: QUEUED, IN_PROGRESS, then COMPLETED or FAILED.',
  method: 'GET',
  path: '/public/file/status/:id',
  response,
  descriptions: {
    id: 'Identifier of the file, as the upload answered it (`fileId`).',
    createdAt: 'Time of creation, milliseconds since 1970.',
    status: 'State of the file’s processing: QUEUED, IN_PROGRESS, COMPLETED or FAILED.',
  },
  errors: { ...ofFiles, ...noFile, 500: 'Internal Server Error' },
  encode: ({ fileId }) => ({ method: 'GET', path: fillPath('/public/file/status/:id', { id: fileId }) }),
  decode: (body) => read.parse(body),
});
