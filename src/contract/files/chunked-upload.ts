import * as z from 'zod';
import { fileName, sourceType } from '../file.ts';
import { positionsOf, wktGeometry } from '../geometry.ts';
import { limits } from '../limits.ts';
import { jsonValue } from '../wire.ts';
import { uploadedFile } from './upload-file.ts';

const partNumberRule = `must be an integer from ${limits.firstPartNumber} to ${limits.maxPartNumber}`;

/** POST /public/file/generateUploadId (spec 4.4), `fileName` from the query or the form. */
export const generateUploadId = {
  path: '/public/file/generateUploadId',
  fields: z.object({ fileName }),
  response: z.object({ uploadId: z.string().min(1), key: z.string().min(1) }),
} as const;

/** POST /public/file/uploadChunk (spec 4.4), a multipart form. */
export const uploadFileChunk = {
  path: '/public/file/uploadChunk',
  fileField: 'file',
  fields: z.object({
    uploadId: z.string('is required, once').min(1, 'must not be empty'),
    key: z.string('is required, once').min(1, 'must not be empty'),
    partNumber: z
      .string(`is required, once, and ${partNumberRule}`)
      .regex(/^[0-9]{1,9}$/, partNumberRule)
      .transform(Number)
      .refine((n) => n >= limits.firstPartNumber && n <= limits.maxPartNumber, partNumberRule),
  }),
} as const;

const footprint = wktGeometry.refine(
  (geometry) => positionsOf(geometry).length <= limits.footprintPositions,
  `must have at most ${limits.footprintPositions} positions`,
);
/** WKT that is one; kept as it was written. */
const wkt = z.string().refine((text) => footprint.safeParse(text).success, {
  error: (issue) => footprint.safeParse(issue.input).error?.issues[0]?.message,
});

/** What an item of the file carries, in every page that shows it. */
const properties = jsonValue.refine(
  (value) => Buffer.byteLength(JSON.stringify(value ?? null)) <= limits.filePropertiesBytes,
  `must be at most ${limits.filePropertiesBytes} bytes of JSON`,
);

/** POST /public/file/completeUpload (spec 4.4), a JSON body. */
export const completeFileUpload = {
  path: '/public/file/completeUpload',
  request: z.object({
    uploadId: z.string().min(1, 'must not be empty'),
    key: z.string().min(1, 'must not be empty'),
    fileSize: z.int('must be the total size in bytes').nonnegative('must be the total size in bytes'),
    sourceType,
    vectorMappingProperties: properties.optional(),
    layerProperties: properties.optional(),
    geometry: wkt.optional(),
    acquisitionDate: z.union([z.iso.date(), z.iso.datetime({ offset: true })], 'must be an ISO 8601 date').optional(),
  }),
  response: uploadedFile,
} as const;
