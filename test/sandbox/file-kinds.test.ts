/** Spec 2.8, 3.2: every source type is judged by what proves it, in a process of its own. */
import { createServer } from 'node:http';
import { readdir } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import sharp from 'sharp';
import { beforeAll, describe, expect, test } from 'vitest';
import { sourceTypes } from '../../src/contract/index.ts';
import { downloaded, finalStatus, key, processed, uploadDirectly } from '../support/files.ts';
import { geoTiff } from '../support/geotiff.ts';
import {
  czml,
  geojson,
  gml,
  kml,
  mp4,
  netcdf,
  pdf,
  shapefile,
  tileset,
  transportStream,
  zip,
} from '../support/other-files.ts';
import { someBytes, startSandbox, type TestSandbox } from '../support/sandbox.ts';

const tiff = geoTiff({ width: 8, height: 6, value: (x, y) => x * y });
const png = await sharp({ create: { width: 40, height: 30, channels: 3, background: '#369' } })
  .png()
  .toBuffer();
const jpeg = await sharp(someBytes(300 * 200 * 3), { raw: { width: 300, height: 200, channels: 3 } })
  .jpeg()
  .toBuffer();
const point = geojson({ type: 'Point', coordinates: [10, 50] });
const line = geojson({
  type: 'LineString',
  coordinates: [
    [10, 50],
    [11, 51],
  ],
});
const polygon = geojson({
  type: 'Polygon',
  coordinates: [
    [
      [10, 50],
      [11, 50],
      [11, 51],
      [10, 50],
    ],
  ],
});

/** One good file of every source type of the spec. */
const good: Record<string, readonly [string, Uint8Array]> = {
  MULTISPECTRAL: ['a.tif', tiff],
  HYPERSPECTRAL: ['a.tif', tiff],
  SAR: ['a.tif', tiff],
  PANCHROMATIC: ['a.tif', tiff],
  HEIGHTMAP: ['a.tif', tiff],
  THERMAL: ['a.tif', tiff],
  COMPLEX: ['a.tif', tiff],
  LAND_SUBSIDENCE: ['a.tif', tiff],
  NETCDF: ['a.nc', netcdf()],
  POINT: ['a.geojson', point],
  LINESTRING: ['a.kml', kml],
  POLYGON: ['a.geojson', polygon],
  GEOMETRYCOLLECTION: [
    'a.geojson',
    geojson({ type: 'GeometryCollection', geometries: [{ type: 'Point', coordinates: [1, 2] }] }),
  ],
  ANNOTATION: ['a.geojson', line],
  PDF: ['a.pdf', pdf],
  IMAGE: ['a.png', png],
  CZML: ['a.czml', czml],
  TILES3D: ['tileset.json', tileset],
  FULL_MOTION_VIDEO: ['a.ts', transportStream()],
  UNKNOWN: ['a.bin', tiff],
};

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});

test.each(sourceTypes)('%s: a file that is one is COMPLETED, one that is none FAILED', async (sourceType) => {
  const [name, bytes] = good[sourceType]!;
  expect((await processed(sandbox, bytes, name, sourceType)).status).toBe('COMPLETED');
  expect((await processed(sandbox, someBytes(3000), name, sourceType)).status).toBe('FAILED');
});

test.each([
  ['a PNG that is cut off', 'IMAGE', 'a.png', png.subarray(0, png.length - 30)],
  ['a JPEG that is cut off', 'IMAGE', 'a.jpg', jpeg.subarray(0, jpeg.length / 2)],
  [
    'SVG, which can refer to files',
    'IMAGE',
    'a.svg',
    Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><image href="/etc/passwd"/></svg>'),
  ],
  ['a PDF without its end', 'PDF', 'a.pdf', pdf.subarray(0, pdf.length - 10)],
  ['CZML without a version', 'CZML', 'a.czml', Buffer.from('[{"id":"document"}]')],
  ['CZML that is no array', 'CZML', 'a.czml', Buffer.from('{"id":"document","version":"1.0"}')],
  ['a tileset without a root', 'TILES3D', 'tileset.json', Buffer.from('{"asset":{"version":"1.1"}}')],
  ['MP4 with sound alone', 'FULL_MOTION_VIDEO', 'a.mp4', mp4('soun')],
  ['MP4 that is cut off', 'FULL_MOTION_VIDEO', 'a.mp4', mp4().subarray(0, 90)],
  ['a transport stream with sound alone', 'FULL_MOTION_VIDEO', 'a.ts', transportStream(0x0f)],
  ['points that claim to be polygons', 'POLYGON', 'a.geojson', point],
  ['a polygon that claims to be lines', 'LINESTRING', 'a.geojson', polygon],
  ['a GeoTIFF that claims to be NetCDF', 'NETCDF', 'a.nc', tiff],
  ['GeoJSON that is cut off', 'POINT', 'a.geojson', point.subarray(0, point.length - 20)],
])('%s: FAILED', async (_what, sourceType, name, bytes) => {
  const { status, fileId } = await processed(sandbox, bytes, name, sourceType);
  expect(status).toBe('FAILED');
  expect((await downloaded(sandbox, fileId)).equals(bytes)).toBe(true);
});

