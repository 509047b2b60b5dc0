/** Calls in which the sandbox once departed from the specification or the contract, each by its name. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import gdal from 'gdal-async';
import { describe, expect, test } from 'vitest';
import { testFolder } from '../support/folders.ts';
import { key, processed } from '../support/files.ts';
import { geoTiff } from '../support/geotiff.ts';
import type { ItemPage } from '../support/stac.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { needing } from '../support/needs.ts';
import { onlyInAll } from '../support/tags.ts';

const urlencoded = { ...key, 'content-type': 'application/x-www-form-urlencoded' };
const json = { ...key, 'content-type': 'application/json' };
const wholeWorld = {
  bbox: [-180, -90, 180, 90],
  collections: ['coastal-optical'],
  datetime: '2000-01-01T00:00:00Z/..',
};
const search = async (sandbox: TestSandbox, more: object) => {
  const answer = await sandbox.request('POST', '/public/stac/search', {
    headers: key,
    body: { ...wholeWorld, ...more },
  });
  return { ...answer, body: answer.body as unknown as ItemPage & typeof answer.body };
};

describe('an optional field that is null is absent', () => {
  test('in an operation, an initiate and a control call; a required one is not', async () => {
    const sandbox = await startSandbox();
    const { token, launchId } = await sandbox.launch();
    const made = await sandbox.app('POST', `/operation/${token}`, {
      body: { name: 'x', description: null, parameters: null },
    });
    expect(made.status).toBe(200);
    const [operation] = (await sandbox.control('GET', 'operations')).operations;
    expect(operation).toMatchObject({ description: null, parameters: {} });
    const nameless = await sandbox.app('POST', `/operation/${token}`, { body: { name: null } });
    expect(nameless).toMatchObject({ status: 400, body: { details: [{ path: 'name' }] } });
    await sandbox.control('POST', `operations/${operation!.operationId}/approve`);
    const initiated = await sandbox.app('POST', `/file/${token}/upload/initiate`, {
      body: { operationId: operation!.operationId, fileName: 'a.tif', sourceType: null },
    });
    expect(initiated.status).toBe(200);
    expect(
      (await sandbox.request('POST', '/sandbox/launches', { body: { appId: null, renewPolicy: null } })).status,
    ).toBe(201);
    expect((await sandbox.request('POST', '/sandbox/clock', { body: { advanceMs: 1, launchId: null } })).status).toBe(
      200,
    );
    expect(launchId).toBeTruthy();
  });

  test('what a field leaves open keeps its nulls', async () => {
    const sandbox = await startSandbox();
    const { token } = await sandbox.launch();
    await sandbox.app('POST', `/operation/${token}`, { body: { name: 'x', parameters: { a: null, b: { c: null } } } });
    const [operation] = (await sandbox.control('GET', 'operations')).operations;
    expect((operation as unknown as { parameters: object }).parameters).toEqual({ a: null, b: { c: null } });
  });

  test('in completeUpload and in a search, at every depth', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const { body: begun } = await sandbox.request('POST', '/public/file/generateUploadId', {
      headers: urlencoded,
      body: 'fileName=a.bin',
    });
    const form = new FormData();
    for (const [name, value] of Object.entries({ uploadId: begun.uploadId, key: begun.key, partNumber: '1' }))
      form.append(name, value);
    form.append('file', new Blob(['0123456789']), 'part');
    expect(
      (await fetch(`${sandbox.url}/public/file/uploadChunk`, { method: 'POST', headers: key, body: form })).status,
    ).toBe(200);
    const none = { geometry: null, acquisitionDate: null, layerProperties: null, vectorMappingProperties: null };
    const completed = await sandbox.request('POST', '/public/file/completeUpload', {
      headers: key,
      body: { uploadId: begun.uploadId, key: begun.key, fileSize: 10, sourceType: 'UNKNOWN', ...none },
    });
    expect(completed.status).toBe(200);
    const absent = {
      filter: null,
      ids: null,
      limit: null,
      offset: null,
      intersects: null,
      'filter-lang': null,
      token: null,
    };
    const found = await search(sandbox, {
      ...absent,
      fields: { include: null, exclude: null },
      sortby: [{ field: 'id', direction: null }],
    });
    expect(found.status).toBe(200);
    expect(found.body.features).toHaveLength(10);
    expect((await search(sandbox, { sortby: [{ field: null }] })).status).toBe(400);
    expect((await search(sandbox, { bbox: null })).status).toBe(400);
  });
});

describe('ranges', () => {
  test.each([
    ['a suffix longer than the file is the whole', 'bytes=-100', 206, 'bytes 0-9/10', '0123456789'],
    ['a range that ends before it begins is none', 'bytes=5-3', 200, null, '0123456789'],
    ['one such among others makes all of them none', 'bytes=0-1,5-3', 200, null, '0123456789'],
    ['a suffix', 'bytes=-3', 206, 'bytes 7-9/10', '789'],
    ['a range', 'bytes=2-4', 206, 'bytes 2-4/10', '234'],
    ['beyond the end', 'bytes=20-', 416, 'bytes */10', null],
    ['an empty suffix', 'bytes=-0', 416, 'bytes */10', null],
  ])('%s', async (_, range, status, contentRange, text) => {
    const sandbox = await startSandbox();
    const { fileId } = await processed(sandbox, Buffer.from('0123456789'), 'a.txt', 'UNKNOWN');
    const { text: href } = await sandbox.request('GET', `/public/file/download/url?fileId=${fileId}`, { headers: key });
    const answer = await fetch(href, { headers: { range } });
    expect([answer.status, answer.headers.get('content-range')]).toEqual([status, contentRange]);
    if (text !== null) expect(await answer.text()).toBe(text);
  });
});

