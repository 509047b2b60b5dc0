/** Places at 180°, at the poles, on other bodies and on no map, and values that are all alike: against plain arithmetic. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import gdal from 'gdal-async';
import { describe, expect, test } from 'vitest';
import { footprintOf } from '../../src/raster/footprint.ts';
import { rangeOf } from '../../src/raster/preview.ts';
import { markInside, placeZones } from '../../src/steps/zones.ts';
import { testFolder } from '../support/folders.ts';
import { box, type Ring } from '../support/rings.ts';
import { run, valid, type Made } from '../support/made-rasters.ts';

/** A raster of the whole Earth with pixels of 1°, from this longitude on. */
function earthFrom(west: number): gdal.Dataset {
  const raster = gdal.open('', 'w', 'MEM', 360, 180, 1, 'Byte');
  raster.srs = gdal.SpatialReference.fromEPSG(4326);
  raster.geoTransform = [west, 1, 0, 90, 0, -1];
  return raster;
}

/** Number of pixels of the Earth in a polygon of this reference system. */
async function pixelsIn(ring: Ring, epsg: number, raster = earthFrom(-180)): Promise<number> {
  const folder = await testFolder();
  const path = join(folder, 'zone.geojson');
  writeFileSync(
    path,
    JSON.stringify({
      type: 'FeatureCollection',
      crs: { type: 'name', properties: { name: `urn:ogc:def:crs:EPSG::${epsg}` } },
      features: [{ type: 'Feature', properties: {}, geometry: { type: 'Polygon', coordinates: [ring] } }],
    }),
  );
  const dataset = gdal.drivers.get('GeoJSON').open(path, 'r');
  const [zone] = placeZones(dataset, raster, { label: '', crs: undefined, folder });
  dataset.close();
  const mask = new Uint8Array(360 * 180);
  markInside(zone!.rings, { x: 0, y: 0, width: 360, height: 180 }, mask);
  return mask.reduce((sum, value) => sum + value, 0);
}

describe('zones', () => {
  test.each([
    [20, -10, 360, 10, 340 * 20],
    [0, -10, 360, 10, 360 * 20],
    [30, -60, 290, 60, 260 * 120],
    [170, -10, 190, 10, 20 * 20],
    [-180, -90, 180, 90, 360 * 180],
    [-20, -10, 20, 10, 40 * 20],
    // Rounding has moved a corner past 180°.
    [170, -10, 180.00000001, 10, 10 * 20],
  ])('from %d, %d to %d, %d hold %d pixels', async (west, south, east, north, count) => {
    expect(await pixelsIn(box(west, south, east, north), 4326)).toBe(count);
    expect(await pixelsIn(box(west, south, east, north), 4326, earthFrom(0))).toBe(count);
  });

  test('of a band round the Earth with further corners on one side stay the band', async () => {
    const band: Ring = [[-180, -23], [180, -23], [180, 23], [90, 23], [0, 23], [-90, 23], [-180, 23], [-180, -23]]; // oxfmt-ignore
    expect(await pixelsIn(band, 4326)).toBe(360 * 46);
    expect(await pixelsIn([...band.slice(2, -1), ...band.slice(0, 3)], 4326)).toBe(360 * 46);
    const cap: Ring = [
      [-180, -90],
      [180, -90],
      [180, 60],
      [0, 60],
      [-180, 60],
      [-180, -90],
    ];
    expect(await pixelsIn(cap, 4326)).toBe(360 * 150);
  });

  test('of a projected system across 180° hold the short side', async () => {
    // From 175° to 185°, and from 20° S to 10° S within rounding.
    expect(await pixelsIn(box(19_481_189, -2_273_030, 20_594_106, -1_118_889), 3857)).toBe(100);
    expect(await pixelsIn(box(19_481_189, -2_273_030, 20_594_106, -1_118_889), 3857, earthFrom(0))).toBe(100);
    // A box that is wider than half of the Earth, from 170° W to 170° E.
    expect(await pixelsIn(box(-18_924_313, -1_118_889, 18_924_313, 1_118_889), 3857)).toBe(340 * 20);
    // A box of a map of the Antarctic beyond the pole, where 180° lies below it.
    const counted = await pixelsIn(box(-1e6, -3e6, 1e6, -1.5e6), 3031);
    expect(Math.abs(counted - 680)).toBeLessThanOrEqual(10);
  });
});

