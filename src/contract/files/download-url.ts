import * as z from 'zod';
import { type Call } from '../wire.ts';

const path = '/public/file/download/url';

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
export const getDownloadUrl = {
  endpoint: 'file.download-url',
  method: 'GET',
  path,
  query,
  encode: ({ fileId, useDefaultContentType }: DownloadUrlInput) => ({
    method: 'GET',
    path: path,
    query: {
      fileId,
      ...(useDefaultContentType === undefined ? {} : { useDefaultContentType: String(useDefaultContentType) }),
    },
  }),
  decode: (body: unknown): string => read.parse(body),
} as const satisfies Call<DownloadUrlInput, string> & Record<string, unknown>;
