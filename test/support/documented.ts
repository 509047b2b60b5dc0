import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  completeFileUpload,
  downloadInference,
  generateUploadId,
  getDownloadUrl,
  getFileStatus,
  getInferenceStatus,
  listModels,
  runInference,
  stacPaths,
  uploadFile,
  uploadFileChunk,
} from '../../src/contract/index.ts';
import { projectRoot } from './folders.ts';

/** First words of the control API's paths, from its routes, and every path of the file, catalog and inference groups. */
export async function endpoints(): Promise<string[]> {
  const routes = await readFile(join(projectRoot, 'src/sandbox/control/routes.ts'), 'utf8');
  const control = [...routes.matchAll(/\.route\(\s*['`]\/([a-z]+)/g)].map(([, name]) => `/sandbox/${name}`);
  const groups = [
    uploadFile,
    generateUploadId,
    uploadFileChunk,
    completeFileUpload,
    getFileStatus,
    getDownloadUrl,
    listModels,
    runInference,
    getInferenceStatus,
    downloadInference,
  ];
  const own = [
    stacPaths.catalog,
    stacPaths.collection,
    stacPaths.search,
    stacPaths.collections,
    stacPaths.conformance,
    stacPaths.api,
  ];
  return [
    ...control,
    ...[...groups.map(({ path }) => path), ...own].map((path) => path.replace(/:([A-Za-z]+)/g, '{$1}')),
  ];
}
