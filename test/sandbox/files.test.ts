/** Spec 4.5, 4.6 and 3.2: what becomes of an uploaded file. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import {
  adminKey,
  apiKey,
  openUpload,
  sendChunk,
  sendComplete,
  someBytes,
  startSandbox,
  type TestSandbox,
} from '../support/sandbox.ts';
import { geoTiff } from '../support/geotiff.ts';

const key = { 'x-api-key': apiKey };

async function upload(sandbox: TestSandbox, bytes: Uint8Array, sourceType = 'UNKNOWN', name = 'file.tif') {
  const opened = await openUpload(sandbox, name);
  await sendChunk(sandbox, opened, 1, bytes);
  return (await sendComplete(sandbox, opened, bytes.length, { sourceType })).body.fileId;
}

async function finalStatus(sandbox: TestSandbox, fileId: string): Promise<string> {
  for (;;) {
    const { body } = await sandbox.request('GET', `/public/file/status/${fileId}`, { headers: key });
    if (body.status === 'COMPLETED' || body.status === 'FAILED') return body.status;
    expect(['QUEUED', 'IN_PROGRESS']).toContain(body.status);
    await sleep(50);
  }
}

const urlOf = (sandbox: TestSandbox, fileId: string, more = '') =>
  sandbox.request('GET', `/public/file/download/url?fileId=${fileId}${more}`, { headers: key });

test('status: id, originalName, status, createdAt in epoch milliseconds', async () => {
  const sandbox = await startSandbox();
  const fileId = await upload(sandbox, someBytes(10));
  const { status, body } = await sandbox.request('GET', `/public/file/status/${fileId}`, { headers: key });
  expect(status).toBe(200);
  expect(Object.keys(body).sort()).toEqual(['createdAt', 'id', 'originalName', 'status']);
  expect(body).toMatchObject({ id: fileId, originalName: 'file.tif', createdAt: expect.any(Number) as number });
});

test('unknown file: 404 File not found, for status and download URL', async () => {
  const sandbox = await startSandbox();
  for (const path of ['/public/file/status/unknown', '/public/file/download/url?fileId=unknown']) {
    const answer = await sandbox.request('GET', path, { headers: key });
    expect(answer.status).toBe(404);
    expect(answer.body).toMatchObject({ error: 'File not found', code: 'file_not_found' });
  }
});

test('status and download URL: 401 without a good key, 403 without files_admin', async () => {
  const sandbox = await startSandbox();
  const { apiKey: weak } = await sandbox.control('POST', 'keys', { permissions: ['files_upload', 'external_app'] });
  for (const path of ['/public/file/status/x', '/public/file/download/url?fileId=x']) {
    expect((await sandbox.request('GET', path)).body).toMatchObject({
      error: 'Unauthorized Request',
      code: 'unauthorized',
    });
    const answer = await sandbox.request('GET', path, { headers: { 'x-api-key': weak } });
    expect([answer.status, answer.body.error]).toEqual([403, 'Permission Denied']);
  }
});

describe('processing opens the file for real', () => {
  test('a GeoTIFF is COMPLETED as what it claims to be', async () => {
    const sandbox = await startSandbox();
    const tiff = geoTiff({ width: 8, height: 6, value: (x, y) => x * y });
    expect(await finalStatus(sandbox, await upload(sandbox, tiff, 'MULTISPECTRAL'))).toBe('COMPLETED');
    expect(await finalStatus(sandbox, await upload(sandbox, tiff, 'UNKNOWN'))).toBe('COMPLETED');
  });

  test.each([
    ['bytes that are nothing', someBytes(5000), 'UNKNOWN'],
    ['text', Buffer.from('hello'), 'MULTISPECTRAL'],
    [
      'a GeoTIFF whose pixels are cut off',
      geoTiff({ width: 200, height: 200, value: () => 1 }).subarray(0, 3000),
      'MULTISPECTRAL',
    ],
    ['a GeoTIFF that claims to be a PDF', geoTiff({ width: 8, height: 6, value: () => 1 }), 'PDF'],
    [
      'a VRT that names another file',
      Buffer.from(
        '<VRTDataset rasterXSize="1" rasterYSize="1"><VRTRasterBand dataType="Byte" band="1" subClass="VRTRawRasterBand"><SourceFilename>/etc/passwd</SourceFilename></VRTRasterBand></VRTDataset>',
      ),
      'UNKNOWN',
    ],
  ])('%s: FAILED, and can still be downloaded', async (_name, bytes, sourceType) => {
    const sandbox = await startSandbox();
    const fileId = await upload(sandbox, bytes, sourceType);
    expect(await finalStatus(sandbox, fileId)).toBe('FAILED');
    const fetched = await fetch((await urlOf(sandbox, fileId)).text);
    expect(Buffer.from(await fetched.arrayBuffer()).equals(bytes)).toBe(true);
  });

  test.each([
    ['PDF', Buffer.from('%PDF-1.4\n1 0 obj\nendobj\ntrailer\n%%EOF\n')],
    ['CZML', Buffer.from('[{"id":"document","version":"1.0"}]')],
    ['TILES3D', Buffer.from('{"asset":{"version":"1.1"},"geometricError":1,"root":{}}')],
    [
      'POINT',
      Buffer.from(
        '{"type":"FeatureCollection","features":[{"type":"Feature","properties":{},"geometry":{"type":"Point","coordinates":[1,2]}}]}',
      ),
    ],
  ])('%s is judged by its own structure', async (sourceType, bytes) => {
    const sandbox = await startSandbox();
    expect(await finalStatus(sandbox, await upload(sandbox, bytes, sourceType))).toBe('COMPLETED');
    expect(await finalStatus(sandbox, await upload(sandbox, bytes.subarray(0, bytes.length - 10), sourceType))).toBe(
      'FAILED',
    );
  });

  test('goes on after a restart', async () => {
    const first = await startSandbox();
    const opened = await openUpload(first);
    const tiff = geoTiff({ width: 8, height: 6, value: () => 1 });
    await sendChunk(first, opened, 1, tiff);
    const { fileId } = (await sendComplete(first, opened, tiff.length)).body;
    const copy = join(first.dataDir, '..', `${first.dataDir.split('/').pop()}-copy`);
    const { cp, rm } = await import('node:fs/promises');
    const { default: Sqlite } = await import('better-sqlite3');
    await finalStatus(first, fileId);
    await first.request('GET', '/health');
    await cp(first.dataDir, copy, { recursive: true });
    const database = new Sqlite(join(copy, 'sandbox.db'));
    database.prepare(`update files set status = 'IN_PROGRESS'`).run();
    database.close();
    const second = await startSandbox({ dataDir: copy });
    expect(await finalStatus(second, fileId)).toBe('COMPLETED');
    await second.close();
    await rm(copy, { recursive: true, force: true });
  });
});

describe('download URL', () => {
  test('plain text; the bytes with no key, as an attachment that cannot act on a page', async () => {
    const sandbox = await startSandbox();
    const bytes = someBytes(5000);
    const fileId = await upload(sandbox, bytes, 'UNKNOWN', 'a "b" é.tif');
    const answer = await urlOf(sandbox, fileId);
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain/);
    expect(answer.text.startsWith(`${sandbox.url}/`)).toBe(true);
    const fetched = await fetch(answer.text);
    expect(Buffer.from(await fetched.arrayBuffer()).equals(bytes)).toBe(true);
    expect(Object.fromEntries(fetched.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': '5000',
      'x-content-type-options': 'nosniff',
      'content-security-policy': 'sandbox',
      'content-disposition': expect.stringMatching(
        /^attachment; filename=.*filename\*=UTF-8''a%20%22b%22%20%C3%A9\.tif$/,
      ) as string,
    });
  });

  test('Range and HEAD', async () => {
    const sandbox = await startSandbox();
    const bytes = someBytes(5000);
    const { text: url } = await urlOf(sandbox, await upload(sandbox, bytes));
    const range = await fetch(url, { headers: { range: 'bytes=10-19' } });
    expect([range.status, range.headers.get('content-range')]).toEqual([206, 'bytes 10-19/5000']);
    expect(Buffer.from(await range.arrayBuffer()).equals(bytes.subarray(10, 20))).toBe(true);
    const suffix = await fetch(url, { headers: { range: 'bytes=-5' } });
    expect(Buffer.from(await suffix.arrayBuffer()).equals(bytes.subarray(4995))).toBe(true);
    expect((await fetch(url, { headers: { range: 'bytes=5000-' } })).status).toBe(416);
    const head = await fetch(url, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length'), head.headers.get('accept-ranges')]).toEqual([
      200,
      '5000',
      'bytes',
    ]);
    const etag = head.headers.get('etag') ?? '';
    expect(etag).toMatch(/^"[^"]+"$/);
    const ifRange = (tag: string) => fetch(url, { headers: { range: 'bytes=10-19', 'if-range': tag } });
    // A weak validator never matches (RFC 9110, 13.1.5).
    const statuses = await Promise.all(
      [etag, '"another"', `W/${etag}`].map(async (tag) => (await ifRange(tag)).status),
    );
    expect(statuses).toEqual([206, 200, 200]);
    // Only GET has ranges.
    const part = await fetch(url, { method: 'HEAD', headers: { range: 'bytes=10-19' } });
    expect([part.status, part.headers.get('content-length')]).toEqual([200, '5000']);
    expect((await fetch(url, { method: 'POST' })).status).toBe(405);
    expect((await fetch(`${sandbox.url}/events`, { method: 'HEAD' })).headers.get('content-type')).toMatch(
      'text/event-stream',
    );
    expect((await fetch(`${url}&x=1`)).status).toBe(403);
    const health = await fetch(`${sandbox.url}/health`, { method: 'POST' });
    expect([health.status, health.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  test('useDefaultContentType=true: the detected media type; anything but true or false is 400', async () => {
    const sandbox = await startSandbox();
    const fileId = await upload(sandbox, geoTiff({ width: 2, height: 2, value: () => 1 }));
    await finalStatus(sandbox, fileId);
    for (const [more, type] of [
      ['', 'application/octet-stream'],
      ['&useDefaultContentType=false', 'application/octet-stream'],
      ['&useDefaultContentType=true', 'image/tiff'],
    ]) {
      expect((await fetch((await urlOf(sandbox, fileId, more)).text)).headers.get('content-type')).toBe(type);
    }
    expect((await urlOf(sandbox, fileId, '&useDefaultContentType=yes')).status).toBe(400);
    expect((await sandbox.request('GET', '/public/file/download/url', { headers: key })).body.details[0]!.path).toBe(
      'fileId',
    );
  });

  test('valid 24 hours by the clock; late, or altered in any parameter: 403', async () => {
    const sandbox = await startSandbox({ machineNow: () => 1_800_000_000_000 });
    const fileId = await upload(sandbox, someBytes(10));
    const other = await upload(sandbox, someBytes(10));
    const url = new URL((await urlOf(sandbox, fileId)).text);
    const altered = (change: (u: URL) => void) => {
      const copy = new URL(url);
      change(copy);
      return fetch(copy);
    };
    for (const name of url.searchParams.keys()) {
      expect((await altered((u) => u.searchParams.delete(name))).status, name).toBe(403);
      expect((await altered((u) => u.searchParams.set(name, `${u.searchParams.get(name)}0`))).status, name).toBe(403);
      expect((await altered((u) => u.searchParams.append(name, 'x'))).status, name).toBe(403);
    }
    expect((await altered((u) => (u.pathname = u.pathname.replace(fileId, other)))).status).toBe(403);
    await sandbox.advance(24 * 3_600_000 - 1);
    expect((await fetch(url)).status).toBe(200);
    await sandbox.advance(1);
    expect((await fetch(url)).status).toBe(403);
  });

  test("is built on PUBLIC_URL, never on the request's Host", async () => {
    const sandbox = await startSandbox({
      env: { PUBLIC_URL: 'https://sandbox.example.org/base/', SANDBOX_ADMIN_KEY: adminKey },
    });
    const answer = await urlOf(sandbox, await upload(sandbox, someBytes(10)));
    expect(answer.text.startsWith('https://sandbox.example.org/base/download/')).toBe(true);
  });
});

test('the digest of the whole file is kept with it', async () => {
  const sandbox = await startSandbox();
  const tiff = geoTiff({ width: 8, height: 6, value: () => 1 });
  const fileId = await upload(sandbox, tiff);
  await finalStatus(sandbox, fileId);
  const { default: Sqlite } = await import('better-sqlite3');
  const database = new Sqlite(join(sandbox.dataDir, 'sandbox.db'), { readonly: true });
  expect(database.prepare('select sha256 from files').get()).toEqual({
    sha256: createHash('sha256').update(tiff).digest('hex'),
  });
  database.close();
});
