/** Areas on rasters against plain arithmetic: parts that overlap, borders through centres, outlines across 180°. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import gdal from 'gdal-async';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { areaSchema, polygonsOf, type Area } from '../../src/steps/area.ts';
import { requireSameMeaning } from '../../src/steps/same-meaning.ts';
import { byGradient } from '../../src/steps/terrain.ts';
import { markInside, placeArea, placeZones } from '../../src/steps/zones.ts';
import type { PixelGrid } from '../../src/steps/pixel-step.ts';
import type { SceneBand } from '../../src/raster/scene.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testFolder } from '../support/folders.ts';
import { box, type Ring } from '../support/rings.ts';

/** A raster in degrees whose first centre lies at these coordinates. */
function rasterAt(west: number, north: number, width: number, height: number): gdal.Dataset {
  const raster = gdal.open('', 'w', 'MEM', width, height, 1, 'Byte');
  raster.srs = gdal.SpatialReference.fromEPSG(4326);
  raster.geoTransform = [west - 0.5, 1, 0, north + 0.5, 0, -1];
  return raster;
}

async function insideOf(polygons: readonly (readonly Ring[])[], raster: gdal.Dataset): Promise<Uint8Array> {
  const { x: width, y: height } = raster.rasterSize;
  const mask = new Uint8Array(width * height);
  const rings = placeArea(polygons, raster, await testFolder());
  markInside(rings, { x: 0, y: 0, width, height }, mask);
  return mask;
}

const countOf = (mask: Uint8Array) => mask.reduce((sum, value) => sum + value, 0);

test('parts that overlap are united: 64 + 81 - 16 pixels', async () => {
  const raster = rasterAt(0.5, 29.5, 30, 30);
  const polygons = [[box(2, 2, 10, 10)], [box(6, 6, 15, 15)]];
  expect(countOf(await insideOf(polygons, raster))).toBe(129);
  expect(countOf(await insideOf(polygons.toReversed(), raster))).toBe(129);
});

test('an outline that crosses itself encloses what lies in it an odd number of times', async () => {
  const bowTie: Ring = [
    [2, 2],
    [12, 12],
    [12, 2],
    [2, 12],
    [2, 2],
  ];
  // Two triangles of 5 x 10 / 2; centres on an edge make up the difference.
  const count = countOf(await insideOf([[bowTie]], rasterAt(0.5, 29.5, 30, 30)));
  expect(Math.abs(count - 50)).toBeLessThanOrEqual(10);
});

test('random boxes, both ways round: a pixel is inside if its centre is in one of them', async () => {
  const size = 24;
  const side = fc.integer({ min: 0, max: size * 4 }).map((n) => n / 4 + 0.1);
  const one = fc.tuple(side, side, side, side, fc.boolean());
  await fc.assert(
    fc.asyncProperty(fc.array(one, { minLength: 2, maxLength: 5 }), async (found) => {
      const boxes = found
        .map(([a, b, c, d, isTurned]) => ({
          ...{ west: Math.min(a, b), east: Math.max(a, b), south: Math.min(c, d), north: Math.max(c, d) },
          isTurned,
        }))
        .filter(({ west, east, south, north }) => west < east && south < north);
      fc.pre(boxes.length > 0);
      const polygons = boxes.map(({ west, south, east, north, isTurned }) => {
        const ring = box(west, south, east, north);
        return [isTurned ? ring.toReversed() : ring];
      });
      const mask = await insideOf(polygons, rasterAt(0.5, size - 0.5, size, size));
      const wanted = Uint8Array.from({ length: size * size }, (_, i) => {
        const [x, y] = [(i % size) + 0.5, size - 0.5 - Math.floor(i / size)];
        return Number(boxes.some(({ west, east, south, north }) => x > west && x < east && y > south && y < north));
      });
      expect(mask).toEqual(wanted);
    }),
    { numRuns: 40, seed: 1 },
  );
});

