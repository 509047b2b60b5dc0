/** Compares step results with independent arithmetic, on rasters with masks, scales and unusual grids. */
import { join } from 'node:path';
import gdal from 'gdal-async';
import { describe, expect, test } from 'vitest';
import type { StepParameters } from '../../src/app/processing/step-parameters.ts';
import { mkdir, writeFile } from 'node:fs/promises';
import { testFolder } from '../support/folders.ts';
import { confined, needing } from '../support/needs.ts';
import { startStepHost } from '../support/step-host.ts';
import { coverShares, markInside } from '../../src/steps/zones.ts';
import allSteps from '../support/all-steps.ts';
import { make, read, run, valid, type Made } from '../support/made-rasters.ts';
import pixelSteps from '../support/pixel-steps.ts';

const isConfined = await confined();

describe('what is valid', () => {
  const left = (x: number) => (x < 10 ? 0 : 255);
  test('cloud-mask with bands=all leaves out alpha', async () => {
    const bands = [(x: number) => x, () => 0, (x: number) => 2 * x, () => 255];
    const made = await run(
      'cloud-mask',
      { bands, hasAlpha: true },
      { band: '1', bands: 'all', quality: '2', bits: '0' },
    );
    const { bands: kept } = made.raster();
    expect(kept.map(([, second]) => second)).toEqual([1, 2]);
  });

  test('a mask and alpha hold in arithmetic', async () => {
    const bands = [() => 4_000, () => 1_000];
    const masked = (await run('ndvi', { bands, mask: left }, { bandA: '1', bandB: '2' })).raster();
    expect(valid(masked.bands[0]!)).toEqual(Array.from({ length: 100 }, () => Math.fround(0.6)));
    const alpha = (await run('ndvi', { bands: [...bands, left], hasAlpha: true }, { bandA: '1', bandB: '2' })).raster();
    expect(valid(alpha.bands[0]!)).toHaveLength(100);
  });
  test('a mask holds in slopes: no cliff at a hole', async () => {
    const made: Made = { type: 'Float32', bands: [(x) => x * 30], mask: (x) => (x === 5 ? 0 : 255) };
    const { bands } = (await run('slope', { ...made, bands: [(x) => (x === 5 ? 0 : x * 30)] })).raster();
    // Next to the hole the slope is at most that of the plane.
    const steepest = Math.max(...valid(bands[0]!));
    expect(steepest).toBeCloseTo(45, 4);
    expect(valid(bands[0]!)).toHaveLength(190);
  });
  test('a mask survives a warp, and what nothing covers holds nothing', async () => {
    const turned: Made = {
      width: 40,
      height: 40,
      type: 'Byte',
      bands: [() => 7],
      transform: [500_000, 20, 15, 5_000_000, 15, -20],
    };
    const { bands } = (await run('reproject', turned, { crs: 'EPSG:32633' })).raster();
    const there = valid(bands[0]!);
    expect(new Set(there)).toEqual(new Set([7]));
    expect(there.length).toBeLessThan(bands[0]!.length * 0.8);
    const real = (await run('reproject', { ...turned, type: 'Float32' }, { crs: 'EPSG:32633' })).raster();
    expect(new Set(valid(real.bands[0]!))).toEqual(new Set([7]));
    const masked = (
      await run('reproject', { type: 'Byte', bands: [() => 7], mask: left }, { crs: 'EPSG:32633' })
    ).raster();
    expect(valid(masked.bands[0]!)).toHaveLength(100);
  });
  test('a clipped raster of classes keeps its class 0', async () => {
    const area = {
      type: 'Polygon',
      coordinates: [
        [
          [14.9, 44],
          [15.002, 44],
          [15.002, 46],
          [14.9, 46],
          [14.9, 44],
        ],
      ],
    } as const;
    const { bands } = (await run('clip', { type: 'Byte', bands: [(x) => x % 2] }, { area: area as never })).raster();
    expect(new Set(valid(bands[0]!))).toEqual(new Set([0, 1]));
    const given = { area: area as never, outside: 255 };
    const masked = (await run('clip', { type: 'Byte', bands: [() => 255], mask: left }, given)).raster();
    expect(valid(masked.bands[0]!).length).toBeLessThan(100);
    await expect(run('clip', { type: 'Byte', bands: [() => 255] }, given)).rejects.toMatchObject({
      code: 'value_occurs_inside',
    });
  });
  test('a mosaic: gaps of any of its rasters, and between them, are gaps', async () => {
    const one: Made = { type: 'Byte', bands: [() => 1] };
    const other: Made = {
      ...one,
      bands: [(x) => (x < 5 ? 0 : 2)],
      nodata: 0,
      transform: [500_900, 30, 0, 5_000_000, 0, -30],
    };
    const { width, bands } = (await run('mosaic', [one, other])).raster();
    expect([width, valid(bands[0]!).length]).toEqual([50, 350]);
    const over: Made[] = [5, 1, 3].map((value) => ({ ...one, bands: [() => value] }));
    for (const [overlap, expected] of [
      ['last', 3],
      ['first', 5],
      ['min', 1],
      ['max', 5],
      ['mean', 3],
      ['median', 3],
    ] as const)
      expect([overlap, (await run('mosaic', over, { overlap })).raster().bands[0]![0]]).toEqual([overlap, expected]);
  });
  describe('a mosaic by date', () => {
    const dated = (value: number, metadata: Record<string, string>): Made => ({
      type: 'Byte',
      bands: [() => value],
      place: (dataset) => void dataset.setMetadata(metadata),
    });
    const byFile = [
      dated(1, { TIFFTAG_DATETIME: '2020:06:01 10:00:00' }),
      dated(2, { TIFFTAG_DATETIME: '2022:06:01 10:00:00' }),
      dated(3, { ACQUISITIONDATETIME: '2021-06-01 10:00:00', TIFFTAG_DATETIME: '2024:01:01 00:00:00' }),
    ];
    test.each([
      ['newest', 2],
      ['oldest', 1],
    ])('the %s by the metadata of the files', async (overlap, value) => {
      const { bands } = (await run('mosaic', byFile, { overlap })).raster();
      expect(new Set(bands[0])).toEqual(new Set([value]));
    });
    test.each([
      ['newest', 1],
      ['oldest', 3],
    ])('the %s by the items, which count before the files', async (overlap, value) => {
      const folder = await testFolder();
      const files = byFile.map((one, i) => ({
        path: make(join(folder, `${i}.tif`), one),
        ofItem: { observedAt: `201${9 - i}-01-01T00:00:00.000Z`, bands: [] },
      }));
      const items = files.map((_, i) => ({ collectionId: 'c', itemId: String(i) }));
      const platformInput = { check: () => Promise.resolve([]), fetch: () => Promise.resolve(files) };
      const started = await startStepHost({ definition: allSteps, platformInput });
      const { path } = await started.run('mosaic', { type: 'platform', items }, { overlap });
      expect(new Set(read(path).bands[0])).toEqual(new Set([value]));
    });
    test('a file without a date is named', async () => {
      await expect(run('mosaic', [...byFile, dated(4, {})], { overlap: 'newest' })).rejects.toMatchObject({
        code: 'no_date',
        message: expect.stringMatching(/^d\.tif has no date: /) as string,
      });
    });
  });
  test('a buffer of the cloud mask grows by pixels on all sides, and not over the edge', async () => {
    const made: Made = { bands: [() => 7, (x, y) => (x === 10 && y === 0 ? 8 : 0)] };
    const parameters = { band: '1', quality: '2', buffer: 2 };
    const { bands } = (await run('cloud-mask', made, parameters)).raster();
    const missing = bands[0]!.flatMap((value, i) => (value === null ? [[i % 20, Math.floor(i / 20)]] : []));
    expect(missing).toEqual([0, 1, 2].flatMap((y) => [8, 9, 10, 11, 12].map((x) => [x, y])));
  });
});

