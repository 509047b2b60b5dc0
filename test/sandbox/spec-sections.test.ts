/** The service interface row by row: every path of section 4, every row of sections 7 and 8. */
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { readAppConfig } from '../../src/app/config.ts';
import { limits } from '../../src/contract/index.ts';
import { completeFile, generateUpload, processed, sendFileChunk, uploadDirectly } from '../support/files.ts';
import { landsatFolder, testFolder } from '../support/folders.ts';
import { landsat, needing } from '../support/needs.ts';
import { geoTiff } from '../support/geotiff.ts';
import { putModel, thresholdGraph } from '../support/models.ts';
import {
  apiKey,
  approvedOperation,
  chunkForm,
  openUpload,
  sendChunk,
  sendComplete,
  startSandbox,
  type Answer,
  type TestSandbox,
} from '../support/sandbox.ts';
import { key } from '../support/stac.ts';
import { onlyInAll } from '../support/tags.ts';

const raster = geoTiff({ width: 8, height: 6, value: (x) => x });
const get = (sandbox: TestSandbox, path: string, headers: Record<string, string> = key) =>
  sandbox.request('GET', path, { headers });
const form = (fields: Record<string, string>) => ({
  body: new URLSearchParams(fields).toString(),
  headers: { ...key, 'content-type': 'application/x-www-form-urlencoded' },
});

/** A model that takes any raster of one band. */
async function withModel(): Promise<TestSandbox> {
  const dataDir = await testFolder();
  await putModel(dataDir, 'mine', { bands: ['a'] }, thresholdGraph());
  return startSandbox({ dataDir });
}

async function doneJob(sandbox: TestSandbox): Promise<{ id: string; type: string }> {
  const { fileId } = await processed(sandbox, raster, 'a.tif', 'MULTISPECTRAL');
  const models = (await get(sandbox, '/public/inference/models')).body as unknown as { id: string }[];
  const job = (
    await sandbox.request(
      'POST',
      '/public/inference/run',
      form({ modelId: models.find(({ id }) => id === 'mine')!.id, fileId }),
    )
  ).body as unknown as { id: string; type: string };
  for (;;) {
    const { status } = (await get(sandbox, `/public/inference/status?inferenceId=${job.id}`)).body;
    if (status === 'DONE' || status === 'FAILED') return job;
    await sleep(30);
  }
}

