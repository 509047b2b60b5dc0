/** Values and grids of reproject, mosaic and harmonize: full resolution, true blends and sums, the grid of the first. */
import { join } from 'node:path';
import gdal from 'gdal-async';
import { describe, expect, test } from 'vitest';
import { toLonLat } from '../../src/raster/lon-lat.ts';
import { isSameTransform } from '../../src/raster/match-band.ts';
import allSteps from '../support/all-steps.ts';
import { testFolder } from '../support/folders.ts';
import { make, read, run, type Made } from '../support/made-rasters.ts';
import { startStepHost } from '../support/step-host.ts';

const same = { crs: 'EPSG:32633' };

describe('overviews of an input', () => {
  /** All pixels are 2, and all overviews 9, as those of a file that was changed. */
  async function runWithOverviews(step: string, parameters: Readonly<Record<string, string | number>>) {
    const started = await startStepHost({ definition: allSteps });
    const path = make(join(started.inputDir, 'a.tif'), { width: 64, height: 64, bands: [() => 2] });
    const dataset = gdal.open(path, 'r+');
    dataset.buildOverviews('NEAREST', [2, 4]);
    const band = dataset.bands.get(1);
    for (let level = 0; level < band.overviews.count(); level++) band.overviews.get(level).fill(9);
    dataset.close();
    const input = { type: 'local', path: 'a.tif' } as const;
    const { parameters: checked } = await started.host.check(step, parameters, input);
    return new Set(read((await started.run(step, input, checked)).path).bands[0]);
  }
  test.each(['near', 'average', 'max'])('are not read by reproject with %s', async (resampling) => {
    expect(await runWithOverviews('reproject', { ...same, resampling, pixelSize: 120 })).toEqual(new Set([2]));
  });
});

describe('overviews of a reprojected raster', () => {
  async function firstOverview(made: Made, resampling: string): Promise<Set<number>> {
    const { path } = await run('reproject', { width: 1_024, height: 512, ...made }, { ...same, resampling });
    const dataset = gdal.open(path);
    const overview = dataset.bands.get(1).overviews.get(0);
    const { x, y } = overview.size;
    const values = overview.pixels.read(0, 0, x, y, new Float64Array(x * y)) as Float64Array;
    dataset.close();
    return new Set(values);
  }
  const columns: Made = { type: 'Byte', bands: [(x) => (x % 4 === 0 ? 80 : 40)] };
  const classes = (dataset: gdal.Dataset) => {
    const table = new gdal.ColorTable(gdal.GPI_RGB);
    for (const value of [40, 80]) table.set(value, { c1: value, c2: 0, c3: 0, c4: 255 });
    dataset.bands.get(1).colorTable = table;
  };
  test('have means of values', async () => {
    expect(await firstOverview(columns, 'bilinear')).toEqual(new Set([60, 40]));
  });
  test('have values themselves for near, for mode and for classes', async () => {
    expect(await firstOverview(columns, 'near')).toEqual(new Set([80, 40]));
    expect(await firstOverview(columns, 'mode')).toEqual(new Set([80, 40]));
    expect(await firstOverview({ ...columns, place: classes }, 'max')).toEqual(new Set([80, 40]));
  });
});

test.each(['Float32', 'Byte'])('a mean of %s that equals the nodata value is a value', async (type) => {
  const made: Made = { type, nodata: 5, bands: [(x) => (x % 2 === 0 ? 4 : 6)] };
  const { bands } = (await run('reproject', made, { ...same, resampling: 'average', pixelSize: 60 })).raster();
  expect(bands[0]).toEqual(Array.from({ length: 50 }, () => 5));
});

describe('a mosaic keeps the pixels of the first raster', () => {
  const oblong: Made = { width: 4, height: 3, type: 'Byte', bands: [(x, y) => 1 + x + 4 * y] };
  const values = Array.from({ length: 12 }, (_, i) => i + 1);
  test.each(['last', 'max'])('oblong and south-up, overlap %s', async (overlap) => {
    const made: Made = { ...oblong, transform: [500_000, 20, 0, 5_000_000, 0, 10] };
    const { bands, geoTransform } = read((await run('mosaic', [made], { overlap })).path);
    expect(geoTransform).toEqual([500_000, 20, 0, 5_000_030, 0, -10]);
    expect(bands[0]).toEqual([...values.slice(8), ...values.slice(4, 8), ...values.slice(0, 4)]);
  });
});

describe('resampling by sum', () => {
  const doubled = { ...same, resampling: 'sum', pixelSize: 60 };
  test('adds values', async () => {
    const { bands } = (await run('reproject', { type: 'UInt16', bands: [(x) => x] }, doubled)).raster();
    expect(bands[0]!.slice(0, 10)).toEqual(Array.from({ length: 10 }, (_, x) => 2 * (2 * x + 2 * x + 1)));
  });
  test('refuses a sum beyond the type', async () => {
    const made = run('reproject', { type: 'Byte', bands: [() => 200] }, doubled);
    await expect(made).rejects.toMatchObject({ code: 'value_out_of_range' });
  });
  test.each(['sum', 'rms'])('refuses stored numbers with an offset: %s', async (resampling) => {
    const made = run('reproject', { bands: [() => 100], scale: [0.1, -5] }, { ...doubled, resampling });
    await expect(made).rejects.toMatchObject({ code: 'scaled_values' });
  });
});

test('grids that drift apart are not the same', () => {
  const grid = [500_000, 30, 0, 5_000_000, 0, -30];
  const size = { width: 4_000, height: 10 };
  expect(isSameTransform(grid, [500_000.02, 30, 0, 5_000_000, 0, -30], size)).toBe(true);
  // At the last column the pixels lie 116 m apart.
  expect(isSameTransform(grid, [500_000, 30.029, 0, 5_000_000, 0, -30], size)).toBe(false);
  expect(isSameTransform(grid, [500_000, 30, 0, 5_000_000, 0, -30.029], { width: 10, height: 4_000 })).toBe(false);
});

test('eastings come first if only the geographic base system names latitude first', async () => {
  // A GeoTIFF of ESRI:102113 names the axes of its geographic base, which are not those of the map.
  const path = make(join(await testFolder(), 'a.tif'), { epsg: 'ESRI:102113', bands: [() => 1] });
  const dataset = gdal.open(path);
  expect(dataset.srs!.toWKT()).toMatch(/AXIS\["Latitude",NORTH\].*PROJECTION/);
  const place = toLonLat(dataset.srs!)(-8_471_416, 4_928_000);
  dataset.close();
  expect(place![0]).toBeCloseTo(-76.1, 1);
  expect(place![1]).toBeGreaterThan(40);
});

test.each([
  ['Int32', -2_147_483_648, -2_147_483_001],
  ['UInt32', 4_000_000_000, 4_000_000_030],
])('%s: a value close to the nodata value %d is a value', async (type, nodata, value) => {
  const made: Made = { type, nodata, bands: [(x) => (x === 0 ? nodata : value)] };
  for (const [step, parameters] of [
    ['reproject', same],
    ['mosaic', {}],
  ] as const) {
    // oxfmt-ignore
    const { bands } = (await run(step, made, parameters)).raster();
    expect(bands[0], step).toEqual(Array.from({ length: 200 }, (_, i) => (i % 20 === 0 ? null : value)));
  }
});
