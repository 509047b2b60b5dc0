import * as z from 'zod';
import { sourceType } from '../file.ts';
import { fileGeometry } from '../files/file-geometry.ts';
import { limits } from '../limits.ts';
import { jsonValue, tolerant } from '../wire.ts';
import { defineCall } from './define-call.ts';
import { noSession, ofBody, ofFiles } from './errors.ts';
import { uploadedFile } from '../files/uploaded-file.ts';

/** Properties that an item of the file carries, in every page that shows it. @assumed file-properties */
const properties = jsonValue.refine(
  (value) => Buffer.byteLength(JSON.stringify(value ?? null)) <= limits.filePropertiesBytes,
  `must be at most ${limits.filePropertiesBytes} bytes of JSON`,
);

const completion = z.object({
  uploadId: z.string().min(1, 'must not be empty'),
  key: z.string().min(1, 'must not be empty'),
  fileSize: z.int('must be the total size in bytes').nonnegative('must be the total size in bytes'),
  sourceType,
  vectorMappingProperties: properties.optional(),
  layerProperties: properties.optional(),
  geometry: fileGeometry.optional(),
  acquisitionDate: z.union([z.iso.date(), z.iso.datetime({ offset: true })], 'must be an ISO 8601 date').optional(),
});
const readFile = tolerant(uploadedFile, ['fileId']);
/** Input of `completeFileUpload` (spec 4.4). */
export type CompleteFileUploadInput = { completion: z.output<typeof completion> };
/** Answer to `completeFileUpload` (spec 4.4). The size is in bytes. */
export type UploadedFile = z.output<typeof readFile>;

/** POST /public/file/completeUpload (spec 4.4), a JSON body. */
export const completeFileUpload = defineCall<CompleteFileUploadInput, UploadedFile>()({
  endpoint: 'file.complete',
  group: 'Files',
  section: '4.4',
  summary: 'Complete a chunked upload',
  description:
    'Joins the chunks to one file, which the platform then processes and shows in the catalog. `fileSize` is the sum of the parts. The optional fields say when and where the data was acquired and what it is.',
  method: 'POST',
  path: '/public/file/completeUpload',
  request: completion,
  response: uploadedFile,
  errors: { ...ofFiles, ...noSession, ...ofBody, 500: 'Failed to complete upload', 507: null },
  example: {
    uploadId: 'up_3q2hH0b8QyW7yqv1mZJ5mA',
    key: 'uploads/3q2hH0b8QyW7yqv1mZJ5mA',
    fileSize: 25_600,
    sourceType: 'UNKNOWN',
    acquisitionDate: '2002-07-01T12:00:00.000Z',
    layerProperties: { title: 'NDVI', step: 'ndvi', stepVersion: '2.1.0' },
  },
  isLong: true,
  canFailInWork: true,
  needsNoField: true,
  body: 'completion',
  assumptions: [
    {
      id: 'file-properties',
      assumes: '`layerProperties` and `vectorMappingProperties` are free JSON, shown with the file’s item',
      probe: 'file-upload',
    },
  ],
  decode: (body) => readFile.parse(body),
});
