/** What the server processes use: nothing here loads GDAL, which lives in child processes only. */
export type { Job, JobContext } from './child-protocol.ts';
export { ChildJobError, folderBytes, runInChild, type ChildJobOptions, type ChildLimits } from './child-host.ts';
export { lendFile } from './lend-file.ts';
export { ChildPool, PoolBusyError } from './child-pool.ts';
export { rasterExtensions } from './raster-files.ts';
export { ArchiveError, unpack, type UnpackLimits } from './unpack.ts';
export { resolveFileInside, resolveInside, UnsafePathError } from './safe-path.ts';
export type { PreviewJobInput } from './preview-job.ts';
export type { PreviewStyle } from './preview.ts';
export type { SyntheticKind } from './synthetic-scene.ts';

/** Job that renders a preview: `PreviewJobInput` to `{ sizeBytes }`. */
export const previewJob = new URL('./preview-job.ts', import.meta.url);
