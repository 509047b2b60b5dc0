import type { Geometry } from 'geojson';
import * as z from 'zod';
import { fileName, sourceType } from '../file.ts';
import { positionsOf, wktGeometry } from '../geometry.ts';
import { limits } from '../limits.ts';
import { geojsonGeometry } from '../stac/search-request.ts';
import { jsonValue, tolerant, type Call, type Content } from '../wire.ts';
import { uploadedFile } from './upload-file.ts';

const partNumberRule = `must be an integer from ${limits.firstPartNumber} to ${limits.maxPartNumber}`;

const begun = z.object({ uploadId: z.string().min(1), key: z.string().min(1) });
const readBegun = tolerant(begun, ['uploadId', 'key']);
/** Input of `generateUploadId` (spec 4.4). */
export type GenerateUploadIdInput = { fileName: string };
/** Answer to `generateUploadId` (spec 4.4). */
export type BegunUpload = z.output<typeof readBegun>;

/** POST /public/file/generateUploadId (spec 4.4), `fileName` from the query or the form; the kit's client sends a form. */
export const generateUploadId = {
  endpoint: 'file.generate',
  method: 'POST',
  path: '/public/file/generateUploadId',
  fields: z.object({ fileName }),
  response: begun,
  encode: ({ fileName }: GenerateUploadIdInput) => ({
    method: 'POST',
    path: '/public/file/generateUploadId',
    body: { kind: 'form', fields: { fileName } },
  }),
  decode: (body: unknown): BegunUpload => readBegun.parse(body),
} as const satisfies Call<GenerateUploadIdInput, BegunUpload> & Record<string, unknown>;

const taken = tolerant(z.object({ message: z.string() }), []);
/** Input of `uploadFileChunk` (spec 4.4). */
export type UploadFileChunkInput = {
  uploadId: string;
  key: string;
  /** From 1, without a gap. */
  partNumber: number;
  content: Content;
};

/** POST /public/file/uploadChunk (spec 4.4), a multipart form. */
export const uploadFileChunk = {
  endpoint: 'file.chunk',
  method: 'POST',
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
  encode: ({ uploadId, key, partNumber, content }: UploadFileChunkInput) => ({
    method: 'POST',
    path: '/public/file/uploadChunk',
    body: {
      kind: 'multipart',
      fields: { uploadId, key, partNumber: String(partNumber) },
      file: { field: 'file', fileName: `part-${partNumber}`, content },
    },
  }),
  decode: (body: unknown) => taken.parse(body || {}),
} as const satisfies Call<UploadFileChunkInput, unknown> & Record<string, unknown>;

const json = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    context.issues.push({ code: 'custom', message: 'must be GeoJSON, or well-known text', input: text });
    return z.NEVER;
  }
});
const bounded = (reader: z.ZodType<Geometry, string>) =>
  reader.refine(
    (geometry) => positionsOf(geometry).length <= limits.footprintPositions,
    `must have at most ${limits.footprintPositions} positions`,
  );
const readers = { wkt: bounded(wktGeometry), geojson: bounded(json.pipe(geojsonGeometry)) };
const readerOf = (text: string) => readers[text.trimStart().startsWith('{') ? 'geojson' : 'wkt'];

/** The geometry of a file (spec 4.4) as it was given: WKT, or GeoJSON as text. Throws zod's error where it is neither. */
export const readFileGeometry = (text: string): Geometry => readerOf(text).parse(text);

/** @assumed file-geometry: GeoJSON is taken too, as text or as an object: the spec says a string, and of inference that it is WKT */
const fileGeometry = z
  .union([z.string(), z.looseObject({ type: z.string() })], 'must be well-known text, or GeoJSON')
  .transform((given) => (typeof given === 'string' ? given : JSON.stringify(given)))
  .superRefine((text, context) => {
    const [issue] = readerOf(text).safeParse(text).error?.issues ?? [];
    if (issue) context.addIssue({ code: 'custom', message: issue.message });
  });

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
export const completeFileUpload = {
  endpoint: 'file.complete',
  method: 'POST',
  path: '/public/file/completeUpload',
  request: completion,
  response: uploadedFile,
  encode: (input: CompleteFileUploadInput) => ({
    method: 'POST',
    path: '/public/file/completeUpload',
    body: { kind: 'json', value: input.completion },
  }),
  decode: (body: unknown): UploadedFile => readFile.parse(body),
} as const satisfies Call<CompleteFileUploadInput, UploadedFile> & Record<string, unknown>;
