/** Items of the platform as a run's input: how their data is fetched, and what is not taken. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createPlatformInput } from '../../src/app/processing/platform-input.ts';
import { createPlatformClient } from '../../src/platform-client/index.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testConfinement } from '../support/confinement.ts';
import { testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { zip } from '../support/other-files.ts';
import { codeOf } from '../../src/files/index.ts';

const raster = geoTiff({ width: 4, height: 3, value: (x) => x });
const reference = { collectionId: 'a', itemId: 'x' };
const apiKey = 'a-key-that-must-not-leave';

async function listen(handler: (req: IncomingMessage, res: ServerResponse) => void): Promise<string> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', () => resolve()));
  cleanUpLater(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A platform with one item, whose data is answered by `answer`; on an origin of its own where `isElsewhere`. */
async function start(
  answer: (res: ServerResponse, req: IncomingMessage, tries: number) => void,
  { isElsewhere = false, origins = [] as string[], maxBytes = 1_000_000, properties = {} } = {},
) {
  const seen: IncomingMessage[] = [];
  const serveData = (req: IncomingMessage, res: ServerResponse) => {
    seen.push(req);
    answer(res, req, seen.length);
  };
  const elsewhere = isElsewhere ? await listen(serveData) : null;
  const url: string = await listen((req, res) => {
    if (req.url?.startsWith('/data')) return serveData(req, res);
    if (!req.url?.endsWith('/items/x'))
      return void res.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"Item not found"}');
    const item = {
      type: 'Feature',
      id: 'x',
      title: 'some title',
      collection: 'a',
      properties,
      assets: { data: { href: `${elsewhere ?? url}/data?signature=s` } },
    };
    res.writeHead(200, { 'content-type': 'application/geo+json' }).end(JSON.stringify(item));
  });
  const client = createPlatformClient({ baseUrl: url, apiKey, retry: { retries: 2, minDelayMs: 5, maxDelayMs: 10 } });
  cleanUpLater(() => client.close());
  const input = createPlatformInput({
    client,
    allowedOrigins: [url, ...origins, ...(origins.includes('elsewhere') && elsewhere ? [elsewhere] : [])],
    maxBytes,
    confinement: await testConfinement(),
  });
  const folder = join(await testFolder(), 'input');
  const fetchIt = () => fetchFiles().then((files) => files.map(({ path }) => path));
  const fetchFiles = () =>
    input.fetch([reference], folder, {
      kind: 'raster',
      bytesTaken: 0,
      signal: new AbortController().signal,
      onProgress: () => {},
      repeat: (call) => call(),
    });
  return { input, folder, fetchIt, fetchFiles, seen };
}

const send = (bytes: Uint8Array) => (res: ServerResponse) =>
  void res.writeHead(200, { 'content-length': bytes.length }).end(bytes);

test('the archive is fetched by its link alone, without key or token, and its rasters are unpacked', async () => {
  const { fetchIt, seen } = await start(
    send(await zip({ 'scene/l8_B4.tif': raster, 'readme.txt': Buffer.from('x') })),
    { isElsewhere: true, origins: ['elsewhere'] },
  );
  const paths = await fetchIt();
  expect(paths.map((path) => basename(path))).toEqual(['l8_B4.tif']);
  expect((await readFile(paths[0]!)).equals(raster)).toBe(true);
  expect(seen).toHaveLength(1);
  expect(JSON.stringify([seen[0]!.rawHeaders, seen[0]!.url])).not.toContain(apiKey);
  expect(seen[0]!.headers['x-api-key']).toBeUndefined();
});

test('data that is no archive is taken as the raster that it may be', async () => {
  const { fetchIt } = await start(send(raster));
  expect((await fetchIt()).map((path) => basename(path))).toEqual(['some_title.tif']);
});

test('a raster that is packed by itself is unpacked; one that is damaged is told', async () => {
  const archive = await zip({ 'a.tif.gz': gzipSync(raster), 'a.tif': raster, 'notes.txt.gz': gzipSync('x') });
  const paths = await (await start(send(archive))).fetchIt();
  expect(paths.map((path) => basename(path))).toEqual(['a-2.tif', 'a.tif']);
  for (const path of paths) expect((await readFile(path)).equals(raster)).toBe(true);
  const damaged = await start(send(await zip({ 'a.tif.gz': gzipSync(raster).subarray(0, 40) })));
  await expect(damaged.fetchIt()).rejects.toThrow(/gzip file cannot be read: it is damaged/);
});

