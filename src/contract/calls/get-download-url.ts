import * as z from 'zod';
import { defineCall } from './define-call.ts';
import { noFile, ofFiles } from './errors.ts';

const query = z.object({
  fileId: z.string('is required, once').min(1, 'must not be empty'),
  /** Any case, or 1 and 0: `requests` of Python writes `True`. */
  useDefaultContentType: z
    .string('must come once')
    .transform((text) => ({ 1: 'true', 0: 'false' })[text] ?? text.toLowerCase())
    .pipe(z.enum(['true', 'false'], 'must be true or false'))
    .default('false'),
});
const read = z
  .string()
  .transform((text) => text.trim())
  .pipe(z.url({ protocol: /^https?$/ }));

/** Input of `getDownloadUrl` (spec 4.6). */
export type DownloadUrlInput = { fileId: string; useDefaultContentType?: boolean };

/** GET /public/file/download/url (spec 4.6): a pre-signed URL as plain text, valid 24 hours. */
export const getDownloadUrl = defineCall<DownloadUrlInput, string>()({
  endpoint: 'file.download',
  group: 'Files',
  permissions: ['files_admin'],
  section: '4.6',
  summary: 'Signed download address, valid 24 hours',
  description:
    'Answers an address, as plain text, at which the file can be fetched for 24 hours without a key. With `useDefaultContentType=true` the file then has its own media type instead of application/octet-stream.',
  method: 'GET',
  path: '/public/file/download/url',
  query,
  mediaType: 'text/plain',
  answerFields: ['text'],
  errors: { ...ofFiles, ...noFile, 400: null, 500: 'Internal Server Error' },
  decode: (body) => read.parse(body),
});