describe('forms of a pixel step', () => {
  async function expectMask(form: 'pixel' | 'python', values: readonly number[]): Promise<void> {
    const made: Made = { bands: [(x) => (x === 3 ? 0 : 7)], nodata: 0 };
    const { bands, metadata } = (await run(`no-nodata-${form}`, made, {}, pixelSteps)).raster();
    expect(bands).toEqual(values.map((value) => Array.from({ length: 200 }, (_, i) => (i % 20 === 3 ? null : value))));
    expect(metadata).toMatchObject({ STATISTICS_MINIMUM: String(values[0]), STATISTICS_VALID_PERCENT: '95' });
  }
  test('a window sees the neighbours, and nothing beyond the raster', async () => {
    const [width, height] = [20, 10];
    const value = (x: number, y: number) => (x * 7 + y * 13) % 97;
    const made: Made = { width, height, bands: [value] };
    const { bands } = (await run('largest-around', made, {}, pixelSteps)).raster();
    const largest = (x: number, y: number) => {
      const near = [-1, 0, 1].flatMap((dx) => [-1, 0, 1].map((dy) => [x + dx, y + dy] as const));
      return Math.max(
        ...near.filter(([a, b]) => a >= 0 && b >= 0 && a < width && b < height).map((at) => value(...at)),
      );
    };
    expect(bands[0]).toEqual(Array.from({ length: 200 }, (_, i) => largest(i % width, Math.floor(i / width))));
  });
  describe('in Python', needing(isConfined, 'python-gdal'), () => {
    test('the declaration sets types, nodata and descriptions of several bands', async () => {
      const made: Made = { bands: [(x) => x, (x, y) => y] };
      const { path } = await run('in-python', made, {}, pixelSteps);
      const { bands } = read(path);
      const at = (of: (x: number, y: number) => number | null) =>
        Array.from({ length: 200 }, (_, i) => of(i % 20, Math.floor(i / 20)));
      expect(bands[0]).toEqual(at((x, y) => Number(x > y)));
      // numpy rounds halves to even.
      const toEven = (value: number) => (value % 1 === 0.5 ? 2 * Math.round(value / 2) : Math.round(value));
      expect(bands[1]).toEqual(at((x, y) => (y === 0 ? null : toEven(x / y))));
      const dataset = gdal.open(path);
      expect(
        dataset.bands.map(({ description, dataType, noDataValue }) => [description, dataType, noDataValue]),
      ).toEqual([
        ['larger', 'Byte', 255],
        ['ratio', 'Byte', 255],
      ]);
      dataset.close();
    });
    test('reach gives the neighbours, and numbers that the type cannot store are missing', async () => {
      const [width, height] = [20, 10];
      const value = (x: number, y: number) => (x * 7 + y * 13) % 97;
      const { bands } = (await run('around-in-python', { width, height, bands: [value] }, {}, pixelSteps)).raster();
      const around = (x: number, y: number) => {
        if (x === 0 || y === 0 || x === width - 1 || y === height - 1) return null;
        const sum = value(x - 1, y) + value(x + 1, y) + value(x, y - 1) + value(x, y + 1);
        return sum < 255 ? sum : null;
      };
      expect(bands[0]).toEqual(Array.from({ length: 200 }, (_, i) => around(i % width, Math.floor(i / width))));
      expect(valid(bands[0]!).length).toBeLessThan(18 * 8);
    });
    test.each([
      ['difference-in-python', 2],
      ['stored-difference-in-python', 20],
    ])('%s reads each band from its input', async (stepId, difference) => {
      const started = await startStepHost({ definition: pixelSteps });
      const scale = [0.1, 3] as const;
      make(join(started.inputDir, 'a.tif'), { bands: [() => 30], scale });
      make(join(started.inputDir, 'b.tif'), { bands: [() => 50], scale });
      const input = {
        type: 'named',
        inputs: { before: { type: 'local', path: 'a.tif' }, after: { type: 'local', path: 'b.tif' } },
      } as const;
      const { parameters } = await started.host.check(stepId, {}, input);
      const { path } = await started.run(stepId, input, parameters);
      expect(read(path).bands[0]).toEqual(Array.from({ length: 200 }, () => difference));
    });
    test('complex numbers are refused', async () => {
      await expect(
        run('around-in-python', { type: 'CFloat32', bands: [() => 1] }, {}, pixelSteps),
      ).rejects.toMatchObject({ code: 'complex_values' });
    });
    test('a mask marks missing pixels without a nodata value, too', () => expectMask('python', [0, 1]));
    test('one number for a block is an error', async () => {
      await expect(run('scalar-in-python', { bands: [() => 1] }, {}, pixelSteps)).rejects.toMatchObject({
        message: expect.stringContaining(
          'the function must return an array of 10 x 20 pixels for each output band, as its inputs have, and returned one of shape ()',
        ) as string,
      });
    });
    test('an argument without a parameter is told by name', async () => {
      await expect(run('wrong-name', { bands: [() => 1] }, {}, pixelSteps)).rejects.toMatchObject({
        claimedKind: 'bug',
        message: expect.stringContaining(
          'no parameter green chooses a band: name each argument as one of band',
        ) as string,
      });
    });
  });
  test('several bands come out of several; a pixel that one lacks is missing in all', async () => {
    const made: Made = { bands: [() => 9, () => 4, (x) => (x === 0 ? 0 : 2)], nodata: 0 };
    const { bands } = (await run('sum-and-difference', made, {}, pixelSteps)).raster();
    expect(bands.map((one) => [one[0], one[1], valid(one).length])).toEqual([
      [null, 15, 190],
      [null, 3, 190],
    ]);
  });
  test('a mask marks missing pixels without a nodata value', () => expectMask('pixel', [7, 7]));
  test.each([
    ['boolean', 'returned a value of type boolean: it must return a number, and NaN for a missing pixel'],
    ['text', 'returned a value of type string: it must return a number'],
    ['pair', 'returned 2 values for 1 output band'],
  ])('a %s from the function of a pixel is an error', async (id, message) => {
    await expect(run(`returns-${id}`, { bands: [() => 1] }, {}, pixelSteps)).rejects.toMatchObject({
      claimedKind: 'bug',
      message: expect.stringContaining(message) as string,
    });
  });
  test('one value for two output bands is an error, and no band of missing values', async () => {
    await expect(run('too-few', { bands: [() => 1] }, {}, pixelSteps)).rejects.toMatchObject({
      claimedKind: 'bug',
      message: expect.stringContaining('the function of a pixel returned 1 values for 2 output bands') as string,
    });
  });
});

