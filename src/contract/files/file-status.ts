import * as z from 'zod';
import { fileStatus } from '../file.ts';
import { fillPath, tolerant, type Call } from '../wire.ts';

const path = '/public/file/status/:id';

/** Spec 4.5; `createdAt` in epoch milliseconds. */
const response = z.object({ id: z.string(), originalName: z.string(), status: fileStatus, createdAt: z.int() });
const read = tolerant(response, ['status']);

/** Input of `getFileStatus` (spec 4.5). */
export type FileStatusInput = { fileId: string };
/** Answer to `getFileStatus` (spec 4.5). */
export type FileStatusView = z.output<typeof read>;

/** GET /public/file/status/{id} (spec 4.5). */
export const getFileStatus = {
  endpoint: 'file.status',
  method: 'GET',
  path,
  response,
  encode: ({ fileId }: FileStatusInput) => ({ method: 'GET', path: fillPath(path, { id: fileId }) }),
  decode: (body: unknown): FileStatusView => read.parse(body),
} as const satisfies Call<FileStatusInput, FileStatusView> & Record<string, unknown>;
