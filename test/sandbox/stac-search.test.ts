/** Spec 4.2 and the contract's "STAC": what a search finds, and how its pages are made. */
import { booleanIntersects } from '@turf/boolean-intersects';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { footprintOfBox } from '../../src/raster/footprint.ts';
import { ids, item, key, post, sandboxWith, search, square, whole, get, type ItemPage } from '../support/stac.ts';
import type { TestSandbox } from '../support/sandbox.ts';

const diamond = [
  [20, 0],
  [25, 5],
  [20, 10],
  [15, 5],
  [20, 0],
];
const withHole = { type: 'Polygon', coordinates: [square(40, 0, 10), square(42, 2, 6)] };
const acrossAntimeridian = { type: 'MultiPolygon', coordinates: [[square(178, -1, 2)], [square(-180, -1, 2)]] };

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await sandboxWith([
    item('box', {
      ring: square(0, 0, 10),
      datetime: '2024-01-01T00:00:00Z',
      properties: { cloud: 10, name: 'Alpha 100%', ready: true },
    }),
    item('diamond', {
      ring: diamond,
      collection: 'b',
      datetime: '2024-02-01T00:00:00Z',
      properties: { cloud: 50, name: 'beta' },
    }),
    item('hole', {
      geometry: withHole,
      datetime: '2024-03-01T00:00:00Z',
      properties: { cloud: 20.5, name: 'gamma', seen: '2024-05-01T12:00:00+02:00' },
    }),
    item('across', {
      geometry: acrossAntimeridian,
      collection: 'c',
      datetime: '2024-03-01T00:00:00Z',
      properties: { name: 'delta', ready: false },
    }),
  ]);
});

describe('bbox selects footprints, not their boxes', () => {
  test.each([
    [[1, 1, 2, 2], ['box'], 'inside'],
    [[10, 10, 11, 11], ['box'], 'a corner that touches'],
    [[10.001, 10, 11, 11], [], 'beside it'],
    [[15, 0, 16.9, 1.9], [], 'in the box of the diamond, not in it'],
    [[15, 0, 17.6, 2.6], ['diamond'], 'over an edge of it, with no corner in either'],
    [[19, 4, 21, 6], ['diamond'], 'inside it'],
    [[14, -1, 26, 11], ['diamond'], 'round it'],
    [[43, 3, 44, 4], [], 'in the hole'],
    [[41, 3, 44, 4], ['hole'], 'over the edge of the hole'],
    [[40.5, 0.5, 41, 1], ['hole'], 'between ring and hole'],
    [[179, 0, 179.5, 0.5], ['across'], 'its western part'],
    [[-180, 0, -179, 0.5], ['across'], 'its eastern part'],
    [[179.5, -0.5, -179.5, 0.5], ['across'], 'across the antimeridian'],
    [[170, -10, 5, 20], ['across', 'box'], 'across the antimeridian to Africa'],
    [[-100, -0.5, 100, 0.5], ['box', 'diamond', 'hole'], 'the other way round'],
    [[5, 5, 5, 5], ['box'], 'a point'],
    [[1, 1, -50, 2, 2, 50], ['box'], 'with heights'],
    [[-180, -90, 180, 90], ['across', 'box', 'diamond', 'hole'], 'the world'],
  ])('%j finds %j: %s', async (bbox, expected, _why) => {
    expect(await ids(sandbox, { bbox })).toEqual(expected);
  });

  test.each([
    [square(178.5, -0.5, 1), ['across'], 'its western part'],
    [square(-179.5, -0.5, 1), ['across'], 'its eastern part'],
    [[[179, -0.5], [-179, -0.5], [-179, 0.5], [179, 0.5], [179, -0.5]], ['across'], 'both'], // oxfmt-ignore
    [square(170, -10, 5), [], 'west of it'],
  ])('a polygon %j finds %j: %s', async (ring, expected, _why) => {
    const coordinates = typeof ring[0]![0] === 'number' ? [ring] : ring;
    expect(await ids(sandbox, { intersects: { type: 'Polygon', coordinates } })).toEqual(expected);
  });

  test('the extent of a collection holds an item across the antimeridian', async () => {
    const collection = await get<{ extent: { spatial: { bbox: number[][] } } }>(sandbox, '/public/stac/collections/c');
    const [west = NaN, , east = NaN] = collection.extent.spatial.bbox[0] ?? [];
    const isInside = (longitude: number) =>
      west <= east ? longitude >= west && longitude <= east : longitude >= west || longitude <= east;
    expect([178.5, 179.9, -179.9, -178.5].map(isInside)).toEqual([true, true, true, true]);
  });

  test('as an independent library has it, for any polygon and any box', async () => {
    const coordinate = (limit: number) =>
      fc.double({ min: -limit, max: limit, noNaN: true }).map((n) => Math.round(n * 100) / 100);
    const triangle = fc
      .array(fc.tuple(coordinate(30), coordinate(30)), { minLength: 3, maxLength: 3 })
      .filter(([a, b, c]) => Math.abs((b![0] - a![0]) * (c![1] - a![1]) - (c![0] - a![0]) * (b![1] - a![1])) > 0.01);
    const triangles = fc.sample(triangle, { numRuns: 300, seed: 5 });
    const rings = triangles.map((corners) => [...corners, corners[0]!]);
    const own = await sandboxWith(rings.map((ring, i) => item(String(i), { ring })));
    const boxes = fc.sample(
      fc.tuple(
        coordinate(40),
        coordinate(40),
        fc.double({ min: 0, max: 20, noNaN: true }),
        fc.double({ min: 0, max: 20, noNaN: true }),
      ),
      { numRuns: 60, seed: 6 },
    );
    let matches = 0;
    for (const [x, y, w, h] of boxes) {
      const bbox: [number, number, number, number] = [x, y, Math.min(180, x + w + 0.01), Math.min(90, y + h + 0.01)];
      const expected = rings
        .flatMap((ring, i) =>
          booleanIntersects({ type: 'Polygon', coordinates: [ring] }, footprintOfBox(bbox)) ? [String(i)] : [],
        )
        .sort();
      expect(await ids(own, { bbox })).toEqual(expected);
      matches += expected.length;
    }
    expect(matches).toBeGreaterThan(100);
  });
});

