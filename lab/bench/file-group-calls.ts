import type { PlatformClient } from '../../src/platform-client/index.ts';
import type { UploadOptions } from '../../src/app/upload/uploader.ts';

/**
 * Calls for an upload by an API key (spec 4.4), which replace a launch's calls. `properties`: facts about the file,
 * sent with its completion.
 */
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
