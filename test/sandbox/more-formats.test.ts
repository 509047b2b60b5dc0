// @module-tag all
/** Formats that a stranger uploads, each read for what it is; and what a completion may say, and how it may fail. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import gdal from 'gdal-async';
import { describe, expect, test } from 'vitest';
import { completeFile, generateUpload, key, processed, sendFileChunk } from '../support/files.ts';
import { testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { geojson, matroska, tileset, zip } from '../support/other-files.ts';
import type { ItemPage } from '../support/stac.ts';
import { confined, needing } from '../support/needs.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

const utf8 = (text: string) => new TextEncoder().encode(text);

async function itemsOf(sandbox: TestSandbox) {
  const { body } = await sandbox.request('POST', '/public/stac/search', {
    headers: key,
    body: {
      bbox: [-180, -90, 180, 90],
      collections: ['uploads-amina'],
      datetime: '2000-01-01T00:00:00Z/..',
      limit: 50,
    },
  });
  return (body as unknown as ItemPage).features;
}

async function requireRead(sandbox: TestSandbox, bytes: Uint8Array, name: string, sourceType: string) {
  const { fileId, status } = await processed(sandbox, bytes, name, sourceType);
  const { body } = await sandbox.request('GET', `/sandbox/files/${fileId}`);
  expect({ name, sourceType, status, reason: body.reason }).toMatchObject({ status: 'COMPLETED' });
  return fileId;
}

/** A raster of 20 by 20 pixels that GDAL writes as `driver`, in central Europe. */
async function rasterAs(driver: string, name: string): Promise<string> {
  const path = join(await testFolder(), name);
  const dataset = gdal.open(path, 'w', driver, 20, 20, 1, gdal.GDT_Byte, driver === 'NITF' ? ['ICORDS=G'] : []);
  dataset.srs = gdal.SpatialReference.fromEPSG(driver === 'NITF' ? 4326 : 32_633);
  dataset.geoTransform = driver === 'NITF' ? [14, 0.01, 0, 45, 0, -0.01] : [500_000, 30, 0, 5_000_000, 0, -30];
  dataset.bands.get(1).pixels.write(
    0,
    0,
    20,
    20,
    Uint8Array.from({ length: 400 }, (_, i) => i % 200),
  );
  dataset.close();
  return path;
}

describe('a raster that may name other files', needing(await confined()), () => {
  test.each([
    ['NITF', 'a.ntf'],
    ['HFA', 'a.img'],
  ])('%s is read, shown and found', async (driver, name) => {
    const sandbox = await startSandbox();
    const bytes = await readFile(await rasterAs(driver, name));
    for (const sourceType of ['MULTISPECTRAL', 'UNKNOWN']) await requireRead(sandbox, bytes, name, sourceType);
    const [item] = await itemsOf(sandbox);
    const preview = await fetch(item!.assets['rendered_preview'].href);
    expect([preview.status, preview.headers.get('content-type')]).toEqual([200, 'image/png']);
  });

  test('ENVI comes as a zip archive of data and header', async () => {
    const sandbox = await startSandbox();
    const path = await rasterAs('ENVI', 'dem.dat');
    const [data, header] = [await readFile(path), await readFile(path.replace(/dat$/, 'hdr'))];
    const pair = await zip({ 'scene/dem.dat': data, 'scene/dem.hdr': header });
    for (const sourceType of ['HYPERSPECTRAL', 'UNKNOWN']) await requireRead(sandbox, pair, 'dem.zip', sourceType);
    const inCapitals = await zip({ 'DEM.IMG': data, 'DEM.HDR': header });
    await requireRead(sandbox, inCapitals, 'capitals.zip', 'HYPERSPECTRAL');
    const [item] = await itemsOf(sandbox);
    expect((await fetch(item!.assets['rendered_preview'].href)).status).toBe(200);
    expect((await processed(sandbox, await zip({ 'dem.hdr': header }), 'dem.zip', 'HYPERSPECTRAL')).status).toBe(
      'FAILED',
    );
  });
});

test('a gzip file is what it holds; one that is damaged has failed', async () => {
  const sandbox = await startSandbox();
  const tiff = gzipSync(geoTiff({ width: 20, height: 20, value: (x, y) => x + y }));
  await requireRead(sandbox, tiff, 'a.tif.gz', 'MULTISPECTRAL');
  const [item] = await itemsOf(sandbox);
  expect((await fetch(item!.assets['rendered_preview'].href)).status).toBe(200);
  await requireRead(sandbox, gzipSync(geojson({ type: 'Point', coordinates: [10, 50] })), 'p.geojson.gz', 'POINT');
  for (const sourceType of ['MULTISPECTRAL', 'UNKNOWN'])
    expect((await processed(sandbox, tiff.subarray(0, tiff.length - 12), 'a.tif.gz', sourceType)).status).toBe(
      'FAILED',
    );
});

