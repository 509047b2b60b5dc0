/** Requests that the catalog accepts and refuses (spec 4.2; contract, "STAC"). */
import { describe, expect, test } from 'vitest';
import {
  bbox,
  datetimeFilter,
  datetimeInterval,
  extensionFault,
  geojsonGeometry,
  parseInstant,
  wktGeometry,
} from '../../src/contract/index.ts';

test.each([
  ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
  ['2024-01-01t00:00:00z', '2024-01-01T00:00:00.000Z'],
  ['2024-01-01T00:00:00.5Z', '2024-01-01T00:00:00.500Z'],
  ['2024-01-01T00:00:00.123456789Z', '2024-01-01T00:00:00.123Z'],
  ['2024-01-01T02:00:00+02:00', '2024-01-01T00:00:00.000Z'],
  ['2023-12-31T19:30:00-04:30', '2024-01-01T00:00:00.000Z'],
  ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
  ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
])('%s is an instant', (text, iso) => {
  expect(new Date(Math.floor(parseInstant(text)!)).toISOString()).toBe(iso);
});

test.each([
  ['2024-01-01', 'no time'],
  ['2024-01-01T00:00:00', 'no offset'],
  ['2024-01-01 00:00:00Z', 'a space'],
  ['2024-1-1T00:00:00Z', 'short fields'],
  ['2024-02-30T00:00:00Z', 'no such day'],
  ['2023-02-29T00:00:00Z', 'no leap year'],
  ['1900-02-29T00:00:00Z', 'no leap year either'],
  ['2024-13-01T00:00:00Z', 'no such month'],
  ['2024-00-10T00:00:00Z', 'no such month'],
  ['2024-01-00T00:00:00Z', 'no such day'],
  ['2024-01-01T24:00:00Z', 'no such hour'],
  ['2024-01-01T00:60:00Z', 'no such minute'],
  ['2024-01-01T12:00:60Z', 'a leap second where there is none'],
  ['2024-01-01T00:00:61Z', 'no such second'],
  ['2024-01-01T00:00:00.Z', 'an empty fraction'],
  ['2024-01-01T00:00:00+2:00', 'a short offset'],
  ['2024-01-01T00:00:00+24:00', 'no such offset'],
  ['2024-01-01T00:00:00+0200', 'an offset without its colon'],
  ['20240101T000000Z', 'the basic format'],
  [' 2024-01-01T00:00:00Z', 'a blank before it'],
])('%s is no instant: %s', (text, _why) => {
  expect(parseInstant(text)).toBeNull();
});

describe('interval', () => {
  const [a, b] = ['2024-01-01T00:00:00Z', '2024-02-01T00:00:00Z'];
  test.each([`${a}/${b}`, `${a}/..`, `../${b}`, `${a}/`, `/${b}`, `${a}/${a}`])('%s', (text) =>
    expect(datetimeInterval.safeParse(text).success).toBe(true),
  );
  test.each([
    [`${b}/${a}`, 'reversed'],
    ['../..', 'no end'],
    ['/', 'no end'],
    ['..', 'no interval'],
    [a, 'an instant'],
    [`${a}/${b}/${b}`, 'three ends'],
    [`${a}/2024-02-30T00:00:00Z`, 'a day that is none'],
    ['', 'empty'],
    [7, 'no text'],
  ])('%s is refused: %s', (text, _why) => expect(datetimeInterval.safeParse(text).success).toBe(false));
  test('a single instant where the filter is lenient', () => {
    expect(datetimeFilter.parse(a)).toEqual({ startMs: Date.parse(a), endMs: Date.parse(a) });
  });
  test('finer than a millisecond: ends stay included, and no more', () => {
    expect(datetimeInterval.parse('2024-01-01T00:00:00.0005Z/2024-01-01T00:00:00.0015Z')).toEqual({
      startMs: Date.parse(a) + 1,
      endMs: Date.parse(a) + 1,
    });
  });
});