test.each([
  ['north up', rasterAt(0, 90, 4, 181)],
  ['south up', southUp(4, 181)],
])('centres on both poles are inside an area that reaches the poles: %s', async (_, raster) => {
  const half = 4 * 90;
  // Four columns at 0° to 3°; the equator's row is in one of two halves.
  expect(countOf(await insideOf([[box(-0.5, -90, 3.5, 90)]], raster))).toBe(4 * 181);
  const [north, south] = [box(-0.5, 0, 3.5, 90), box(-0.5, -90, 3.5, 0)];
  const counts = [countOf(await insideOf([[north]], raster)), countOf(await insideOf([[south]], raster))];
  expect(counts.toSorted((a, b) => a - b)).toEqual([half, half + 4]);
});

function southUp(width: number, height: number): gdal.Dataset {
  const raster = rasterAt(0, 0, width, height);
  raster.geoTransform = [-0.5, 1, 0, -90.5, 0, 1];
  return raster;
}

test('a border through centres counts each of them in one of two neighbours', async () => {
  const raster = rasterAt(0, 20, 21, 21);
  const parts = [box(0, 0, 10, 10), box(10, 0, 20, 10), box(0, 10, 10, 20), box(10, 10, 20, 20)];
  const masks = await Promise.all(parts.map((part) => insideOf([[part]], raster)));
  const whole = await insideOf([[box(0, 0, 20, 20)]], raster);
  expect(masks.map(countOf).reduce((sum, count) => sum + count, 0)).toBe(countOf(whole));
  expect(countOf(whole)).toBe(400);
});

describe('an area across 180°', () => {
  const read = (area: unknown): Area => areaSchema({}).parse(area);
  const fiji: Ring = [
    [179.8, -17.1],
    [-179.8, -17.1],
    [-179.8, -17.4],
    [179.8, -17.4],
    [179.8, -17.1],
  ];

  test('goes the short way, and is split there', () => {
    const { type, coordinates } = read({ type: 'Polygon', coordinates: [fiji] });
    expect(type).toBe('MultiPolygon');
    const bounds = (coordinates as Ring[][]).map(([ring = []]) => {
      const longitudes = ring.map(([longitude]) => longitude);
      return [Math.min(...longitudes), Math.max(...longitudes)].map((longitude) => Number(longitude.toFixed(6)));
    });
    expect(bounds).toEqual([
      [-180, -179.8],
      [179.8, 180],
    ]);
  });

  test.each([
    ['one side of 180°', [box(170, -20, 179, -10)]],
    ['the whole Earth', [box(-180, -90, 180, 90)]],
  ])('control: %s stays as it is', (_what, coordinates) => {
    expect(read({ type: 'Polygon', coordinates })).toEqual({ type: 'Polygon', coordinates });
  });

  test('turned by any longitude, with its hole, the same pixels turn with it', async () => {
    const outline = box(-20.2, -10.2, 15.3, 12.4);
    const hole = box(-5.4, -3.3, 7.7, 4.4).toReversed();
    const raster = rasterAt(-179.5, 29.5, 360, 60);
    const fold = (longitude: number) => ((((longitude + 180) % 360) + 360) % 360) - 180;
    const maskAt = async (turn: number, folds: boolean) => {
      const turned = [outline, hole].map((ring) =>
        ring.map(([x, y]): [number, number] => [folds ? fold(x + turn) : x + turn, y]),
      );
      return insideOf(polygonsOf(read({ type: 'Polygon', coordinates: turned })) as Ring[][], raster);
    };
    const still = await maskAt(0, true);
    expect(countOf(still)).toBe(35 * 22 - 13 * 7);
    for (const turn of [37, 90, 161, 170, 180, 200, 270, 355]) {
      const wanted = new Uint8Array(still.length);
      for (let row = 0; row < 60; row++)
        for (let column = 0; column < 360; column++)
          wanted[row * 360 + ((column + turn) % 360)] = still[row * 360 + column]!;
      expect(await maskAt(turn, true), `turned by ${turn}, folded`).toEqual(wanted);
      expect(await maskAt(turn, false), `turned by ${turn}`).toEqual(wanted);
    }
  });
});