test('a ring around 180° with a corner that rounding moved past it holds the short side', async () => {
  const ring: Ring = [[179, -18], [180.00000001, -18], [-179, -18], [-179, -17], [179, -17], [179, -18]]; // oxfmt-ignore
  expect(await pixelsIn(ring, 4326)).toBe(2);
});

test('a clip of a grid from 0 to 360 has the size of its area', async () => {
  const earth: Made = {
    ...{ width: 360, height: 180, epsg: 4326, transform: [0, 1, 0, 90, 0, -1] },
    bands: [(x) => x],
  };
  const area = { type: 'Polygon', coordinates: [box(-75, -40, -60, -30)] };
  const { width, height, bands } = (await run('clip', earth, { area: JSON.stringify(area) })).raster();
  expect([width, height]).toEqual([15, 10]);
  expect([bands[0]![0], bands[0]!.at(-1)]).toEqual([285, 299]);
});

test.each([
  ['Float32', {}],
  ['Float64', {}],
  ['Int16', { outside: -9_999 }],
  ['Byte', { outside: 255 }],
] as const)('whole blocks of zeros stay zeros in a clip of %s', async (type, parameters) => {
  const made: Made = {
    ...{ width: 800, height: 800, type, options: ['TILED=YES'] },
    // A block of 256 x 256 lies within them, wherever the blocks of the output begin.
    bands: [(x, y) => (x >= 100 && x < 700 && y >= 100 && y < 700 ? 0 : 7)],
  };
  // All but a margin of 10 pixels.
  const corners = [[10, 10], [790, 10], [790, 790], [10, 790], [10, 10]]; // oxfmt-ignore
  const toLonLat = new gdal.CoordinateTransformation(
    gdal.SpatialReference.fromEPSG(32633),
    gdal.SpatialReference.fromProj4('+proj=longlat +datum=WGS84'),
  );
  const coordinates = corners.map(([column, row]) => {
    const { x, y } = toLonLat.transformPoint(500_000 + 30 * column!, 5_000_000 - 30 * row!);
    return [x, y];
  });
  const area = JSON.stringify({ type: 'Polygon', coordinates: [coordinates] });
  const { bands } = (await run('clip', made, { area, ...parameters })).raster();
  expect(valid(bands[0]!).filter((value) => value === 0)).toHaveLength(600 * 600);
});

const utm1: Made = {
  ...{ width: 60, height: 60, epsg: 32601, transform: [100_000, 20_000, 0, 600_000, 0, -20_000] },
  bands: [(x) => x],
};

test('a mosaic in degrees of a raster across 180° is refused by name', async () => {
  await expect(run('mosaic', utm1, { crs: 'EPSG:4326' })).rejects.toMatchObject({ code: 'crosses_antimeridian' });
  const degrees: Made = {
    ...{ width: 20, height: 20, epsg: 4326, transform: [170, 0.5, 0, 5, 0, -0.5] },
    bands: [() => 1],
  };
  await expect(run('mosaic', [degrees, utm1])).rejects.toMatchObject({ code: 'crosses_antimeridian' });
});

test('the corners of a map of the whole Earth are as far apart as the Earth is wide', async () => {
  const half = 20_037_508.342789244;
  const earth: Made = {
    ...{ width: 40, height: 20, epsg: 4087, type: 'Float32' },
    ...{ transform: [-half, half / 20, 0, half / 2, 0, -half / 20], bands: [(x) => x] },
  };
  const { result } = await run('cog', earth);
  const [upperLeft, upperRight] = result!.summary.corners!;
  expect(upperRight[0] - upperLeft[0]).toBeCloseTo(360, 3);
});