describe('time, collections, ids', () => {
  test.each([
    ['2024-02-01T00:00:00Z/2024-03-01T00:00:00Z', ['across', 'diamond', 'hole'], 'ends included'],
    ['2024-02-01T00:00:00.001Z/2024-02-29T23:59:59.999Z', [], 'between them'],
    ['2024-03-01T00:00:00Z/..', ['across', 'hole'], 'open end'],
    ['/2024-01-01T00:00:00Z', ['box'], 'open start'],
    ['2024-01-01T01:00:00+01:00/2024-01-01T01:00:00+01:00', ['box'], 'another offset'],
  ])('datetime %s finds %j: %s', async (datetime, expected, _why) => {
    expect(await ids(sandbox, { datetime })).toEqual(expected);
  });

  test('a collection that does not exist matches nothing', async () => {
    expect(await ids(sandbox, { collections: ['a'] })).toEqual(['box', 'hole']);
    expect(await ids(sandbox, { collections: ['b', 'nothing'] })).toEqual(['diamond']);
    expect(await ids(sandbox, { collections: ['nothing'] })).toEqual([]);
  });

  test('ids, with every other condition', async () => {
    expect(await ids(sandbox, { ids: ['diamond', 'box', 'nothing', 'box'] })).toEqual(['box', 'diamond']);
    expect(await ids(sandbox, { ids: ['diamond', 'box'], bbox: [1, 1, 2, 2] })).toEqual(['box']);
    expect(await ids(sandbox, { ids: ['diamond'], bbox: [15, 0, 16.9, 1.9] })).toEqual([]);
    expect(await ids(sandbox, { ids: ['diamond', 'box'], collections: ['b'] })).toEqual(['diamond']);
    expect(await ids(sandbox, { ids: ['diamond', 'box'], datetime: '2024-01-15T00:00:00Z/..' })).toEqual(['diamond']);
    expect(
      await ids(sandbox, { ids: ['diamond', 'box'], filter: { op: '>', args: [{ property: 'cloud' }, 20] } }),
    ).toEqual(['diamond']);
    expect(await ids(sandbox, { ids: [] })).toEqual([]);
  });
});