test.each([
  [
    [10, 50, 11, 51],
    [10, 50, 11, 51],
  ],
  [
    [10, 50, -100, 11, 51, 4000],
    [10, 50, 11, 51],
  ],
  [
    [170, -10, -170, 10],
    [170, -10, -170, 10],
  ],
  [
    [10, 50, 10, 50],
    [10, 50, 10, 50],
  ],
])('bbox %j is taken', (value, read) => expect(bbox.parse(value)).toEqual(read));

test.each([
  [[10, 50, 11], 'three numbers'],
  [[10, 50, 11, 51, 52], 'five numbers'],
  [[10, 51, 11, 50], 'south above north'],
  [[10, 50, 0, 11, 49, 0], 'south above north, with heights'],
  [[-181, 0, 0, 1], 'west of the world'],
  [[0, 0, 200, 1], 'east of the world'],
  [[0, -91, 1, 1], 'below the pole'],
  [[0, 0, 1, 91], 'above the pole'],
  [['10', 50, 11, 51], 'text'],
  [[10, 50, null, 51], 'null'],
  ['10,50,11,51', 'text'],
])('bbox %j is refused: %s', (value, _why) => expect(bbox.safeParse(value).success).toBe(false));

test.each([
  [{ type: 'Point', coordinates: [10] }, 'one number'],
  [
    {
      type: 'Polygon',
      coordinates: [
        [
          [0, 0],
          [1, 0],
          [1, 1],
        ],
      ],
    },
    'a ring that is not closed',
  ],
  [{ type: 'Polygon', coordinates: [] }, 'no ring'],
  [{ type: 'Polygon', coordinates: [0, 0] }, 'a position'],
  [{ type: 'LineString', coordinates: [[0, 0]] }, 'one position'],
  [{ type: 'Point', coordinates: [300, 0] }, 'no longitude'],
  [{ type: 'Circle', coordinates: [0, 0] }, 'no such type'],
  [{ type: 'GeometryCollection', geometries: [{ type: 'Point' }] }, 'an empty part'],
  [{ type: 'GeometryCollection', geometries: [] }, 'no part'],
  [null, 'null'],
])('geometry %j is refused: %s', (value, _why) => expect(geojsonGeometry.safeParse(value).success).toBe(false));

test.each([
  'POINT(10 50)',
  'POINT Z (10 50 3)',
  'SRID=4326;POINT(10 50)',
  'polygon((0 0,1 0,1 1,0 0))',
  'MULTIPOLYGON(((0 0,1 0,1 1,0 0)))',
  'GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(0 0,1 1))',
])('WKT %s is taken', (text) => expect(wktGeometry.safeParse(text).success).toBe(true));
test('WKT made to be slow is not', () => {
  for (const text of [
    'A'.repeat(400_000),
    `${'A'.repeat(400_000)})`,
    `POINT${' '.repeat(400_000)}x`,
    `P${')'.repeat(400_000)}x`,
  ])
    expect(wktGeometry.safeParse(text).success).toBe(false);
});
test.each([
  '',
  'POINT',
  'POINT(1)',
  'POINT EMPTY',
  'POLYGON((0 0,1 0,1 1))',
  'POINT(1 2',
  'POINT(1 2);DROP',
  'SRID=3857;POINT(1 2)',
  'POINT(200 0)',
])('WKT %j is refused', (text) => expect(wktGeometry.safeParse(text).success).toBe(false));

test('properties of the view and SAR extensions: known ones by their rules, no other', () => {
  expect(extensionFault({ 'view:off_nadir': 10, 'sar:polarizations': ['VV', 'VH'], other: 1 })).toBeNull();
  for (const bad of [
    { 'view:off_nadir': 91 },
    { 'view:height': 1 },
    { 'sar:polarizations': ['VV', 'VV'] },
    { 'sar:frequency_band': 'Q' },
    { 'sar:toString': 1 },
    { 'view:constructor': 1 },
  ]) {
    expect(extensionFault(bad), JSON.stringify(bad)).not.toBeNull();
  }
});