describe('an item’s data', () => {
  const dataOf = async (sandbox: TestSandbox) =>
    (await search(sandbox, { limit: 1 })).body.features[0]!.assets['data'].href;

  test('comes in parts, of the same bytes each time', { tags: [onlyInAll] }, async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const href = await dataOf(sandbox);
    const whole = Buffer.from(await (await fetch(href)).arrayBuffer());
    const part = async (range: string) => {
      const answer = await fetch(href, { headers: { range } });
      return {
        status: answer.status,
        told: answer.headers.get('content-range'),
        bytes: Buffer.from(await answer.arrayBuffer()),
      };
    };
    const size = whole.length;
    for (const [range, start, end] of [
      ['bytes=0-9', 0, 10],
      ['bytes=1000-300000', 1_000, 300_001],
      [`bytes=${size - 100}-`, size - 100, size],
      ['bytes=-22', size - 22, size],
      [`bytes=-${size + 5}`, 0, size],
      [`bytes=5-${size + 100}`, 5, size],
    ] as const) {
      const { status, told, bytes } = await part(range);
      expect([status, told], range).toEqual([206, `bytes ${start}-${end - 1}/${size}`]);
      expect(bytes.equals(whole.subarray(start, end)), range).toBe(true);
    }
    expect(await part(`bytes=${size}-`)).toMatchObject({ status: 416, told: `bytes */${size}` });
    expect(await part('bytes=9-3')).toMatchObject({ status: 200, told: null });
    expect((await part('bytes=0-1,5-6')).bytes.length).toBe(size);
    const head = await fetch(href, { method: 'HEAD' });
    expect([head.headers.get('accept-ranges'), Number(head.headers.get('content-length'))]).toEqual(['bytes', size]);
  });

  test(
    'opens as GDAL opens archives that lie elsewhere',
    { tags: [onlyInAll], timeout: 900_000, ...needing('gdal-programs') },
    async () => {
      const sandbox = await startSandbox({ seed: 'demo' });
      const { body } = await search(sandbox, { limit: 1 });
      const href = await dataOf(sandbox);
      const name = `${body.features[0]!.title}.tif`;
      const { stdout } = await promisify(execFile)('gdalinfo', [`/vsizip/{/vsicurl/${href}}/${name}`]);
      expect(stdout).toMatch(/Driver: GTiff[^]*Size is \d{3,}, \d{3,}/);
    },
  );
});

test.each(['CInt16', 'CInt32', 'CFloat32', 'CFloat64'])('a raster of complex numbers (%s) is read', async (type) => {
  const folder = await testFolder();
  const path = join(folder, 'complex.tif');
  const dataset = gdal.open(path, 'w', 'GTiff', 20, 20, 1, type);
  dataset.geoTransform = [500_000, 30, 0, 5_000_000, 0, -30];
  dataset.srs = gdal.SpatialReference.fromEPSG(32_633);
  dataset.bands.get(1).pixels.write(
    0,
    0,
    20,
    20,
    Float32Array.from({ length: 400 }, (_, i) => i),
  );
  dataset.close();
  const sandbox = await startSandbox();
  for (const sourceType of ['COMPLEX', 'SAR', 'UNKNOWN'])
    expect(await processed(sandbox, await readFile(path), 'complex.tif', sourceType), sourceType).toMatchObject({
      status: 'COMPLETED',
    });
  const uploads = await search(sandbox, { collections: ['uploads-amina'], limit: 10 });
  expect(uploads.body.features).toHaveLength(3);
  const preview = await fetch(uploads.body.features[0]!.assets['rendered_preview'].href);
  expect(preview.headers.get('content-type')).toBe('image/png');
});

