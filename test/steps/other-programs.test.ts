/** Rasters and areas as other programs write them: each against plain arithmetic. A corpus of 666 rasters brought these. */
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import gdal from 'gdal-async';
import { describe, expect, test } from 'vitest';
import type { StepParameters } from '../../src/app/processing/step-parameters.ts';
import { writeCog } from '../../src/raster/cog.ts';
import { fromLonLat } from '../../src/raster/lon-lat.ts';
import { accumulatorOf } from '../../src/raster/statistics.ts';
import { metresPerUnitOf } from '../../src/raster/units.ts';
import { markInside, placeZones } from '../../src/steps/zones.ts';
import allSteps from '../support/all-steps.ts';
import { testFolder } from '../support/folders.ts';
import { make, read, run, valid, type Made } from '../support/made-rasters.ts';
import { box, type Ring } from '../support/rings.ts';
import { startStepHost } from '../support/step-host.ts';

/** Number of pixels of a raster in each polygon of a reference system. */
async function pixelsIn(rings: readonly Ring[], epsg: number, raster: gdal.Dataset): Promise<number[]> {
  const folder = await testFolder();
  const path = join(folder, 'zones.geojson');
  const features = rings.map((ring) => ({
    ...{ type: 'Feature', properties: {} },
    geometry: { type: 'Polygon', coordinates: [ring] },
  }));
  const crs = { type: 'name', properties: { name: `urn:ogc:def:crs:EPSG::${epsg}` } };
  writeFileSync(path, JSON.stringify({ type: 'FeatureCollection', crs, features }));
  const dataset = gdal.drivers.get('GeoJSON').open(path, 'r');
  const zones = placeZones(dataset, raster, { label: '', crs: undefined, folder });
  dataset.close();
  const { x: width, y: height } = raster.rasterSize;
  const mask = new Uint8Array(width * height);
  return zones.map((zone) => {
    markInside(zone.rings, { x: 0, y: 0, width, height }, mask);
    return mask.reduce((sum, value) => sum + value, 0);
  });
}

function memoryRaster(epsg: number, side: readonly [number, number], geoTransform: number[]): gdal.Dataset {
  const raster = gdal.open('', 'w', 'MEM', ...side, 1, 'Byte');
  raster.srs = gdal.SpatialReference.fromEPSG(epsg);
  raster.geoTransform = geoTransform;
  return raster;
}

describe('zones of polar systems', () => {
  test('beside one across 180° keep their pixels on a polar raster', async () => {
    const raster = memoryRaster(3413, [100, 100], [-2.5e6, 5e4, 0, 2.5e6, 0, -5e4]);
    // 180° lies to the upper left in EPSG:3413.
    const [far, across] = [box(5e5, -1.5e6, 1.5e6, -5e5), box(-1.5e6, 5e5, -5e5, 1.5e6)];
    expect(await pixelsIn([far], 3413, raster)).toEqual([400]);
    expect(await pixelsIn([far, across], 3413, raster)).toEqual([400, 400]);
  });

  test.each([
    [6931, 'EASE-Grid 2.0 North', 90],
    [6932, 'EASE-Grid 2.0 South', -90],
    [3571, 'Lambert azimuthal', 90],
    [5041, 'UPS North', 90],
    [3413, 'polar stereographic', 90],
  ])('EPSG:%i (%s): a circle round the pole holds its rows of a raster in degrees', async (epsg, _, pole) => {
    const place = fromLonLat(gdal.SpatialReference.fromEPSG(epsg));
    const [x0, y0] = place(0, pole);
    const [x, y] = place(30, Math.sign(pole) * 76.3);
    const radius = Math.hypot(x - x0, y - y0);
    const corners = Array.from({ length: 720 }, (__, i) => (i * Math.PI) / 360);
    const ring: [number, number][] = corners.map((angle) => [
      x0 + radius * Math.cos(angle),
      y0 + radius * Math.sin(angle),
    ]);
    const earth = memoryRaster(4326, [360, 180], [-180, 1, 0, 90, 0, -1]);
    // Centres from 76.5° to 89.5°.
    expect(await pixelsIn([[...ring, ring[0]!]], epsg, earth)).toEqual([14 * 360]);
  });
});

