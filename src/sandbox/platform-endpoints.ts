import {
  completeFileUpload,
  downloadInference,
  externalAppEndpoints,
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
} from '../contract/index.ts';
import { assetPaths } from './stac/asset-links.ts';

/** Every call of the platform, by the name that faults, limits and traces use. */
export const platformEndpoints = [
  ...externalAppEndpoints,
  'file.upload',
  'file.generate',
  'file.chunk',
  'file.complete',
  'file.status',
  'file.download',
  'stac.browse',
  'stac.search',
  'stac.data',
  'stac.preview',
  'inference.models',
  'inference.run',
  'inference.status',
  'inference.download',
] as const;
export type PlatformEndpoint = (typeof platformEndpoints)[number];

/** Calls that carry no identity token. */
const places: readonly (readonly [PlatformEndpoint, method: string, path: string])[] = [
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

export interface PlacedCall {
  readonly endpoint: PlatformEndpoint;
  /** Of the path, by name. */
  readonly values: Readonly<Record<string, string>>;
}

/** The call that a method and a path are; null for what is none of those without a token. */
export function placeOf(method: string, path: string): PlacedCall | null {
  const asked = method === 'HEAD' ? 'GET' : method;
  for (const [endpoint, wanted, template] of places) {
    const values = wanted === asked ? matchPath(template, path) : null;
    if (values !== null) return { endpoint, values };
  }
  const isStac = path === stacPaths.root || path.startsWith(`${stacPaths.root}/`);
  return isStac && asked === 'GET' ? { endpoint: 'stac.browse', values: {} } : null;
}