describe('what a value is', () => {
  test('the scale and the offset of the file, or the stored numbers, or one that is given', async () => {
    const made: Made = { bands: [() => 4_000, () => 1_300], scale: [0.0001, -0.1] };
    const ndvi = async (more: StepParameters) =>
      (await run('ndvi', made, { bandA: '1', bandB: '2', ...more })).raster().bands[0]![0];
    expect(await ndvi({})).toBeCloseTo((0.3 - 0.03) / (0.3 + 0.03), 6);
    expect(await ndvi({ scaling: 'stored' })).toBeCloseTo(2_700 / 5_300, 6);
    expect(await ndvi({ scaling: '0.0001,-0.05' })).toBeCloseTo((0.35 - 0.08) / (0.35 + 0.08), 6);
    const { result } = await run('ndvi', made, { bandA: '1', bandB: '2' });
    expect(result!.summary.readings[0]).toMatchObject({ factor: 0.0001, offset: -0.1, origin: 'file' });
    const zero = await run(
      'ndvi',
      { bands: [() => 4_000, (x) => (x === 0 ? 0 : 1_000)] },
      { bandA: '1', bandB: '2', nodata: 0 },
    );
    expect(valid(zero.raster().bands[0]!)).toHaveLength(190);
  });
  test('ground control points and polynomial coefficients place the output as they place the input', async () => {
    const rpc = { LINE_OFF: '5', SAMP_OFF: '10', LAT_OFF: '45', LONG_OFF: '15', HEIGHT_OFF: '0', LINE_SCALE: '5', SAMP_SCALE: '10', LAT_SCALE: '1', LONG_SCALE: '1', HEIGHT_SCALE: '1' }; // oxfmt-ignore
    const terms = Object.fromEntries(
      ['LINE_NUM', 'LINE_DEN', 'SAMP_NUM', 'SAMP_DEN'].map((name) => [`${name}_COEFF`, `1${' 0'.repeat(19)}`]),
    );
    const points = [[0, 0, 15, 45], [20, 0, 15.1, 45.01], [0, 10, 14.99, 44.9]].map(([x, y, east, north], i) => ({ dfGCPPixel: x, dfGCPLine: y, dfGCPX: east, dfGCPY: north, dfGCPZ: 0, pszId: String(i), pszInfo: '' })); // oxfmt-ignore
    const wgs84 = gdal.SpatialReference.fromEPSG(4326).toWKT();
    const place = (dataset: gdal.Dataset) => {
      dataset.setGCPs(points, wgs84);
      dataset.setMetadata({ ...rpc, ...terms }, 'RPC');
    };
    const bands = [() => 4_000, () => 1_000];
    const { path } = await run('ndvi', { bands, epsg: null, transform: null, place }, { bandA: '1', bandB: '2' });
    const output = gdal.open(path);
    expect(output.getGCPs()).toMatchObject([{ dfGCPX: 15 }, { dfGCPX: 15.1, dfGCPY: 45.01 }, { dfGCPLine: 10 }]);
    expect(output.getMetadata('RPC')).toMatchObject(rpc);
    output.close();
    // A slope needs the size of a pixel.
    await expect(run('slope', { bands, epsg: null, transform: null, place })).rejects.toMatchObject({
      code: 'not_placed',
    });
  });
  test('bytes with a sign have it', async () => {
    const made: Made = { type: 'Byte', bands: [() => 255], options: ['PIXELTYPE=SIGNEDBYTE'] };
    expect((await run('band-math', made, { expression: '"1" + 0' })).raster().bands[0]![0]).toBe(-1);
  });
  test('whole numbers of 32 bits are polygons of themselves; others are refused', async () => {
    const made: Made = { type: 'UInt32', bands: [() => 3_000_000_000] };
    const { path } = await run('polygonize', made);
    const dataset = gdal.open(path);
    expect(dataset.layers.get(0).features.map((one) => one.fields.get('value') as number)).toEqual([3_000_000_000]);
    dataset.close();
    await expect(run('polygonize', { type: 'Float32', bands: [() => 0.5] })).rejects.toMatchObject({
      code: 'not_classes',
    });
  });
  const statisticsIn = (path: string) => {
    const dataset = gdal.open(path);
    const told = dataset.bands.map((band) => {
      const metadata = band.getMetadata() as Record<string, string>;
      return ['MINIMUM', 'MAXIMUM', 'MEAN', 'STDDEV'].map((name) => Number(metadata[`STATISTICS_${name}`]));
    });
    dataset.close();
    return told;
  };
  test('statistics in the file are those of each band', async () => {
    const { path } = await run('cog', { bands: [(x) => x, (x, y) => 100 + y] });
    const [first, second] = statisticsIn(path);
    // The standard deviation of n successive whole numbers is the root of (n² - 1) / 12.
    expect(first).toEqual([0, 19, 9.5, expect.closeTo(Math.sqrt((20 ** 2 - 1) / 12), 9)]);
    expect(second).toEqual([100, 109, 104.5, expect.closeTo(Math.sqrt((10 ** 2 - 1) / 12), 9)]);
  });
  test.each([
    ['Byte', 0, 255],
    ['UInt16', 0, 65_535],
    ['Int16', -32_768, 32_767],
  ])('statistics of %s count both ends of the type, and no missing pixel', async (type, low, high) => {
    const made: Made = { type, nodata: 7, bands: [(x) => (x < 5 ? low : x < 10 ? high : 7)] };
    const { path } = await run('cog', made);
    expect(statisticsIn(path)).toEqual([[low, high, (low + high) / 2, (high - low) / 2]]);
  });
  test('statistics are those of every pixel', async () => {
    const made: Made = {
      width: 1_500,
      height: 1_500,
      type: 'Float32',
      bands: [(x, y) => (x === 700 && y === 3 ? 9_999 : 50 + (x % 3))],
    };
    const { result } = await run('band-math', made, { expression: '"1" * 1' });
    expect(result?.summary.bands[0]).toMatchObject({ min: 50, max: 9_999, validShare: 1 });
  });
});

describe('features of a raster with missing pixels', () => {
  /** Columns 8 to 11 are missing. Their value occurs in no valid pixel. */
  const isMissing = (x: number) => x >= 8 && x <= 11;
  const visible = (x: number) => (isMissing(x) ? 0 : 255);
  const kinds = {
    nodata: (of: (x: number) => number) => ({ nodata: 3_000, bands: [(x: number) => (isMissing(x) ? 3_000 : of(x))] }),
    mask: (of: (x: number) => number) => ({ bands: [(x: number) => (isMissing(x) ? 3_000 : of(x))], mask: visible }),
    alpha: (of: (x: number) => number) => ({
      bands: [(x: number) => (isMissing(x) ? 3_000 : of(x)), visible],
      hasAlpha: true,
    }),
  };
  function features<T>(path: string, of: (one: gdal.Feature) => T): T[] {
    const dataset = gdal.open(path);
    const all = dataset.layers.get(0).features.map(of);
    dataset.close();
    return all;
  }
  const places = (one: gdal.Feature) => {
    const { minX, maxX } = one.getGeometry()!.getEnvelope();
    return [(minX - 500_000) / 30, (maxX - 500_000) / 30] as const;
  };

  describe.each(Object.entries(kinds))('by %s', (_kind, missing) => {
    test('polygonize: areas end at them', async () => {
      const { path } = await run(
        'polygonize',
        missing((x) => Math.floor(x / 10)),
      );
      const areas = features(path, (one) => [one.fields.get('value') as number, ...places(one)]);
      expect(areas).toEqual([
        [0, 0, 8],
        [1, 12, 20],
      ]);
    });
    test('contours: no line in them or at their edge', async () => {
      const { path } = await run('contours', { type: 'Float32', ...missing((x) => 30 * x + 1) }, { interval: 60 });
      const lines = features(path, (one) => ({ at: one.fields.get('elevation') as number, places: places(one) }));
      // Pixel centres have the heights 1 to 211 and 361 to 571. Each line runs where the height equals its level.
      expect(lines.map(({ at }) => at).toSorted((a, b) => a - b)).toEqual([60, 120, 180, 420, 480, 540]);
      for (const {
        at,
        places: [west, east],
      } of lines) {
        expect(west).toBeCloseTo((at - 1) / 30 + 0.5, 4);
        expect(east).toBeCloseTo(west, 4);
      }
    });
    test('zonal-statistics: they are not counted', async () => {
      const started = await startStepHost({ definition: allSteps });
      make(join(started.inputDir, 'a.tif'), { type: 'Float32', ...missing((x) => x) });
      const ring = [[-1, 11], [16, 11], [16, -1], [-1, -1], [-1, 11]].map(([x, y]) => [500_000 + 30 * x!, 5_000_000 - 30 * y!]); // oxfmt-ignore
      const zones = {
        type: 'FeatureCollection',
        crs: { type: 'name', properties: { name: 'urn:ogc:def:crs:EPSG::32633' } },
        features: [{ type: 'Feature', properties: {}, geometry: { type: 'Polygon', coordinates: [ring] } }],
      };
      await writeFile(join(started.inputDir, 'z.geojson'), JSON.stringify(zones));
      const input = {
        type: 'named',
        inputs: { values: { type: 'local', path: 'a.tif' }, zones: { type: 'local', path: 'z.geojson' } },
      } as const;
      const { parameters } = await started.host.check('zonal-statistics', {}, input);
      const { path } = await started.run('zonal-statistics', input, parameters);
      const inside = Array.from({ length: 16 }, (_, x) => x).filter((x) => !isMissing(x));
      const mean = inside.reduce((sum, x) => sum + x, 0) / inside.length;
      const [zone] = features(path, (one) => one.fields.toObject() as Record<string, number>);
      expect(zone).toMatchObject({ count: inside.length * 10, min: 0, max: 15 });
      expect(zone!['mean']).toBeCloseTo(mean, 6);
    });
  });
});

