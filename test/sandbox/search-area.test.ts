/** The shortcuts of an area's comparison with footprints change no answer. */
import { booleanIntersects } from '@turf/boolean-intersects';
import fc from 'fast-check';
import type { Geometry, Polygon, Position } from 'geojson';
import { expect, test } from 'vitest';
import { boxOf } from '../../src/raster/footprint.ts';
import { SearchArea } from '../../src/sandbox/stac/search-area.ts';

const degree = fc.integer({ min: -40, max: 40 });
const rectangle = fc
  .tuple(degree, degree, fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 20 }))
  .map(([w, s, width, height]): Polygon => ({
    type: 'Polygon',
    coordinates: [
      [
        [w, s],
        [w + width, s],
        [w + width, s + height],
        [w, s + height],
        [w, s],
      ],
    ],
  }));
/** A star: its positions go round, so its edges do not cross. Turned, so that two do not touch by the width of a rounding error, where libraries differ. */
const star = (turn: number) =>
  fc
    .tuple(degree, degree, fc.array(fc.integer({ min: 2, max: 30 }), { minLength: 3, maxLength: 12 }))
    .map(([x, y, radii]): Position[] => {
      const angle = (i: number) => (i / radii.length) * 2 * Math.PI + turn;
      const ring = radii.map((radius, i): Position => [
        x + radius * Math.cos(angle(i)),
        y + radius * Math.sin(angle(i)),
      ]);
      return [...ring, ring[0]!];
    });
const areaStar = star(0.1234567);
const footprintStar = star(0.7654321);
const area = fc.oneof(
  areaStar.map((ring): Geometry => ({ type: 'Polygon', coordinates: [ring] })),
  fc
    .array(areaStar, { minLength: 1, maxLength: 3 })
    .map((rings): Geometry => ({ type: 'MultiPolygon', coordinates: rings.map((ring) => [ring]) })),
  areaStar.map((path): Geometry => ({ type: 'LineString', coordinates: path.slice(1) })),
  fc
    .array(areaStar, { minLength: 1, maxLength: 3 })
    .map((paths): Geometry => ({ type: 'MultiLineString', coordinates: paths.map((path) => path.slice(1)) })),
  areaStar.map((path): Geometry => ({ type: 'MultiPoint', coordinates: path })),
);

test('as another library says, whatever the area and the footprint', () => {
  fc.assert(
    fc.property(
      area,
      fc.oneof(
        rectangle,
        footprintStar.map((ring): Polygon => ({ type: 'Polygon', coordinates: [ring] })),
      ),
      (geometry, footprint) => {
        expect(new SearchArea(geometry).meets(boxOf(footprint), () => footprint)).toBe(
          booleanIntersects(footprint, geometry),
        );
      },
    ),
    { numRuns: 3_000 },
  );
});

test('collections, in each other too: what any of their parts meets', () => {
  const point = (x: number, y: number): Geometry => ({ type: 'Point', coordinates: [x, y] });
  const within = (...geometries: Geometry[]): Geometry => ({ type: 'GeometryCollection', geometries });
  const area = new SearchArea(
    within(
      point(50, 50),
      within(within(point(5, 5)), {
        type: 'LineString',
        coordinates: [
          [20, 20],
          [21, 21],
        ],
      }),
    ),
  );
  const square = (x: number): Polygon => ({
    type: 'Polygon',
    coordinates: [
      [
        [x, x],
        [x + 2, x],
        [x + 2, x + 2],
        [x, x + 2],
        [x, x],
      ],
    ],
  });
  expect([4, 10, 19, 49].map((x) => area.meets(boxOf(square(x)), () => square(x)))).toEqual([true, false, true, true]);
});

test('a hole: inside it is outside', () => {
  const square = (r: number): Position[] => [
    [-r, -r],
    [r, -r],
    [r, r],
    [-r, r],
    [-r, -r],
  ];
  const ring = new SearchArea({ type: 'Polygon', coordinates: [square(10), square(5)] });
  const footprint = (r: number): Polygon => ({ type: 'Polygon', coordinates: [square(r)] });
  expect([4, 5, 6].map((r) => ring.meets(boxOf(footprint(r)), () => footprint(r)))).toEqual([false, true, true]);
});

test('most are decided without their footprints', () => {
  const circle = Array.from({ length: 5_000 }, (_, i): Position => [
    40 * Math.cos((i / 5_000) * 2 * Math.PI),
    40 * Math.sin((i / 5_000) * 2 * Math.PI),
  ]);
  const large = new SearchArea({ type: 'Polygon', coordinates: [[...circle, circle[0]!]] });
  let looked = 0;
  let met = 0;
  for (let x = -45; x < 45; x++) {
    for (let y = -45; y < 45; y++) {
      const footprint: Polygon = {
        type: 'Polygon',
        coordinates: [
          [
            [x, y],
            [x + 0.5, y],
            [x + 0.5, y + 0.5],
            [x, y + 0.5],
            [x, y],
          ],
        ],
      };
      if (large.meets(boxOf(footprint), () => (looked++, footprint))) met++;
    }
  }
  expect(met).toBeGreaterThan(4_900);
  expect(looked).toBeLessThan(300);
});
