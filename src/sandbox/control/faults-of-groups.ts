import type { RequestHandler } from 'express';
import {
  completeFileUpload,
  downloadInference,
  generateUploadId,
  getDownloadUrl,
  getFileStatus,
  getInferenceStatus,
  listModels,
  matchPath,
  runInference,
  stacPaths,
  uploadFile,
  uploadFileChunk,
} from '../../contract/index.ts';
import { assetPaths } from '../stac/asset-links.ts';
import { applyFault, type FaultEndpoint, type Faults } from './faults.ts';
import type { RateLimit } from './rate-limit.ts';

/** Calls that belong to no launch, by the names that faults and limits use. */
const places: readonly (readonly [FaultEndpoint, method: string, path: string])[] = [
  ['file.upload', 'POST', uploadFile.path],
  ['file.generate', 'POST', generateUploadId.path],
  ['file.chunk', 'POST', uploadFileChunk.path],
  ['file.complete', 'POST', completeFileUpload.path],
  ['file.status', 'GET', getFileStatus.path],
  ['file.download', 'GET', getDownloadUrl.path],
  ['file.download', 'GET', '/download/:fileId'],
  ['stac.search', 'POST', stacPaths.search],
  ['stac.search', 'GET', stacPaths.search],
  ['stac.preview', 'GET', assetPaths.preview],
  ['stac.preview', 'GET', assetPaths.thumbnail],
  ['stac.data', 'GET', assetPaths.data],
  ['stac.data', 'GET', assetPaths.raster],
  ['inference.models', 'GET', listModels.path],
  ['inference.run', 'POST', runInference.path],
  ['inference.status', 'GET', getInferenceStatus.path],
  ['inference.download', 'GET', downloadInference.path],
];

function endpointOf(method: string, path: string): FaultEndpoint | null {
  const found = places.find(([, wanted, template]) => wanted === method && matchPath(template, path) !== null);
  if (found) return found[0];
  const isStac = path === stacPaths.root || path.startsWith(`${stacPaths.root}/`);
  return isStac && method === 'GET' ? 'stac.browse' : null;
}

/** Rate limit and armed faults of the calls outside of the external-app group. */
export function faultsOfGroups(faults: Faults, rateLimit: RateLimit): RequestHandler {
  return async (req, res, next) => {
    const endpoint = endpointOf(req.method === 'HEAD' ? 'GET' : req.method, req.path);
    if (endpoint === null) return next();
    if (await applyFault(rateLimit.take(endpoint) ?? faults.take(endpoint, null), endpoint, req, res)) next();
  };
}