test.each([
  [{ type: 'Point', coordinates: [5, 5] }, ['box']],
  [{ type: 'Point', coordinates: [45, 5] }, []],
  [
    {
      type: 'LineString',
      coordinates: [
        [-5, 5],
        [18, 5],
      ],
    },
    ['box', 'diamond'],
  ],
  [
    {
      type: 'Polygon',
      coordinates: [
        [
          [9, 9],
          [17, 9],
          [17, 5.5],
          [9, 9],
        ],
      ],
    },
    ['box', 'diamond'],
  ],
  [
    {
      type: 'MultiPoint',
      coordinates: [
        [20, 5],
        [179, 0],
      ],
    },
    ['across', 'diamond'],
  ],
  [
    {
      type: 'GeometryCollection',
      geometries: [
        { type: 'Point', coordinates: [1, 1] },
        { type: 'Point', coordinates: [41, 5] },
      ],
    },
    ['box', 'hole'],
  ],
])('intersects %j finds %j', async (intersects, expected) => {
  expect(await ids(sandbox, { intersects })).toEqual(expected);
});

test('intersects and bbox: both apply', async () => {
  expect(
    await ids(sandbox, {
      intersects: {
        type: 'LineString',
        coordinates: [
          [-5, 5],
          [45, 5],
        ],
      },
      bbox: [14, 0, 30, 10],
    }),
  ).toEqual(['diamond']);
});

