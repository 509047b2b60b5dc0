/**
 * Measures the app's cost of sending. Its uploader and a bare `fetch` of forms send the same file from this process into one
 * sandbox, in turns.
 */
import { openAsBlob } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { uploadFile } from '../../src/app/upload/uploader.ts';
import { assumedLimits } from '../../src/contract/index.ts';
import { createPlatformClient } from '../../src/platform-client/index.ts';
import { startProcess } from './processes.ts';

const apiKey = 'bench-key';
const partBytes = 64 * 1024 * 1024;

/** CPU seconds of each round, by this process. */
export async function benchClient(
  mebibytes: number,
  rounds: number,
  parent: string,
): Promise<{ ours: number[]; fetch: number[] }> {
  const folder = await mkdtemp(join(parent, 'client-bench-'));
  const path = join(folder, 'file');
  const file = await open(path, 'w');
  for (let i = 0; i < mebibytes; i++) await file.write(randomBytes(1024 * 1024));
  await file.close();
  const sandbox = await startProcess(
    new URL('../../src/commands/sandbox.ts', import.meta.url),
    'sandbox',
    ['--port', '0', '--seed', 'none', '--data', join(folder, 'sandbox')],
    { SANDBOX_API_KEY: apiKey, LOG_LEVEL: 'error' },
  );
  const client = createPlatformClient({ baseUrl: sandbox.url, apiKey });
  const cpuOf = async (work: () => Promise<unknown>) => {
    const before = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1e6;
  };
  const sizeBytes = mebibytes * 1024 * 1024;
  const byUploader = () =>
    uploadFile(
      { operationId: '', path, fileName: 'a.bin', sourceType: 'UNKNOWN', sizeBytes, resume: null },
      {
        // An upload by an API key (spec 4.4) takes the place of a launch's calls.
        calls: {
          initiateUpload: ({ fileName }, options) => client.generateUploadId({ fileName }, options),
          uploadChunk: async (chunk, options) => {
            await client.uploadFileChunk(chunk, options);
            return {};
          },
          completeUpload: (completion, options) => client.completeFileUpload(completion, options),
        },
        partSizeBytes: partBytes,
        limits: assumedLimits,
        save: async () => {},
        onProgress: () => {},
        signal: new AbortController().signal,
      },
    );
  async function byFetch(): Promise<void> {
    const send = async (call: string, body: FormData | URLSearchParams) => {
      const response = await fetch(`${sandbox.url}/public/file/${call}`, {
        method: 'POST',
        headers: { 'x-api-key': apiKey },
        body,
      });
      if (!response.ok) throw new Error(`${call} was answered ${response.status}`);
      return (await response.json()) as { uploadId: string; key: string };
    };
    const { uploadId, key } = await send('generateUploadId', new URLSearchParams({ fileName: 'b.bin' }));
    const blob = await openAsBlob(path);
    for (let at = 0; at < sizeBytes; at += partBytes) {
      const form = new FormData();
      for (const [name, value] of Object.entries({ uploadId, key, partNumber: String(at / partBytes + 1) }))
        form.append(name, value);
      form.append('file', blob.slice(at, at + partBytes), 'part');
      await send('uploadChunk', form);
    }
  }
  try {
    const [ours, theirs]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      ours.push(await cpuOf(byUploader));
      theirs.push(await cpuOf(byFetch));
    }
    return { ours, fetch: theirs };
  } finally {
    client.close();
    await sandbox.kill();
    await rm(folder, { recursive: true, force: true });
  }
}