test('the corners of a raster that is nearly as wide as the Earth are that far apart', async () => {
  const degree = 20_037_508.342789244 / 180;
  const wide: Made = {
    ...{ width: 34, height: 10, epsg: 4087, type: 'Float32' },
    ...{ transform: [-170 * degree, 10 * degree, 0, 50 * degree, 0, -10 * degree], bands: [(x) => x] },
  };
  const { result } = await run('cog', wide);
  const [upperLeft, upperRight] = result!.summary.corners!;
  expect([upperLeft[0], upperRight[0]].map((lon) => Math.round(lon))).toEqual([-170, 170]);
});

test('a raster of another body is described without a place on Earth', async () => {
  const mars = '+proj=eqc +a=3396190 +b=3396190 +units=m +no_defs';
  const made: Made = { epsg: mars, type: 'Float32', bands: [(x) => x], scale: [0.01, 273.15] };
  const { descriptions } = await run('cog', made);
  expect(descriptions).toMatchObject([{ raster: { bands: [{ scale: { scale: 0.01, offset: 273.15 } }] } }]);
});

test('contours of a raster without a system lie on a plane', async () => {
  const made: Made = {
    ...{ epsg: null, type: 'Float32', transform: [500_000, 30, 0, 5_000_000, 0, -30] },
    bands: [(x) => x * 3],
  };
  const { path } = await run('contours', made);
  const dataset = gdal.drivers.get('GPKG').open(path, 'r');
  const rows = dataset.executeSQL('SELECT srs_id FROM gpkg_geometry_columns');
  expect(rows.features.first().fields.get('srs_id')).toBe(-1);
  dataset.close();
});

test('too many lines are refused by name', async () => {
  const made: Made = { type: 'Float64', bands: [(x) => x * 1e12] };
  await expect(run('contours', made, { interval: 0.001 })).rejects.toMatchObject({ code: 'too_many_levels' });
});

test('polygonize refuses integers that GDAL would round', async () => {
  const made: Made = { type: 'Float64', bands: [() => 2 ** 53 - 1] };
  await expect(run('polygonize', made)).rejects.toMatchObject({ code: 'type_not_supported' });
});

describe('footprints', () => {
  const degrees = (west: number, south: number, east: number, north: number) =>
    footprintOf(box(west, south, east, north).slice(0, 4), (x, y) => [x, y]);
  test.each([
    ['half a pixel past the poles, around the Earth', [-0.125, -90.125, 359.875, 90.125], [[-180, -90, 180, 90]]],
    ['from 10 to 370', [10, -80, 370, 80], [[-180, -80, 180, 80]]],
    ['west of -180', [-190, 0, -185, 5], [[170, 0, 175, 5]]],
    ['beyond 360', [361, 0, 365, 5], [[1, 0, 5, 5]]],
    ['a little past 180', [170, 0, 180.00001, 5], [[170, 0, 180, 5]]],
    ['across 180', [170, 0, 190, 5], [[170, 0, 180, 5], [-180, 0, -170, 5]]], // oxfmt-ignore
    ['across 180 by 370°', [-185, 0, 185, 5], [[-180, 0, 180, 5]]],
  ] as const)('%s', (_, [west, south, east, north], boxes) => {
    const footprint = degrees(west, south, east, north)!;
    const polygons = footprint.type === 'Polygon' ? [footprint.coordinates] : footprint.coordinates;
    const found = polygons.map(([ring]) => {
      const [xs, ys] = [ring!.map(([x]) => x!), ring!.map(([, y]) => y!)];
      return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    });
    expect(found.toSorted((a, b) => b[0]! - a[0]!)).toEqual([...boxes].toSorted((a, b) => b[0] - a[0]));
  });
});

test('values that are all alike have the middle colour', () => {
  expect(rangeOf(Float64Array.of(7, 7, 7), { ramp: 'gray' })).toEqual([6.5, 7.5]);
  expect(rangeOf(Float64Array.of(0, 0), { ramp: 'gray', centre: 0 })).toEqual([-0.5, 0.5]);
  expect(rangeOf(Float64Array.of(1, 2), { ramp: 'gray' })).toEqual([0.5, 1.5]);
});