describe('filter in CQL2-JSON', () => {
  const p = (property: string) => ({ property });
  const inside = { type: 'Polygon', coordinates: [square(18, 3, 3)] };
  test.each([
    [{ op: '=', args: [p('cloud'), 10] }, ['box']],
    [{ op: '<>', args: [p('cloud'), 10] }, ['diamond', 'hole']],
    [{ op: '<', args: [p('properties.cloud'), 20.5] }, ['box']],
    [{ op: '<=', args: [p('cloud'), 20.5] }, ['box', 'hole']],
    [{ op: '>', args: [50, p('cloud')] }, ['box', 'hole']],
    [{ op: '>=', args: [p('cloud'), 50] }, ['diamond']],
    [{ op: '=', args: [p('ready'), true] }, ['box']],
    [{ op: '=', args: [p('cloud'), '10'] }, []],
    [{ op: 'between', args: [p('cloud'), 10, 20.5] }, ['box', 'hole']],
    [{ op: 'in', args: [p('name'), ['beta', 'gamma', 'x']] }, ['diamond', 'hole']],
    [{ op: 'in', args: [p('id'), ['box', 'hole']] }, ['box', 'hole']],
    [{ op: '=', args: [p('collection'), 'c'] }, ['across']],
    [{ op: 'like', args: [p('name'), '%a'] }, ['across', 'diamond', 'hole']],
    [{ op: 'like', args: [p('name'), '_eta'] }, ['diamond']],
    [{ op: 'like', args: [p('name'), 'Alpha 100\\%'] }, ['box']],
    [{ op: 'like', args: [p('name'), 'Alpha 1\\%'] }, []],
    [{ op: 'like', args: [p('name'), 'a%a'] }, []],
    [{ op: 'isNull', args: [p('cloud')] }, ['across']],
    [{ op: 'not', args: [{ op: 'isNull', args: [p('cloud')] }] }, ['box', 'diamond', 'hole']],
    [{ op: 'not', args: [{ op: '>', args: [p('cloud'), 15] }] }, ['box']],
    [
      {
        op: 'and',
        args: [
          { op: '>', args: [p('cloud'), 5] },
          { op: '<', args: [p('cloud'), 30] },
        ],
      },
      ['box', 'hole'],
    ],
    [
      {
        op: 'or',
        args: [
          { op: '=', args: [p('cloud'), 10] },
          { op: 'isNull', args: [p('cloud')] },
        ],
      },
      ['across', 'box'],
    ],
    [
      {
        op: 'or',
        args: [
          { op: '>', args: [p('nothing'), 1] },
          { op: '=', args: [p('cloud'), 50] },
        ],
      },
      ['diamond'],
    ],
    [{ op: '>', args: [p('datetime'), { timestamp: '2024-02-15T00:00:00Z' }] }, ['across', 'hole']],
    [{ op: '<', args: [p('datetime'), { date: '2024-01-31' }] }, ['box']],
    [{ op: '=', args: [p('seen'), { timestamp: '2024-05-01T10:00:00Z' }] }, ['hole']],
    [{ op: '>=', args: [p('datetime'), '2024-03-01T00:00:00Z'] }, ['across', 'hole']],
    [
      { op: 't_intersects', args: [p('datetime'), { interval: ['2024-01-15T00:00:00Z', '2024-02-15T00:00:00Z'] }] },
      ['diamond'],
    ],
    [{ op: 't_intersects', args: [p('datetime'), { interval: ['..', '2024-01-15'] }] }, ['box']],
    [{ op: 't_intersects', args: [{ date: '2024-05-01' }, p('seen')] }, ['hole']],
    [{ op: 't_intersects', args: [p('seen'), { interval: ['2024-05-01', '2024-05-01'] }] }, ['hole']],
    [{ op: 't_intersects', args: [p('seen'), { interval: [{ date: '2024-04-01' }, { date: '2024-04-30' }] }] }, []],
    [{ op: 's_intersects', args: [p('geometry'), inside] }, ['diamond']],
    [{ op: 's_intersects', args: [{ bbox: [1, 1, 2, 2] }, p('geometry')] }, ['box']],
    [{ op: 'not', args: [{ op: 's_intersects', args: [p('geometry'), inside] }] }, ['across', 'box', 'hole']],
    [
      {
        op: 'and',
        args: [
          { op: 's_intersects', args: [p('geometry'), { bbox: [0, 0, 60, 10] }] },
          { op: '>', args: [p('cloud'), 15] },
        ],
      },
      ['diamond', 'hole'],
    ],
    [true, ['across', 'box', 'diamond', 'hole']],
    [false, []],
  ])('%j finds %j', async (filter, expected) => {
    expect(await ids(sandbox, { filter, 'filter-lang': 'cql2-json' })).toEqual(expected);
  });

  test.each([
    [{ op: 'near', args: [] }, 'filter.op'],
    [{ op: '=' }, 'filter.args'],
    [{ op: '=', args: [1] }, 'filter.args'],
    [{ op: 'and', args: [true] }, 'filter.args'],
    [{ op: 'and', args: [true, { op: 'like', args: [p('a'), 5] }] }, 'filter.args.1.args.1'],
    [{ op: 's_intersects', args: [p('geometry'), { type: 'Polygon', coordinates: [] }] }, 'filter.args.1'],
    [{ op: 's_intersects', args: [p('cloud'), { bbox: [0, 0, 1, 1] }] }, 'filter.args.0.property'],
    [{ op: '>', args: [p('datetime'), { timestamp: '2024-02-30T00:00:00Z' }] }, 'filter.args.1.timestamp'],
    [
      { op: 't_intersects', args: [p('datetime'), { interval: ['2024-02-01', '2024-01-01'] }] },
      'filter.args.1.interval',
    ],
    [{ op: 'in', args: [p('a'), 'b'] }, 'filter.args.1'],
    [{ op: 'isNull', args: [p('geometry')] }, 'filter.args.0.property'],
    ['cloud > 5', 'filter'],
    [7, 'filter'],
  ])('%j: 400 that names %s', async (filter, path) => {
    const answer = await post(sandbox, { ...whole, filter });
    expect([answer.status, answer.body.details[0]?.path]).toEqual([400, path]);
  });

  test('a pattern made to be slow is not', async () => {
    const own = await sandboxWith([item('x', { properties: { name: 'a'.repeat(5000) } })]);
    expect(await ids(own, { filter: { op: 'like', args: [{ property: 'name' }, '%a%a%a%a%a%a%a%a%a%b'] } })).toEqual(
      [],
    );
  });
});

