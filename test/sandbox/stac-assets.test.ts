// @module-tag all
/** Spec 2.2, 2.3: previews, data and thumbnails behind signed addresses (contract, "STAC" and "Common"). */
import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import yauzl from 'yauzl';
import { completeFile, finalStatus, generateUpload, processed, sendFileChunk } from '../support/files.ts';
import { geoTiff } from '../support/geotiff.ts';
import { adminKey, startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { get, item, key, sandboxWith, search, type StacCollection, type StacItem } from '../support/stac.ts';

const day = 86_400_000;

async function pixels(bytes: ArrayBuffer) {
  const { data, info } = await sharp(Buffer.from(bytes)).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
  const at = (x: number, y: number) => [...data.subarray((y * info.width + x) * 4, (y * info.width + x) * 4 + 4)];
  return { width: info.width, height: info.height, at };
}

/** A square of 3 km in UTM 33N: west dark, east bright. */
const tiff = geoTiff({
  width: 100,
  height: 100,
  value: (x) => (x < 50 ? 100 : 900),
  epsg: 32633,
  origin: [560_000, 5_500_000, 30],
});

async function uploadedItem(sandbox: TestSandbox, bytes: Uint8Array = tiff, more: object = {}): Promise<StacItem> {
  const upload = await generateUpload(sandbox, 'scene.tif');
  await sendFileChunk(sandbox, upload, 1, bytes);
  const { fileId } = (await completeFile(sandbox, upload, bytes.length, { sourceType: 'MULTISPECTRAL', ...more })).body;
  expect(await finalStatus(sandbox, fileId)).toBe('COMPLETED');
  return get<StacItem>(sandbox, `/public/stac/collections/uploads-amina/items/${fileId}`);
}

/** An address with some of its parameters changed, its signature as it was. */
function altered(href: string, changes: Record<string, string>): string {
  const url = new URL(href);
  for (const [name, value] of Object.entries(changes)) url.searchParams.set(name, value);
  return url.href;
}

describe('preview', () => {
  test('is drawn from the pixels, exactly as large as asked, transparent outside the footprint', async () => {
    const sandbox = await startSandbox();
    const found = await uploadedItem(sandbox);
    const answer = await fetch(found.assets.rendered_preview.href);
    expect([
      answer.status,
      answer.headers.get('content-type'),
      answer.headers.get('x-content-type-options'),
      answer.headers.get('content-security-policy'),
      answer.headers.get('content-disposition'),
    ]).toEqual([200, 'image/png', 'nosniff', 'sandbox', null]);
    const { searchParams } = new URL(found.assets.rendered_preview.href);
    const picture = await pixels(await answer.arrayBuffer());
    expect([picture.width, picture.height]).toEqual([
      Number(searchParams.get('width')),
      Number(searchParams.get('height')),
    ]);
    const middle = Math.floor(picture.height / 2);
    expect(picture.at(Math.floor(picture.width * 0.25), middle)).toEqual([0, 0, 0, 255]);
    expect(picture.at(Math.floor(picture.width * 0.75), middle)).toEqual([255, 255, 255, 255]);
    // East of its meridian a UTM square is turned: the corners of its box are not covered.
    expect(picture.at(0, picture.height - 1)[3]).toBe(0);
  });

  test('of another box and size, with a key', async () => {
    const sandbox = await startSandbox();
    const found = await uploadedItem(sandbox);
    const path = new URL(found.assets.rendered_preview.href).pathname;
    const [west, south, east, north] = found.bbox;
    const draw = async (bbox: number[], width: number, height: number) => {
      const answer = await fetch(`${sandbox.url}${path}?bbox=${bbox.join(',')}&width=${width}&height=${height}`, {
        headers: key,
      });
      expect(answer.status).toBe(200);
      return pixels(await answer.arrayBuffer());
    };
    const east2 = await draw(
      [(west + east) / 2 + 0.005, (south + north) / 2 - 0.002, east - 0.005, (south + north) / 2 + 0.002],
      7,
      1024,
    );
    expect([east2.width, east2.height, east2.at(3, 500)]).toEqual([7, 1024, [255, 255, 255, 255]]);
    expect((await fetch(`${sandbox.url}${path}?sourceId=another`, { headers: key })).status).toBe(404);
    const outside = await draw([0, 0, 1, 1], 1, 1);
    expect([outside.width, outside.height, outside.at(0, 0)[3]]).toEqual([1, 1, 0]);
    const around = await draw([west - 1, south - 1, east + 1, north + 1], 100, 100);
    expect([around.at(2, 2)[3], around.at(50, 50)[3]]).toEqual([0, 255]);
  });

  test('is cut to the geometry that the uploader gave', async () => {
    const sandbox = await startSandbox();
    const whole = await uploadedItem(sandbox);
    const [west, south, east, north] = whole.bbox;
    const middle = (west + east) / 2;
    const found = await uploadedItem(sandbox, tiff, {
      geometry: `POLYGON((${west} ${south}, ${middle} ${south}, ${middle} ${north}, ${west} ${north}, ${west} ${south}))`,
    });
    const path = new URL(found.assets.rendered_preview.href).pathname;
    const picture = await pixels(
      await (
        await fetch(`${sandbox.url}${path}?bbox=${whole.bbox.join(',')}&width=100&height=100`, { headers: key })
      ).arrayBuffer(),
    );
    expect([picture.at(25, 50)[3], picture.at(75, 50)[3]]).toEqual([255, 0]);
  });

  test('nodata is transparent', async () => {
    const sandbox = await startSandbox();
    const found = await uploadedItem(
      sandbox,
      geoTiff({
        width: 100,
        height: 100,
        type: 'Float32',
        value: (x) => (x < 50 ? NaN : x),
        epsg: 4326,
        origin: [10, 51, 0.01],
      }),
    );
    const picture = await pixels(await (await fetch(found.assets.rendered_preview.href)).arrayBuffer());
    expect([
      picture.at(Math.floor(picture.width * 0.2), 100)[3],
      picture.at(Math.floor(picture.width * 0.8), 100)[3],
    ]).toEqual([0, 255]);
  });

  test('a large raster without overviews gets some, and is drawn from them', async () => {
    const sandbox = await startSandbox();
    const found = await uploadedItem(
      sandbox,
      geoTiff({
        width: 4200,
        height: 300,
        value: (x) => (x < 2100 ? 100 : 900),
        epsg: 32633,
        origin: [560_000, 5_500_000, 30],
      }),
    );
    expect(await readdir(join(sandbox.dataDir, 'overviews'))).toHaveLength(1);
    const picture = await pixels(await (await fetch(found.assets.rendered_preview.href)).arrayBuffer());
    const middle = Math.floor(picture.height / 2);
    expect([
      picture.at(Math.floor(picture.width * 0.25), middle),
      picture.at(Math.floor(picture.width * 0.75), middle),
    ]).toEqual([
      [0, 0, 0, 255],
      [255, 255, 255, 255],
    ]);
  });

  test('across the antimeridian', async () => {
    const sandbox = await startSandbox();
    const found = await uploadedItem(
      sandbox,
      geoTiff({ width: 60, height: 60, value: (x) => x * 10 + 5, epsg: 32601, origin: [160_000, 100_000, 1000] }),
    );
    const picture = await pixels(await (await fetch(found.assets.rendered_preview.href)).arrayBuffer());
    for (const x of [0.1, 0.5, 0.9])
      expect(picture.at(Math.floor(picture.width * x), Math.floor(picture.height / 2))[3]).toBe(255);
  });

  test('of a format that is known by its name: SRTM tiles', async () => {
    const sandbox = await startSandbox();
    const heights = Buffer.alloc(1201 * 1201 * 2);
    for (let i = 0; i < 1201 * 1201; i++) heights.writeInt16BE(i % 1201, i * 2);
    const { fileId, status } = await processed(sandbox, heights, 'N50E010.hgt', 'HEIGHTMAP');
    expect(status).toBe('COMPLETED');
    const found = await get<StacItem>(sandbox, `/public/stac/collections/uploads-amina/items/${fileId}`);
    const picture = await pixels(await (await fetch(found.assets.rendered_preview.href)).arrayBuffer());
    expect(picture.at(Math.floor(picture.width / 4), 100)[0]).toBeLessThan(
      picture.at(Math.floor((picture.width * 3) / 4), 100)[0]!,
    );
  });

  test('of an item without pixels: its footprint', async () => {
    const sandbox = await sandboxWith([
      item('x', {
        ring: [
          [0, 0],
          [4, 0],
          [0, 4],
          [0, 0],
        ],
      }),
    ]);
    const found = await get<StacItem>(sandbox, '/public/stac/collections/a/items/x');
    const picture = await pixels(await (await fetch(found.assets.rendered_preview.href)).arrayBuffer());
    const [w, h] = [picture.width, picture.height];
    expect(picture.at(Math.floor(w * 0.2), Math.floor(h * 0.8))[3]).toBeGreaterThan(0);
    expect(picture.at(Math.floor(w * 0.8), Math.floor(h * 0.2))[3]).toBe(0);
  });

  test.each([
    { width: '0' },
    { width: '1025' },
    { height: '-1' },
    { width: '1.5' },
    { height: 'x' },
    { bbox: '1,2,3' },
    { bbox: '5,5,4,1' },
  ])('%j: 400', async (change) => {
    const sandbox = await sandboxWith([item('x')]);
    const found = await get<StacItem>(sandbox, '/public/stac/collections/a/items/x');
    const answer = await fetch(altered(found.assets.rendered_preview.href, change));
    expect(answer.status).toBe(400);
  });
});

describe('signed addresses', () => {
  test('without a signature nobody learns which items there are', async () => {
    const sandbox = await sandboxWith([item('x')]);
    const ask = async (path: string) =>
      (await sandbox.request('GET', `/public/stac/collections/a/items/${path}`)).status;
    for (const query of ['', '?width=5000', '?bbox=x', '?sourceId=y'])
      expect(await ask(`x/preview${query}`)).toBe(await ask(`nothing/preview${query}`));
  });

  test('altered in any parameter, of another item, or without signature: 403; after 24 hours: 403', async () => {
    const sandbox = await sandboxWith([item('x'), item('y')]);
    const found = await get<StacItem>(sandbox, '/public/stac/collections/a/items/x');
    const preview = found.assets.rendered_preview.href;
    const changes = [
      { width: '100' },
      { height: '100' },
      { bbox: '0,0,1,1' },
      { sourceId: 'y' },
      { expires: '99999999999999' },
      { signature: 'AAAA' },
      { more: '1' },
    ];
    for (const change of changes)
      expect(
        (await fetch(altered(preview, change as unknown as Record<string, string>))).status,
        JSON.stringify(change),
      ).toBe(403);
    const data = found.assets.data.href;
    for (const href of [
      preview.replace('/items/x/', '/items/y/'),
      data.replace('/items/x/', '/items/y/'),
      data.replace('/data?', '/preview?'),
      preview.split('?')[0]!,
      data.split('?')[0]!,
    ]) {
      expect((await fetch(href)).status, href).toBe(403);
    }
    await sandbox.advance(day - 60_000);
    expect([(await fetch(preview)).status, (await fetch(data)).status]).toEqual([200, 200]);
    await sandbox.advance(60_000);
    expect([(await fetch(preview)).status, (await fetch(data)).status]).toEqual([403, 403]);
  });

  test("are built on PUBLIC_URL, never on the request's Host", async () => {
    const sandbox = await startSandbox({
      seed: 'demo',
      env: { PUBLIC_URL: 'https://platform.example/base', SANDBOX_ADMIN_KEY: adminKey },
    });
    const { body } = await sandbox.request('GET', '/public/stac/collections/coastal-optical/items?limit=1', {
      headers: { ...key, host: 'evil.example' },
    });
    const text = JSON.stringify(body);
    expect(text).not.toContain('evil.example');
    expect(text).toContain('https://platform.example/base/public/stac/collections/coastal-optical/items/');
  });
});

function unzip(bytes: Buffer): Promise<Record<string, Buffer>> {
  return yauzl.fromBufferPromise(bytes).then(async (archive) => {
    const entries: Record<string, Buffer> = {};
    for await (const entry of archive.eachEntry()) {
      const chunks: Buffer[] = [];
      for await (const chunk of await archive.openReadStreamPromise(entry)) chunks.push(chunk as Buffer);
      entries[entry.fileName] = Buffer.concat(chunks);
    }
    return entries;
  });
}

describe('data', () => {
  test('streams a zip with the source file, byte for byte', async () => {
    const sandbox = await startSandbox();
    const found = await uploadedItem(sandbox);
    const answer = await fetch(found.assets.data.href);
    expect(
      Object.fromEntries(
        ['content-type', 'content-disposition', 'x-content-type-options', 'content-security-policy'].map((name) => [
          name,
          answer.headers.get(name),
        ]),
      ),
    ).toEqual({
      'content-type': 'application/zip',
      // Express quotes a name with a dot or the like.
      'content-disposition': expect.stringMatching(/^attachment; filename="?scene\.zip"?$/) as string,
      'x-content-type-options': 'nosniff',
      'content-security-policy': 'sandbox',
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect(Number(answer.headers.get('content-length'))).toBe(bytes.length);
    const entries = await unzip(bytes);
    expect(Object.keys(entries)).toEqual(['scene.tif']);
    expect(entries['scene.tif']!.equals(tiff)).toBe(true);
  });

  test('a reader that goes away leaves no file open', async () => {
    const sandbox = await startSandbox();
    const found = await uploadedItem(
      sandbox,
      geoTiff({ width: 2000, height: 2000, value: (x) => x, epsg: 32633, origin: [560_000, 5_500_000, 30] }),
    );
    const open = async () => {
      const links = await Promise.all(
        (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
      );
      return links.filter((link) => link.startsWith(join(sandbox.dataDir, 'blobs'))).length;
    };
    for (let i = 0; i < 5; i++) {
      const leave = new AbortController();
      const answer = await fetch(found.assets.data.href, { signal: leave.signal });
      await answer.body!.getReader().read();
      leave.abort();
    }
    await expect.poll(open, { timeout: 300_000 }).toBe(0);
  });

  test('readers that go away while a scene is made leave none open', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const path = '/public/stac/collections/coastal-optical/items?limit=1';
    const [scene] = (await get<{ features: StacItem[] }>(sandbox, path)).features;
    const address = `${sandbox.url}/inference/scenes/coastal-optical/${encodeURIComponent(scene!.id)}`;
    const readers = Array.from({ length: 8 }, () => new AbortController());
    const answers = readers.map(({ signal }) => fetch(address, { signal }).catch(() => null));
    setTimeout(() => readers.forEach((reader) => reader.abort()), 50);
    await Promise.all(answers);
    // A reader that stays has the whole scene.
    expect((await (await fetch(address)).arrayBuffer()).byteLength).toBeGreaterThan(100_000);
    const links = await Promise.all(
      (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
    );
    expect(links.filter((link) => link.startsWith(join(sandbox.dataDir, 'scenes')))).toEqual([]);
  });

  test('a name that an archive may not hold is made one', async () => {
    const sandbox = await sandboxWith([item('x', { title: '/products/../C:x' })]);
    const found = await get<StacItem>(sandbox, '/public/stac/collections/a/items/x');
    expect(Object.keys(await unzip(Buffer.from(await (await fetch(found.assets.data.href)).arrayBuffer())))).toEqual([
      'C_x.json',
    ]);
  });

  test('of a demo scene: a GeoTIFF where the footprint is; of an item without a file: its metadata', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const [found] = (await search(sandbox, { collections: ['harbour-radar'], limit: 1 })).features;
    const entries = await unzip(Buffer.from(await (await fetch(found!.assets.data.href)).arrayBuffer()));
    const [[name, bytes] = ['', Buffer.alloc(0)]] = Object.entries(entries);
    expect([name.endsWith('.tif'), bytes.subarray(0, 2).toString()]).toEqual([true, 'II']);
    const { status, fileId } = await processed(sandbox, bytes, name, 'SAR');
    expect(status).toBe('COMPLETED');
    expect((await get<StacItem>(sandbox, `/public/stac/collections/uploads-amina/items/${fileId}`)).geometry).toEqual(
      found!.geometry,
    );
    const own = await sandboxWith([item('x')]);
    const bare = await get<StacItem>(own, '/public/stac/collections/a/items/x');
    const [metadata] = Object.values(
      await unzip(Buffer.from(await (await fetch(bare.assets.data.href)).arrayBuffer())),
    );
    expect(JSON.parse(metadata!.toString())).toMatchObject({ id: 'x', type: 'Feature' });
  });
});

test('thumbnail: a picture of the newest item; of an empty collection a transparent one', async () => {
  const sandbox = await startSandbox({ seed: 'demo' });
  const thumbnail = async (id: string) => {
    const collection = await get<StacCollection>(sandbox, `/public/stac/collections/${id}`);
    const answer = await fetch(collection.assets.thumbnail.href);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/png']);
    expect((await fetch(collection.assets.thumbnail.href.split('?')[0]!)).status).toBe(403);
    return pixels(await answer.arrayBuffer());
  };
  expect((await thumbnail('alpine-elevation')).at(128, 128)[3]).toBe(255);
  expect((await thumbnail('uploads-bruno')).at(128, 128)[3]).toBe(0);
});

describe('raster, for clients that read pixels', () => {
  test('GET /search of a sandbox that is not strict: the source range by range, with its place', async () => {
    const sandbox = await startSandbox({ env: { SANDBOX_STAC_STRICT: 'false' } });
    await uploadedItem(sandbox);
    const [found] = (await get<{ features: StacItem[] }>(sandbox, '/public/stac/search')).features;
    expect(found!.assets.raster).toMatchObject({
      type: 'image/tiff; application=geotiff',
      'proj:epsg': 32633,
      'proj:shape': [100, 100],
      'proj:transform': [30, 0, 560_000, 0, -30, 5_500_000],
    });
    expect(found!.stac_extensions).toContain('https://stac-extensions.github.io/projection/v1.1.0/schema.json');
    const { href } = found!.assets.raster!;
    const part = await fetch(href, { headers: { range: 'bytes=0-1' } });
    expect([part.status, part.headers.get('content-range'), await part.text()]).toEqual([
      206,
      `bytes 0-1/${tiff.length}`,
      'II',
    ]);
    expect((await fetch(altered(href, { expires: '9' }))).status).toBe(403);
  });

  test('a strict one has just the assets of the spec', async () => {
    const sandbox = await startSandbox();
    await uploadedItem(sandbox);
    const [found] = (await get<{ features: StacItem[] }>(sandbox, '/public/stac/search')).features;
    expect([Object.keys(found!.assets), found!.stac_extensions.length]).toEqual([['rendered_preview', 'data'], 2]);
  });
});
