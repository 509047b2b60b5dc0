import * as z from 'zod';
import {
  completeFileUpload,
  completeUpload,
  createOperation,
  downloadInference,
  generateUploadId,
  getDownloadUrl,
  getFileStatus,
  getInferenceStatus,
  getOperation,
  initiateUpload,
  itemsPage,
  itemsQuery,
  listModels,
  mediaTypes,
  renewToken,
  runInference,
  searchPage,
  searchQuery,
  stacCatalog,
  stacCollection,
  stacItem,
  stacLink,
  stacPaths,
  strictSearchRequest,
  uploadChunk,
  uploadFile,
  uploadFileChunk,
  userDetail,
} from '../../contract/index.ts';
import { assetPaths } from '../stac/asset-links.ts';
import type { DocumentedCall } from './documented-call.ts';

const file = { tag: 'Files', errors: [400, 401, 403, 500] } as const;
const stac = { tag: 'Catalog', method: 'get', errors: [401, 404, 500] } as const;
const inference = { tag: 'Inference' } as const;
const external = { tag: 'External app', errors: [400, 403, 404, 500] } as const;

const signature = { expires: z.string().optional(), signature: z.string().optional() };
const previewQuery = z.object({ bbox: z.string().optional(), sourceId: z.string().optional(), width: z.string().optional(), height: z.string().optional(), ...signature });
const withoutKey = { tag: 'Catalog', method: 'get', isSigned: true } as const;

