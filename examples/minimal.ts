/**
 * The whole integration in one file, numbered by the steps of section 4.8. Start the sandbox (`npm run sandbox`), register
 * http://127.0.0.1:5000/launch as an app, and run:
 *
 *     PLATFORM_URL=http://127.0.0.1:4010 PLATFORM_API_KEY=... node examples/minimal.ts
 *
 * A real app keeps its sessions and runs in a database, so that they survive a restart (src/app).
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import express from 'express';
import gdal from 'gdal-async';
import {
  createPlatformClient,
  PlatformError,
  type IdentityToken,
  type LaunchCalls,
} from '../src/platform-client/index.ts';

const { PLATFORM_URL: baseUrl = 'http://127.0.0.1:4010', PLATFORM_API_KEY: apiKey = '', PORT = '5000' } = process.env;
const scene = fileURLToPath(new URL('../src/sandbox/scenes/olinda-landsat7.tif', import.meta.url));
const pollMs = 2_500; // Rule 2: every 2 to 5 s.
const chunkBytes = 16 * 1024 ** 2;

if (apiKey === '') throw new Error('PLATFORM_API_KEY is not set: give the API key of the platform');

/** Repeats failed calls, renews the token (step 1), and checks what the platform answers. */
const platform = createPlatformClient({ baseUrl, apiKey });
/** Rule 5: one session for each token. A second request with the same token begins no second session. */
const begun = new Set<string>();

const app = express();
// Link checkers ask for the head only: that begins no session.
app.head('/launch', (_req, res) => void res.status(204).end());
app.get('/launch', (req, res) => {
  const { token } = req.query;
  if (typeof token !== 'string')
    return void res.status(400).send('The platform gives the token: launch this app from the marketplace.');
  res.set('referrer-policy', 'no-referrer').send('Approve the small map in the platform.');
  if (begun.has(token)) return;
  begun.add(token);
  let held: IdentityToken = { token, expiresAtMs: null };
  const calls = platform.launch({
    read: () => Promise.resolve(held),
    write: (renewed) => Promise.resolve(void (held = renewed)),
  });
  run(calls).catch((error: unknown) => console.error(`the run failed: ${String(error)}`));
});

async function run(calls: LaunchCalls): Promise<void> {
  const user = await calls.userDetail(); // Step 2: get the user.
  const { operationId } = await calls.createOperation({
    idempotencyKey: randomUUID(), // A repeated call makes no second operation.
    operation: { name: 'Small map', description: `A small map for ${user.name}.`, parameters: { percent: 25 } },
  }); // Step 3: create the operation. The user approves or rejects it in the platform.

  const status = await decision(calls, operationId);
  if (status !== 'APPROVED') return console.log(`the user's decision: ${status}`); // Rule 4: no work and no upload.

  const folder = await mkdtemp(join(tmpdir(), 'minimal-'));
  try {
    const path = join(folder, 'small.tif');
    await makeSmallMap(path); // Rule 1: only now.
    console.log(`delivered: ${await upload(calls, operationId, path)}`);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Step 4: poll until the user decides, or until the operation expires. */
async function decision(calls: LaunchCalls, operationId: string): Promise<string> {
  let waitMs = pollMs;
  for (;;) {
    await sleep(waitMs);
    waitMs = pollMs;
    try {
      const { status } = await calls.getOperation({ operationId });
      if (status !== 'REQUESTED') return status;
    } catch (error) {
      // The next poll makes up for a call that got no answer.
      if (!(error instanceof PlatformError && error.isTransient)) throw error;
      waitMs = Math.max(pollMs, error.retryAfterMs ?? 0);
    }
  }
}

/** Your work. Open files of other people in a confined process only, as the kit's steps do (docs/security.md). */
async function makeSmallMap(path: string): Promise<void> {
  const source = gdal.open(scene);
  (await gdal.translateAsync(path, source, ['-of', 'COG', '-outsize', '25%', '25%'])).close();
  source.close();
}

/** Steps 5, 6 and 7: initiate, chunks in order, complete. Rule 3: one `uploadId` and `key` for all chunks. */
async function upload(calls: LaunchCalls, operationId: string, path: string): Promise<string | undefined> {
  const file = await open(path);
  try {
    const { size: fileSize } = await file.stat();
    const { uploadId, key } = await calls.initiateUpload({
      operationId,
      fileName: 'small.tif',
      sourceType: 'MULTISPECTRAL',
    });
    for (let start = 0, partNumber = 1; start < fileSize; start += chunkBytes, partNumber++) {
      const end = Math.min(fileSize, start + chunkBytes) - 1;
      const content = {
        sizeBytes: end - start + 1,
        open: () => file.createReadStream({ start, end, autoClose: false }),
      };
      await calls.uploadChunk({ uploadId, key, partNumber, content });
    }
    return (await calls.completeUpload({ uploadId, key, fileSize, sourceType: 'MULTISPECTRAL' })).fileId;
  } finally {
    await file.close();
  }
}

const server = app.listen(Number(PORT), '127.0.0.1', () => {
  const address = server.address();
  console.log(`app ready http://127.0.0.1:${typeof address === 'object' ? address?.port : PORT}`);
});