/** Runs a step on a file that `write` makes. */
async function runOn(step: string, name: string, write: (path: string) => void, parameters: StepParameters = {}) {
  const started = await startStepHost({ definition: allSteps, keepsChildren: true });
  write(join(started.inputDir, name));
  const input = { type: 'local', path: name } as const;
  const { parameters: checked } = await started.host.check(step, parameters, input);
  return (await started.run(step, input, checked)).path;
}

describe('no data that only some bands name', () => {
  const area = { type: 'Polygon', coordinates: [[[14, 44], [16, 44], [16, 46], [14, 46], [14, 44]]] } as const; // oxfmt-ignore
  /** The first column of one band has no data; the other band has `least` there. */
  const write = (named: 1 | 2, least: number) => (path: string) => {
    const dataset = gdal.drivers.get('HFA').create(path, 20, 10, 2, 'Byte');
    dataset.srs = gdal.SpatialReference.fromEPSG(32633);
    dataset.geoTransform = [500_000, 30, 0, 5_000_000, 0, -30];
    for (const id of [1, 2]) {
      const first = id === named ? 0 : least;
      dataset.bands.get(id).pixels.write(
        0,
        0,
        20,
        10,
        Uint8Array.from({ length: 200 }, (_, i) => (i % 20 === 0 ? first : 7)),
      );
    }
    dataset.bands.get(named).noDataValue = 0;
    dataset.close();
  };
  test.each([
    ['cog', {}],
    ['clip', { area }],
  ])('%s', async (step, parameters) => {
    for (const named of [1, 2] as const) {
      const { bands } = read(await runOn(step, 'a.img', write(named, 3), parameters));
      const [own, other] = [bands[named - 1]!, bands[2 - named]!];
      expect([valid(own).length, valid(other).length, other[0]]).toEqual([190, 200, 3]);
      // A GeoTIFF could not tell the zeros of one band from the gaps of the other.
      await expect(runOn(step, 'a.img', write(named, 0), parameters)).rejects.toMatchObject({ code: 'no_free_value' });
    }
  });
});

test('bands of different depths keep their values', async () => {
  const raster = gdal.open('', 'w', 'MEM', 20, 10, 2, 'Byte');
  for (const [id, value] of [[1, 1], [2, 200]] as const) raster.bands.get(id).fill(value); // oxfmt-ignore
  raster.bands.get(1).setMetadata({ NBITS: '1' }, 'IMAGE_STRUCTURE');
  const path = join(await testFolder(), 'cog.tif');
  writeCog(
    raster,
    path,
    { compression: 'DEFLATE', blockSize: 512, resampling: 'NEAREST' },
    { signal: new AbortController().signal, progress: () => {} },
  );
  expect(read(path).bands.map((band) => new Set(band))).toEqual([new Set([1]), new Set([200])]);
});

test('a count of valid pixels stays right, however often a process counts', () => {
  const values = Float32Array.from({ length: 5_000 }, (_, i) => (i % 3 === 0 ? NaN : i));
  for (let round = 0; round < 3_000; round++) {
    const statistics = accumulatorOf({ dataType: 'Float32', noDataValue: -9999 }, 1);
    for (let strip = 0; strip < 3; strip++) statistics.add(values, values.length);
    if (statistics.values!.count !== 9_999) expect.fail(`${statistics.values!.count} in round ${round}`);
  }
});

