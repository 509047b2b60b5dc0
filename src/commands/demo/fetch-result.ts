import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { setTimeout as sleep } from 'node:timers/promises';
import { KitError, type FileStatus } from '../../contract/index.ts';
import type { PlatformClient } from '../../platform-client/index.ts';

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
  const partial = `${path}.partial`;
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
    await pipeline(Readable.fromWeb(response.body as ReadableStream<Uint8Array>), digest, createWriteStream(partial));
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
  return { path, sizeBytes, sha256: hash.digest('hex') };
}