describe('section 4', () => {
  test.each([
    ['/public/stac/', { type: 'Catalog', stac_version: '1.0.0' }],
    ['/public/stac/catalogs/terrain', { type: 'Catalog', id: 'terrain' }],
    ['/public/stac/collections/alpine-elevation', { type: 'Collection', id: 'alpine-elevation' }],
    [
      '/public/stac/collections/alpine-elevation/items',
      {
        type: 'FeatureCollection',
        features: expect.arrayContaining([expect.objectContaining({ collection: 'alpine-elevation' })]) as unknown,
      },
    ],
    [
      '/public/stac/collections/alpine-elevation/items/alpine-elevation-001',
      { type: 'Feature', id: 'alpine-elevation-001' },
    ],
  ])('4.1 GET %s', async (path, expected) => {
    const answer = await get(await startSandbox({ seed: 'demo' }), path);
    expect([answer.status, answer.body]).toEqual([200, expect.objectContaining(expected)]);
  });

  test('4.2 POST /public/stac/search', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const body = {
      bbox: [-180, -90, 180, 90],
      collections: ['alpine-elevation'],
      datetime: '2020-01-01T00:00:00Z/2030-01-01T00:00:00Z',
      limit: 5,
      offset: 2,
      sortby: [{ field: 'properties.datetime', direction: 'desc' }],
    };
    const answer = await sandbox.request('POST', '/public/stac/search', {
      body,
      headers: { ...key, accept: 'application/geo+json' },
    });
    expect(answer.body).toMatchObject({
      type: 'FeatureCollection',
      numberMatched: 12,
      numberReturned: 5,
      limit: 5,
      offset: 2,
      sortby: body.sortby,
      links: expect.arrayContaining([
        expect.objectContaining({ rel: 'self', href: '/public/stac/search?limit=5&offset=2' }),
      ]) as unknown,
    });
  });

  test('4.3 POST /public/file/upload', async () => {
    expect((await uploadDirectly(await startSandbox(), raster, 'a.tif', 'SAR')).body).toEqual({
      fileId: expect.any(String) as string,
      originalName: 'a.tif',
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      size: raster.length,
    });
  });

  test('4.4 generateUploadId, uploadChunk, completeUpload; 4.5 status; 4.6 download URL', async () => {
    const sandbox = await startSandbox();
    const upload = await generateUpload(sandbox, 'a.tif');
    expect(upload).toEqual({ uploadId: expect.any(String) as string, key: expect.any(String) as string });
    expect((await sendFileChunk(sandbox, upload, 1, raster)).body).toMatchObject({
      message: expect.any(String) as string,
    });
    const { fileId } = (await completeFile(sandbox, upload, raster.length)).body;
    expect((await get(sandbox, `/public/file/status/${fileId}`)).body).toEqual({
      id: fileId,
      originalName: 'a.tif',
      status: expect.stringMatching(/^(QUEUED|IN_PROGRESS|COMPLETED)$/) as string,
      createdAt: expect.any(Number) as number,
    });
    const link = await get(sandbox, `/public/file/download/url?fileId=${fileId}`);
    expect(link.headers.get('content-type')).toMatch(/^text\/plain/);
    expect(Buffer.from(await (await fetch(link.text)).arrayBuffer()).equals(raster)).toBe(true);
  });

  test('4.7 models, run, status, download', async () => {
    const sandbox = await withModel();
    expect((await get(sandbox, '/public/inference/models')).body).toEqual(
      expect.arrayContaining([
        {
          id: 'mine',
          name: expect.any(String) as string,
          version: expect.any(String) as string,
          type: expect.any(String) as string,
          labels: expect.any(Array) as string[],
        },
      ]),
    );
    const job = await doneJob(sandbox);
    expect(job).toEqual({
      id: expect.any(String) as string,
      status: 'SUBMITTED',
      type: expect.any(String) as string,
      startedAt: expect.any(String) as string,
    });
    const answer = await get(sandbox, `/public/inference/download?inferenceJobId=${job.id}`);
    expect([answer.status, answer.headers.get('content-type'), answer.headers.get('content-disposition')]).toEqual([
      200,
      'application/octet-stream',
      expect.stringMatching(/^attachment; filename=/),
    ]);
  });

  test('4.8 the seven calls, from token to file', async () => {
    const sandbox = await startSandbox();
    const { token } = await sandbox.launch();
    expect((await sandbox.app('POST', `/token/${token}/renew`)).body).toMatchObject({ token });
    expect((await sandbox.app('GET', `/user/${token}/detail`)).body).toMatchObject({ id: 'amina' });
    const { operationId } = (await sandbox.app('POST', `/operation/${token}`, { body: { name: 'n' } })).body;
    await sandbox.control('POST', `operations/${operationId}/approve`);
    expect((await sandbox.app('GET', `/operation/${token}?operationId=${operationId}`)).body.status).toBe('APPROVED');
    const { uploadId, key: path } = (
      await sandbox.app('POST', `/file/${token}/upload/initiate`, { body: { operationId, fileName: 'a.tif' } })
    ).body;
    expect(
      (
        await sandbox.app('POST', `/file/${token}/upload/chunk`, {
          body: chunkForm({ uploadId, key: path, partNumber: 1, file: raster }),
        })
      ).status,
    ).toBe(200);
    const completed = await sandbox.app('POST', `/file/${token}/upload/complete`, {
      body: { uploadId, key: path, fileSize: raster.length, sourceType: 'MULTISPECTRAL' },
    });
    expect(completed.body).toMatchObject({ fileId: expect.any(String) as string, size: raster.length });
  });
});

