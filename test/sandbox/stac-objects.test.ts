// @module-tag all
/** Spec 2.1 to 2.3, 4.1, 9: every object of the catalog, strict and for standard clients. */
import { describe, expect, test } from 'vitest';
import { conformanceClasses } from '../../src/contract/index.ts';
import { processed } from '../support/files.ts';
import { geoTiff } from '../support/geotiff.ts';
import { geojson } from '../support/other-files.ts';
import { apiKey, startSandbox, type TestSandbox } from '../support/sandbox.ts';
import {
  faultsOf,
  get,
  item,
  key,
  post,
  sandboxWith,
  search,
  whole,
  type ItemPage,
  type StacCatalog,
  type StacCollection,
  type StacItem,
  type StacLink,
} from '../support/stac.ts';
import { needing, schemas } from '../support/needs.ts';

const rels = (links: readonly StacLink[]) => [...new Set(links.map(({ rel }) => rel))].sort();
const href = (links: readonly StacLink[], rel: string) => links.find((link) => link.rel === rel)!.href;

/** Everything that can be reached from the root by its links. */
async function crawl(sandbox: TestSandbox) {
  const catalogs: StacCatalog[] = [];
  const collections: StacCollection[] = [];
  const items: StacItem[] = [];
  const visit = async (path: string): Promise<void> => {
    const object = await get<StacCatalog | StacCollection>(sandbox, path);
    if (object.type === 'Catalog') {
      catalogs.push(object);
      for (const { href: child } of object.links.filter(({ rel }) => rel === 'child')) await visit(child);
    } else {
      collections.push(object);
      for (let next: string | undefined = href(object.links, 'items'); next;) {
        const page: ItemPage = await get<ItemPage>(sandbox, next);
        items.push(...page.features);
        next = page.links.find(({ rel }) => rel === 'next')?.href;
      }
    }
  };
  await visit('/public/stac/');
  return { catalogs, collections, items };
}