describe('sortby', () => {
  const order = async (...sortby: { field: string; direction?: string }[]) =>
    (await search(sandbox, { sortby })).features.map(({ id }) => id);
  test('by id, collection, datetime and any property; what has no value comes last; ties by id', async () => {
    expect(await order({ field: 'id', direction: 'desc' })).toEqual(['hole', 'diamond', 'box', 'across']);
    expect(await order({ field: 'collection', direction: 'desc' })).toEqual(['across', 'diamond', 'box', 'hole']);
    expect(await order({ field: 'properties.datetime', direction: 'desc' })).toEqual([
      'across',
      'hole',
      'diamond',
      'box',
    ]);
    expect(await order({ field: 'datetime' })).toEqual(['box', 'diamond', 'across', 'hole']);
    expect(await order({ field: 'properties.cloud', direction: 'desc' })).toEqual(['diamond', 'hole', 'box', 'across']);
    expect(await order({ field: 'cloud' })).toEqual(['box', 'hole', 'diamond', 'across']);
    expect(await order({ field: 'name', direction: 'asc' })).toEqual(['box', 'diamond', 'across', 'hole']);
    expect(await order({ field: 'collection' }, { field: 'cloud', direction: 'desc' })).toEqual([
      'hole',
      'box',
      'diamond',
      'across',
    ]);
  });
  test('the applied rules are told; without any it is newest first', async () => {
    expect((await search(sandbox, { sortby: [{ field: 'id' }] })).sortby).toEqual([{ field: 'id', direction: 'asc' }]);
    const page = await search(sandbox);
    expect(page.sortby).toEqual([{ field: 'properties.datetime', direction: 'desc' }]);
    expect(page.features.map(({ id }) => id)).toEqual(['across', 'hole', 'diamond', 'box']);
  });
});

describe('fields', () => {
  const keysOf = async (fields: object) => {
    const [one] = (await search(sandbox, { ids: ['box'], fields })).features as unknown as Record<string, unknown>[];
    return { keys: Object.keys(one!).sort(), properties: Object.keys(one!['properties'] ?? {}).sort() };
  };
  test('include gives those fields with id, type and collection', async () => {
    expect(await keysOf({ include: ['properties.cloud', 'bbox'] })).toEqual({
      keys: ['bbox', 'collection', 'id', 'properties', 'type'],
      properties: ['cloud'],
    });
    expect(await keysOf({ include: ['cloud', 'nothing'] })).toEqual({
      keys: ['collection', 'id', 'properties', 'type'],
      properties: ['cloud'],
    });
  });
  test('exclude takes away from the default set', async () => {
    const all = await keysOf({});
    expect(await keysOf({ exclude: ['geometry', 'properties.cloud', 'assets'] })).toEqual({
      keys: all.keys.filter((name) => name !== 'geometry' && name !== 'assets'),
      properties: all.properties.filter((name) => name !== 'cloud'),
    });
    expect(await keysOf({ exclude: ['__proto__.toString', 'constructor.prototype'] })).toEqual(all);
    expect(typeof Object.prototype.toString).toBe('function');
  });
  test('in both, include wins; empty gives the default set', async () => {
    expect(
      (await keysOf({ include: ['properties.cloud'], exclude: ['properties.cloud', 'properties'] })).properties,
    ).toEqual(['cloud']);
    expect((await keysOf({ include: ['properties'], exclude: ['properties.cloud'] })).properties).not.toContain(
      'cloud',
    );
    expect(await keysOf({ include: [], exclude: [] })).toEqual(await keysOf({}));
  });
});