/** Something on the server's side goes wrong: a table is gone. */
function broken(sandbox: TestSandbox, table: string): TestSandbox {
  const database = new Database(`${sandbox.dataDir}/sandbox.db`);
  database.pragma('foreign_keys = off');
  database.exec(`drop table ${table}`);
  database.close();
  return sandbox;
}

const told = (answer: Answer) => [answer.status, answer.body.error];
const weak = async (sandbox: TestSandbox, ...permissions: string[]) => ({
  'x-api-key': (await sandbox.control('POST', 'keys', { permissions })).apiKey,
});

describe('section 7', () => {
  const emptyForm = () => chunkForm({ sourceType: 'SAR' });
  const withFile = () => chunkForm({ file: raster });

  const rows: [string, number, string, () => Promise<Answer>][] = [
    [
      'upload type 1: invalid credentials',
      401,
      'Unauthorized Request',
      async () =>
        (await startSandbox()).request('POST', '/public/file/upload', {
          body: withFile(),
          headers: { 'x-api-key': 'wrong' },
        }),
    ],
    [
      'upload type 1: missing file',
      400,
      'Bad Request',
      async () => (await startSandbox()).request('POST', '/public/file/upload', { body: emptyForm(), headers: key }),
    ],
    [
      'upload type 1: lacks files_admin and files_upload',
      403,
      'Permission Denied',
      async () => {
        const sandbox = await startSandbox();
        return sandbox.request('POST', '/public/file/upload', {
          body: withFile(),
          headers: await weak(sandbox, 'inference', 'external_app'),
        });
      },
    ],
    [
      'upload type 1: server error',
      500,
      'Internal Server Error',
      async () => uploadDirectly(broken(await startSandbox(), 'files'), raster, 'a.tif'),
    ],
    [
      'generateUploadId: server error',
      500,
      'Failed to generate upload ID',
      async () =>
        broken(await startSandbox(), 'uploads').request('POST', '/public/file/generateUploadId?fileName=a', {
          headers: key,
        }),
    ],
    [
      'uploadChunk: server error',
      500,
      'Failed to upload chunk',
      async () => {
        const sandbox = await startSandbox();
        const upload = await generateUpload(sandbox);
        return sendFileChunk(broken(sandbox, 'upload_parts'), upload, 1, raster);
      },
    ],
    [
      'completeUpload: server error',
      500,
      'Failed to complete upload',
      async () => {
        const sandbox = await startSandbox();
        const upload = await generateUpload(sandbox);
        await sendFileChunk(sandbox, upload, 1, raster);
        return completeFile(broken(sandbox, 'files'), upload, raster.length);
      },
    ],
    [
      'status: no file with the id',
      404,
      'File not found',
      async () => get(await startSandbox(), '/public/file/status/nothing'),
    ],
    [
      'status: server error',
      500,
      'Internal Server Error',
      async () => get(broken(await startSandbox(), 'files'), '/public/file/status/x'),
    ],
    [
      'download URL: server error',
      500,
      'Internal Server Error',
      async () => get(broken(await startSandbox(), 'files'), '/public/file/download/url?fileId=x'),
    ],
    [
      'models: token invalid',
      401,
      'Unauthorized Request',
      async () => get(await startSandbox(), '/public/inference/models', { authorization: 'Bearer wrong' }),
    ],
    [
      'models: token missing',
      401,
      'Unauthorized Request',
      async () => get(await startSandbox(), '/public/inference/models', {}),
    ],
    [
      'models: server error',
      500,
      'Internal Server Error',
      async () => get(broken(await startSandbox(), 'api_keys'), '/public/inference/models'),
    ],
    [
      'run: fileId unknown',
      404,
      'File not found',
      async () =>
        (await withModel()).request('POST', '/public/inference/run', form({ modelId: 'mine', fileId: 'nothing' })),
    ],
    [
      'run: server error',
      500,
      'Error occurred while running inference.',
      async () =>
        broken(await withModel(), 'files').request(
          'POST',
          '/public/inference/run',
          form({ modelId: 'mine', fileId: 'x' }),
        ),
    ],
    [
      'status: inferenceId unknown',
      404,
      'Inference Job not found',
      async () => get(await startSandbox(), '/public/inference/status?inferenceId=nothing'),
    ],
    [
      'status: server error',
      500,
      'Internal Server Error',
      async () => get(broken(await startSandbox(), 'inference_jobs'), '/public/inference/status?inferenceId=x'),
    ],
    [
      'download: inferenceJobId missing',
      400,
      'InferenceJob id cannot be null or empty',
      async () => get(await startSandbox(), '/public/inference/download'),
    ],
    [
      'download: inferenceJobId empty',
      400,
      'InferenceJob id cannot be null or empty',
      async () => get(await startSandbox(), '/public/inference/download?inferenceJobId='),
    ],
    [
      'download: server error',
      500,
      'Error occurred while streaming the file',
      async () => get(broken(await startSandbox(), 'inference_jobs'), '/public/inference/download?inferenceJobId=x'),
    ],
    [
      'download: job id unknown',
      404,
      'Inference Job not found',
      async () => get(await startSandbox(), '/public/inference/download?inferenceJobId=nothing'),
    ],
    [
      'external app: a required value is missing',
      400,
      'Bad Request',
      async () => {
        const sandbox = await startSandbox();
        return sandbox.app('POST', `/operation/${(await sandbox.launch()).token}`, { body: {} });
      },
    ],
    [
      'external app: authentication failed',
      403,
      'Authentication failed',
      async () => {
        const sandbox = await startSandbox();
        return sandbox.app('GET', `/user/${(await sandbox.launch()).token}/detail`, {
          headers: { 'x-api-key': 'wrong' },
        });
      },
    ],
    [
      'external app: permission missing',
      403,
      'Permission Denied',
      async () => {
        const sandbox = await startSandbox();
        return sandbox.app('GET', `/user/${(await sandbox.launch()).token}/detail`, {
          headers: await weak(sandbox, 'files_admin'),
        });
      },
    ],
    [
      'external app: token revoked',
      403,
      'Token revoked',
      async () => {
        const sandbox = await startSandbox();
        const { token, launchId } = await sandbox.launch();
        await sandbox.control('POST', `launches/${launchId}/revoke`);
        return sandbox.app('GET', `/user/${token}/detail`);
      },
    ],
    [
      'external app: token expired',
      403,
      'Token expired',
      async () => {
        const sandbox = await startSandbox();
        const { token, launchId } = await sandbox.launch();
        await sandbox.advance(limits.tokenLifetimeMs, launchId);
        return sandbox.app('GET', `/user/${token}/detail`);
      },
    ],
    [
      'external app: token not found',
      404,
      'Token not found',
      async () => (await startSandbox()).app('GET', '/user/nothing/detail'),
    ],
    [
      'external app: operation not found',
      404,
      'Operation not found',
      async () => {
        const sandbox = await startSandbox();
        return sandbox.app('GET', `/operation/${(await sandbox.launch()).token}?operationId=nothing`);
      },
    ],
    [
      'external app: upload session not found',
      404,
      'Upload session not found',
      async () => {
        const sandbox = await startSandbox();
        const opened = await openUpload(sandbox);
        return sendChunk(sandbox, { ...opened, uploadId: 'nothing' }, 1, raster);
      },
    ],
    [
      'external app: server-side failure',
      500,
      'Internal Server Error',
      async () => {
        const sandbox = await startSandbox();
        const { token } = await sandbox.launch();
        return broken(sandbox, 'operations').app('POST', `/operation/${token}`, { body: { name: 'n' } });
      },
    ],
    [
      'external app: server-side failure of complete',
      500,
      'Failed to complete upload',
      async () => {
        const sandbox = await startSandbox();
        const opened = await openUpload(sandbox);
        await sendChunk(sandbox, opened, 1, raster);
        return sendComplete(broken(sandbox, 'files'), opened, raster.length);
      },
    ],
  ];

  test.each(rows)('%s: %i %s', async (_name, status, message, ask) => {
    const answer = await ask();
    expect(told(answer)).toEqual([status, message]);
    expect(answer.text).not.toMatch(/sqlite|no such table/i);
  });
});