describe('where it lies', () => {
  test('a raster of no reference system is refused, unless its own is named', async () => {
    const made: Made = { bands: [() => 1], epsg: null };
    await expect(run('reproject', made)).rejects.toMatchObject({ code: 'not_placed' });
    const { geoTransform } = (await run('reproject', made, { from: 'EPSG:32633' })).raster();
    expect(geoTransform[0]).toBeCloseTo(15, 2);
  });
  test('across 180° a raster stays one', async () => {
    const made: Made = {
      width: 100,
      height: 100,
      epsg: 32660,
      type: 'Float32',
      bands: [() => 5],
      transform: [820_000, 1_000, 0, 1_000_000, 0, -1_000],
    };
    const { width, height, bands, geoTransform } = (await run('reproject', made)).raster();
    expect([Math.round(width / 20), Math.round(height / 20)]).toEqual([5, 5]);
    expect(geoTransform[0]).toBeCloseTo(179.9, 1);
    expect(valid(bands[0]!).length / bands[0]!.length).toBeGreaterThan(0.9);
    // Also a raster whose reference system the user names.
    const named = (await run('reproject', { ...made, epsg: null }, { from: 'EPSG:32660' })).raster();
    expect([named.width, named.height, named.geoTransform]).toEqual([width, height, geoTransform]);
    const degrees = (west: number): Made => ({
      epsg: 4326,
      type: 'Byte',
      bands: [() => 1],
      transform: [west, 0.1, 0, 0, 0, -0.1],
    });
    expect((await run('mosaic', [degrees(178), degrees(-180)])).raster().width).toBe(40);
    const mean = (await run('mosaic', [degrees(178), degrees(-180)], { overlap: 'mean' })).raster();
    expect([mean.width, mean.bands[0]]).toEqual([40, Array.from({ length: 400 }, () => 1)]);
  });
  test.each<[what: string, transform: readonly number[], valueAt: Made['bands'][number]]>([
    ['south at the top', [500_000, 10, 0, 4_999_900, 0, 10], (x, y) => x + (y === 0 ? 0 : 20)],
    ['west on the right', [500_200, -10, 0, 5_000_000, 0, -10], (x, y) => 19 - x + (y === 9 ? 0 : 20)],
  ])('bands meet on the grid of a turned raster: %s', async (_what, transform, valueAt) => {
    const turned: Made = { width: 20, height: 10, type: 'Byte', transform, bands: [valueAt] };
    const coarse: Made = {
      width: 10,
      height: 5,
      type: 'Byte',
      transform: [500_000, 20, 0, 5_000_000, 0, -20],
      bands: [(_x, y) => (y === 0 ? 9 : 7)],
    };
    const { bands, geoTransform } = (await run('harmonize', [turned, coarse])).raster();
    expect(geoTransform).toEqual([500_000, 10, 0, 5_000_000, 0, -10]);
    const southernRow = 9;
    expect(bands[0]).toEqual(
      Array.from({ length: 200 }, (_, i) => (i % 20) + (Math.floor(i / 20) === southernRow ? 0 : 20)),
    );
    expect(bands[1]!.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 9));
    expect(bands[1]!.slice(-20)).toEqual(Array.from({ length: 20 }, () => 7));
  });
  test('a zone about the pole has the pixels that lie in it', async () => {
    const started = await startStepHost({ definition: allSteps });
    const [side, size] = [100, 50_000];
    make(join(started.inputDir, 'a.tif'), {
      width: side,
      height: side,
      epsg: 3031,
      type: 'Float32',
      bands: [() => 1],
      transform: [(-side / 2) * size, size, 0, (side / 2) * size, 0, -size],
    });
    const zone = {
      type: 'Polygon',
      coordinates: [
        [
          [0, -85],
          [60, -85],
          [60, -70],
          [0, -70],
          [0, -85],
        ],
      ],
    };
    const ring = { type: 'FeatureCollection', features: [{ type: 'Feature', properties: {}, geometry: zone }] };
    await writeFile(join(started.inputDir, 'z.geojson'), JSON.stringify(ring));
    const input = {
      type: 'named',
      inputs: { values: { type: 'local', path: 'a.tif' }, zones: { type: 'local', path: 'z.geojson' } },
    } as const;
    const { outputs } = await started.run(
      'zonal-statistics',
      input,
      (await started.host.check('zonal-statistics', {}, input)).parameters,
    );
    const dataset = gdal.open(outputs[0]!.path);
    const counted = dataset.layers.get(0).features.map((one) => one.fields.get('count') as number);
    dataset.close();
    // Expected count from the formulas of the polar stereographic projection (Snyder 1987, 21-33).
    const [a, e] = [6_378_137, 0.081_819_190_842_6];
    const t = (phi: number) =>
      Math.tan(Math.PI / 4 + phi / 2) / ((1 + e * Math.sin(phi)) / (1 - e * Math.sin(phi))) ** (e / 2);
    const radians = Math.PI / 180;
    const standard = -71 * radians;
    const m = Math.cos(standard) / Math.sqrt(1 - (e * Math.sin(standard)) ** 2);
    const radius = (latitude: number) => (a * m * t(latitude * radians)) / t(standard);
    let inside = 0;
    for (let row = 0; row < side; row++)
      for (let column = 0; column < side; column++) {
        const [x, y] = [(column + 0.5 - side / 2) * size, (side / 2 - row - 0.5) * size];
        const [longitude, distance] = [Math.atan2(x, y) / radians, Math.hypot(x, y)];
        if (longitude > 0 && longitude < 60 && distance > radius(-85) && distance < radius(-70)) inside += 1;
      }
    expect(counted).toEqual([inside]);
  });
});

/** Corners repeat the last column, as gdaldem does, so the plane looks flatter there. */
const withoutCorners = (values: readonly (number | null)[]) =>
  valid(values.filter((_, i) => ![0, 19, 180, 199].includes(i)));

describe('the ground', () => {
  // The slope and aspect of a plane are known on every grid.
  const [east, north] = [0.3, -0.2];
  const plane = (transform: readonly number[], east = 0.3, north = -0.2) => ({
    type: 'Float32',
    transform,
    bands: [
      (x: number, y: number) =>
        east * ((x + 0.5) * transform[1]! + (y + 0.5) * transform[2]!) +
        north * ((x + 0.5) * transform[4]! + (y + 0.5) * transform[5]!),
    ],
  });
  const [steep, facing] = [
    (Math.atan(Math.hypot(east, north)) * 180) / Math.PI,
    ((Math.atan2(-east, -north) * 180) / Math.PI + 360) % 360,
  ];
  test.each([
    ['north-up', [500_000, 30, 0, 5_000_000, 0, -30]],
    ['south-up', [500_000, 30, 0, 5_000_000, 0, 30]],
    ['oblong', [500_000, 30, 0, 5_000_000, 0, -10]],
    ['turned', [500_000, 26, 15, 5_000_000, 15, -26]],
  ])('%s: slope and aspect of a plane', async (_name, transform) => {
    const slopes = withoutCorners((await run('slope', plane(transform))).raster().bands[0]!);
    const aspects = withoutCorners((await run('aspect', plane(transform))).raster().bands[0]!);
    expect(slopes).toHaveLength(196);
    for (const one of slopes) expect(Math.abs(one - steep)).toBeLessThan(0.1);
    for (const one of aspects) expect(Math.abs(one - facing)).toBeLessThan(0.1);
  });
  test('light from several directions counts by how much the ground faces it', async () => {
    // A plane that faces west, 45° steep: cosines of the angles between its normal and four lights 45° high.
    const made = plane([500_000, 30, 0, 5_000_000, 0, -30], 1, 0);
    const shade = (azimuth: number) => 0.5 - 0.5 * Math.sin((azimuth * Math.PI) / 180);
    const weighted = [
      [225, 0.5],
      [270, 1],
      [315, 0.5],
      [360, 0],
    ].map(([azimuth = 0, weight = 0]) => weight * Math.max(0, shade(azimuth)));
    const expected = Math.round(1 + 254 * (weighted.reduce((sum, one) => sum + one, 0) / 2));
    const { bands } = (await run('hillshade', made, { light: 'multidirectional' })).raster();
    expect(new Set(withoutCorners(bands[0]!))).toEqual(new Set([expected]));
  });
  test('in degrees at 60° north a degree to the east is half as long', async () => {
    const degree = 111_412.84 * Math.cos(Math.PI / 3) - 93.5 * Math.cos(Math.PI);
    const made = { ...plane([10, 0.001, 0, 60.005, 0, -0.001], 0.3 * degree, 0), epsg: 4326 };
    for (const one of withoutCorners((await run('slope', made)).raster().bands[0]!))
      expect(Math.abs(one - (Math.atan(0.3) * 180) / Math.PI)).toBeLessThan(0.1);
  });
});