/** Every call of the platform's interface that the sandbox answers (spec 4), and the addresses that it signs. */
export const platformCalls: readonly DocumentedCall[] = [
  { ...stac, id: 'getRootCatalog', summary: 'Root catalog', path: `${stacPaths.root}/`, response: stacCatalog, errors: [401, 500], clause: '4.1' },
  { ...stac, id: 'getCatalog', summary: 'Catalog', path: stacPaths.catalog, response: stacCatalog, clause: '4.1' },
  { ...stac, id: 'getCollection', summary: 'Collection', path: stacPaths.collection, response: stacCollection, clause: '4.1' },
  { ...stac, id: 'getItems', summary: 'Items of a collection', path: stacPaths.items, query: itemsQuery, response: itemsPage, mediaType: mediaTypes.geojson, errors: [400, 401, 404, 500, 503], clause: '4.1' },
  { ...stac, id: 'getItem', summary: 'Item, by id or title', path: stacPaths.item, response: stacItem, mediaType: mediaTypes.geojson, clause: '4.1' },
  { ...stac, id: 'postSearch', summary: 'Items that match', method: 'post', path: stacPaths.search, json: strictSearchRequest, response: searchPage, mediaType: mediaTypes.geojson, errors: [400, 401, 415, 500, 503], clause: '4.2' },
  { ...stac, id: 'getSearch', summary: 'Items that match, for standard clients', path: stacPaths.search, query: searchQuery, response: searchPage, mediaType: mediaTypes.geojson, errors: [400, 401, 500, 503], clause: '9' },
  { ...stac, id: 'getCollections', summary: 'All collections, for standard clients', path: stacPaths.collections, response: z.object({ collections: z.array(stacCollection), links: z.array(stacLink) }), errors: [401, 500], clause: '9' },
  { ...stac, id: 'getConformance', summary: 'Conformance classes', path: stacPaths.conformance, response: z.object({ conformsTo: z.array(z.string()) }), errors: [401, 500], clause: '9' },
  { ...stac, id: 'getApi', summary: 'OpenAPI 3.0 description of the catalog', path: stacPaths.api, mediaType: mediaTypes.openapi, errors: [401, 500], clause: '9' },
  { ...withoutKey, id: 'getPreview', summary: 'Rendered preview of an item', path: assetPaths.preview, query: previewQuery, mediaType: mediaTypes.png, errors: [400, 403, 404, 500, 503], clause: '2.3' },
  { ...withoutKey, id: 'getData', summary: 'Source data of an item', path: assetPaths.data, query: z.object(signature), mediaType: mediaTypes.zip, errors: [403, 404, 500, 503], clause: '2.3' },
  { ...withoutKey, id: 'getRaster', summary: 'Source raster of an item, for clients that read pixels', path: assetPaths.raster, query: z.object(signature), mediaType: 'application/octet-stream', errors: [403, 404, 500], clause: '2.3' },
  { ...withoutKey, id: 'getThumbnail', summary: 'Thumbnail of a collection', path: assetPaths.thumbnail, query: z.object(signature), mediaType: mediaTypes.png, errors: [403, 404, 500, 503], clause: '2.2' },

  { ...file, id: 'uploadFile', summary: 'Upload in one request', method: 'post', path: uploadFile.path, query: z.object({ sourceType: uploadFile.fields.shape.sourceType.optional() }), form: { fields: uploadFile.fields, file: uploadFile.fileField }, response: uploadFile.response, errors: [400, 401, 403, 413, 415, 500, 507], clause: '4.3' },
  { ...file, id: 'generateUploadId', summary: 'Begin a chunked upload', method: 'post', path: generateUploadId.path, query: generateUploadId.fields.partial(), form: { fields: generateUploadId.fields.partial() }, response: generateUploadId.response, errors: [400, 401, 403, 415, 500], clause: '4.4' },
  { ...file, id: 'uploadChunk', summary: 'Upload a chunk', method: 'post', path: uploadFileChunk.path, form: { fields: uploadFileChunk.fields, file: uploadFileChunk.fileField }, response: uploadChunk.response, errors: [400, 401, 403, 404, 413, 415, 500, 507], clause: '4.4' },
  { ...file, id: 'completeUpload', summary: 'Complete a chunked upload', method: 'post', path: completeFileUpload.path, json: completeFileUpload.request, response: completeFileUpload.response, errors: [400, 401, 403, 404, 415, 500, 507], clause: '4.4' },
  { ...file, id: 'getFileStatus', summary: 'Processing status of a file', method: 'get', path: getFileStatus.path, response: getFileStatus.response, errors: [401, 403, 404, 500], clause: '4.5' },
  { ...file, id: 'getDownloadUrl', summary: 'Signed download address, valid 24 hours', method: 'get', path: getDownloadUrl.path, query: getDownloadUrl.query, mediaType: 'text/plain', errors: [400, 401, 403, 404, 500], clause: '4.6' },

  { ...inference, id: 'listModels', summary: 'Models that can be run', method: 'get', path: listModels.path, response: listModels.response, errors: [401, 403, 500], clause: '4.7' },
  { ...inference, id: 'runInference', summary: 'Run a model on a file', method: 'post', path: runInference.path, form: { fields: runInference.fields }, response: runInference.response, errors: [400, 401, 403, 404, 415, 500], clause: '4.7' },
  { ...inference, id: 'getInferenceStatus', summary: 'Status of a job', method: 'get', path: getInferenceStatus.path, query: getInferenceStatus.query, response: getInferenceStatus.response, errors: [400, 401, 403, 404, 500], clause: '4.7' },
  { ...inference, id: 'downloadInference', summary: 'Result of a job', method: 'get', path: downloadInference.path, query: downloadInference.query, mediaType: 'application/octet-stream', errors: [400, 401, 403, 404, 500], clause: '4.7' },

  { ...external, id: 'renewToken', summary: '1. Renew the identity token', method: 'post', path: renewToken.path, response: renewToken.response, clause: '4.8' },
  { ...external, id: 'userDetail', summary: '2. User details', method: 'get', path: userDetail.path, response: userDetail.response, clause: '4.8' },
  { ...external, id: 'createOperation', summary: '3. Create an operation', method: 'post', path: createOperation.path, headers: z.object({ [createOperation.idempotencyHeader]: z.string().optional() }), json: createOperation.request, response: createOperation.response, errors: [400, 403, 404, 415, 500], clause: '4.8' },
  { ...external, id: 'getOperation', summary: '4. Status of an operation', method: 'get', path: getOperation.path, query: getOperation.query, response: getOperation.response, clause: '4.8' },
  { ...external, id: 'initiateUpload', summary: '5. Begin the upload', method: 'post', path: initiateUpload.path, json: initiateUpload.request, response: initiateUpload.response, errors: [400, 403, 404, 415, 500], clause: '4.8' },
  { ...external, id: 'uploadOperationChunk', summary: '6. Upload a chunk', method: 'post', path: uploadChunk.path, form: { fields: uploadChunk.fields, file: uploadChunk.fileField }, response: uploadChunk.response, errors: [400, 403, 404, 415, 500], clause: '4.8' },
  { ...external, id: 'completeOperationUpload', summary: '7. Complete the upload', method: 'post', path: completeUpload.path, json: completeUpload.request, response: completeUpload.response, errors: [400, 403, 404, 415, 500], clause: '4.8' },
];