describe('section 8', () => {
  test('direct upload size: 100 MB are taken, more is not', { tags: [onlyInAll] }, async () => {
    const sandbox = await startSandbox();
    const bytes = Buffer.alloc(100_000_001);
    expect((await uploadDirectly(sandbox, bytes.subarray(1), 'a.bin')).body.size).toBe(100_000_000);
    expect(told(await uploadDirectly(sandbox, bytes, 'a.bin'))[0]).toBe(413);
  });

  test(
    'chunked upload size: 10 GB and more fit into its parts, and what is too large for a direct upload is taken',
    { tags: [onlyInAll] },
    async () => {
      expect(limits.maxPartNumber * limits.chunkBytes).toBeGreaterThan(10e9);
      const sandbox = await startSandbox();
      const upload = await generateUpload(sandbox);
      for (const partNumber of [1, 2, 3])
        expect((await sendFileChunk(sandbox, upload, partNumber, Buffer.alloc(40_000_000, partNumber))).status).toBe(
          200,
        );
      expect((await completeFile(sandbox, upload, 120_000_000)).body.size).toBe(120_000_000);
    },
  );

  test('download URL validity: 24 hours', async () => {
    const sandbox = await startSandbox();
    const { fileId } = (await uploadDirectly(sandbox, raster, 'a.tif')).body;
    const { text } = await get(sandbox, `/public/file/download/url?fileId=${fileId}`);
    await sandbox.advance(24 * 3_600_000 - 60_000);
    expect((await fetch(text)).status).toBe(200);
    await sandbox.advance(60_000);
    expect((await fetch(text)).status).toBe(403);
  });

  test('operation expiry: 30 minutes in REQUESTED', async () => {
    const sandbox = await startSandbox();
    const { token, launchId } = await sandbox.launch();
    const { operationId } = (await sandbox.app('POST', `/operation/${token}`, { body: { name: 'n' } })).body;
    const status = async () => (await sandbox.app('GET', `/operation/${token}?operationId=${operationId}`)).body.status;
    await sandbox.advance(30 * 60_000 - 5_000, launchId);
    expect(await status()).toBe('REQUESTED');
    await sandbox.advance(5_000, launchId);
    expect(await status()).toBe('EXPIRED');
    // One that was approved in time stays so.
    const approved = await approvedOperation(sandbox);
    await sandbox.advance(31 * 60_000, approved.launchId);
    expect(
      (await sandbox.app('GET', `/operation/${approved.token}?operationId=${approved.operationId}`)).body.status,
    ).toBe('APPROVED');
  });

  test('recommended polling interval: 2 to 5 seconds, and the app takes no other', () => {
    const read = (POLL_INTERVAL_MS: string) => () =>
      readAppConfig(
        { PLATFORM_URL: 'http://127.0.0.1:1', PLATFORM_API_KEY: apiKey, APP_SECRET: 'x'.repeat(32), POLL_INTERVAL_MS },
        () => {},
      );
    expect([read('2000')().pollIntervalMs, read('5000')().pollIntervalMs]).toEqual([2_000, 5_000]);
    for (const wrong of ['1999', '5001']) expect(read(wrong)).toThrow('POLL_INTERVAL_MS');
  });
});

test('a real raster goes the way of section 4', needing(landsat), async () => {
  const { readFile } = await import('node:fs/promises');
  const sandbox = await startSandbox();
  const { status, fileId } = await processed(
    sandbox,
    await readFile(`${landsatFolder}/l8_B4.tif`),
    'l8_B4.tif',
    'MULTISPECTRAL',
  );
  expect(status).toBe('COMPLETED');
  expect((await get(sandbox, `/public/stac/collections/uploads-amina/items/${fileId}`)).status).toBe(200);
});
