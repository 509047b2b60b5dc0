import * as z from 'zod';
import { limits } from '../limits.ts';

const partNumberRule = `must be an integer from ${limits.firstPartNumber} to ${limits.maxPartNumber}`;
/** Fields of the form of a chunk (spec 4.4). */
export const chunkFields = z.object({
  uploadId: z.string('is required, once').min(1, 'must not be empty'),
  key: z.string('is required, once').min(1, 'must not be empty'),
  partNumber: z
    .string(`is required, once, and ${partNumberRule}`)
    .regex(/^[0-9]{1,9}$/, partNumberRule)
    .transform(Number)
    .refine((n) => n >= limits.firstPartNumber && n <= limits.maxPartNumber, partNumberRule),
});
/** Name of the part of the form that is the file (spec 4.4). */
export const chunkFileField = 'file';
