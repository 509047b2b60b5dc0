/** Spec 4.3, 4.4, 7, and the contract's "File endpoints". */
import { readdir } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { completeFile, downloaded, generateUpload, key, sendFileChunk, uploadDirectly } from '../support/files.ts';
import { chunkForm, openUpload, someBytes, startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { onlyInAll } from '../support/tags.ts';

const blobs = (sandbox: TestSandbox) => readdir(join(sandbox.dataDir, 'blobs'));

describe('direct upload', () => {
  test('answers fileId, originalName, createdAt as date-time, size; the bytes come back', async () => {
    const sandbox = await startSandbox();
    const bytes = someBytes(100_000);
    const { status, body } = await uploadDirectly(sandbox, bytes, 'a..b.tif', 'MULTISPECTRAL');
    expect(status).toBe(200);
    expect(Object.keys(body).sort()).toEqual(['createdAt', 'fileId', 'originalName', 'size']);
    expect(body).toMatchObject({ originalName: 'a..b.tif', size: 100_000 });
    expect(body.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect((await downloaded(sandbox, body.fileId)).equals(bytes)).toBe(true);
  });

  test('a name outside Latin-1 stays what it is', async () => {
    const sandbox = await startSandbox();
    expect((await uploadDirectly(sandbox, someBytes(10), 'Übersicht-東京.tif')).body.originalName).toBe(
      'Übersicht-東京.tif',
    );
  });

  test('sourceType from the query or the form; an unknown one is 400 and leaves nothing', async () => {
    const sandbox = await startSandbox();
    const form = new FormData();
    form.append('sourceType', 'SOMETHING');
    form.append('file', new Blob(['x']), 'a.tif');
    for (const answer of [
      await sandbox.request('POST', '/public/file/upload', { body: form, headers: key }),
      await uploadDirectly(sandbox, someBytes(10), 'a.tif', 'SOMETHING'),
    ]) {
      expect([answer.status, answer.body.error, answer.body.details[0]?.path]).toEqual([
        400,
        'Bad Request',
        'sourceType',
      ]);
    }
    expect(await blobs(sandbox)).toEqual([]);
  });

  test('without the file: 400 Bad Request; not a form: 415; a path for a name: 400', async () => {
    const sandbox = await startSandbox();
    const empty = new FormData();
    empty.append('sourceType', 'SAR');
    const missing = await sandbox.request('POST', '/public/file/upload', { body: empty, headers: key });
    expect([missing.status, missing.body.error, missing.body.details]).toEqual([
      400,
      'Bad Request',
      [{ path: 'file', message: 'is required' }],
    ]);
    expect((await sandbox.request('POST', '/public/file/upload', { body: { file: 'x' }, headers: key })).status).toBe(
      415,
    );
    const path = await uploadDirectly(sandbox, someBytes(10), '../evil.tif');
    expect([path.status, path.body.details[0]?.path]).toEqual([400, 'file']);
  });

  test('100,000,000 bytes are taken; one more is 413 file_too_large', { tags: [onlyInAll] }, async () => {
    const sandbox = await startSandbox();
    const most = new Uint8Array(100_000_001);
    expect((await uploadDirectly(sandbox, most.subarray(1), 'most.bin')).body).toMatchObject({ size: 100_000_000 });
    const over = await uploadDirectly(sandbox, most, 'over.bin');
    expect([over.status, over.body.code]).toEqual([413, 'file_too_large']);
    expect(await blobs(sandbox)).toHaveLength(1);
  });

  test('too large by its own length: told before a byte of it is sent', async () => {
    const sandbox = await startSandbox();
    const status = await new Promise((resolve, reject) => {
      const sent = request(
        `${sandbox.url}/public/file/upload`,
        {
          method: 'POST',
          headers: { ...key, 'content-type': 'multipart/form-data; boundary=b', 'content-length': 2e9 },
        },
        (response) => {
          resolve(response.statusCode);
          sent.destroy();
        },
      );
      sent.on('error', reject);
      sent.flushHeaders();
    });
    expect(status).toBe(413);
  });

  test('a full disk: 507 insufficient_storage, with the message of the endpoint', async () => {
    const sandbox = await startSandbox({ freeBytes: () => Promise.resolve(1000) });
    const answer = await uploadDirectly(sandbox, someBytes(10), 'a.tif');
    expect([answer.status, answer.body.code, answer.body.error]).toEqual([
      507,
      'insufficient_storage',
      'Internal Server Error',
    ]);
    const upload = await generateUpload(sandbox);
    const chunk = await sendFileChunk(sandbox, upload, 1, someBytes(10));
    expect([chunk.status, chunk.body.code, chunk.body.error]).toEqual([
      507,
      'insufficient_storage',
      'Failed to upload chunk',
    ]);
  });
});

describe('who may', () => {
  test.each(['upload', 'generateUploadId', 'uploadChunk', 'completeUpload'])(
    '%s: 401 without a good key, 403 without files_admin or files_upload',
    async (call) => {
      const sandbox = await startSandbox();
      const { apiKey: weak } = await sandbox.control('POST', 'keys', { permissions: ['external_app', 'inference'] });
      const { apiKey: enough } = await sandbox.control('POST', 'keys', { permissions: ['files_upload'] });
      const path = `/public/file/${call}`;
      for (const headers of [{}, { 'x-api-key': 'wrong' }]) {
        const answer = await sandbox.request('POST', path, { headers });
        expect([answer.status, answer.body.error]).toEqual([401, 'Unauthorized Request']);
      }
      const answer = await sandbox.request('POST', path, { headers: { 'x-api-key': weak } });
      expect([answer.status, answer.body.error]).toEqual([403, 'Permission Denied']);
      expect([400, 415]).toContain((await sandbox.request('POST', path, { headers: { 'x-api-key': enough } })).status);
      expect((await sandbox.request('GET', path, { headers: key })).headers.get('allow')).toBe('POST');
    },
  );
});

describe('generateUploadId', () => {
  test('fileName from the query, an urlencoded or a multipart form', async () => {
    const sandbox = await startSandbox();
    const form = new FormData();
    form.append('fileName', 'c.tif');
    const answers = [
      await sandbox.request('POST', '/public/file/generateUploadId?fileName=a.tif', { headers: key }),
      await sandbox.request('POST', '/public/file/generateUploadId', {
        body: 'fileName=b.tif',
        headers: { ...key, 'content-type': 'application/x-www-form-urlencoded' },
      }),
      await sandbox.request('POST', '/public/file/generateUploadId', { body: form, headers: key }),
    ];
    for (const [i, { status, body }] of answers.entries()) {
      expect([status, Object.keys(body).sort()]).toEqual([200, ['key', 'uploadId']]);
      expect(body.key.endsWith(`/${'abc'[i]}.tif`)).toBe(true);
    }
  });

  test.each([
    ['', 'missing'],
    ['?fileName=', 'empty'],
    ['?fileName=..', 'a folder'],
    ['?fileName=a%2Fb', 'a path'],
    ['?fileName=a&fileName=b', 'twice'],
  ])('%s (%s): 400 with details', async (query, _why) => {
    const sandbox = await startSandbox();
    const answer = await sandbox.request('POST', `/public/file/generateUploadId${query}`, { headers: key });
    expect([answer.status, answer.body.details[0]?.path]).toEqual([400, 'fileName']);
  });
});

describe('chunks of the file group', () => {
  test.each([[[1, 2, 3, 4]], [[4, 3, 2, 1]], [[2, 1, 4, 3]], [[3, 1, 4, 2]]])(
    'in the order %j: the file is whole',
    async (order) => {
      const sandbox = await startSandbox();
      const parts = [1, 2, 3, 4].map((n) => someBytes(50_000 + n, n));
      const upload = await generateUpload(sandbox);
      for (const n of order) {
        const { status, body } = await sendFileChunk(sandbox, upload, n, parts[n - 1]!);
        expect([status, body.partNumber, body.size]).toEqual([200, n, 50_000 + n]);
      }
      const { status, body } = await completeFile(sandbox, upload, 200_010);
      expect([status, body.size, body.originalName]).toEqual([200, 200_010, 'big.bin']);
      expect((await downloaded(sandbox, body.fileId)).equals(Buffer.concat(parts))).toBe(true);
      expect(await blobs(sandbox)).toHaveLength(1);
    },
  );

  test('sent at the same time: the file is whole', async () => {
    const sandbox = await startSandbox();
    const parts = Array.from({ length: 12 }, (_, i) => someBytes(30_000, i + 1));
    const upload = await generateUpload(sandbox);
    await Promise.all(parts.map((part, i) => sendFileChunk(sandbox, upload, i + 1, part)).reverse());
    const { body } = await completeFile(sandbox, upload, 360_000);
    expect((await downloaded(sandbox, body.fileId)).equals(Buffer.concat(parts))).toBe(true);
  });

  test('a gap: 400 upload_incomplete, and the session goes on', async () => {
    const sandbox = await startSandbox();
    const upload = await generateUpload(sandbox);
    await sendFileChunk(sandbox, upload, 1, someBytes(10));
    await sendFileChunk(sandbox, upload, 3, someBytes(10, 3));
    const gap = await completeFile(sandbox, upload, 20);
    expect([gap.status, gap.body.code]).toEqual([400, 'upload_incomplete']);
    await sendFileChunk(sandbox, upload, 2, someBytes(10, 2));
    expect((await completeFile(sandbox, upload, 30)).status).toBe(200);
  });

  test('a waiting part again: the same bytes 200, others 400 chunk_conflict', async () => {
    const sandbox = await startSandbox();
    const upload = await generateUpload(sandbox);
    await sendFileChunk(sandbox, upload, 2, someBytes(10, 2));
    expect((await sendFileChunk(sandbox, upload, 2, someBytes(10, 2))).status).toBe(200);
    expect((await sendFileChunk(sandbox, upload, 2, someBytes(10, 9))).body.code).toBe('chunk_conflict');
    await sendFileChunk(sandbox, upload, 1, someBytes(10, 1));
    const { body } = await completeFile(sandbox, upload, 20);
    expect((await downloaded(sandbox, body.fileId)).equals(Buffer.concat([someBytes(10, 1), someBytes(10, 2)]))).toBe(
      true,
    );
  });

  test('waiting parts survive a restart', async () => {
    const first = await startSandbox();
    const upload = await generateUpload(first);
    await sendFileChunk(first, upload, 2, someBytes(1000, 2));
    await sendFileChunk(first, upload, 3, someBytes(1000, 3));
    const { dataDir } = first;
    const { cp, rm } = await import('node:fs/promises');
    await cp(dataDir, `${dataDir}-copy`, { recursive: true });
    const second = await startSandbox({ dataDir: `${dataDir}-copy` });
    await sendFileChunk(second, upload, 1, someBytes(1000, 1));
    const { body } = await completeFile(second, upload, 3000);
    expect(
      (await downloaded(second, body.fileId)).equals(Buffer.concat([1, 2, 3].map((n) => someBytes(1000, n)))),
    ).toBe(true);
    await second.close();
    await rm(`${dataDir}-copy`, { recursive: true, force: true });
  });

  test('a waiting part whose bytes went away: 500 Failed to complete upload, then 404', async () => {
    const sandbox = await startSandbox();
    const upload = await generateUpload(sandbox);
    await sendFileChunk(sandbox, upload, 2, someBytes(1000, 2));
    const { rm } = await import('node:fs/promises');
    for (const blob of await blobs(sandbox)) await rm(join(sandbox.dataDir, 'blobs', blob));
    await sendFileChunk(sandbox, upload, 1, someBytes(1000, 1));
    const answer = await completeFile(sandbox, upload, 2000);
    expect([answer.status, answer.body.error]).toEqual([500, 'Failed to complete upload']);
    expect((await completeFile(sandbox, upload, 2000)).status).toBe(404);
    expect(await blobs(sandbox)).toEqual([]);
  });

  test('over 512 MiB by its length: 413 chunk_too_large', async () => {
    const sandbox = await startSandbox();
    const status = await new Promise((resolve, reject) => {
      const sent = request(
        `${sandbox.url}/public/file/uploadChunk`,
        {
          method: 'POST',
          headers: { ...key, 'content-type': 'multipart/form-data; boundary=b', 'content-length': 600 * 1024 * 1024 },
        },
        (response) => {
          resolve(response.statusCode);
          sent.destroy();
        },
      );
      sent.on('error', reject);
      sent.flushHeaders();
    });
    expect(status).toBe(413);
  });

  test('a session of the other group is not found, from either side', async () => {
    const sandbox = await startSandbox();
    const launched = await openUpload(sandbox);
    expect((await sendFileChunk(sandbox, launched, 1, someBytes(10))).body.code).toBe('upload_session_not_found');
    const own = await generateUpload(sandbox);
    const answer = await sandbox.app('POST', `/file/${launched.token}/upload/chunk`, {
      body: chunkForm({ ...own, partNumber: 1, file: someBytes(10) }),
    });
    expect([answer.status, answer.body.code]).toEqual([404, 'upload_session_not_found']);
  });

  test.each([
    ['geometry', 'POLYGON((0 0, 1 0, 1 1))', 'a ring that is not closed'],
    ['geometry', 'POLYGON((0 0, 500 0, 1 1, 0 0))', 'no longitude'],
    ['geometry', 'somewhere', 'no WKT'],
    ['geometry', 'POINT(1 2) and more', 'text behind it'],
    ['acquisitionDate', '2024-02-30', 'a day that is none'],
    ['fileSize', -1, 'negative'],
    ['sourceType', 'NOTHING', 'unknown'],
  ])('complete with %s %j (%s): 400 with details', async (name, value, _why) => {
    const sandbox = await startSandbox();
    const upload = await generateUpload(sandbox);
    await sendFileChunk(sandbox, upload, 1, someBytes(10));
    const answer = await completeFile(sandbox, upload, 10, { [name]: value });
    expect([answer.status, answer.body.details[0]?.path]).toEqual([400, name]);
    expect((await completeFile(sandbox, upload, 10)).status).toBe(200);
  });
});
