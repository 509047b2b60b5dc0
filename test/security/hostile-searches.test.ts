// @module-tag all
/** Searches made to cost too much: refused by a cap that is named, or answered, or given up; and whoever calls beside them is answered at once. */
import fc from 'fast-check';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { limits } from '../../src/contract/index.ts';
import { key } from '../support/files.ts';
import { longestOwnWorkMs } from '../support/own-work.ts';
import { startSandbox, type Answer, type TestSandbox } from '../support/sandbox.ts';

const itemCount = 20_000;
const plainMs = 1_000;
let sandbox: TestSandbox;

/** A star of a line, its points spread over the world, so that every box meets it. */
const zigzag = (points: number) =>
  Array.from({ length: points }, (_, i) => [-179 + (358 * i) / points, i % 2 === 0 ? -80 : 80]);
const polygonOf = (points: number) => {
  const ring = Array.from({ length: points }, (_, i) => [
    170 * Math.cos((i / points) * 2 * Math.PI),
    80 * Math.sin((i / points) * 2 * Math.PI),
  ]);
  return [...ring, ring[0]!];
};

beforeAll(async () => {
  sandbox = await startSandbox({
    prepare: async (own, dataDir) => {
      const path = join(dataDir, 'items.ndjson');
      const item = (i: number) => {
        const [x, y] = [-179 + ((i * 37) % 357), -80 + ((i * 91) % 159)];
        const slanted = [
          [x, y],
          [x + 0.7, y + 0.2],
          [x + 0.9, y + 0.9],
          [x + 0.1, y + 0.6],
          [x, y],
        ];
        return JSON.stringify({
          type: 'Feature',
          id: `i${i}`,
          collection: 'many',
          geometry: { type: 'Polygon', coordinates: [slanted] },
          properties: { datetime: '2024-01-01T00:00:00Z', name: 'a'.repeat(500), n: i },
          assets: {},
        });
      };
      const ring = diagonals(998, 0.1);
      const wide = (i: number) =>
        JSON.stringify({
          type: 'Feature',
          id: `w${i}`,
          collection: 'wide',
          geometry: { type: 'Polygon', coordinates: [[...ring, [179, 80], ring[0]]] },
          properties: { datetime: '2024-01-01T00:00:00Z' },
          assets: {},
        });
      await writeFile(
        path,
        [
          ...Array.from({ length: itemCount }, (_, i) => item(i)),
          ...Array.from({ length: 20 }, (_, i) => wide(i)),
        ].join('\n'),
      );
      await own.importPath(path, { onProgress: () => {}, onRefused: () => {} });
    },
  });
  return () => sandbox.close();
}, 900_000);

const everything = { bbox: [-180, -90, 180, 90], collections: ['many'], datetime: '2000-01-01T00:00:00Z/..' };
const search = (more: object): Promise<Answer> =>
  sandbox.request('POST', '/public/stac/search', { headers: key, body: { ...everything, ...more } });
/** Edges that lie beside each other without meeting, the boxes of all over each other. */
const diagonals = (points: number, shift: number) =>
  Array.from({ length: points }, (_, i) => [-170 + shift + i * 1e-5 + (i % 2) * 300, -80 + (i % 2) * 150]);
const filter = (json: unknown) => search({ filter: json });
const name = { property: 'name' };

/** The answer, and the longest time that the server computed without a look at its sockets, with plain calls beside it. */
async function beside(hostile: Promise<Answer>): Promise<{ answer: Answer; longestMs: number }> {
  let done = false;
  const answered = hostile.finally(() => (done = true));
  const longestMs = await longestOwnWorkMs(async () => {
    while (!done) {
      expect((await sandbox.request('GET', '/public/stac/', { headers: key })).status).toBe(200);
      await sleep(10);
    }
  });
  return { answer: await answered, longestMs };
}

