// @module-tag all
/** Summary of an output for people: picture, place, numbers, histogram, legend. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { readResult } from '../../src/app/processing/output-summary.ts';
import allSteps from '../support/all-steps.ts';
import toySteps from '../support/toy-steps/app.ts';
import { geoTiff } from '../support/geotiff.ts';
import { startStepHost } from '../support/step-host.ts';

describe('of a step that ran', () => {
  test('one band: its numbers, a histogram between the percentiles of its picture, its corners', async () => {
    const { run, inputDir } = await startStepHost({ definition: toySteps, keepsChildren: true });
    await writeFile(join(inputDir, 'a.tif'), geoTiff({ width: 50, height: 20, value: (x) => x }));
    const { result } = await run('multiply', { type: 'local', path: 'a.tif' }, { factor: 2 });
    const { summary, picture } = result!;
    expect(summary).toMatchObject({
      width: 50,
      height: 20,
      bands: [{ name: 'product', unit: 'm', min: 0, mean: 49, max: 98, validShare: 1 }],
    });
    expect(summary.bands[0]!.stdDev).toBeCloseTo(2 * Math.sqrt((50 ** 2 - 1) / 12), 9);
    const { low, high, counts } = summary.bands[0]!.histogram;
    expect([low, high, summary.bands[0]!.colors]).toEqual([
      0,
      96,
      [
        [0, 0, 0],
        [255, 255, 255],
      ],
    ]);
    expect(counts.reduce((sum, n) => sum + n, 0)).toBe(49 * 20);
    // UTM 33N, whose middle meridian is 15 degrees east.
    expect(summary.corners!.map((corner) => corner.map((value) => Number(value.toFixed(3))))).toEqual([
      [15, 45.153],
      [15.019, 45.153],
      [15.019, 45.148],
      [15, 45.148],
    ]);
    const { data, info } = await sharp(picture).raw().toBuffer({ resolveWithObject: true });
    expect([info.width, info.height, info.channels]).toEqual([50, 20, 4]);
    // From black to white, as its legend says.
    expect([data[0], data[25 * 4], data[49 * 4]]).toEqual([0, Math.round((50 / 96) * 255), 255]);
  });

  test('nodata is transparent, and counts for nothing', async () => {
    const { run, inputDir } = await startStepHost({ keepsChildren: true });
    const half = (value: number) => geoTiff({ width: 40, height: 10, value: (x) => (x < 20 ? 0 : value) });
    await writeFile(join(inputDir, 'x_B4.tif'), half(100));
    await writeFile(join(inputDir, 'y_B5.tif'), half(300));
    const { summary, picture } = (await run('ndvi', { type: 'local', path: '.' })).result!;
    expect(summary.bands).toMatchObject([
      { name: 'normalized difference', min: 0.5, mean: 0.5, max: 0.5, stdDev: 0, validShare: 0.5 },
    ]);
    expect(summary.bands[0]).toMatchObject({
      histogram: { low: -0.2, high: 0.9 },
      colors: expect.arrayContaining([[165, 0, 38]]) as unknown,
    });
    const { data } = await sharp(picture).raw().toBuffer({ resolveWithObject: true });
    expect([data[3], data[39 * 4 + 3]]).toEqual([0, 255]);
  });

  test.each<[string, readonly [number, number, number], readonly number[]]>([
    ['the whole Earth', [-180, 90, 3.6], [-180, 180, 180, -180]],
    ['over the antimeridian', [169, 20, 0.2], [169, 189, 189, 169]],
    ['written beyond it', [179.5, 20, 0.02], [-180.5, -178.5, -178.5, -180.5]],
  ])('%s in degrees: the corners lie side by side', async (_name, origin, longitudes) => {
    const { run, inputDir } = await startStepHost({ definition: toySteps, keepsChildren: true });
    await writeFile(join(inputDir, 'a.tif'), geoTiff({ width: 100, height: 50, value: (x) => x, epsg: 4326, origin }));
    const { summary } = (await run('multiply', { type: 'local', path: 'a.tif' }, { factor: 1 })).result!;
    expect(summary.corners!.map(([lon]) => Number(lon.toFixed(6)))).toEqual(longitudes);
  });

  test('three classes are three colours, named and counted; one that does not occur is not told', async () => {
    const { run, inputDir } = await startStepHost({ definition: toySteps, keepsChildren: true });
    await writeFile(join(inputDir, 'a.tif'), geoTiff({ width: 30, height: 10, value: (x) => x }));
    const { summary, picture } = (await run('classify', { type: 'local', path: 'a.tif' }, {})).result!;
    expect(summary.bands[0]!.colors).toBeNull();
    expect(summary.bands[0]!.classes!.map(({ value, name, share }) => [value, name, Number(share.toFixed(3))])).toEqual(
      [
        [0, 'low', 0.333],
        [1, 'middle', 0.333],
        [2, 'high', 0.333],
      ],
    );
    const { data } = await sharp(picture).raw().toBuffer({ resolveWithObject: true });
    expect(
      [...new Set(Array.from({ length: 300 }, (_, i) => [...data.subarray(i * 4, i * 4 + 4)].join(',')))].sort(),
    ).toEqual(['0,114,178,255', '0,158,115,255', '230,159,0,255']);
  });

  test('a small grid of values stays, for the read-out under the pointer', async () => {
    const { run, inputDir } = await startStepHost({ definition: toySteps, keepsChildren: true });
    await writeFile(join(inputDir, 'a.tif'), geoTiff({ width: 50, height: 20, value: (x) => x }));
    const { values } = (await run('multiply', { type: 'local', path: 'a.tif' }, { factor: 2 })).result!.summary;
    expect([values!.width, values!.height, values!.rows[7], values!.rows[50 * 19 + 49]]).toEqual([50, 20, 14, 98]);
  });

  test('nothing valid at all: no numbers, and the run is none the worse', async () => {
    const { run, inputDir } = await startStepHost({ keepsChildren: true });
    for (const name of ['x_B4.tif', 'y_B5.tif'])
      await writeFile(join(inputDir, name), geoTiff({ width: 8, height: 8, value: () => 0 }));
    expect((await run('ndvi', { type: 'local', path: '.' })).result!.summary.bands).toEqual([]);
  });

  test('bands of a colour picture: numbers of each, no legend', async () => {
    const { run } = await startStepHost({ keepsChildren: true });
    const { summary } = (await run('cog', { type: 'synthetic', size: 64 })).result!;
    expect(summary.bands.map(({ name }) => name)).toEqual(['blue', 'green', 'red', 'nir', 'swir16']);
    expect(summary.bands.map(({ colors }) => colors)).toEqual(Array(5).fill(null));
  });
});

const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0]);
const good = { width: 1, height: 1, features: null, corners: null, values: null, bands: [], readings: [] };

test("what a step's process answers is held to its shape", () => {
  expect(readResult({ summary: good, picture: png })).toEqual({ summary: good, picture: png });
  const band = {
    name: 'a',
    min: 0,
    mean: 0,
    max: 0,
    stdDev: 0,
    validShare: 1,
    histogram: { low: 0, high: 1, counts: [1] },
    colors: null,
  };
  expect(readResult({ summary: { ...good, bands: [band] }, picture: png })).not.toBeNull();
  for (const summary of [
    { ...good, width: 0 },
    { ...good, bands: [{ ...band, mean: NaN }] },
    { ...good, bands: Array.from({ length: 17 }, () => band) },
    { ...good, bands: [{ ...band, name: '<'.repeat(201) }] },
    {
      ...good,
      corners: [
        [0, 91],
        [0, 0],
        [0, 0],
        [0, 0],
      ],
    },
    { ...good, more: 1 },
  ]) {
    expect(readResult({ summary, picture: png })).toBeNull();
  }
  for (const picture of [Buffer.from('<svg>'), 'png', new Uint8Array(3 * 1024 ** 2).fill(0x89), null])
    expect(readResult({ summary: good, picture })).toBeNull();
  for (const answer of [null, undefined, 7, {}]) expect(readResult(answer)).toBeNull();
});

describe('of features', () => {
  test('lines in the colours of their heights, with the numbers of their fields, and their place', async () => {
    const { run, inputDir } = await startStepHost({ definition: allSteps, keepsChildren: true });
    await writeFile(
      join(inputDir, 'dem.tif'),
      geoTiff({ width: 64, height: 40, value: (x) => x * 10, type: 'Float32' }),
    );
    const { result } = await run('contours', { type: 'local', path: 'dem.tif' }, { interval: 100 });
    const { summary, picture } = result!;
    expect(summary).toMatchObject({ features: 6, width: 768, values: expect.anything() as unknown });
    expect(summary.bands).toMatchObject([
      { name: 'elevation', min: 100, mean: 350, max: 600, validShare: 1 },
      { name: 'number', colors: null },
    ]);
    expect(summary.bands[0]!.colors).not.toBeNull();
    const [[west = NaN, north = NaN]] = summary.corners!;
    expect([west, north].map((value) => Math.abs(value - [15, 45.153][value > 40 ? 1 : 0]!) < 0.01)).toEqual([
      true,
      true,
    ]);
    const { data, info } = await sharp(picture).raw().toBuffer({ resolveWithObject: true });
    const row = [...Array(info.width).keys()].map((x) => [
      ...data.subarray((200 * info.width + x) * 4, (200 * info.width + x) * 4 + 4),
    ]);
    const drawn = row.filter(([, , , alpha]) => alpha === 255);
    // Six lines of a pixel or two, the lowest red, the highest green, nothing between them.
    expect(drawn.length).toBeGreaterThanOrEqual(6);
    expect(drawn.length).toBeLessThanOrEqual(18);
    expect(drawn[0]![0]).toBeGreaterThan(drawn[0]![1]!);
    expect(drawn.at(-1)![1]).toBeGreaterThan(drawn.at(-1)![0]!);
  });

  test('tells by which scale the values of the input were read', async () => {
    const { run, inputDir } = await startStepHost({ definition: allSteps, keepsChildren: true });
    await writeFile(join(inputDir, 'a.tif'), geoTiff({ width: 20, height: 20, value: () => 7, type: 'Float32' }));
    const readingsOf = async (scaling: string) =>
      (await run('ndvi', { type: 'local', path: 'a.tif' }, { bandA: '1', bandB: '1', scaling, nodata: -1 })).result!
        .summary.readings;
    expect(await readingsOf('file')).toEqual([expect.objectContaining({ factor: 1, offset: 0, origin: 'none' })]);
    expect(await readingsOf('0.5,-3')).toEqual([
      expect.objectContaining({ factor: 0.5, offset: -3, origin: 'parameter' }),
    ]);
  });

  test('areas, where the table beside them has no place', async () => {
    const { run } = await startStepHost({ definition: allSteps, keepsChildren: true });
    const { result, outputs } = await run('zonal-statistics', { type: 'synthetic', size: 64 });
    expect(outputs).toHaveLength(2);
    expect(result!.summary.features).toBe(4);
    expect(result!.summary.bands.map(({ name }) => name)).toContain('mean');
  });

  test('one without a value is drawn nowhere', async () => {
    const { run, inputDir } = await startStepHost({ definition: allSteps, keepsChildren: true });
    await writeFile(join(inputDir, 'values.tif'), geoTiff({ width: 20, height: 20, value: () => 7, type: 'Float32' }));
    const square = (west: number, zone: string) => ({ type: 'Feature', properties: { zone }, geometry: { type: 'Polygon', coordinates: [[[west, 45.148], [west, 45.153], [west + 0.003, 45.153], [west + 0.003, 45.148], [west, 45.148]]] } }); // oxfmt-ignore
    const zones = { type: 'FeatureCollection', features: [square(15.001, 'inside'), square(15.011, 'outside')] };
    await writeFile(join(inputDir, 'zones.geojson'), JSON.stringify(zones));
    const { result } = await run('zonal-statistics', {
      type: 'named',
      inputs: { values: { type: 'local', path: 'values.tif' }, zones: { type: 'local', path: 'zones.geojson' } },
    });
    const values = result!.summary.values!.rows.filter((value) => value !== null);
    expect(new Set(values)).toEqual(new Set([7]));
    expect(result!.summary.bands.find(({ name }) => name === 'mean')).toMatchObject({ validShare: 0.5, min: 7 });
  });

  test('none at all: no result', async () => {
    const { run, inputDir } = await startStepHost({ definition: allSteps, keepsChildren: true });
    await writeFile(join(inputDir, 'flat.tif'), geoTiff({ width: 9, height: 9, value: () => 5, type: 'Float32' }));
    const { result } = await run('contours', { type: 'local', path: 'flat.tif' }, { interval: 100 });
    expect(result).toBeNull();
  });
});
