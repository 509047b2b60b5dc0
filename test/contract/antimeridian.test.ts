/** Polygons across 180° at the entrances of geometries: WKT, GeoJSON, imports, searches. */
import type { Geometry } from 'geojson';
import { describe, expect, test } from 'vitest';
import { geojsonGeometry, wktGeometry } from '../../src/contract/index.ts';
import { item, sandboxWith, search } from '../support/stac.ts';

type Ring = [number, number][];
const box = (west: number, east: number): Ring => [[west, -18], [east, -18], [east, -17], [west, -17], [west, -18]]; // oxfmt-ignore
const polygon = (ring: Ring): Geometry => ({ type: 'Polygon', coordinates: [ring] });
const wktOf = (ring: Ring) => `POLYGON((${ring.map((place) => place.join(' ')).join(', ')}))`;

/** West and east of each polygon. */
const rangesOf = (geometry: Geometry): number[][] => {
  const polygons = geometry.type === 'MultiPolygon' ? geometry.coordinates : geometry.type === 'Polygon' ? [geometry.coordinates] : []; // oxfmt-ignore
  const ranges = polygons.map((rings) => rings.flat().map(([longitude = NaN]) => longitude));
  return ranges.map((all) => [Math.min(...all), Math.max(...all)]).toSorted(([a = 0], [b = 0]) => a - b);
};

describe.each([
  ['an edge longer than 180°', box(179, -179)],
  ['corners past 180° E', box(179, 181)],
  ['corners past 180° W', box(-181, -179)],
])('%s', (_what, ring) => {
  const wanted = [
    [-180, -179],
    [179, 180],
  ];
  test('as WKT', () => expect(rangesOf(wktGeometry.parse(wktOf(ring)))).toEqual(wanted));
  test('as GeoJSON', () => expect(rangesOf(geojsonGeometry.parse(polygon(ring)))).toEqual(wanted));
  test('in a collection', () => {
    const read = geojsonGeometry.parse({ type: 'GeometryCollection', geometries: [polygon(ring)] });
    expect(read.type === 'GeometryCollection' && rangesOf(read.geometries[0]!)).toEqual(wanted);
  });
});

test('a hole stays in the same part as its outline, on either side of 180°', () => {
  const south = [10, 100, 190, 280, 350];
  const nearlyRound: Ring = [
    ...south.map((x): [number, number] => [x, -18]),
    ...south.toReversed().map((x): [number, number] => [x, -17]),
    [10, -18],
  ];
  const small = (west: number, east: number): Ring => [[west, -17.6], [east, -17.6], [east, -17.4], [west, -17.4], [west, -17.6]]; // oxfmt-ignore
  for (const [outline, hole] of [
    [box(170, 190), small(172, 174)],
    [box(170, 190), small(184, 186)],
    [box(170, 190), small(-176, -174)],
    [box(10, 190), small(12, 14)],
    [box(10, 190), small(-174, -172)],
    [nearlyRound, small(-20, -15)],
    [nearlyRound, small(340, 345)],
  ] as const) {
    const read = geojsonGeometry.parse({ type: 'Polygon', coordinates: [outline, hole] });
    const rings = read.type === 'MultiPolygon' ? read.coordinates : [];
    const withHole = rings.filter((polygonRings) => polygonRings.length === 2);
    expect(withHole, JSON.stringify([outline, hole])).toHaveLength(1);
    const [[outer = [], inner = []] = []] = withHole;
    const [west, east] = [Math.min(...outer.map(([x = NaN]) => x)), Math.max(...outer.map(([x = NaN]) => x))];
    for (const [x = NaN] of inner) expect(x >= west && x <= east, `${x} in ${west} to ${east}`).toBe(true);
    const folded = hole.map(([x]) => ((((x + 180) % 360) + 360) % 360) - 180);
    expect(inner.map(([x]) => x).toSorted()).toEqual(folded.toSorted());
  }
});

test.each([
  ['a box on one side', polygon(box(170, 179))],
  ['the whole Earth', polygon(box(-180, 180))],
  ['a line', { type: 'LineString', coordinates: box(179, -179) }],
])('control: %s stays as it is', (_what, geometry) => {
  expect(geojsonGeometry.parse(geometry)).toEqual(geometry);
});

test.each([
  ['corners beyond a whole turn', polygon(box(179, 361))],
  ['a point past 180°', { type: 'Point', coordinates: [181, 0] }],
])('control: %s is refused', (_what, geometry) => {
  expect(geojsonGeometry.safeParse(geometry).success).toBe(false);
});

test.each([
  ['three positions', '((5 5, 6 5, 6 6))'],
  ['an open ring', '((5 5, 6 5, 6 6, 5 6))'],
])('%s in the second polygon is refused as in the first', (_, broken) => {
  const whole = '((0 0, 1 0, 1 1, 0 0))';
  for (const polygons of [`${broken}, ${whole}`, `${whole}, ${broken}`])
    expect(wktGeometry.safeParse(`MULTIPOLYGON (${polygons})`).success, polygons).toBe(false);
});

test('an imported footprint is found where it lies, and nowhere else', async () => {
  const sandbox = await sandboxWith([item('fiji', { ring: box(179, -179) }), item('other', { ring: box(10, 11) })]);
  const found = async (query: object) => (await search(sandbox, query)).features.map(({ id }) => id);
  expect(await found({ bbox: [129, -29, 137, -10] })).toEqual([]);
  expect(await found({ bbox: [179.2, -17.8, 179.9, -17.2] })).toEqual(['fiji']);
  expect(await found({ intersects: polygon(box(178, -178)) })).toEqual(['fiji']);
  const filter = { op: 's_intersects', args: [{ property: 'geometry' }, polygon(box(178, -178))] };
  expect(await found({ filter, 'filter-lang': 'cql2-json' })).toEqual(['fiji']);
});