test.each([
  ['2013-04-02T17:31:02+02:00', '2013-04-02T15:31:02.000Z'],
  ['in spring', null],
  [undefined, null],
])('the time of an item, %s, goes with its files as %s', async (datetime, observedAt) => {
  const { fetchFiles } = await start(send(raster), { properties: { datetime } });
  expect((await fetchFiles()).map(({ ofItem }) => ofItem)).toEqual([{ observedAt, bands: [] }]);
});

test('an item that is not there is known before anybody is asked', async () => {
  const { input } = await start(send(raster));
  expect(await input.check([reference])).toEqual([expect.objectContaining({ id: 'x' })]);
  await expect(input.check([{ collectionId: 'a', itemId: 'y' }])).rejects.toMatchObject({
    code: 'invalid_input',
    message: expect.stringContaining('"y"') as string,
  });
});

test('folders, what macOS adds, and names that are alike are told apart', async () => {
  const archive = await zip({
    'a/B04.tif': raster,
    'b/B04.tif': raster,
    '__MACOSX/a/._B04.tif': Buffer.from('x'),
    'c.tif/readme.txt': Buffer.from('x'),
  });
  const { fetchIt } = await start(send(archive));
  const paths = await fetchIt();
  expect(paths.map((path) => basename(path))).toEqual(['B04-2.tif', 'B04.tif']);
  for (const path of paths) expect((await readFile(path)).equals(raster)).toBe(true);
});