describe('the demo catalog', () => {
  test('at least 3 collections with items, 24 to 200 items in all, each reached by links from the root', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const { catalogs, collections, items } = await crawl(sandbox);
    expect(catalogs.map(({ id }) => id)).toEqual(['root', 'uploads', 'earth-observation', 'terrain']);
    expect(new Set(items.map(({ collection }) => collection)).size).toBeGreaterThanOrEqual(3);
    expect(items.length).toBeGreaterThanOrEqual(24);
    expect(items.length).toBeLessThanOrEqual(200);
    expect(new Set(items.map(({ id }) => id)).size).toBe(items.length);
    expect(collections.map(({ id }) => id)).toContain('uploads-amina');
  });

  test('catalog: just the fields and links of the spec, self by id', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const { catalogs } = await crawl(sandbox);
    for (const catalog of catalogs) {
      expect(Object.keys(catalog).sort()).toEqual([
        'conformsTo',
        'description',
        'id',
        'links',
        'stac_version',
        'title',
        'type',
      ]);
      expect(catalog.conformsTo).toEqual(conformanceClasses);
      expect(rels(catalog.links)).toEqual(['about', 'child', 'preview', 'root', 'search', 'self']);
      for (const link of catalog.links) expect(Object.keys(link).sort()).toEqual(['href', 'rel', 'title', 'type']);
      expect(href(catalog.links, 'self')).toBe(`${sandbox.url}/public/stac/catalogs/${catalog.id}`);
      expect(await get(sandbox, href(catalog.links, 'self'))).toEqual(catalog);
      const types = Object.fromEntries(catalog.links.map(({ rel, type }) => [rel, type]));
      expect(types).toEqual({
        self: 'application/json',
        root: 'application/json',
        search: 'application/geo+json',
        child: 'application/json',
        preview: 'image/jpeg',
        about: 'text/html',
      });
      for (const rel of ['preview', 'about']) {
        const answer = await fetch(href(catalog.links, rel));
        expect([answer.status, answer.headers.get('content-type')?.split(';')[0]]).toEqual([200, types[rel]]);
      }
    }
  });

  test("what a catalog's pages show without a key names no user", async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    for (const id of ['root', 'uploads']) {
      const page = await sandbox.request('GET', `/catalogs/${id}/about`);
      expect(page.status).toBe(200);
      expect(page.text).not.toMatch(/amina|bruno/i);
    }
  });

  test('collection and item: just the fields, links and assets of the spec', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const { collections, items } = await crawl(sandbox);
    for (const collection of collections) {
      expect(Object.keys(collection).sort()).toEqual([
        'assets',
        'description',
        'extent',
        'id',
        'keywords',
        'license',
        'links',
        'stac_version',
        'title',
        'type',
      ]);
      expect(collection.links.map(({ rel, type }) => [rel, type])).toEqual([
        ['self', 'application/json'],
        ['items', 'application/geo+json'],
        ['root', 'application/json'],
      ]);
      expect(collection.assets).toEqual({
        thumbnail: {
          href: expect.any(String) as string,
          type: 'image/png',
          roles: ['thumbnail'],
          title: expect.any(String) as string,
        },
      });
    }
    for (const one of items) {
      expect(Object.keys(one).sort()).toEqual([
        'assets',
        'bbox',
        'collection',
        'geometry',
        'id',
        'links',
        'properties',
        'stac_extensions',
        'stac_version',
        'title',
        'type',
      ]);
      expect(one.links.map(({ rel, type, method }) => [rel, type, method])).toEqual([
        ['self', 'application/geo+json', 'GET'],
        ['collection', 'application/json', 'GET'],
      ]);
      expect(Object.keys(one.assets)).toEqual(['rendered_preview', 'data']);
      expect(one.assets.rendered_preview).toMatchObject({ type: 'image/png', roles: ['overview'] });
      expect(one.assets.data).toMatchObject({ type: 'application/zip', roles: ['data'] });
      expect(Object.keys(one.properties)).toEqual(
        expect.arrayContaining([
          'datetime',
          'name',
          'description',
          'platform:layer_type',
          'layer_type',
          'platform:ingestion_date',
          'source_type',
          'platform:source',
          'platform:source_type',
          'platform:source_sub_type',
          'view:off_nadir',
        ]),
      );
      expect(one.properties['datetime']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect([...new URL(one.assets.rendered_preview.href).searchParams.keys()]).toEqual(
        expect.arrayContaining(['bbox', 'sourceId', 'width', 'height']),
      );
      expect(await get(sandbox, href(one.links, 'self'))).toMatchObject({ id: one.id });
    }
    const lists = await get<ItemPage>(sandbox, '/public/stac/collections/coastal-optical/items?limit=5');
    expect(Object.keys(lists)).toEqual(['type', 'features', 'links']);
    expect(lists.links.map(({ rel }) => rel)).toEqual(['self', 'collection', 'next']);
    expect(lists.links[0]).toMatchObject({
      href: '/public/stac/collections/coastal-optical/items?limit=5&offset=0',
      type: 'application/geo+json',
      method: 'GET',
    });
  });

  test.each(['true', 'false'])(
    'every object passes stac-node-validator with the published schemas (strict %s)',
    needing(schemas),
    async (strict) => {
      const sandbox = await startSandbox({ seed: 'demo', env: { SANDBOX_STAC_STRICT: strict } });
      await processed(sandbox, geoTiff({ width: 8, height: 6, value: (x) => x }), 'a.tif', 'SAR');
      await processed(sandbox, geojson({ type: 'Point', coordinates: [10, 50] }), 'a.geojson', 'POINT');
      const { catalogs, collections, items } = await crawl(sandbox);
      const found = (await search(sandbox, { collections: collections.map(({ id }) => id), limit: 1000 })).features;
      expect(found).toHaveLength(items.length);
      for (const object of [...catalogs, ...collections, ...items, ...found])
        expect(await faultsOf(object), object.id).toEqual([]);
      // The judge can fail.
      expect(
        await faultsOf({ ...found[0], properties: { ...found[0]!.properties, 'view:off_nadir': 'much' } }),
      ).not.toEqual([]);
    },
  );
});

test('an item by its id first, then by its title', async () => {
  const sandbox = await sandboxWith([item('x', { title: 'y' }), item('y', { title: 'z' })]);
  const idOf = async (segment: string) =>
    (await get<StacItem>(sandbox, `/public/stac/collections/a/items/${segment}`)).id;
  expect([await idOf('x'), await idOf('y'), await idOf('z')]).toEqual(['x', 'y', 'y']);
});

test.each([
  'catalogs/nothing',
  'collections/nothing',
  'collections/nothing/items',
  'collections/a/items/nothing',
  'collections/nothing/items/x',
  'nothing',
])('%s: 404', async (path) => {
  const sandbox = await sandboxWith([item('x')]);
  expect((await sandbox.request('GET', `/public/stac/${path}`, { headers: key })).status).toBe(404);
});

test('any valid key will do; without one 401 Unauthorized Request', async () => {
  const sandbox = await sandboxWith([item('x')]);
  const { apiKey: weak } = await sandbox.control('POST', 'keys', { permissions: ['inference'] });
  for (const path of [
    '',
    '/catalogs/root',
    '/collections',
    '/collections/a',
    '/collections/a/items',
    '/collections/a/items/x',
    '/search',
    '/conformance',
    '/sortables',
    '/api',
  ]) {
    const answer = await sandbox.request('GET', `/public/stac${path}`);
    expect([answer.status, answer.body.error]).toEqual([401, 'Unauthorized Request']);
    expect((await sandbox.request('GET', `/public/stac${path}`, { headers: { 'X-API-KEY': weak } })).status).toBe(200);
  }
  expect((await sandbox.request('POST', '/public/stac/search', { body: whole })).status).toBe(401);
});