test('a Matroska file with a track of video is a video', async () => {
  const sandbox = await startSandbox();
  await requireRead(sandbox, matroska(), 'a.mkv', 'FULL_MOTION_VIDEO');
  await requireRead(sandbox, matroska(1, 'webm'), 'a.webm', 'UNKNOWN');
  for (const bytes of [matroska(2), matroska().subarray(0, -3), Buffer.from([0x1a, 0x45, 0xdf, 0xa3])])
    expect((await processed(sandbox, bytes, 'a.mkv', 'FULL_MOTION_VIDEO')).status).toBe('FAILED');
});

test('a tileset lies below a folder, the one nearest to the root', async () => {
  const sandbox = await startSandbox();
  const nested = await zip({ 'city/tileset.json': tileset, 'city/parts/tileset.json': utf8('{}') });
  await requireRead(sandbox, nested, 'city.zip', 'TILES3D');
  const two = await zip({ 'a/tileset.json': tileset, 'b/tileset.json': tileset });
  const { fileId, status } = await processed(sandbox, two, 'two.zip', 'TILES3D');
  expect(status).toBe('FAILED');
  expect((await sandbox.request('GET', `/sandbox/files/${fileId}`)).body.reason).toContain('side by side');
});

describe('a CSV file has the place of its', () => {
  test.each([
    ['longitudes and latitudes', 'name,Longitude,Latitude\na,10,50\nb,11,51\n'],
    ['lon and lat, by semicolons', '"lon";"lat"\n10;50\n11;51\n'],
    ['well-known text', 'id,wkt\n1,"LINESTRING (10 50, 11 51)"\n'],
  ])('%s', async (_, text) => {
    const sandbox = await startSandbox();
    await requireRead(sandbox, utf8(text), 'places.csv', 'UNKNOWN');
    expect((await itemsOf(sandbox)).map(({ bbox }) => bbox)).toEqual([[10, 50, 11, 51]]);
  });

  test.each([
    ['eastings', 'x,y\n500000,5000000\n'],
    ['degrees out of range', 'lon,lat\n500000,5000000\n'],
  ])('%s: none', async (_, text) => {
    const sandbox = await startSandbox();
    await requireRead(sandbox, utf8(text), 'places.csv', 'UNKNOWN');
    expect(await itemsOf(sandbox)).toEqual([]);
  });
});

describe('the geometry of a completion', () => {
  const given = { type: 'Polygon', coordinates: [[[10, 50], [11, 50], [11, 51], [10, 50]]] }; // oxfmt-ignore
  const uploaded = async (sandbox: TestSandbox) => {
    const upload = await generateUpload(sandbox, 'a.tif');
    const bytes = geoTiff({ width: 3, height: 3, value: () => 1 });
    await sendFileChunk(sandbox, upload, 1, bytes);
    return { upload, size: bytes.length };
  };

  test.each([
    ['GeoJSON', given],
    ['GeoJSON as text', JSON.stringify(given)],
    ['well-known text', 'POLYGON ((10 50, 11 50, 11 51, 10 50))'],
  ])('%s', async (_, geometry) => {
    const sandbox = await startSandbox();
    const { upload, size } = await uploaded(sandbox);
    const { status, body } = await completeFile(sandbox, upload, size, { geometry });
    expect(status).toBe(200);
    const { fileId } = body as unknown as { fileId: string };
    await expect
      .poll(async () => (await sandbox.request('GET', `/sandbox/files/${fileId}`)).body.status, { timeout: 900_000 })
      .toBe('COMPLETED');
    expect((await itemsOf(sandbox)).map(({ geometry: footprint }) => footprint)).toEqual([given]);
  });

  test.each([
    ['a number', 5],
    ['no type', { coordinates: [] }],
    ['an open ring', { ...given, coordinates: [given.coordinates[0]!.slice(0, 3)] }],
    ['text that is neither', '{"type": "Polygon"'],
  ])('%s is refused, and the session stays usable', async (_, geometry) => {
    const sandbox = await startSandbox();
    const { upload, size } = await uploaded(sandbox);
    const refused = await completeFile(sandbox, upload, size, { geometry });
    expect([refused.status, refused.body.details?.map(({ path }) => path.split('.')[0])]).toEqual([400, ['geometry']]);
    expect((await completeFile(sandbox, upload, size, {})).status).toBe(200);
  });
});

test('a completion that fails in its work is cleaned up, and the session is gone', async () => {
  const sandbox = await startSandbox();
  const fault = { endpoint: 'file.complete', effect: { failWork: true } };
  expect(
    (await sandbox.request('POST', '/sandbox/faults', { body: { ...fault, endpoint: 'file.chunk' } })).status,
  ).toBe(400);
  expect((await sandbox.request('POST', '/sandbox/faults', { body: fault })).status).toBe(201);
  const upload = await generateUpload(sandbox, 'a.txt');
  await sendFileChunk(sandbox, upload, 1, utf8('0123456789'));
  const failed = await completeFile(sandbox, upload, 10, {});
  expect([failed.status, failed.body.error]).toEqual([500, 'Failed to complete upload']);
  expect((await completeFile(sandbox, upload, 10, {})).status).toBe(404);
});