describe('pages', () => {
  test('fields of the answer; limit and offset are told where they were given', async () => {
    const page = await search(sandbox, { limit: 3, offset: 0 });
    expect(Object.keys(page)).toEqual([
      'type',
      'features',
      'numberMatched',
      'numberReturned',
      'limit',
      'offset',
      'sortby',
      'links',
    ]);
    expect(page).toMatchObject({ type: 'FeatureCollection', numberMatched: 4, numberReturned: 3, limit: 3, offset: 0 });
    expect(page.links).toEqual([
      {
        rel: 'self',
        href: '/public/stac/search?limit=3&offset=0',
        type: 'application/geo+json',
        title: expect.any(String) as string,
        method: 'GET',
      },
      {
        rel: 'next',
        href: `${sandbox.url}/public/stac/search`,
        type: 'application/geo+json',
        title: expect.any(String) as string,
        method: 'POST',
        body: { limit: 3, offset: 3 },
        merge: true,
      },
    ]);
    const silent = await search(sandbox);
    expect([silent.limit, silent.offset, silent.links.map(({ href }) => href)]).toEqual([
      undefined,
      undefined,
      ['/public/stac/search?limit=10&offset=0'],
    ]);
  });

  test('the default is 10; over 1000 is clamped, and the echo says so; a page behind the end is empty', async () => {
    const own = await sandboxWith(Array.from({ length: 1203 }, (_, i) => item(`n${String(i).padStart(4, '0')}`)));
    expect((await search(own)).numberReturned).toBe(10);
    const clamped = await search(own, { limit: 5000, offset: 100 });
    expect(clamped).toMatchObject({ numberReturned: 1000, limit: 1000, offset: 100, numberMatched: 1203 });
    expect(clamped.links.map(({ href }) => href)).toContain('/public/stac/search?limit=1000&offset=100');
    expect(await search(own, { offset: 5000 })).toMatchObject({ numberReturned: 0, numberMatched: 1203, features: [] });
    const list = await get<ItemPage>(own, '/public/stac/collections/a/items?limit=1000&offset=1000');
    expect(list.features).toHaveLength(203);
    expect(list.links.map(({ rel }) => rel)).toEqual(['self', 'collection']);
    const part = await get<ItemPage>(
      own,
      '/public/stac/collections/a/items?limit=2&bbox=10,50,11,51&datetime=2024-01-01T00:00:00Z/..',
    );
    expect(part.links.find(({ rel }) => rel === 'next')?.href).toContain('bbox=10%2C50%2C11%2C51');
  });

  test('any page size gives every match once, in one order', async () => {
    const own = await sandboxWith(
      Array.from({ length: 57 }, (_, i) => item(`n${i}`, { datetime: `2024-01-0${1 + (i % 3)}T00:00:00Z` })),
    );
    const everything = (await search(own, { limit: 1000 })).features.map(({ id }) => id);
    for (const limit of [1, 2, 7, 10, 56]) {
      const seen: string[] = [];
      for (let offset = 0; offset < 57; offset += limit)
        seen.push(...(await search(own, { limit, offset })).features.map(({ id }) => id));
      expect(seen).toEqual(everything);
    }
  });

  test('search results carry root and preview beside self and collection', async () => {
    const [found] = (await search(sandbox, { ids: ['box'] })).features;
    expect(found!.links.map(({ rel, type, method }) => [rel, type, method])).toEqual([
      ['self', 'application/geo+json', 'GET'],
      ['collection', 'application/json', 'GET'],
      ['root', 'application/json', 'GET'],
      ['preview', 'text/html', 'GET'],
    ]);
    const preview = new URL(found!.links[3]!.href).searchParams;
    expect([preview.get('width'), preview.get('height')]).toEqual(['60', '60']);
  });
});