describe('bands that are merged or compared agree in unit', () => {
  const band = (unitType: string): SceneBand =>
    // The rule reads nothing else of a band.
    ({ band: { unitType }, place: null, fileName: `${unitType}.tif` }) as unknown as SceneBand;
  test.each([
    ['m', 'ft'],
    ['ft', 'US survey foot'],
    ['K', 'degC'],
    ['percent', 'm'],
  ])('%s and %s are refused', (first, second) => {
    expect(() => requireSameMeaning(band(first), band(second))).toThrow(
      expect.objectContaining({ code: 'units_differ' }) as Error,
    );
  });
  test.each([
    ['m', 'Metre'],
    ['', 'ft'],
    ['US survey foot', 'us-ft'],
    ['Kelvin', 'k'],
  ])('%s and %s are one', (first, second) => {
    expect(() => requireSameMeaning(band(first), band(second))).not.toThrow();
  });
});

test.each([
  ['row', 9, 1],
  ['column', 1, 9],
])('a single %s of heights that rise 30 m in 30 m has a slope of 45°', (_what, width, height) => {
  const grid = { width, height, srs: null, geoTransform: [0, 30, 0, 0, 0, -30], bands: [] } as unknown as PixelGrid;
  const slope = byGradient(grid, {}, (east, north) => (Math.atan(Math.hypot(east, north)) * 180) / Math.PI);
  const stride = width + 2;
  const heights = new Float64Array(stride * (height + 2)).fill(NaN);
  for (let row = 0; row < height; row++)
    for (let column = 0; column < width; column++) heights[(row + 1) * stride + column + 1] = 30 * (row + column);
  const out = new Float64Array(width * height);
  slope([heights], [out], { y: 0, width, rows: height, stride, start: stride + 1 });
  for (const value of out) expect(value).toBeCloseTo(45, 9);
});

describe('features', () => {
  async function zonesOf(...geometries: readonly (object | null)[]) {
    const folder = await testFolder();
    const path = join(folder, 'features.geojson');
    const features = geometries.map((geometry) => ({ type: 'Feature', properties: {}, geometry }));
    writeFileSync(path, JSON.stringify({ type: 'FeatureCollection', features }));
    const layers = gdal.open(path);
    cleanUpLater(() => layers.close());
    const raster = rasterAt(0.5, 29.5, 30, 30);
    const zones = placeZones(layers, raster, { label: '', crs: undefined, folder });
    const mask = new Uint8Array(900);
    return zones.map(({ name, rings }) => {
      markInside(rings, { x: 0, y: 0, width: 30, height: 30 }, mask);
      return [name, countOf(mask)];
    });
  }
  const polygon = (...bounds: Parameters<typeof box>) => ({ type: 'Polygon', coordinates: [box(...bounds)] });
  const line = { type: 'LineString', coordinates: [[0, 0], [9, 9]] }; // oxfmt-ignore

  test('polygons of a collection count', async () => {
    const collection = { type: 'GeometryCollection', geometries: [line, polygon(2, 2, 6, 6), polygon(4, 4, 8, 8)] };
    expect(await zonesOf(polygon(0, 0, 3, 3), collection)).toEqual([
      ['1', 9],
      ['2', 16 + 16 - 4],
    ]);
  });
  test.each([
    [line, 'a LineString'],
    [{ type: 'Point', coordinates: [2, 2] }, 'a Point'],
    [null, 'no geometry'],
  ])('one without an area is named by its number', async (geometry, words) => {
    await expect(zonesOf(polygon(0, 0, 3, 3), geometry)).rejects.toThrow(
      `feature 2 has ${words}; areas must be polygons, so remove it or give it one`,
    );
  });
  test('one across 180° goes the short way', async () => {
    expect(await zonesOf(polygon(-359, 2, -350, 10))).toEqual([['1', 72]]);
  });
  test('one without a place is named by its number', async () => {
    const projected = rasterAt(0.5, 29.5, 30, 30);
    projected.srs = gdal.SpatialReference.fromEPSG(32631);
    const folder = await testFolder();
    const path = join(folder, 'features.geojson');
    const features = [polygon(2, 2, 6, 6), polygon(2, 80, 6, 99)].map((geometry) => ({
      ...{ type: 'Feature', properties: {}, geometry },
    }));
    writeFileSync(path, JSON.stringify({ type: 'FeatureCollection', features }));
    const layers = gdal.open(path);
    cleanUpLater(() => layers.close());
    expect(() => placeZones(layers, projected, { label: '', crs: undefined, folder })).toThrow(
      /^the areas cannot be placed on the raster: feature 2 has coordinates that are no longitude and latitude$/,
    );
  });
});