test('several polygons of a file are one footprint, but for those across the antimeridian', async () => {
  const sandbox = await startSandbox();
  const footprintOf = async (geometry: string) => {
    const { body: begun } = await sandbox.request('POST', '/public/file/generateUploadId', {
      headers: urlencoded,
      body: 'fileName=a.tif',
    });
    const form = new FormData();
    for (const [name, value] of Object.entries({ uploadId: begun.uploadId, key: begun.key, partNumber: '1' }))
      form.append(name, value);
    const bytes = geoTiff({ width: 3, height: 3, value: () => 1 });
    form.append('file', new Blob([new Uint8Array(bytes)]), 'part');
    await fetch(`${sandbox.url}/public/file/uploadChunk`, { method: 'POST', headers: key, body: form });
    const { body: file } = await sandbox.request('POST', '/public/file/completeUpload', {
      headers: key,
      body: { uploadId: begun.uploadId, key: begun.key, fileSize: bytes.length, sourceType: 'MULTISPECTRAL', geometry },
    });
    const { fileId } = file as unknown as { fileId: string };
    await expect
      .poll(async () => (await sandbox.request('GET', `/sandbox/files/${fileId}`)).body.status, { timeout: 900_000 })
      .toBe('COMPLETED');
    const { body } = await search(sandbox, {
      collections: ['uploads-amina'],
      sortby: [{ field: 'datetime', direction: 'desc' }],
      limit: 10,
    });
    return body.features.map((item) => item.geometry);
  };
  const two = await footprintOf('MULTIPOLYGON (((0 0, 2 0, 2 2, 0 2, 0 0)), ((4 0, 6 0, 6 2, 4 2, 4 0)))');
  expect(two).toEqual([{ type: 'Polygon', coordinates: [[[0, 0], [6, 0], [6, 2], [0, 2], [0, 0]]] }]); // oxfmt-ignore
  const one = await footprintOf('MULTIPOLYGON (((10 10, 12 10, 12 12, 10 12, 10 10)))');
  expect(one).toContainEqual({ type: 'Polygon', coordinates: [[[10, 10], [12, 10], [12, 12], [10, 12], [10, 10]]] }); // oxfmt-ignore
  const across = await footprintOf(
    'MULTIPOLYGON (((179 0, 180 0, 180 1, 179 1, 179 0)), ((-180 0, -179 0, -179 1, -180 1, -180 0)))',
  );
  expect(across.map(({ type }) => type)).toContain('MultiPolygon');
}, 900_000);

test('a short key is kept out of the trace, and leaves words whole', async () => {
  const sandbox = await startSandbox({ env: { SANDBOX_API_KEY: 'e1' } });
  const short = { 'x-api-key': 'e1' };
  const { token, launchId } = await sandbox.launch();
  const made = await sandbox.request('POST', `/public/external-app/operation/${token}`, {
    headers: short,
    body: { name: 'scene1 of e1', parameters: { e1: 'e1', name1: 'value1' } },
  });
  expect(made.status).toBe(200);
  const [call] = (await sandbox.trace(launchId)) as unknown as { request: { body: unknown } }[];
  expect(call!.request.body).toEqual({
    name: 'scene1 of [redacted]',
    parameters: { '[redacted]': '[redacted]', name1: 'value1' },
  });
});

test.each(['true', 'True', 'TRUE', '1'])('useDefaultContentType=%s is yes', async (value) => {
  const sandbox = await startSandbox();
  const raster = geoTiff({ width: 3, height: 3, value: () => 1 });
  const { fileId } = await processed(sandbox, raster, 'a.tif', 'MULTISPECTRAL');
  const url = (more: string) =>
    sandbox.request('GET', `/public/file/download/url?fileId=${fileId}${more}`, { headers: key });
  const typeOf = async (more: string) => (await fetch((await url(more)).text)).headers.get('content-type');
  expect(await typeOf(`&useDefaultContentType=${value}`)).toMatch(/^image\/tiff/);
  expect(await typeOf('&useDefaultContentType=False')).toBe('application/octet-stream');
  expect((await url('&useDefaultContentType=maybe')).status).toBe(400);
});

test('generateUploadId takes {} for a form without fields, and no other JSON', async () => {
  const sandbox = await startSandbox();
  const generate = (body: string) =>
    sandbox.request('POST', '/public/file/generateUploadId?fileName=a.tif', { headers: json, body });
  expect((await generate('{}')).body).toMatchObject({ uploadId: expect.any(String) as string });
  expect((await generate('{"fileName":"b.tif"}')).status).toBe(415);
  expect((await generate('[]')).status).toBe(415);
});