describe('bad requests', () => {
  test.each([
    [{ bbox: undefined }, 'bbox', 'missing'],
    [{ collections: undefined }, 'collections', 'missing'],
    [{ datetime: undefined }, 'datetime', 'missing'],
    [{ collections: [] }, 'collections', 'empty'],
    [{ datetime: '2024-01-01T00:00:00Z' }, 'datetime', 'an instant'],
    [{ datetime: '2024-02-01T00:00:00Z/2024-01-01T00:00:00Z' }, 'datetime', 'reversed'],
    [{ bbox: [0, 10, 1, 5] }, 'bbox', 'south above north'],
    [{ bbox: [0, 0, 1] }, 'bbox', 'three numbers'],
    [{ limit: 0 }, 'limit', 'zero'],
    [{ limit: 1.5 }, 'limit', 'no integer'],
    [{ limit: '5' }, 'limit', 'text'],
    [{ offset: -1 }, 'offset', 'negative'],
    [{ sortby: [{ direction: 'asc' }] }, 'sortby.0.field', 'no field'],
    [{ sortby: [{ field: 'id', direction: 'down' }] }, 'sortby.0.direction', 'no direction'],
    [{ intersects: { type: 'Point' } }, 'intersects', 'no coordinates'],
    [{ ids: 'x' }, 'ids', 'no array'],
    [{ 'filter-lang': 'cql2-text' }, 'filter-lang', 'not advertised'],
  ])('strict: %j is 400 at %s: %s', async (change, path, _why) => {
    const answer = await post(sandbox, { ...whole, ...change });
    expect([answer.status, answer.body.error, answer.body.details[0]?.path]).toEqual([400, 'Bad Request', path]);
  });

  test('malformed JSON 400, another type 415, another method 405', async () => {
    const send = (body: string, type: string) =>
      sandbox.request('POST', '/public/stac/search', { body, headers: { ...key, 'content-type': type } });
    expect((await send('{', 'application/json')).body.code).toBe('malformed_json');
    expect((await send('{}', 'text/plain')).status).toBe(415);
    const wrong = await sandbox.request('DELETE', '/public/stac/search', { headers: key });
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST']);
  });

  test.each([
    'limit=0',
    'limit=x',
    'bbox=1,2,3',
    'bbox=1,2,,4',
    'datetime=2024',
    'intersects={',
    'filter=x',
    'filter-lang=cql2-text',
    'bbox=0,0,1,1&intersects={"type":"Point","coordinates":[0,0]}',
  ])('GET /search?%s: 400', async (query) => {
    expect((await sandbox.request('GET', `/public/stac/search?${query}`, { headers: key })).status).toBe(400);
  });

  test('lenient: nothing is required, an instant is taken, intersects and bbox together are 400', async () => {
    const own = await sandboxWith([item('x', { datetime: '2024-01-01T00:00:00Z' }), item('y')], {
      env: { SANDBOX_STAC_STRICT: 'false' },
    });
    expect((await post(own, {})).body).toMatchObject({ numberMatched: 2 });
    expect((await post(own, { datetime: '2024-01-01T00:00:00Z' })).body).toMatchObject({ numberMatched: 1 });
    expect((await post(own, { collections: [] })).status).toBe(200);
    const both = await post(own, { bbox: [0, 0, 1, 1], intersects: { type: 'Point', coordinates: [0, 0] } });
    expect([both.status, both.body.details[0]?.path]).toEqual([400, 'intersects']);
  });

  test('GET /search: the same conditions as text', async () => {
    const found = async (query: string) =>
      (await get<ItemPage>(sandbox, `/public/stac/search?${query}&sortby=id`)).features.map(({ id }) => id);
    expect(await found('bbox=1,1,2,2')).toEqual(['box']);
    // An unencoded plus arrives as a space.
    const ordered = async (sortby: string) =>
      (await get<ItemPage>(sandbox, `/public/stac/search?bbox=-180,-90,180,90&sortby=${sortby}`)).features.map(
        ({ id }) => id,
      );
    for (const sortby of ['+datetime', '%2Bdatetime', 'datetime'])
      expect(await ordered(sortby), sortby).toEqual(['box', 'diamond', 'across', 'hole']);
    expect(await ordered('-datetime,+id')).toEqual(['across', 'hole', 'diamond', 'box']);
    expect(await found('collections=b,c')).toEqual(['across', 'diamond']);
    expect(await found('ids=hole,box')).toEqual(['box', 'hole']);
    expect(
      await found(`filter-lang=cql2-json&filter=${encodeURIComponent('{"op":">","args":[{"property":"cloud"},15]}')}`),
    ).toEqual(['diamond', 'hole']);
    expect(await found(`intersects=${encodeURIComponent('{"type":"Point","coordinates":[5,5]}')}`)).toEqual(['box']);
    expect(await found('datetime=2024-01-01T00:00:00Z')).toEqual(['box']);
  });
});