describe('refused, and the cap is named', () => {
  const { search: caps, geometryPositions } = limits;
  test.each<[string, () => Promise<Answer>, number]>([
    [
      'a pattern of like',
      () => filter({ op: 'like', args: [name, `%${'a_'.repeat(50_000)}%b`] }),
      caps.patternCharacters,
    ],
    [
      'many patterns',
      () => filter({ op: 'or', args: Array.from({ length: 400 }, () => ({ op: 'like', args: [name, '%a%a%'] })) }),
      caps.patternCharacters,
    ],
    [
      'a line of 12,000 points',
      () =>
        filter({
          op: 's_intersects',
          args: [{ property: 'geometry' }, { type: 'LineString', coordinates: zigzag(12_000) }],
        }),
      geometryPositions,
    ],
    [
      'the same as intersects',
      () => search({ intersects: { type: 'LineString', coordinates: zigzag(12_000) } }),
      geometryPositions,
    ],
    [
      'a polygon of 12,000 points',
      () => search({ intersects: { type: 'Polygon', coordinates: [polygonOf(12_000)] } }),
      geometryPositions,
    ],
    [
      'many geometries',
      () =>
        filter({
          op: 'or',
          args: Array.from({ length: 60 }, () => ({
            op: 's_intersects',
            args: [{ property: 'geometry' }, { type: 'LineString', coordinates: zigzag(100) }],
          })),
        }),
      geometryPositions,
    ],
    [
      '30,000 names of fields',
      () => search({ fields: { include: Array.from({ length: 30_000 }, (_, i) => `properties.a${i}`) } }),
      caps.fieldNames,
    ],
    [
      '30,000 names that are left out',
      () => search({ fields: { exclude: Array.from({ length: 30_000 }, (_, i) => `properties.a${i}`) } }),
      caps.fieldNames,
    ],
    [
      'a list of 30,000 values',
      () => filter({ op: 'in', args: [{ property: 'n' }, Array.from({ length: 30_000 }, (_, i) => i)] }),
      caps.filterLiterals,
    ],
    [
      'a list of 30,000 properties',
      () => filter({ op: 'in', args: [name, Array.from({ length: 30_000 }, () => name)] }),
      caps.propertyReferences,
    ],
    [
      'a collection of 12,000 points',
      () =>
        search({
          intersects: {
            type: 'GeometryCollection',
            geometries: [
              { type: 'GeometryCollection', geometries: [{ type: 'MultiPoint', coordinates: zigzag(12_000) }] },
            ],
          },
        }),
      geometryPositions,
    ],
    [
      '2,000 operators',
      () => filter({ op: 'and', args: Array.from({ length: 2_000 }, () => ({ op: 'isNull', args: [name] })) }),
      caps.filterOperators,
    ],
    [
      '30 properties',
      () =>
        filter({
          op: 'and',
          args: Array.from({ length: 30 }, (_, i) => ({ op: 'isNull', args: [{ property: `p${i}` }] })),
        }),
      caps.properties,
    ],
    [
      '30,000 collections',
      () => search({ collections: Array.from({ length: 30_000 }, (_, i) => `c${i}`) }),
      caps.identifiers,
    ],
    ['30,000 ids', () => search({ ids: Array.from({ length: 30_000 }, (_, i) => `i${i}`) }), caps.identifiers],
    [
      '100 rules to sort by',
      () => search({ sortby: Array.from({ length: 100 }, () => ({ field: 'id' })) }),
      caps.sortRules,
    ],
    [
      'a long name of a property in a filter, often',
      () => filter({ op: 'in', args: [{ property: 'n'.repeat(900_000) }, Array.from({ length: 1_999 }, () => name)] }),
      caps.fieldNameCharacters,
    ],
    [
      'a long name of a property to sort by',
      () => search({ sortby: [{ field: 'n'.repeat(900_000) }] }),
      caps.fieldNameCharacters,
    ],
    [
      'a filter 600 levels deep',
      () => filter(Array.from({ length: 600 }).reduce<unknown>((inner) => ({ op: 'not', args: [inner] }), true)),
      limits.jsonDepth,
    ],
  ])('%s', async (_name, send, cap) => {
    const { answer, longestMs } = await beside(send());
    expect(answer.status).toBe(400);
    expect(JSON.stringify(answer.body.details)).toContain(String(cap));
    expect(longestMs).toBeLessThan(plainMs);
  });
});

