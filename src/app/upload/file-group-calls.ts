import type { PlatformClient } from '../../platform-client/index.ts';
import type { UploadOptions } from './uploader.ts';

/** What an upload by an API key calls (spec 4.4), in place of a launch's calls. `properties`: what is told of the file with its completion. */
export const fileGroupCalls = (
  client: Pick<PlatformClient, 'generateUploadId' | 'uploadFileChunk' | 'completeFileUpload'>,
  properties: Readonly<Record<string, unknown>> = {},
): UploadOptions['calls'] => ({
  initiateUpload: (file, options) => client.generateUploadId({ fileName: file.fileName }, options),
  uploadChunk: async (chunk, options) => {
    await client.uploadFileChunk(chunk, options);
    return {};
  },
  completeUpload: (completion, options) => client.completeFileUpload({ ...properties, ...completion }, options),
});
