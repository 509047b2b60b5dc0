import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as z from 'zod';
import { fileGroupCalls } from '../app/upload/file-group-calls.ts';
import { uploadFile } from '../app/upload/uploader.ts';
import { KitError, type SourceType, type WireProfile } from '../contract/index.ts';
import { createPlatformClient } from '../platform-client/index.ts';
import type { controlAnswers } from '../sandbox/control/answers.ts';
import { sandboxCall } from '../testing/sandbox-call.ts';
import type { OwnSandbox } from './own-sandbox.ts';

/** A file for a sandbox's catalog. */
export interface BroughtFile {
  readonly path: string;
  readonly fileName: string;
  readonly sourceType: SourceType;
  /** Properties that the uploader gives (spec 4.4). Default: none. */
  readonly properties?: Readonly<Record<string, unknown>>;
}

/** An item of the catalog. */
export interface BroughtItem {
  readonly collectionId: string;
  readonly itemId: string;
}

const partSizeBytes = 16 * 1024 * 1024;
const lookEveryMs = 100;

/** Uploads a file as any other would (spec 4.4), and waits for its item. Throws `KitError` where it gets none, with the sandbox's reason. */
export async function bringFile(
  sandbox: Pick<OwnSandbox, 'url' | 'apiKey' | 'adminKey'>,
  profile: WireProfile,
  { path, fileName, sourceType, properties = {} }: BroughtFile,
  signal: AbortSignal,
): Promise<BroughtItem> {
  const client = createPlatformClient({ baseUrl: sandbox.url, apiKey: sandbox.apiKey, profile });
  try {
    const { size: sizeBytes } = await stat(path);
    const { fileId } = await uploadFile(
      { operationId: '', path, fileName, sourceType, sizeBytes, resume: null },
      {
        calls: fileGroupCalls(client, properties),
        partSizeBytes,
        limits: profile.limits,
        save: async () => {},
        onProgress: () => {},
        signal,
        retryWhileDown: (call) => call(),
      },
    );
    for (;;) {
      const file = await sandboxCall<z.output<typeof controlAnswers.file>>(sandbox, `files/${fileId}`);
      if (file.item) return file.item;
      if (file.status === 'FAILED' || file.status === 'COMPLETED')
        throw new KitError('no_item', `${fileName} became no item of the catalog: ${file.reason ?? 'it has no place'}`);
      await sleep(lookEveryMs, undefined, { signal });
    }
  } finally {
    client.close();
  }
}