describe('shares of pixels', () => {
  /** Area of a polygon within one pixel, by clipping the polygon to the four sides one after the other (Sutherland and Hodgman). */
  function areaWithin(ring: readonly (readonly [number, number])[], column: number, row: number): number {
    const sides: readonly (readonly [axis: 0 | 1, sign: 1 | -1, limit: number])[] = [[0, 1, column], [0, -1, column + 1], [1, 1, row], [1, -1, row + 1]]; // oxfmt-ignore
    let points = [...ring];
    for (const [axis, sign, limit] of sides) {
      const isIn = (point: readonly [number, number]) => sign * (point[axis] - limit) >= 0;
      points = points.flatMap((point, i) => {
        const next = points[(i + 1) % points.length]!;
        const share = (limit - point[axis]) / (next[axis] - point[axis]);
        const cut = [point[0] + share * (next[0] - point[0]), point[1] + share * (next[1] - point[1])] as const;
        return [...(isIn(point) ? [point] : []), ...(isIn(point) === isIn(next) ? [] : [cut])];
      });
    }
    const doubled = points.reduce((sum, [px, py], i) => {
      const [qx, qy] = points[(i + 1) % points.length]!;
      return sum + px * qy - qx * py;
    }, 0);
    return Math.abs(doubled) / 2;
  }

  test('are those of the polygon clipped to each pixel, its holes taken off, also beyond the window', () => {
    // A star that leaves the window of 12 x 9 pixels on every side, with a hole.
    const star = Array.from({ length: 14 }, (_, i) => {
      const [angle, radius] = [(i / 14) * 2 * Math.PI + 0.1, i % 2 === 0 ? 8.3 : 3.7];
      return [6.2 + radius * Math.cos(angle), 4.6 + radius * Math.sin(angle)] as const;
    });
    const hole = [[5.25, 3.5], [5.25, 5.125], [7.5, 5.75], [7.9, 3.1]] as const; // oxfmt-ignore
    const window = { x: 0, y: 0, width: 12, height: 9 };
    const ringOf = (points: readonly (readonly [number, number])[]) =>
      Float64Array.from([...points, points[0]!].flat());
    const shares = new Float64Array(window.width * window.height);
    coverShares([ringOf(star), ringOf(hole)], window, shares);
    shares.forEach((share, i) => {
      const [column, row] = [i % window.width, Math.floor(i / window.width)];
      // A star is no convex polygon, but one pixel meets at most one of its arms: clipping to a convex pixel holds.
      expect(share).toBeCloseTo(areaWithin(star, column, row) - areaWithin(hole, column, row), 9);
    });
    // In a window that begins elsewhere.
    const inner = new Float64Array(5 * 4);
    coverShares([ringOf(star), ringOf(hole)], { x: 4, y: 2, width: 5, height: 4 }, inner);
    inner.forEach((share, i) =>
      expect(share).toBeCloseTo(shares[(2 + Math.floor(i / 5)) * window.width + 4 + (i % 5)]!, 9),
    );
    // In strips, as a step asks for them.
    const strip = new Float64Array(window.width * 2);
    coverShares([ringOf(star), ringOf(hole)], { ...window, y: 3, height: 2 }, strip);
    strip.forEach((share, i) => expect(share).toBeCloseTo(shares[36 + i]!, 9));
  });

  test('edges on the borders of pixels count, and what an area does not meet is 0', () => {
    const square = (from: number, to: number) => [from, from, to, from, to, to, from, to, from, from];
    const withHole = [Float64Array.from(square(0, 4)), Float64Array.from([1, 1, 1, 3, 3, 3, 3, 1, 1, 1])];
    const shares = new Float64Array(16);
    coverShares(withHole, { x: 0, y: 0, width: 4, height: 4 }, shares);
    expect([...shares]).toEqual([1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1]);
    const notched = [Float64Array.from([0, 0, 2, 0, 2, 1, 3, 1, 3, 2, 0, 2, 0, 0])];
    const ofNotched = new Float64Array(6);
    coverShares(notched, { x: 0, y: 0, width: 3, height: 2 }, ofNotched);
    expect([...ofNotched]).toEqual([1, 1, 0, 1, 1, 1]);
    // Rounding leaves no trace beyond a slanted edge.
    for (let k = 1; k < 200; k++) {
      const triangle = Float64Array.from([0.1 * k, 0, 0.1 * k + 3.3, 5.7, 0.03 * k, 7.1, 0.1 * k, 0]);
      const ofTriangle = new Float64Array(30 * 8);
      coverShares([triangle], { x: 0, y: 0, width: 30, height: 8 }, ofTriangle);
      expect(ofTriangle.every((share) => share === 0 || share > 1e-9)).toBe(true);
    }
  });
});

describe('an index of digital numbers', () => {
  /** Computes an index of a scene with a file for each band. */
  async function index(parameters: StepParameters, { made = {}, by = 1 }: { made?: Partial<Made>; by?: number } = {}) {
    const { host, run: runStep, inputDir } = await startStepHost({ definition: allSteps, keepsChildren: true });
    await mkdir(join(inputDir, 'scene'));
    for (const [name, value] of Object.entries({ blue: 300, red: 500, nir: 3_000 }))
      make(join(inputDir, 'scene', `${name}.tif`), { type: 'UInt16', bands: [() => value * by], ...made });
    const input = { type: 'local', path: 'scene' } as const;
    const checked = await host.check('spectral-index', parameters, input);
    return read((await runStep('spectral-index', input, checked.parameters)).path).bands[0]![0];
  }
  const evi = (2.5 * (0.3 - 0.05)) / (0.3 + 6 * 0.05 - 7.5 * 0.03 + 1);

  test.each(['EVI', 'EVI2', 'SAVI', 'MSAVI'])('%s is refused, and tells what to give', async (name) => {
    await expect(index({ index: name })).rejects.toMatchObject({
      code: 'reflectance_needed',
      message: expect.stringMatching(
        /^\w+ needs reflectance from 0 to 1, .* give factor, for example 0\.0001/,
      ) as string,
    });
  });
  test('with a factor, with the scale of the file, and of real numbers', async () => {
    expect(await index({ index: 'EVI', factor: 0.0001 })).toBeCloseTo(evi, 6);
    expect(await index({ index: 'EVI' }, { made: { scale: [0.0001, 0] } })).toBeCloseTo(evi, 6);
    expect(await index({ index: 'EVI' }, { made: { type: 'Float32' }, by: 0.0001 })).toBeCloseTo(evi, 6);
  });
  test('an index that a factor does not change needs none', async () => {
    expect(await index({ index: 'NDVI' })).toBeCloseTo(2_500 / 3_500, 6);
  });
  test('a factor alone does not drop the offset of the file', async () => {
    const made = { scale: [0.0001, -0.1] as const };
    const given = { index: 'NDVI', factor: 0.0001 };
    await expect(index(given, { made })).rejects.toMatchObject({ code: 'factor_missing' });
    expect(await index({ ...given, offset: 0 }, { made })).toBeCloseTo(2_500 / 3_500, 6);
  });
});

