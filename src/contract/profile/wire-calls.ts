import { completeUpload } from '../external-app/complete-upload.ts';
import { createOperation } from '../external-app/create-operation.ts';
import { initiateUpload } from '../external-app/initiate-upload.ts';
import { getOperation } from '../external-app/operation-status.ts';
import { renewToken } from '../external-app/renew-token.ts';
import { uploadChunk } from '../external-app/upload-chunk.ts';
import { userDetail } from '../external-app/user-detail.ts';
import { completeFileUpload, generateUploadId, uploadFileChunk } from '../files/chunked-upload.ts';
import { getDownloadUrl } from '../files/download-url.ts';
import { getFileStatus } from '../files/file-status.ts';
import { downloadInference, getInferenceStatus, listModels, runInference } from '../inference/inference.ts';
import { stacPaths } from '../stac/objects.ts';
import { keysOf } from '../keys.ts';
import type { HttpMethod } from '../wire.ts';

/** The place of a value in a request. */
export type FieldPlace = 'path' | 'query' | 'header' | 'body';

/** One call as the contract assumes it: what a change of the wire can name. */
export interface AssumedCall {
  readonly method: HttpMethod;
  /** With `:name` segments. */
  readonly path: string;
  /** Fields of the request by name, each with its place. */
  readonly request: Readonly<Record<string, FieldPlace>>;
  /** Fields of the answer. A plain text has one, called `text`. */
  readonly response: readonly string[];
  /** Fields that are lists or objects. */
  readonly structured: readonly string[];
  /** The body is a form. */
  readonly isForm: boolean;
  /** Headers that carry fields. */
  readonly headers: Readonly<Record<string, string>>;
}

const all = <Place extends FieldPlace>(shape: object, place: Place): Record<string, Place> =>
  Object.fromEntries(Object.keys(shape).map((name) => [name, place]));
const pathFields = (path: string) =>
  Object.fromEntries([...path.matchAll(/:([A-Za-z]+)/g)].map(([, name = '']) => [name, 'path' as const]));

const forms: readonly string[] = [uploadChunk.path, uploadFileChunk.path, generateUploadId.path, runInference.path];

function assumed(
  { method, path }: { method: HttpMethod; path: string },
  request: Readonly<Record<string, FieldPlace>>,
  response: object | readonly string[],
  headers: Readonly<Record<string, string>> = {},
): AssumedCall {
  // `Array.isArray` forgets the type of the elements.
  const names = Array.isArray(response) ? (response as readonly string[]) : Object.keys(response);
  const structured = ['parameters', 'bbox', 'collections', 'sortby', 'vectorMappingProperties', 'layerProperties'];
  return {
    method,
    path,
    request: { ...pathFields(path), ...request },
    response: names,
    structured: structured.filter((name) => name in request),
    isForm: forms.includes(path),
    headers,
  };
}

const node = ['id', 'title', 'description', 'links'];

/** Every call that a client of the platform makes, by its name in a `WireProfile`. */
export const wireCalls = {
  renewToken: assumed(renewToken, {}, renewToken.response.shape),
  userDetail: assumed(userDetail, {}, userDetail.response.shape),
  createOperation: assumed(
    createOperation,
    { ...all(createOperation.request.shape, 'body'), idempotencyKey: 'header' },
    createOperation.response.shape,
    { idempotencyKey: createOperation.idempotencyHeader },
  ),
  getOperation: assumed(getOperation, all(getOperation.query.shape, 'query'), getOperation.response.shape),
  initiateUpload: assumed(initiateUpload, all(initiateUpload.request.shape, 'body'), initiateUpload.response.shape),
  uploadChunk: assumed(uploadChunk, all(uploadChunk.fields.shape, 'body'), uploadChunk.response.shape),
  completeUpload: assumed(completeUpload, all(completeUpload.request.shape, 'body'), completeUpload.response.shape),
  getFileStatus: assumed(getFileStatus, {}, getFileStatus.response.shape),
  getDownloadUrl: assumed(getDownloadUrl, all(getDownloadUrl.query.shape, 'query'), ['text']),
  generateUploadId: assumed(
    generateUploadId,
    all(generateUploadId.fields.shape, 'body'),
    generateUploadId.response.shape,
  ),
  uploadFileChunk: assumed(uploadFileChunk, all(uploadFileChunk.fields.shape, 'body'), ['message']),
  completeFileUpload: assumed(
    completeFileUpload,
    all(completeFileUpload.request.shape, 'body'),
    completeFileUpload.response.shape,
  ),
  listModels: assumed(listModels, {}, []),
  runInference: assumed(runInference, all(runInference.fields.shape, 'body'), runInference.response.shape),
  getInferenceStatus: assumed(
    getInferenceStatus,
    all(getInferenceStatus.query.shape, 'query'),
    getInferenceStatus.response.shape,
  ),
  downloadInference: assumed(downloadInference, all(downloadInference.query.shape, 'query'), []),
  getCatalog: assumed({ method: 'GET', path: stacPaths.catalog }, {}, node),
  getCollection: assumed({ method: 'GET', path: stacPaths.collection }, {}, node),
  getItem: assumed({ method: 'GET', path: stacPaths.item }, {}, ['id', 'collection', 'title', 'bbox', 'geometry']),
  searchItems: assumed(
    { method: 'POST', path: stacPaths.search },
    all({ bbox: 0, collections: 0, datetime: 0, limit: 0, offset: 0, sortby: 0 }, 'body'),
    ['features', 'numberMatched'],
  ),
} as const satisfies Record<string, AssumedCall>;

/** The name of a call of the wire profile. */
export type WireCallName = keyof typeof wireCalls;
export const wireCallNames: WireCallName[] = keysOf(wireCalls);