test.each([
  ['MP4', 'FULL_MOTION_VIDEO', 'a.mp4', () => mp4()],
  [
    'a zipped shapefile',
    'POINT',
    'points.zip',
    () =>
      zip(
        shapefile([
          [10, 50],
          [12, 51],
        ]),
      ),
  ],
  ['a KMZ', 'LINESTRING', 'a.kmz', () => zip({ 'doc.kml': kml })],
  ['a zipped tileset', 'TILES3D', 'a.3tz', () => zip({ 'tileset.json': tileset, 'content.glb': someBytes(100) })],
  ['CSV with longitude and latitude', 'POINT', 'a.csv', () => Buffer.from('name,lon,lat\na,10,50\nb,11,51\n')],
])('%s: COMPLETED', async (_what, sourceType, name, make) => {
  expect((await processed(sandbox, await make(), name, sourceType)).status).toBe('COMPLETED');
});

test('coordinates that are no degrees, without a reference system: COMPLETED, and no item', async () => {
  const { status, fileId } = await processed(
    sandbox,
    geojson({ type: 'Point', coordinates: [500_000, 4_000_000] }),
    'metres.geojson',
    'POINT',
  );
  expect(status).toBe('COMPLETED');
  expect(
    (await sandbox.request('GET', `/public/stac/collections/uploads-amina/items/${fileId}`, { headers: key })).status,
  ).toBe(404);
});

test('an archive cannot write outside of its folder', async () => {
  const evil = await zip({ 'aa/evil.shp': someBytes(50) });
  // The same length, so that the archive stays whole.
  const bytes = Buffer.from(evil.toString('latin1').replaceAll('aa/evil.shp', '../evil.shp'), 'latin1');
  const before = await readdir(sandbox.dataDir);
  expect((await processed(sandbox, bytes, 'evil.zip', 'POINT')).status).toBe('FAILED');
  expect(await readdir(sandbox.dataDir)).toEqual(before);
});

test('no schema and no reference is fetched', async () => {
  const asked: string[] = [];
  const server = createServer((req, res) => {
    asked.push(req.url ?? '');
    res.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  expect((await processed(sandbox, gml(`http://127.0.0.1:${port}`), 'a.gml', 'POINT')).status).toBe('COMPLETED');
  await new Promise((resolve) => server.close(resolve));
  expect(asked).toEqual([]);
});

describe('a file that breaks the reader', () => {
  test.each([
    ['crashes it', 'crash', 'bytes'],
    ['hangs it', 'hang', 'bytes'],
  ])('%s: FAILED, and the server goes on with the next', async (_what, name) => {
    const job = new URL('../support/breaking-inspect-job.ts', import.meta.url);
    const own = await startSandbox({ inspection: { job, limits: { timeoutMs: 10_000 } } });
    const { fileId } = (await uploadDirectly(own, someBytes(10), name)).body;
    const next = (await uploadDirectly(own, someBytes(10), 'good')).body.fileId;
    expect(await finalStatus(own, fileId)).toBe('FAILED');
    expect(await finalStatus(own, next)).toBe('COMPLETED');
    expect((await own.request('GET', '/health')).status).toBe(200);
    expect((await own.request('GET', `/public/file/status/${fileId}`, { headers: key })).body.status).toBe('FAILED');
  });
});