describe('just within the caps: answered, with others answered beside it', () => {
  test.each<[string, () => Promise<Answer>]>([
    ['a pattern', () => filter({ op: 'like', args: [name, `%${'a_'.repeat(499)}b`] })],
    ['a line', () => search({ intersects: { type: 'LineString', coordinates: zigzag(5_000) }, limit: 1 })],
    ['a polygon', () => search({ intersects: { type: 'Polygon', coordinates: [polygonOf(4_999)] }, limit: 1 })],
    ['points', () => search({ intersects: { type: 'MultiPoint', coordinates: zigzag(5_000) }, limit: 1 })],
    [
      'a line beside footprints of 1,000 positions, by their ids',
      () =>
        search({
          collections: ['wide'],
          ids: Array.from({ length: 20 }, (_, i) => `w${i}`),
          intersects: { type: 'LineString', coordinates: diagonals(5_000, 0) },
        }),
    ],
    [
      'the same without ids',
      () => search({ collections: ['wide'], intersects: { type: 'LineString', coordinates: diagonals(5_000, 0) } }),
    ],
    [
      'a list of values',
      () => filter({ op: 'in', args: [{ property: 'n' }, Array.from({ length: 5_000 }, (_, i) => i * 2)] }),
    ],
    [
      'a list of texts, none of which is there',
      () => filter({ op: 'not', args: [{ op: 'in', args: [name, Array.from({ length: 5_000 }, (_, i) => `t${i}`)] }] }),
    ],
    [
      'a long literal in a list of literals',
      () => filter({ op: 'in', args: ['n'.repeat(500_000), Array.from({ length: 4_000 }, () => 'n')] }),
    ],
    [
      'two large geometries of the filter',
      () =>
        filter({
          op: 's_intersects',
          args: [
            { type: 'LineString', coordinates: zigzag(2_500) },
            { type: 'MultiPoint', coordinates: zigzag(2_490).map(([x = 0, y = 0]) => [x + 0.01, y / 2]) },
          ],
        }),
    ],
    [
      'and and or in turns, 240 levels deep',
      () =>
        filter(
          Array.from({ length: 240 }).reduce<unknown>(
            (inner, _, i) => ({
              op: i % 2 ? 'and' : 'or',
              args: [...Array.from({ length: 17 }, () => i % 2 === 1), inner],
            }),
            { op: '>=', args: [{ property: 'n' }, 0] },
          ),
        ),
    ],
    [
      'a box across the antimeridian that many footprints touch',
      () => search({ collections: ['wide'], bbox: [179, -80, -179, 80] }),
    ],
    [
      'names of fields',
      () =>
        search({
          limit: 1_000,
          fields: {
            include: Array.from({ length: 200 }, (_, i) => `properties.a${i}`),
            exclude: Array.from({ length: 200 }, (_, i) => `properties.b${i}`),
          },
        }),
    ],
    [
      'the last page, sorted by a property',
      () => search({ offset: itemCount - 10, sortby: [{ field: 'properties.n', direction: 'desc' }] }),
    ],
    [
      'operators',
      () => filter({ op: 'or', args: Array.from({ length: 499 }, () => ({ op: '=', args: [name, 'b'] })) }),
    ],
  ])('%s', async (_name, send) => {
    const { answer, longestMs } = await beside(send());
    expect([200, 503]).toContain(answer.status);
    expect(longestMs).toBeLessThan(plainMs);
  });

  test('thirty of them at once', async () => {
    const { longestMs } = await beside(
      Promise.all(
        Array.from({ length: 30 }, () =>
          filter({ op: 'or', args: Array.from({ length: 200 }, () => ({ op: '=', args: [name, 'b'] })) }),
        ),
      ).then(([first]) => first!),
    );
    expect(longestMs).toBeLessThan(plainMs);
  });
});