test('units stay in harmonize and cloud-mask', async () => {
  const feet: Made = { type: 'Float32', bands: [(x) => x, () => 0], place: (dataset) => { dataset.bands.get(1).unitType = 'ft'; } }; // oxfmt-ignore
  for (const [step, parameters] of [
    ['harmonize', { bands: '1' }],
    ['cloud-mask', { quality: '2', band: '1', values: '5' }],
  ] as const) {
    const dataset = gdal.open((await run(step, feet, parameters)).path);
    expect([step, dataset.bands.get(1).unitType]).toEqual([step, 'ft']);
    dataset.close();
  }
});

test('a map around the Pacific is reprojected as a whole', async () => {
  const pacific: Made = {
    ...{ width: 180, height: 90, type: 'Float32', bands: [() => 5], nodata: -9999 },
    epsg: '+proj=moll +lon_0=150 +datum=WGS84',
    transform: [-18_040_096, 200_445.5, 0, 9_020_048, 0, -200_445.5],
  };
  const { bands, geoTransform, width } = (await run('reproject', pacific, { crs: 'EPSG:6933' })).raster();
  const [west = 0, wide = 1, , north = 0, , high = -1] = geoTransform;
  // The whole Earth is a rectangle in EPSG:6933.
  const onEarth = bands[0]!.filter((__, i) => Math.abs(west + ((i % width) + 0.5) * wide) < 17_300_000 && Math.abs(north + (Math.floor(i / width) + 0.5) * high) < 7_000_000); // oxfmt-ignore
  expect(onEarth.length).toBeGreaterThan(10_000);
  expect(valid(onEarth).length / onEarth.length).toBeGreaterThan(0.98);
});

describe('no data of 32-bit real numbers', () => {
  test('that 32 bits cannot hold exactly is no fault of a step', async () => {
    const made: Made = { type: 'Float32', nodata: 1e20, bands: [(x) => (x === 0 ? Math.fround(1e20) : x)] };
    for (const step of ['cog', 'mosaic']) expect(valid((await run(step, made)).raster().bands[0]!)).toHaveLength(190);
  });
  test('that lies among the values stays in a sum', async () => {
    const made: Made = { type: 'Float32', nodata: 0, bands: [(x) => (x < 2 ? 0 : x - 10)] };
    const parameters = { crs: 'EPSG:32633', pixelSize: 60, resampling: 'sum' };
    // Columns 2 and 3 of two rows: twice -8 and -7.
    expect((await run('reproject', made, parameters)).raster().bands[0]![1]).toBe(-30);
  });
});

test('a damaged file is said to be damaged', async () => {
  const write = (path: string) => {
    make(path, { width: 400, height: 400, bands: [(x, y) => (x * y) % 60_000], options: ['COMPRESS=DEFLATE'] });
    truncateSync(path, readFileSync(path).length / 2);
  };
  for (const [step, parameters] of [
    ['reproject', { crs: 'EPSG:3857' }],
    ['mosaic', { crs: 'EPSG:3857' }],
  ] as const)
    // oxfmt-ignore
    await expect(runOn(step, 'a.tif', write, parameters)).rejects.toThrow(/damaged|cannot be read|row/);
});

test('infinite heights have no contours', async () => {
  const heights: Made = { type: 'Float32', bands: [(x) => (x === 5 ? Infinity : x === 12 ? -Infinity : x)] };
  const { path } = await run('contours', heights, { levels: '3.5,8.5,15.5' });
  const dataset = gdal.open(path);
  const { minX, maxX, minY, maxY } = dataset.layers.get(0).getExtent();
  expect([dataset.layers.get(0).features.count(), Number.isFinite(minX + maxX + minY + maxY)]).toEqual([3, true]);
  dataset.close();
});

test.each([
  ['feet (US)', 1200 / 3937],
  ['US_survey_foot', 1200 / 3937],
  ['US Foot', 1200 / 3937],
  ['foot (US survey)', 1200 / 3937],
  ['usft', 1200 / 3937],
  ['yard', 0.9144],
  ['feet', 0.3048],
  ['Metre', 1],
  ['parsec', null],
])('the unit %s', (unitType, metres) => {
  expect(metresPerUnitOf({ unitType })).toBe(metres);
});