/** EPSG:4087 is the plate carrée of a sphere with the Earth's equator: y = 6,378,137 m x latitude. */
const latitudeIn4087 = (y: number) => (y / 6_378_137) * (180 / Math.PI);
const quarter = 10_018_754;

describe('a raster in degrees that reaches a pole keeps its extent in degrees', () => {
  /** Each pixel has the longitude of its centre. */
  const grid = (west: number, width: number, size = 5, north = 90): Made => ({
    ...{ width, height: Math.ceil((2 * north) / size), type: 'Float32', epsg: 4326 },
    transform: [west, size, 0, north, 0, -size],
    bands: [(x) => west + (x + 0.5) * size],
  });
  test.each<[string, string, Made, object]>([
    ['reproject', 'EPSG:4326', grid(0, 72), {}],
    ['reproject', 'EPSG:4258', grid(0, 72), {}],
    ['reproject', 'EPSG:4326', grid(-10, 72), {}],
    ['reproject', 'EPSG:4326', grid(90, 72), {}],
    ['reproject', 'EPSG:4326', grid(0, 70), {}],
    ['reproject', 'EPSG:4326', grid(0, 73), {}],
    ['reproject', 'EPSG:4326', grid(-180, 72), {}],
    ['reproject', 'EPSG:4326', grid(-2.5, 72, 5, 92.5), {}],
    ['reproject', 'EPSG:4326', grid(0, 72), { pixelSize: 5 }],
    ['mosaic', 'EPSG:4326', grid(0, 72), {}],
    ['mosaic', 'EPSG:4326', grid(-2.5, 72, 5, 92.5), {}],
  ])('%s to %s', async (step, crs, made, more) => {
    const { raster } = await run(step, made, { crs, ...more });
    const { width, height, bands, geoTransform } = raster();
    expect([width, height]).toEqual([made.width, made.height]);
    made.transform!.forEach((value, i) => expect(geoTransform[i]).toBeCloseTo(value, 6));
    const expected = Array.from({ length: width * height }, (_, i) => made.bands[0]!(i % width, 0));
    expect(bands[0]).toEqual(expected);
  });

  test('with a pixel size, no whole row is past the pole', async () => {
    const { raster } = await run('reproject', grid(-2.5, 72, 5, 92.5), { crs: 'EPSG:4258', pixelSize: 2 });
    const { height, geoTransform, bands } = raster();
    expect([height, geoTransform[3]]).toEqual([91, 91]);
    expect(bands[0]!.includes(null)).toBe(false);
  });

  test('a mosaic has the finest pixels, whichever raster is the first', async () => {
    const fine: Made = { width: 20, height: 20, type: 'Float32', epsg: 4326, transform: [0, 1, 0, 50, 0, -1], bands: [(x, y) => 1_000 + x + 20 * y] }; // oxfmt-ignore
    const { raster } = await run('mosaic', [grid(-180, 36, 10), fine], { crs: 'EPSG:4326' });
    const { width, height, bands } = raster();
    expect([width, height]).toEqual([360, 180]);
    expect(new Set(bands[0]!.filter((value) => value! >= 1_000)).size).toBe(400);
  });

  test('a mosaic of two that begin at different longitudes is refused', async () => {
    for (const parameters of [{ crs: 'EPSG:4326' }, {}])
      await expect(run('mosaic', [grid(-180, 72), grid(0, 72)], parameters)).rejects.toMatchObject({
        code: 'grid_implausible',
        message: expect.stringMatching(/would cover 540° of longitude.*-180, 0/) as string,
      });
  });

  test('mosaic of two halves', async () => {
    const { raster } = await run('mosaic', [grid(0, 36), grid(180, 36)], { crs: 'EPSG:4326' });
    const { width, bands, geoTransform } = raster();
    expect([width, geoTransform[0]]).toEqual([72, 0]);
    expect(bands[0]!.slice(0, 72)).toEqual(Array.from({ length: 72 }, (_, x) => (x + 0.5) * 5));
  });
});