describe('collections, by the links of the catalogs', () => {
  const node = (id: string, ...children: string[]) => ({
    id,
    type: 'Catalog',
    title: id,
    links: children.map((href) => ({ rel: 'child', href })),
  });
  async function list(nodes: Record<string, object>): Promise<string[]> {
    const url = await listen((req, res) => {
      const found = nodes[(req.url ?? '').replace(/^\/public\/stac\//, '')];
      res
        .writeHead(found ? 200 : 404, { 'content-type': 'application/json' })
        .end(JSON.stringify(found ?? { error: 'no' }));
    });
    const client = createPlatformClient({ baseUrl: url, apiKey, retry: { retries: 0 } });
    cleanUpLater(() => client.close());
    return (await client.listCollections()).map(({ id }) => id);
  }

  test('found at every depth, in order, once', async () => {
    const nodes = {
      '': node('root', 'http://x/catalogs/a', '/collections/one'),
      'catalogs/a': node('a', 'collections/two', '../collections/one/'),
      'collections/one': node('one'),
      'collections/two': node('two'),
    };
    expect(await list(nodes)).toEqual(['one', 'two']);
  });

  test('catalogs that lead to each other under other names come to an end', async () => {
    const nodes = {
      '': node('root', '/catalogs/a'),
      'catalogs/a': node('A', '/catalogs/a', '/catalogs/b'),
      'catalogs/b': node('B', '/catalogs/a', '/collections/one'),
      'collections/one': node('one'),
    };
    expect(await list(nodes)).toEqual(['one']);
  });

  test('a link that is broken, or leads to nothing, spoils none of the others', async () => {
    const nodes = {
      '': node(
        'root',
        '/collections/100%',
        '/collections/gone',
        '/catalogs/gone',
        '/collections/..',
        '/collections/one',
      ),
      'collections/one': node('one'),
    };
    expect(await list(nodes)).toEqual(['one']);
  });
});

describe('what is not fetched', () => {
  test('another origin, unless it is allowed: known before anybody is asked', async () => {
    const { input, fetchIt, seen } = await start(send(raster), { isElsewhere: true });
    await expect(fetchIt()).rejects.toMatchObject({
      code: 'asset_origin_refused',
      message: expect.stringContaining('ASSET_ORIGINS') as string,
    });
    await expect(input.check([reference])).rejects.toMatchObject({ code: 'asset_origin_refused' });
    expect(seen).toHaveLength(0);
  });

  test('redirects without an end: the first and three more', async () => {
    const { fetchIt, seen } = await start((res) => void res.writeHead(302, { location: '/data/other' }).end());
    await expect(fetchIt()).rejects.toMatchObject({ code: 'redirect_refused' });
    expect(seen).toHaveLength(4);
  });

  test.each(['http://127.0.0.1:1/data', 'file:///etc/passwd', '//evil.example/data', 'http://user:word@127.0.0.1/'])(
    'a redirect to %s, which is no allowed origin',
    async (location) => {
      const { fetchIt, seen } = await start((res) => void res.writeHead(302, { location }).end());
      await expect(fetchIt()).rejects.toMatchObject({ code: 'asset_origin_refused' });
      expect(seen).toHaveLength(1);
    },
  );

  test('more than the limit: by the length that is told', async () => {
    const { fetchIt, folder } = await start(
      (res) => void res.writeHead(200, { 'content-length': 10_000_000 }).write('x'),
    );
    await expect(fetchIt()).rejects.toMatchObject({ code: 'asset_too_large' });
    expect(await readdir(join(folder, '0'))).toEqual([]);
  });

  test('more than the limit: by the bytes that come', async () => {
    const { fetchIt } = await start((res) => {
      const more = () => void (res.destroyed || res.write(Buffer.alloc(300_000), more));
      more();
    });
    await expect(fetchIt()).rejects.toMatchObject({ code: 'asset_too_large' });
  });

  test('a zip bomb: the unpacked bytes count, not what the archive says of them', async () => {
    const bomb = await zip({ 'bomb.tif': new Uint8Array(20_000_000) });
    expect(bomb.length).toBeLessThan(1_000_000);
    const { fetchIt } = await start(send(bomb));
    await expect(fetchIt()).rejects.toMatchObject({ code: 'archive_too_large' });
    const lying = Buffer.from(bomb);
    // The size in the central directory, and in what follows the data.
    for (let at = lying.indexOf('PK\u0001\u0002'); at >= 0; at = lying.indexOf('PK\u0001\u0002', at + 1))
      lying.writeUInt32LE(10, at + 24);
    await expect((await start(send(lying))).fetchIt()).rejects.toMatchObject({
      code: expect.stringMatching(/^archive_/) as string,
    });
  });

  test.each(['../../evil.tif', '/etc/evil.tif', 'a\\..\\..\\evil.tif', 'C:/evil.tif'])(
    'zip-slip by %s: nothing is written outside',
    async (name) => {
      const innocent = 'x'.repeat(name.length - 4) + '.tif';
      const archive = await zip({ [innocent]: raster });
      for (let at = archive.indexOf(innocent); at >= 0; at = archive.indexOf(innocent, at + 1))
        archive.write(name, at, 'latin1');
      const { fetchIt, folder } = await start(send(archive));
      const outcome = await fetchIt().then(
        (paths) => paths,
        (error: unknown) => codeOf(error) ?? 'no code',
      );
      if (typeof outcome === 'string') expect(outcome).toBe('archive_broken');
      else for (const path of outcome) expect(path.startsWith(join(folder, '0'))).toBe(true);
      expect(await readdir(join(folder, '..'))).toEqual(['input']);
    },
  );

  test.each([
    ['an archive without a raster', async () => zip({ 'a.txt': Buffer.from('x') }), 'invalid_input'],
    ['an archive that is cut off', async () => (await zip({ 'a.tif': raster })).subarray(0, 200), 'archive_broken'],
  ])('%s', async (_name, make, code) => {
    const { fetchIt } = await start(send(await make()));
    await expect(fetchIt()).rejects.toMatchObject({ code });
  });
});

describe('what is tried again', () => {
  test('an answer that ended early', async () => {
    const { fetchIt, seen } = await start((res, _req, tries) => {
      if (tries > 1) return send(raster)(res);
      res.writeHead(200, { 'content-length': raster.length });
      res.write(raster.subarray(0, 50), () => res.destroy());
    });
    expect((await readFile((await fetchIt())[0]!)).equals(raster)).toBe(true);
    expect(seen).toHaveLength(2);
  });

  test('a link that has ended, once, by a fresh one', async () => {
    const ended = (res: ServerResponse) => void res.writeHead(403).end('Request has expired');
    const { fetchIt, seen } = await start((res, _req, tries) => (tries > 1 ? send(raster)(res) : ended(res)));
    expect((await readFile((await fetchIt())[0]!)).equals(raster)).toBe(true);
    expect(seen).toHaveLength(2);
    const always = await start(ended);
    await expect(always.fetchIt()).rejects.toMatchObject({ platformStatus: 403 });
    expect(always.seen).toHaveLength(2);
  });

  test('503; and where it stays, the reason is told without the address', async () => {
    const { fetchIt, seen } = await start((res) => void res.writeHead(503).end());
    const error = (await fetchIt().catch((thrown: unknown) => thrown)) as {
      code: string;
      message: string;
      isTransient: boolean;
    };
    expect([seen.length, error.isTransient]).toEqual([3, true]);
    expect(error.message).not.toContain('signature');
  });
});