describe('touched pixels', () => {
  const window = { x: 0, y: 0, width: 20, height: 20 };
  const touchedBy = (rings: readonly Float64Array[]) => {
    const mask = new Uint8Array(400);
    markInside(rings, window, mask, { isTouched: true });
    return [...mask];
  };
  /** Pixels of which an area covers some part. */
  const coveredBy = (rings: readonly Float64Array[]) => {
    const shares = new Float64Array(400);
    coverShares(rings, window, shares);
    return [...shares].map((share) => (share > 1e-9 ? 1 : 0));
  };
  const ring = (...places: number[]) => Float64Array.from([...places, ...places.slice(0, 2)]);

  test.each<[string, Float64Array[], number]>([
    ['an L', [ring(5, 5, 15, 5, 15, 10, 10, 10, 10, 15, 5, 15)], 75],
    ['a U', [ring(2, 2, 16, 2, 16, 14, 11, 14, 11, 7, 7, 7, 7, 14, 2, 14)], 140],
    ['a hole', [ring(5, 5, 15, 5, 15, 15, 5, 15), ring(7, 7, 7, 12, 12, 12, 12, 7)], 75],
    ['borders within rounding', [ring(5 + 1e-9, 5 - 1e-9, 15 - 1e-9, 5, 15, 15 + 1e-9, 5, 15 - 1e-9)], 100],
    ['less than half a pixel', [ring(5, 5, 5.25, 5, 5.25, 8, 5, 8)], 3],
    ['a point of a pixel', [ring(5.9, 5.9, 6.1, 5.9, 6.1, 6.1, 5.9, 6.1)], 4],
  ])('%s on the borders of pixels', (name, rings, count) => {
    expect(touchedBy(rings).reduce((sum, value) => sum + value, 0)).toBe(count);
    if (!name.includes('rounding')) expect(touchedBy(rings)).toEqual(coveredBy(rings));
  });

  test('are those of which the area covers some part: 500 triangles with corners on quarters of pixels', () => {
    let state = 7;
    const random = () => ((state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) % 81) / 4;
    for (let k = 0; k < 500; k++) {
      const triangle = [ring(random(), random(), random(), random(), random(), random())];
      const covered = coveredBy(triangle);
      // A triangle without an area covers nothing.
      if (covered.includes(1)) expect(touchedBy(triangle), String(triangle[0])).toEqual(covered);
    }
  });
});