test('what they find is right: in, like and the last page', async () => {
  const count = async (json: unknown) => (await filter(json)).body as unknown as { numberMatched: number };
  expect(
    await count({ op: 'in', args: [{ property: 'n' }, Array.from({ length: 5_000 }, (_, i) => i * 2)] }),
  ).toMatchObject({ numberMatched: 5_000 });
  expect(await count({ op: 'not', args: [{ op: 'in', args: [{ property: 'n' }, [1, 2, 'three']] }] })).toMatchObject({
    numberMatched: 0,
  });
  expect(await count({ op: 'not', args: [{ op: 'in', args: [{ property: 'n' }, [1, 2, 3]] }] })).toMatchObject({
    numberMatched: itemCount - 3,
  });
  expect(await count({ op: 'like', args: [name, `%${'a_'.repeat(250)}`] })).toMatchObject({ numberMatched: itemCount });
  expect(await count({ op: 'like', args: [name, `_%${'a_'.repeat(250)}`] })).toMatchObject({ numberMatched: 0 });
  const last = (await search({ offset: itemCount - 3, sortby: [{ field: 'properties.n', direction: 'desc' }] }))
    .body as unknown as { features: { id: string }[] };
  expect(last.features.map(({ id }) => id)).toEqual(['i2', 'i1', 'i0']);
});

describe('whatever is asked', () => {
  const position = fc.tuple(
    fc.double({ min: -180, max: 180, noNaN: true }),
    fc.double({ min: -90, max: 90, noNaN: true }),
  );
  const path = fc.array(position, { minLength: 2, maxLength: 3_000, size: 'max' });
  const closed = path.map((positions) => [...positions, positions[1]!, positions[0]!, positions[0]!]);
  const geometry = fc.letrec<{ any: object }>((tie) => ({
    any: fc.oneof(
      { depthSize: 'medium' },
      path.map((coordinates) => ({ type: 'LineString', coordinates })),
      path.map((coordinates) => ({ type: 'MultiPoint', coordinates })),
      closed.map((ring) => ({ type: 'Polygon', coordinates: [[ring.at(-1), ...ring]] })),
      fc
        .array(tie('any'), { minLength: 1, maxLength: 4 })
        .map((geometries) => ({ type: 'GeometryCollection', geometries })),
    ),
  })).any;
  const property = fc
    .constantFrom('name', 'n', 'datetime', 'id', 'nothing', '__proto__', 'a"b', 'x.y')
    .map((one) => ({ property: one }));
  const value = fc.oneof(
    property,
    fc.string({ maxLength: 2_000, size: 'max' }),
    fc.double(),
    fc.boolean(),
    fc.constant(null),
    fc.constant({ timestamp: '2024-01-01T00:00:00Z' }),
  );
  const expression = fc.letrec<{ any: object }>((tie) => ({
    any: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.tuple(fc.constantFrom('=', '<>', '<', '>='), value, value).map(([op, ...args]) => ({ op, args })),
      fc.tuple(value, fc.array(value, { maxLength: 2_000, size: 'max' })).map((args) => ({ op: 'in', args })),
      fc.tuple(property, fc.stringMatching(/^[%_a\\]{0,900}$/, { size: 'max' })).map((args) => ({ op: 'like', args })),
      geometry.map((one) => ({ op: 's_intersects', args: [{ property: 'geometry' }, one] })),
      fc
        .tuple(fc.constantFrom('and', 'or'), fc.array(tie('any'), { minLength: 2, maxLength: 20 }))
        .map(([op, args]) => ({ op, args })),
      tie('any').map((one) => ({ op: 'not', args: [one] })),
    ),
  })).any;

  test('it is answered by 200, 400 or 503, and nobody waits for it', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record(
          {
            filter: expression,
            intersects: geometry,
            sortby: fc.array(
              property.map((one) => ({ field: one.property })),
              { maxLength: 3 },
            ),
          },
          { requiredKeys: [] },
        ),
        async (asked) => {
          const { answer, longestMs } = await beside(search(asked));
          expect([200, 400, 503], answer.text.slice(0, 300)).toContain(answer.status);
          expect(longestMs).toBeLessThan(plainMs);
        },
      ),
      { numRuns: 25 },
    );
  }, 300_000);
});
