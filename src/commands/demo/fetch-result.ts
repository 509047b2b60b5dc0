import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { setTimeout as sleep } from 'node:timers/promises';
import { KitError, type FileStatus } from '../../contract/index.ts';
import type { PlatformClient } from '../../platform-client/index.ts';
import { digestFile } from '../digest-file.ts';

const statusEveryMs = 200;
const processingTimeoutMs = 10 * 60_000;

/** Waits until the platform has processed the file. */
export async function waitForFile(client: PlatformClient, fileId: string): Promise<FileStatus> {
  const deadline = performance.now() + processingTimeoutMs;
  for (;;) {
    const { status } = await client.getFileStatus(fileId);
    if (status === 'COMPLETED' || status === 'FAILED' || performance.now() > deadline) return status;
    await sleep(statusEveryMs);
  }
}

/** Fetches a file back through its download URL into `folder`; path, size and digest of what came. */
export async function fetchFile(client: PlatformClient, fileId: string, folder: string, fileName: string) {
  const response = await fetch(await client.getDownloadUrl(fileId));
  if (!response.ok || !response.body)
    throw new KitError('download_failed', `the download URL answered ${response.status}`);
  await mkdir(folder, { recursive: true });
  const path = join(folder, fileName);
  // Another demo may write to the same folder.
  const partial = `${path}.${randomUUID()}.partial`;
  const hash = createHash('sha256');
  let sizeBytes = 0;
  const digest = new Transform({
    transform(bytes: Buffer, _encoding, done) {
      hash.update(bytes);
      sizeBytes += bytes.length;
      done(null, bytes);
    },
  });
  try {
    await pipeline(
      // The global type, and that of `node:stream/web`, which `fromWeb` takes, are declared apart.
      Readable.fromWeb(response.body as ReadableStream<Uint8Array>),
      digest,
      createWriteStream(partial, { flags: 'wx' }),
    );
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
  const sha256 = hash.digest('hex');
  if ((await digestFile(path)) !== sha256)
    throw new KitError(
      'output_replaced',
      `another command has overwritten ${path}: use a different --out for each command`,
    );
  return { path, sizeBytes, sha256 };
}