describe('missing pixels and scales where rasters differ', () => {
  const east = [500_300, 30, 0, 5_000_000, 0, -30];
  const whole = { width: 10, height: 10, type: 'Byte' } as const;
  const rowsOf = (bands: readonly (readonly (number | null)[])[], width: number) =>
    Array.from({ length: width }, (_, x) => bands[0]![x]);
  const times = (count: number, value: number | null) => Array.from({ length: count }, () => value);
  const areaOf = (...ring: (readonly [number, number])[]) => ({ type: 'Polygon' as const, coordinates: [ring] });
  const same = { crs: 'EPSG:32633', resampling: 'near' };

  test('a value that marks missing pixels in one raster is a value in another', async () => {
    const one: Made = { ...whole, bands: [() => 0] };
    const other: Made = { ...whole, transform: east, nodata: 0, bands: [(x) => (x < 5 ? 0 : 9)] };
    const { bands, width } = (await run('mosaic', [one, other])).raster();
    expect(rowsOf(bands, width)).toEqual([...times(10, 0), ...times(5, null), ...times(5, 9)]);
    for (const overlap of ['last', 'max'])
      expect(
        rowsOf(
          (
            await run(
              'mosaic',
              [
                { ...one, bands: [() => 7], nodata: 7 },
                { ...other, nodata: 255 },
              ],
              { overlap },
            )
          ).raster().bands,
          20,
        ),
        overlap,
      ).toEqual([...times(10, null), ...times(5, 0), ...times(5, 9)]);
  });
  test('a mean that equals the value for missing pixels is a mean', async () => {
    const of = (value: number): Made => ({ ...whole, type: 'Int16', nodata: 0, bands: [() => value] });
    const { bands } = (await run('mosaic', [of(-1), of(1)], { overlap: 'mean' })).raster();
    expect(bands[0]).toEqual(times(100, 0));
  });
  test.each(['reproject', 'mosaic'])('%s keeps a mask beside a nodata value', async (step) => {
    const made: Made = { type: 'Byte', nodata: 7, bands: [(x) => x], mask: (x) => (x < 5 ? 0 : 255) };
    const input = step === 'mosaic' ? [made, { ...made, transform: [501_200, 30, 0, 5_000_000, 0, -30] }] : made;
    const { bands } = (await run(step, input, same)).raster();
    expect(rowsOf(bands, 20)).toEqual(Array.from({ length: 20 }, (_, x) => (x < 5 || x === 7 ? null : x)));
  });
  test.each(['UInt16', 'Int32', 'Float32'])(
    'bands of %s that miss different pixels blend none of them in',
    async (type) => {
      const made: Made = {
        ...{ type, nodata: 7, mask: () => 255 },
        bands: [(x) => (x === 5 ? 7 : 100), (x) => (x === 12 ? 7 : 200)],
      };
      // Half a pixel to the west, so that each result lies between two pixels.
      const grid: Made = { bands: [() => 1], transform: [499_985, 30, 0, 5_000_000, 0, -30] };
      const started = await startStepHost({ definition: allSteps });
      make(join(started.inputDir, 'a.tif'), made);
      make(join(started.inputDir, 'b.tif'), grid);
      const input = {
        type: 'named',
        inputs: { input: { type: 'local', path: 'a.tif' }, grid: { type: 'local', path: 'b.tif' } },
      } as const;
      const { parameters } = await started.host.check('reproject', { resampling: 'bilinear' }, input);
      const { bands } = read((await started.run('reproject', input, parameters)).path);
      // Each of the 200 results has a neighbour with a value.
      expect(bands.map((band) => [new Set(valid(band)), valid(band).length])).toEqual([
        [new Set([100]), 200],
        [new Set([200]), 200],
      ]);
    },
  );
  test('reproject onto a grid that the raster does not reach is refused', async () => {
    const onto = async (grid: Made) => {
      const started = await startStepHost({ definition: allSteps, keepsChildren: true });
      make(join(started.inputDir, 'a.tif'), { width: 100, height: 100, bands: [() => 7] });
      make(join(started.inputDir, 'b.tif'), grid);
      const input = {
        type: 'named',
        inputs: { input: { type: 'local', path: 'a.tif' }, grid: { type: 'local', path: 'b.tif' } },
      } as const;
      const { parameters } = await started.host.check('reproject', {}, input);
      return valid(read((await started.run('reproject', input, parameters)).path).bands[0]!).length;
    };
    for (const grid of [
      { transform: [600_000, 30, 0, 5_000_000, 0, -30] },
      { epsg: 4326, transform: [-60, 0.1, 0, 10, 0, -0.1] },
    ])
      await expect(onto({ bands: [() => 1], ...grid })).rejects.toMatchObject({ code: 'area_outside' });
    // A small part of the raster, pixels that are larger than it, and a grid over its corner.
    expect(await onto({ width: 2, height: 2, bands: [() => 1], transform: [501_234, 1, 0, 4_998_765, 0, -1] })).toBe(4);
    expect(await onto({ bands: [() => 1], transform: [499_000, 2_000, 0, 5_001_000, 0, -2_000] })).toBeGreaterThan(0);
    // A strip of one pixel across the raster, and past it on both sides.
    expect(
      await onto({ width: 1, height: 200, bands: [() => 1], transform: [500_510, 30, 0, 5_001_500, 0, -30] }),
    ).toBe(100);
    expect(await onto({ bands: [() => 1], transform: [499_970, 30, 0, 5_000_030, 0, -30] })).toBeGreaterThan(100);
  });
  test.each(['first', 'last', 'mean'])(
    'overlap %s keeps type, nodata and metadata of the first raster',
    async (overlap) => {
      const place = (dataset: gdal.Dataset) => dataset.setMetadata({ TIFFTAG_DATETIME: '2020:01:02 00:00:00' });
      const one: Made = { ...whole, nodata: 3, bands: [(x) => (x < 5 ? 3 : 4)], place };
      const { path } = await run('mosaic', [one, { ...whole, transform: east, nodata: 9, bands: [() => 5] }], {
        overlap,
      });
      const dataset = gdal.open(path);
      expect([dataset.bands.get(1).noDataValue, dataset.bands.get(1).dataType]).toEqual([3, 'Byte']);
      expect(dataset.getMetadata()).toMatchObject({ TIFFTAG_DATETIME: '2020:01:02 00:00:00' });
      dataset.close();
      expect(rowsOf(read(path).bands, 20)).toEqual([...times(5, null), ...times(5, 4), ...times(10, 5)]);
    },
  );
  test('real numbers: a valid value that marks missing pixels elsewhere', async () => {
    const one: Made = { ...whole, type: 'Float32', nodata: -1, bands: [(x) => (x < 5 ? -1 : 4)] };
    const other: Made = { ...whole, type: 'Float32', transform: east, bands: [() => -1] };
    const { bands } = (await run('mosaic', [one, other])).raster();
    expect(rowsOf(bands, 20)).toEqual([...times(5, null), ...times(5, 4), ...times(10, -1)]);
  });
  test('near a pole degrees have fewer pixels, and are no reason to refuse', async () => {
    const arctic: Made = { width: 60, height: 60, epsg: 3413, transform: [-300_000, 10_000, 0, 300_000, 0, -10_000], bands: [() => 6] }; // oxfmt-ignore
    const { bands } = (await run('reproject', arctic, { crs: 'EPSG:4326' })).raster();
    expect(new Set(valid(bands[0]!))).toEqual(new Set([6]));
  });
  test.each([
    ['reproject', 'EPSG:4326'],
    ['reproject', 'EPSG:32618'],
    ['mosaic', 'EPSG:32618'],
  ])('%s to %s leaves heights in feet as they are', async (step, crs) => {
    const feet: Made = {
      ...{ type: 'Float32', epsg: null, bands: [() => 100], nodata: -9999 },
      place: (dataset) => {
        dataset.srs = gdal.SpatialReference.fromUserInput('EPSG:32617+6360');
        dataset.bands.get(1).unitType = 'US survey foot';
      },
    };
    const { bands } = (await run(step, feet, { crs })).raster();
    expect(new Set(valid(bands[0]!))).toEqual(new Set([100]));
  });
  test.each(['reproject', 'mosaic', 'clip'])('%s keeps the sign of bytes', async (step) => {
    const made: Made = {
      type: 'Byte',
      options: ['PIXELTYPE=SIGNEDBYTE'],
      nodata: -128,
      bands: [(x) => (x < 5 ? 128 : x < 10 ? 255 : 5)],
    };
    const area = areaOf([14.9, 44], [15.1, 44], [15.1, 46], [14.9, 46], [14.9, 44]); // oxfmt-ignore
    const input = step === 'mosaic' ? [made, { ...made, transform: [501_200, 30, 0, 5_000_000, 0, -30] }] : made;
    const { bands } = (await run(step, input, step === 'clip' ? { area } : same)).raster();
    expect(rowsOf(bands, 20)).toEqual([...times(5, null), ...times(5, -1), ...times(10, 5)]);
  });
  test.each<[string, Partial<Made>, object]>([
    ['12 bits and nodata 65535', { type: 'UInt16', options: ['NBITS=12'], nodata: 65_535 }, {}],
    ['4 bits and nodata 255', { type: 'Byte', options: ['NBITS=4'], nodata: 255 }, {}],
    ['1 bit and nodata 255', { type: 'Byte', options: ['NBITS=1'], nodata: 255 }, {}],
    ['12 bits and a value outside', { type: 'UInt16', options: ['NBITS=12'] }, { outside: 65_535 }],
    ['half floats and nodata -9999', { type: 'Float32', options: ['NBITS=16'], nodata: -9_999 }, {}],
  ])('clip of %s: what lies outside is missing', async (_, more, parameters) => {
    const area = areaOf([14.9, 44], [15.0025, 44], [15.0035, 46], [14.9, 46], [14.9, 44]); // oxfmt-ignore
    const made: Made = { bands: [() => 1], ...more };
    const inside = async (clipped: Made, given: object) =>
      (await run('clip', clipped, { area, ...given })).raster().bands[0]!.map((value) => value !== null);
    expect(await inside(made, parameters)).toEqual(await inside({ type: 'Byte', bands: [() => 1] }, {}));
  });
  test('alpha of real numbers is missing only where it is 0', async () => {
    const made: Made = { type: 'Float32', bands: [() => 7, (x) => (x < 10 ? 0 : 0.4)], hasAlpha: true };
    const { bands } = (await run('band-math', made, { expression: '"1" + 1' })).raster();
    expect(rowsOf(bands, 20)).toEqual([...times(10, null), ...times(10, 8)]);
  });
  test.each([
    ['inch', 0.0254],
    ['fathoms', 1.8288],
    ['mile', 1_609.344],
  ])('slope of heights in %s', async (unit, metres) => {
    const heights: Made = { type: 'Float32', bands: [(x) => x], place: (dataset) => (dataset.bands.get(1).unitType = unit) }; // oxfmt-ignore
    const { bands } = (await run('slope', heights)).raster();
    expect(bands[0]![30]).toBeCloseTo((Math.atan(metres / 30) * 180) / Math.PI, 4);
  });
  test.each(['slope', 'hillshade', 'contours'])('%s refuses pixels without a size', async (step) => {
    await expect(run(step, { bands: [(x) => x], transform: [500_000, 0, 0, 5_000_000, 0, 0] })).rejects.toMatchObject({
      code: 'not_placed',
    });
  });
  // GDAL has three messages, by the size.
  test.each([1e-3, 1e-4, 1e-7])(
    'a result with too many pixels is refused in words: pixels of %d m',
    async (pixelSize) => {
      const given = { crs: 'EPSG:32633', pixelSize };
      await expect(run('reproject', { width: 500, height: 500, bands: [() => 1] }, given)).rejects.toMatchObject({
        code: 'grid_implausible',
        message:
          'the raster has 500 × 500 pixels, and the result would have more than there is room for: choose larger pixels, or another reference system',
      });
    },
  );
  test('clip: a nodata value that the type cannot hold is none', async () => {
    const made: Made = { type: 'Byte', nodata: -9_999, bands: [(x) => x % 2] };
    const area = areaOf([14.9, 44], [15.0025, 44], [15.0035, 46], [14.9, 46], [14.9, 44]); // oxfmt-ignore
    const { bands } = (await run('clip', made, { area })).raster();
    expect(valid(bands[0]!).filter((value) => value === 0).length).toBeGreaterThan(20);
  });
  test.each([
    ['min', 250],
    ['max', 100],
    ['median', 175],
    ['mean', 175],
  ])('mosaic of values with a negative scale: %s', async (overlap, stored) => {
    const of = (value: number): Made => ({ type: 'Float32', scale: [-0.5, 3], bands: [() => value] });
    const { bands } = (await run('mosaic', [of(100), of(250)], { overlap })).raster();
    expect(new Set(bands[0])).toEqual(new Set([stored]));
  });
  test.each<[string, Partial<Made>]>([
    ['one band', { bands: [(x, y) => 10 + 10 * (x % 2) + 20 * (y % 2)] }],
    ['alpha beside it', { bands: [(x, y) => 10 + 10 * (x % 2) + 20 * (y % 2), () => 255], hasAlpha: true }],
  ])('reproject of values with a negative scale, %s', async (_, more) => {
    // Each pixel of the result has four of the source, which are stored as 10, 20, 30 and 40.
    const made: Made = { width: 4, height: 4, type: 'Int16', scale: [-1, 0], bands: [], ...more };
    const stored = async (resampling: string) =>
      (await run('reproject', made, { crs: 'EPSG:32633', resampling, pixelSize: 60 })).raster().bands[0]![0];
    expect(await stored('min')).toBe(40);
    expect(await stored('max')).toBe(10);
    for (const method of ['q1', 'med', 'q3', 'rms'])
      await expect(stored(method), method).rejects.toMatchObject({
        code: 'scaled_values',
        message: expect.stringContaining(`with a negative scale, so that ${method} of stored numbers`) as string,
      });
  });
  test('equal scales stay with a mosaic, and different ones are refused', async () => {
    const of = (scale: readonly [number, number], transform?: number[]): Made => ({
      ...{ width: 10, scale, bands: [() => 100] },
      ...(transform && { transform }),
    });
    for (const overlap of ['last', 'mean']) {
      const { path } = await run('mosaic', [of([0.1, 5]), of([0.1, 5], east)], { overlap });
      const dataset = gdal.open(path);
      expect([dataset.bands.get(1).scale, dataset.bands.get(1).offset], overlap).toEqual([0.1, 5]);
      dataset.close();
      await expect(run('mosaic', [of([0.1, 5]), of([0.01, 5], east)], { overlap })).rejects.toMatchObject({
        code: 'scales_differ',
      });
    }
  });
  test('transparent pixels stay transparent where overlaps are combined', async () => {
    const of = (value: number, alpha: (x: number) => number): Made => ({
      ...{ width: 10, type: 'Byte', hasAlpha: true },
      bands: [() => value, () => value, () => value, alpha],
    });
    const { bands } = (
      await run('mosaic', [of(10, (x) => (x < 4 ? 255 : 0)), of(20, (x) => (x < 8 ? 255 : 0))], { overlap: 'mean' })
    ).raster();
    expect(rowsOf(bands, 10)).toEqual([...times(4, 15), ...times(4, 20), null, null]);
  });
  test.each<[step: string, parameters: StepParameters, value: number]>([
    ['reproject', { ...same, resampling: 'bilinear' }, 100],
    ['cog', {}, 100],
    ['harmonize', { resampling: 'bilinear' }, 5],
  ])('%s takes nodata and scale of the catalog item', async (step, parameters, value) => {
    const folder = await testFolder();
    const facts = { observedAt: '2020-01-01T00:00:00.000Z' };
    const ofItem = { ...facts, bands: [{ names: [], scale: { factor: 0.1, offset: -5 }, nodata: 0 }] };
    const files = [
      { path: make(join(folder, 'a.tif'), { bands: [(x) => (x < 5 ? 0 : 100)] }), ofItem },
      // Finer pixels, to which harmonize brings those of the first.
      ...(step === 'harmonize'
        ? [
            {
              path: make(join(folder, 'b.tif'), { width: 40, height: 20, transform: [500_000, 15, 0, 5_000_000, 0, -15], bands: [() => 1] }), // oxfmt-ignore
              ofItem: { ...facts, bands: [] },
            },
          ]
        : []),
    ];
    const items = files.map((_, i) => ({ collectionId: 'c', itemId: String(i) }));
    const platformInput = { check: () => Promise.resolve([]), fetch: () => Promise.resolve(files) };
    const started = await startStepHost({ definition: allSteps, platformInput });
    const { path } = await started.run(step, { type: 'platform', items }, parameters);
    const dataset = gdal.open(path);
    const { scale, offset } = dataset.bands.get(1);
    dataset.close();
    // harmonize writes physical values.
    expect([scale, offset]).toEqual(step === 'harmonize' ? [null, null] : [0.1, -5]);
    const { bands, width } = read(path);
    expect(rowsOf(bands, width)).toEqual(Array.from({ length: width }, (_, x) => (x < width / 4 ? null : value)));
  });
  test.each(['centre', 'share'])('an outline that crosses itself has its two halves (%s)', async (pixels) => {
    const started = await startStepHost({ definition: allSteps });
    make(join(started.inputDir, 'a.tif'), { type: 'Float32', bands: [() => 1] });
    const ring = [[0, 0], [10, 10], [10, 0], [0, 10], [0, 0]].map(([x, y]) => [500_000 + 30 * x!, 5_000_000 - 30 * y!]); // oxfmt-ignore
    await writeFile(
      join(started.inputDir, 'z.geojson'),
      JSON.stringify({
        type: 'FeatureCollection',
        crs: { type: 'name', properties: { name: 'urn:ogc:def:crs:EPSG::32633' } },
        features: [{ type: 'Feature', properties: {}, geometry: { type: 'Polygon', coordinates: [ring] } }],
      }),
    );
    const input = {
      type: 'named',
      inputs: { values: { type: 'local', path: 'a.tif' }, zones: { type: 'local', path: 'z.geojson' } },
    } as const;
    const { parameters } = await started.host.check('zonal-statistics', { pixels }, input);
    const { path } = await started.run('zonal-statistics', input, parameters);
    const dataset = gdal.open(path);
    const counts = dataset.layers.get(0).features.map((one) => one.fields.get('count') as number);
    dataset.close();
    expect(counts).toHaveLength(1);
    // Two triangles of 25 pixels each.
    expect(counts[0]).toBeCloseTo(50, 6);
  });
  test('a projection without an end at the poles, or across 180°, is refused by name', async () => {
    const world: Made = { width: 36, height: 18, epsg: 4326, transform: [-180, 10, 0, 90, 0, -10], bands: [() => 1] };
    for (const crs of ['EPSG:3857', 'EPSG:3031'])
      await expect(run('reproject', world, { crs })).rejects.toMatchObject({ code: 'grid_implausible' });
    const at = (west: number): Made => ({ epsg: 4326, transform: [west, 0.1, 0, 0, 0, -0.1], bands: [() => 1] });
    await expect(run('mosaic', [at(178), at(-180)], { crs: 'EPSG:4326' })).rejects.toMatchObject({
      code: 'crosses_antimeridian',
    });
    const tiny: Made = { width: 1, height: 2, epsg: 4326, transform: [13, 0.001, 0, 80, 0, -0.001], bands: [() => 7] };
    await expect(run('reproject', tiny, { crs: 'EPSG:3857' })).rejects.toMatchObject({
      code: 'grid_implausible',
      message: expect.stringMatching(/^the raster has 1 × 2 pixels, .* give a raster whose grid/) as string,
    });
    // Alaska Albers is not split at 180°.
    const aleutians: Made = { epsg: 32660, transform: [800_000, 1_000, 0, 6_000_000, 0, -1_000], bands: [() => 1] };
    const { width } = (await run('reproject', { ...aleutians, width: 40 }, { crs: 'EPSG:3338' })).raster();
    expect(width).toBeLessThan(80);
  });
  test('areas wider than 350° hold all between their edges', async () => {
    const world: Made = {
      ...{ width: 360, height: 180, epsg: 4326, type: 'Float32', transform: [-180, 1, 0, 90, 0, -1] },
      bands: [(x) => x],
    };
    const area = areaOf([-176, -30], [0, -30], [176, -30], [176, 30], [0, 30], [-176, 30], [-176, -30]); // oxfmt-ignore
    const { bands, width } = (await run('clip', world, { area })).raster();
    expect([width, valid(bands[0]!).length]).toEqual([352, 352 * 60]);
  });
});
