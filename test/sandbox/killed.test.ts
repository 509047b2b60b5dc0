// @module-tag all
/** kill -9 of the sandbox at every stage of an upload, of processing and of inference: what was acknowledged is there, and the rest goes on by itself. */
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { finalStatus, key, uploadDirectly } from '../support/files.ts';
import { testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { putModel, thresholdGraph } from '../support/models.ts';
import { startServer, type Server } from '../support/processes.ts';
import { apiKey, openUpload, sandboxClient, sendChunk, sendComplete, type TestSandbox } from '../support/sandbox.ts';

async function killable(prepare: (dataDir: string) => Promise<void> = async () => {}) {
  const dataDir = await testFolder();
  await prepare(dataDir);
  let server: Server;
  const start = async (): Promise<TestSandbox> => {
    server = await startServer('sandbox', ['--port', '0', '--seed', 'none', '--data', dataDir], {
      SANDBOX_API_KEY: apiKey,
      LOG_LEVEL: 'silent',
    });
    return sandboxClient(server.url, dataDir, async () => {});
  };
  /** Starts as after a power cut, with another port. */
  const killAndStart = async () => {
    await server.kill('SIGKILL');
    return start();
  };
  const stopAndStart = async () => {
    await server.kill('SIGTERM');
    return start();
  };
  return { sandbox: await start(), killAndStart, stopAndStart };
}

const scene = geoTiff({ width: 1_500, height: 1_500, value: (x, y) => (x * 7 + y * 13) % 4_000 });
const parts = [scene.subarray(0, 1_000_000), scene.subarray(1_000_000, 3_000_000), scene.subarray(3_000_000)];

/** Begins a chunk, and sends half of it. */
function halfAChunk(
  sandbox: TestSandbox,
  { token, uploadId, key: uploadKey }: Awaited<ReturnType<typeof openUpload>>,
  partNumber: number,
  bytes: Uint8Array,
): Promise<void> {
  return new Promise((resolve) => {
    const head = Object.entries({ uploadId, key: uploadKey, partNumber })
      .map(([name, value]) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
      .join('');
    const body = Buffer.concat([
      Buffer.from(`${head}--b\r\nContent-Disposition: form-data; name="file"; filename="p"\r\n\r\n`),
      bytes,
    ]);
    const sent = request(`${sandbox.url}/public/external-app/file/${token}/upload/chunk`, {
      method: 'POST',
      headers: {
        'x-api-key': apiKey,
        'content-type': 'multipart/form-data; boundary=b',
        'content-length': body.length + 7,
      },
    });
    sent.on('error', () => {});
    sent.write(body.subarray(0, body.length >> 1), () => resolve());
  });
}

test('after each acknowledged part, within one, and between completing and processing', async () => {
  const world = await killable();
  let { sandbox } = world;
  const upload = await openUpload(sandbox, 'scene.tif');
  sandbox = await world.killAndStart();
  for (const [i, bytes] of parts.entries()) {
    await halfAChunk(sandbox, upload, i + 1, bytes);
    await sleep(200);
    sandbox = await world.killAndStart();
    expect((await sendChunk(sandbox, upload, i + 1, bytes)).status).toBe(200);
    sandbox = await world.killAndStart();
    // The acknowledgement may have been lost: the same part is taken as the same.
    expect((await sendChunk(sandbox, upload, i + 1, bytes)).status).toBe(200);
  }
  const { fileId } = (await sendComplete(sandbox, upload, scene.length)).body;
  sandbox = await world.killAndStart();
  expect((await sendComplete(sandbox, upload, scene.length)).body.fileId).toBe(fileId);
  expect(await finalStatus(sandbox, fileId)).toBe('COMPLETED');
  const { uploads } = await sandbox.control('GET', `launches/${upload.launchId}`);
  expect(uploads.map((one) => [one.fileId, one.receivedBytes])).toEqual([[fileId, scene.length]]);
}, 900_000);

test('while a file is processed, and while a model runs on it, again and again', async () => {
  const world = await killable((dataDir) => putModel(dataDir, 'threshold', {}, thresholdGraph()));
  let { sandbox } = world;
  const { fileId } = (await uploadDirectly(sandbox, scene, 'scene.tif', 'MULTISPECTRAL')).body;
  for (const afterMs of [0, 60, 150, 300]) {
    await sleep(afterMs);
    sandbox = await world.killAndStart();
  }
  expect(await finalStatus(sandbox, fileId)).toBe('COMPLETED');

  const body = new URLSearchParams({ modelId: 'threshold', fileId }).toString();
  const job = (
    await sandbox.request('POST', '/public/inference/run', {
      body,
      headers: { ...key, 'content-type': 'application/x-www-form-urlencoded' },
    })
  ).body;
  const status = async () =>
    (await sandbox.request('GET', `/public/inference/status?inferenceId=${job.id}`, { headers: key })).body.status;
  for (const afterMs of [0, 100, 300]) {
    await sleep(afterMs);
    sandbox = await world.killAndStart();
  }
  await expect.poll(status, { timeout: 900_000 }).toBe('DONE');
}, 900_000);

test('its clock moved on by a day in the middle of an upload: what is under way is told so, and nothing breaks', async () => {
  const { sandbox } = await killable();
  const upload = await openUpload(sandbox, 'scene.tif');
  expect((await sendChunk(sandbox, upload, 1, parts[0]!)).status).toBe(200);
  await sandbox.advance(3 * 86_400_000);
  const answers = [await sendChunk(sandbox, upload, 2, parts[1]!), await sendComplete(sandbox, upload, scene.length)];
  for (const { status, body } of answers) {
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
    expect(body.code).toMatch(/^(token_expired|upload_session_not_found)$/);
  }
  const next = await openUpload(sandbox, 'scene.tif');
  for (const [i, bytes] of parts.entries()) expect((await sendChunk(sandbox, next, i + 1, bytes)).status).toBe(200);
  const { fileId } = (await sendComplete(sandbox, next, scene.length)).body;
  expect(await finalStatus(sandbox, fileId)).toBe('COMPLETED');
});

test('the referee does not accuse by answers that a kill may have kept from its trace; an orderly stop keeps none', async () => {
  const world = await killable();
  const rule = async (sandbox: TestSandbox, launchId: string) =>
    (await sandbox.control('GET', `launches/${launchId}/verdict`)).rules.find(
      (one) => one.rule === 'upload-after-approval',
    )!.result;
  // No status answer told the app of the approval: an accusation, as long as every call is known.
  let { sandbox } = world;
  const upload = await openUpload(sandbox, 'a.tif');
  expect(await rule(sandbox, upload.launchId)).toBe('failed');
  sandbox = await world.stopAndStart();
  expect(await rule(sandbox, upload.launchId)).toBe('failed');

  const { launchId, token } = await sandbox.launch();
  const { operationId } = (await sandbox.app('POST', `/operation/${token}`, { body: { name: 'x' } })).body;
  await sandbox.control('POST', `operations/${operationId}/approve`);
  sandbox = await world.killAndStart();
  expect(
    (await sandbox.app('POST', `/file/${token}/upload/initiate`, { body: { operationId, fileName: 'a.tif' } })).status,
  ).toBe(200);
  expect(await rule(sandbox, launchId)).not.toBe('failed');
  // Calls before the kill are judged as ever.
  expect(await rule(sandbox, upload.launchId)).toBe('failed');
});