describe('a search', () => {
  test('cannot be sorted by what no item has, and says what it can be sorted by', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    for (const field of ['properties.nobody', 'nobody', 'properties.toString']) {
      const refused = await search(sandbox, { sortby: [{ field: 'id' }, { field }] });
      expect(refused).toMatchObject({ status: 400, body: { details: [{ path: 'sortby.1.field' }] } });
      expect(refused.body.details[0]!.message).toMatch(
        /sorted by id, collection, .*properties\.datetime.*properties\.eo:bands/,
      );
    }
    for (const field of ['id', 'collection', 'datetime', 'properties.datetime', 'properties.gsd'])
      expect((await search(sandbox, { sortby: [{ field, direction: 'desc' }] })).status, field).toBe(200);
  });

  test('by collection is one', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const found = await search(sandbox, {
      collections: ['harbour-radar', 'coastal-optical'],
      sortby: [{ field: 'collection', direction: 'desc' }],
      limit: 100,
    });
    const collections = found.body.features.map(({ collection }: { collection: string }) => collection);
    expect(collections).toEqual(collections.toSorted().reverse());
    expect(new Set(collections).size).toBe(2);
  });

  test.each(['page', 'token', 'query'])('has no %s', async (name) => {
    const sandbox = await startSandbox({ seed: 'demo' });
    expect(await search(sandbox, { [name]: 2 })).toMatchObject({ status: 400, body: { details: [{ path: name }] } });
    const got = await sandbox.request('GET', `/public/stac/search?${name}=2`, { headers: key });
    expect(got).toMatchObject({ status: 400, body: { details: [{ path: name }] } });
  });

  test('the items list knows its own parameters alone', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const items = (query: string) =>
      sandbox.request('GET', `/public/stac/collections/coastal-optical/items?${query}`, { headers: key });
    expect(await items('colour=red&limit=1')).toMatchObject({ status: 400, body: { details: [{ path: 'colour' }] } });
    const first = await items('limit=1&offset=2&bbox=-180,-90,180,90&datetime=2000-01-01T00:00:00Z/..');
    expect(first.status).toBe(200);
    const next = (first.body as unknown as ItemPage).links.find(({ rel }) => rel === 'next')!;
    expect((await fetch(next.href, { headers: key })).status).toBe(200);
  });
});

describe('why something failed', () => {
  test('of a file, by a call', async () => {
    const sandbox = await startSandbox();
    const { fileId } = await processed(sandbox, Buffer.from('no raster'), 'a.tif', 'MULTISPECTRAL');
    expect((await sandbox.request('GET', `/sandbox/files/${fileId}`)).body).toMatchObject({
      id: fileId,
      originalName: 'a.tif',
      status: 'FAILED',
      reason: expect.stringMatching(/raster/) as string,
      launchId: null,
    });
    expect((await sandbox.request('GET', '/sandbox/files/none')).status).toBe(404);
  });

  test('of a job, by a call', async () => {
    const sandbox = await startSandbox();
    const { fileId } = await processed(sandbox, Buffer.from('no raster'), 'a.tif', 'MULTISPECTRAL');
    const { body: job } = await sandbox.request('POST', '/public/inference/run', {
      headers: urlencoded,
      body: `modelId=water&fileId=${fileId}`,
    });
    const seen = () => sandbox.request('GET', `/sandbox/jobs/${job.id}`);
    await expect.poll(async () => (await seen()).body.status, { timeout: 900_000 }).toBe('FAILED');
    expect((await seen()).body).toMatchObject({ fileId, modelId: 'water', reason: expect.any(String) as string });
    expect((await sandbox.request('GET', '/sandbox/jobs/none')).status).toBe(404);
  });
});

test('what the sortables declare can be sorted by, and nothing else', async () => {
  const sandbox = await startSandbox({ seed: 'demo' });
  const declared = await fetch(`${sandbox.url}/public/stac/sortables`, { headers: key });
  expect(declared.headers.get('content-type')).toContain('application/schema+json');
  const names = Object.keys(((await declared.json()) as { properties: object }).properties);
  expect(names).toEqual(expect.arrayContaining(['id', 'collection', 'properties.datetime', 'properties.name']));
  for (const field of names.slice(0, 16))
    expect((await search(sandbox, { sortby: [{ field, direction: 'asc' }], limit: 1 })).status, field).toBe(200);
  const refused = await search(sandbox, { sortby: [{ field: 'properties.none', direction: 'asc' }] });
  expect([refused.status, refused.body.details[0]?.message]).toEqual([
    400,
    `no item has it; items can be sorted by ${names.join(', ')}`,
  ]);
});