describe('a grid whose rows are centred on the poles', () => {
  const grid = (west: number, isAscending = false): Made => ({
    ...{ width: 360, height: 181, type: 'Float32', epsg: 4326 },
    transform: [west, 1, 0, isAscending ? -90.5 : 90.5, 0, isAscending ? 1 : -1],
    bands: [(_, y) => (isAscending ? y - 90 : 90 - y)],
  });
  const northHalf: Made = { ...grid(-180.5), height: 91 };

  test.each([
    ['reproject', 'from -180.5°', grid(-180.5), -90, undefined],
    ['reproject', 'from -0.5°', grid(-0.5), -90, undefined],
    ['reproject', 'whose first row is the southern one', grid(-180.5, true), -90, undefined],
    ['reproject', 'of one hemisphere', northHalf, -0.5, undefined],
    ['reproject', 'with a pixel size', grid(-180.5), -90, 200_000],
    ['mosaic', 'from -180.5°', grid(-180.5), -90, undefined],
  ])('%s, %s: keeps them', async (step, _, made, south, pixelSize) => {
    const { raster } = await run(step, made, { crs: 'EPSG:4087', ...(pixelSize !== undefined && { pixelSize }) });
    const { width, height, bands, geoTransform } = raster();
    const [, , , north, , perRow] = geoTransform as [number, number, number, number, number, number];
    if (pixelSize !== undefined) expect(-perRow).toBe(pixelSize);
    const latitudeOf = (row: number) => latitudeIn4087(north + (row + 0.5) * perRow);
    const rows = Array.from({ length: height }, (__, row) => row).filter(
      (row) => latitudeOf(row) <= 90 && latitudeOf(row) >= south,
    );
    expect(rows.length * -perRow).toBeGreaterThan(((90 - south) / 90) * quarter + 2 * perRow);
    for (const row of rows) {
      const value = bands[0]![row * width + Math.floor(width / 2)];
      expect(Math.abs(value! - latitudeOf(row)), `row ${row}`).toBeLessThanOrEqual(0.5 + 1e-6);
    }
  });

  test.each([
    ['reproject', 'EPSG:3857', grid(-180.5), 'North', undefined],
    [
      'reproject',
      'EPSG:3857',
      { ...northHalf, transform: [-180.5, 1, 0, 0.5, 0, -1] } satisfies Made,
      'South',
      undefined,
    ],
    ['reproject', 'EPSG:3857', grid(-180.5), 'North', 100_000],
    ['reproject', 'EPSG:3031', grid(-180.5), 'North', undefined],
    ['mosaic', 'EPSG:3857', grid(-180.5), 'North', undefined],
  ])('%s to %s: refused, since the pole has no place there', async (step, crs, made, pole, pixelSize) => {
    await expect(run(step, made, { crs, ...(pixelSize !== undefined && { pixelSize }) })).rejects.toMatchObject({
      code: 'grid_implausible',
      message: `the raster reaches the ${pole} Pole, which has no place in ${crs}: clip the raster to the area of use of ${crs} first, or choose another reference system`,
    });
  });

  test('a hemisphere around its pole is kept in a polar system', async () => {
    const { raster } = await run('reproject', northHalf, { crs: 'EPSG:3995' });
    const { width, height, bands, geoTransform } = raster();
    const [west, size, , north] = geoTransform as [number, number, number, number];
    const [column, row] = [Math.floor(-west / size), Math.floor(north / size)];
    expect(column < width && row < height).toBe(true);
    expect(bands[0]![row * width + column]).toBeGreaterThanOrEqual(89);
  });

  test('mosaic keeps them on the grid of another raster', async () => {
    const first: Made = { width: 4, height: 4, type: 'Float32', epsg: 4087, transform: [0, 1e5, 0, 2e5, 0, -1e5], bands: [() => 7] }; // oxfmt-ignore
    const { raster } = await run('mosaic', [first, grid(-180.5)], { overlap: 'first' });
    const { height, geoTransform } = raster();
    const ends = [geoTransform[3]!, geoTransform[3]! + height * geoTransform[5]!];
    expect(ends.map((y) => Math.abs(Math.abs(y) - quarter) <= 1e5)).toEqual([true, true]);
  });
});