describe('for standard clients', () => {
  test('with stac.strict=false objects carry the links that they look for', async () => {
    const sandbox = await startSandbox({ seed: 'demo', env: { SANDBOX_STAC_STRICT: 'false' } });
    const root = await get<StacCatalog>(sandbox, '/public/stac/');
    expect(rels(root.links)).toEqual(expect.arrayContaining(['data', 'conformance', 'service-desc', 'search']));
    expect(root.links.filter(({ rel }) => rel === 'search').map(({ method }) => method)).toEqual([undefined, 'POST']);
    const { body, headers } = await sandbox.request('GET', href(root.links, 'service-desc').slice(sandbox.url.length), {
      headers: key,
    });
    expect(headers.get('content-type')).toContain('application/vnd.oai.openapi+json');
    expect(body).toMatchObject({ openapi: expect.stringMatching(/^3\./) as string });
    expect(await get(sandbox, href(root.links, 'conformance'))).toEqual({ conformsTo: conformanceClasses });
    const all = await get<{ collections: StacCollection[] }>(sandbox, href(root.links, 'data'));
    expect(all.collections.map(({ id }) => id)).toContain('harbour-radar');
    const page = await search(sandbox, { bbox: undefined, collections: undefined, datetime: undefined });
    expect(page.numberMatched).toBe(54);
    expect(rels(page.features[0]!.links)).toEqual(['collection', 'parent', 'preview', 'root', 'self']);
  });

  test('GET /search pages through everything once, whatever the setting', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const seen: string[] = [];
    for (let next: string | undefined = '/public/stac/search?limit=20&sortby=-properties.datetime,%2Bid'; next;) {
      const page: ItemPage = await get<ItemPage>(sandbox, next);
      seen.push(...page.features.map(({ id }) => id));
      next = page.links.find(({ rel }) => rel === 'next')?.href;
    }
    expect([seen.length, new Set(seen).size]).toEqual([54, 54]);
  });

  test("POST /search: the next link's body, merged, pages through everything once", async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const seen: string[] = [];
    let body: Record<string, unknown> | null = {
      ...whole,
      collections: ['coastal-optical', 'harbour-radar'],
      limit: 7,
    };
    while (body) {
      const page = (await post(sandbox, body)).body as unknown as ItemPage;
      seen.push(...page.features.map(({ id }) => id));
      const next = page.links.find(({ rel }) => rel === 'next');
      if (next) expect(next).toMatchObject({ method: 'POST', merge: true, href: `${sandbox.url}/public/stac/search` });
      body = next ? { ...body, ...next.body } : null;
    }
    expect([seen.length, new Set(seen).size]).toEqual([40, 40]);
  });

  test('CORS on the catalog and nowhere else; a preflight needs no key', async () => {
    const sandbox = await startSandbox();
    const origin = { origin: 'https://elsewhere.example' };
    const preflight = await sandbox.request('OPTIONS', '/public/stac/search', {
      headers: {
        ...origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'x-api-key,content-type',
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*');
    expect(preflight.headers.get('access-control-allow-headers')).toContain('x-api-key');
    const searched = await sandbox.request('POST', '/public/stac/search', {
      body: whole,
      headers: { ...key, ...origin },
    });
    expect([searched.status, searched.headers.get('access-control-allow-origin')]).toEqual([200, '*']);
    for (const path of ['/public/file/status/x', '/health'])
      expect(
        (await sandbox.request('GET', path, { headers: { 'x-api-key': apiKey, ...origin } })).headers.get(
          'access-control-allow-origin',
        ),
      ).toBeNull();
  });

  test('content types', async () => {
    const sandbox = await sandboxWith([item('x')]);
    const type = async (path: string) =>
      (await sandbox.request('GET', path, { headers: key })).headers.get('content-type')?.split(';')[0];
    expect(
      await Promise.all(
        ['', '/collections/a', '/collections/a/items', '/collections/a/items/x', '/search'].map((path) =>
          type(`/public/stac${path}`),
        ),
      ),
    ).toEqual([
      'application/json',
      'application/json',
      'application/geo+json',
      'application/geo+json',
      'application/geo+json',
    ]);
  });
});

describe('an uploaded file', () => {
  test("becomes an item of its uploader's collection, with what its uploader said of it", async () => {
    const sandbox = await startSandbox();
    const { completeFile, finalStatus, generateUpload, sendFileChunk } = await import('../support/files.ts');
    const tiff = geoTiff({
      width: 100,
      height: 100,
      value: (x, y) => x + y,
      epsg: 32633,
      origin: [500_000, 5_500_000, 30],
    });
    const upload = await generateUpload(sandbox, 'scene.tif');
    await sendFileChunk(sandbox, upload, 1, tiff);
    const said = {
      vectorMappingProperties: { a: [1] },
      layerProperties: { style: 'x' },
      acquisitionDate: '2023-07-14',
      sourceType: 'THERMAL',
    };
    const { fileId } = (await completeFile(sandbox, upload, tiff.length, said)).body;
    expect(await finalStatus(sandbox, fileId)).toBe('COMPLETED');
    const [found, ...others] = (
      await search(sandbox, { collections: ['uploads-amina'], bbox: [15, 49.6, 15.01, 49.65] })
    ).features;
    expect(others).toEqual([]);
    expect(found).toMatchObject({ title: fileId, collection: 'uploads-amina' });
    expect(found!.properties).toMatchObject({
      datetime: '2023-07-14T00:00:00.000Z',
      name: 'scene.tif',
      source_type: 'THERMAL',
      vectorMappingProperties: { a: [1] },
      layerProperties: { style: 'x' },
    });
    // 15 degrees east is the meridian of the zone: the western edge lies on it.
    expect(found!.bbox[0]).toBeCloseTo(15, 4);
    expect(found!.bbox[2] - found!.bbox[0]).toBeCloseTo(3000 / (111_320 * Math.cos((49.64 * Math.PI) / 180)), 3);
    expect((await search(sandbox, { collections: ['uploads-amina'], bbox: [16, 49, 17, 50] })).numberMatched).toBe(0);
    expect((await get<StacItem>(sandbox, `/public/stac/collections/uploads-amina/items/${fileId}`)).id).toBe(found!.id);
    await sandbox.control('POST', 'reset');
    expect((await search(sandbox, { collections: ['uploads-amina'] })).numberMatched).toBe(0);
  });

  test('the geometry that its uploader gave is its footprint', async () => {
    const sandbox = await startSandbox();
    const { completeFile, finalStatus, generateUpload, sendFileChunk } = await import('../support/files.ts');
    const { pdf } = await import('../support/other-files.ts');
    const upload = await generateUpload(sandbox, 'report.pdf');
    await sendFileChunk(sandbox, upload, 1, pdf);
    const { fileId } = (
      await completeFile(sandbox, upload, pdf.length, { geometry: 'POLYGON((1 2, 3 2, 3 4, 1 2))', sourceType: 'PDF' })
    ).body;
    await finalStatus(sandbox, fileId);
    const [found] = (await search(sandbox, { collections: ['uploads-amina'] })).features;
    expect(found).toMatchObject({
      title: fileId,
      geometry: {
        type: 'Polygon',
        coordinates: [
          [
            [1, 2],
            [3, 2],
            [3, 4],
            [1, 2],
          ],
        ],
      },
      bbox: [1, 2, 3, 4],
    });
    expect(found!.properties['layer_type']).toBe('PDF');
  });

  test('without a place: COMPLETED, and no item', async () => {
    const sandbox = await startSandbox();
    const { pdf } = await import('../support/other-files.ts');
    expect((await processed(sandbox, pdf, 'a.pdf', 'PDF')).status).toBe('COMPLETED');
    expect((await search(sandbox, { collections: ['uploads-amina'] })).numberMatched).toBe(0);
  });

  test('across the antimeridian: two parts, and found from both sides', async () => {
    const sandbox = await startSandbox();
    // UTM zone 1 begins at 180 degrees: this reaches west of it.
    const tiff = geoTiff({ width: 60, height: 60, value: (x) => x, epsg: 32601, origin: [160_000, 100_000, 1000] });
    expect((await processed(sandbox, tiff, 'a.tif', 'SAR')).status).toBe('COMPLETED');
    const [found] = (await search(sandbox, { collections: ['uploads-amina'] })).features;
    expect(found!.geometry.type).toBe('MultiPolygon');
    expect(found!.bbox[0]).toBeGreaterThan(found!.bbox[2]);
    const count = async (bbox: number[]) =>
      (await search(sandbox, { collections: ['uploads-amina'], bbox })).numberMatched;
    expect([
      await count([179.96, 0, 179.99, 1]),
      await count([-180, 0, -179.9, 1]),
      await count([179, 0, -179, 1]),
      await count([0, 0, 90, 1]),
    ]).toEqual([1, 1, 1, 0]);
  });
});
