/** Meaning of numbers: no result is lost as no data, and rasters that are compared or merged mean the same. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import gdal from 'gdal-async';
import { describe, expect, test } from 'vitest';
import type { StepParameters } from '../../src/app/processing/step-parameters.ts';
import allSteps from '../support/all-steps.ts';
import { make, read, run, valid, type Made } from '../support/made-rasters.ts';
import { netcdf } from '../support/other-files.ts';
import { startStepHost } from '../support/step-host.ts';
import { ZoneStatistics } from '../../src/steps/zonal-statistics/statistics.ts';

const pixels = (length: number, of: (i: number) => number | null) => Array.from({ length }, (_, i) => of(i));

test('a change of -9999 is a change', async () => {
  const of = (value: number): Made => ({ bands: [(x) => (x === 0 ? 0 : value)], nodata: 0 });
  const { bands } = (await run('band-math', of(9_999), { expression: '0 - "1"' })).raster();
  expect(bands[0]).toEqual(pixels(200, (i) => (i % 20 === 0 ? null : -9_999)));
});

test.each([
  ['Byte', 254.5, 255],
  ['Byte', 255.4, 255],
  ['Byte', 255.5, null],
  ['Byte', -0.5, 0],
  ['UInt16', 65_535, 65_535],
  ['Int16', -32_768, -32_768],
  ['Int32', -2_147_483_648, -2_147_483_648],
] as const)('band math in %s: %d comes out as %d', async (type, value, wanted) => {
  const made: Made = { type: 'Float64', bands: [(x) => (x === 0 ? NaN : x === 1 ? 1 : value)] };
  const { bands, metadata } = (await run('band-math', made, { expression: '"1"', type })).raster();
  expect(bands[0]).toEqual(pixels(200, (i) => (i % 20 === 0 ? null : i % 20 === 1 ? 1 : wanted)));
  expect(Number(metadata['STATISTICS_MINIMUM'])).toBe(Math.min(1, wanted ?? 1));
  expect(Number(metadata['STATISTICS_MAXIMUM'])).toBe(Math.max(1, wanted ?? 1));
});

test('a global grid keeps all its longitudes, or is refused', async () => {
  const globe = (west: number): Made => ({
    ...{ width: 72, height: 36, epsg: 4326, type: 'Float32' },
    ...{ transform: [west, 5, 0, 90, 0, -5], bands: [(x) => (west + 5 * x + 360) % 360] },
  });
  const parameters = { crs: 'EPSG:3857', pixelSize: 500_000 };
  await expect(run('reproject', globe(0), parameters)).rejects.toMatchObject({ code: 'grid_implausible' });
  const { bands } = (await run('reproject', globe(0), { crs: 'EPSG:6933', pixelSize: 500_000 })).raster();
  expect(new Set(bands[0]!.filter((value) => value !== null)).size).toBeGreaterThanOrEqual(69);
});

describe('angles other than degrees', () => {
  const ramp = (x: number, y: number) => 7 * y + 3 * x;
  test('slopes in grads are those on the ground', async () => {
    const made: Made = {
      ...{ width: 24, height: 24, type: 'Float32', epsg: 4807 },
      ...{ transform: [2, 0.0003, 0, 54, 0, -0.0003], bands: [ramp] },
    };
    const { bands } = (await run('slope', made)).raster();
    // On WGS84 at 48.6° a pixel is 19.91 m by 30.02 m.
    const wanted = (Math.atan(Math.hypot(3 / 19.91, 7 / 30.02)) * 180) / Math.PI;
    // Row 1, away from the edges.
    for (const value of bands[0]!.slice(25, 47)) expect(value).toBeCloseTo(wanted, 2);
  });

  /** Only keys in the file say arc-seconds and WGS 84, which GDAL reads, and writes back as degrees. */
  const wgs84 =
    'GEOGCS["made",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]]';
  function toArcSeconds(path: string): void {
    const bytes = readFileSync(path);
    const key = (...values: number[]) => Buffer.from(Uint16Array.from(values).buffer);
    const unit = bytes.indexOf(key(2054, 0, 1, 9102));
    expect(unit).toBeGreaterThan(16);
    // A system of the user's own, by its datum and its unit.
    key(2048, 0, 1, 32_767).copy(bytes, unit - 16);
    key(2050, 0, 1, 6326).copy(bytes, unit - 8);
    key(2054, 0, 1, 9104).copy(bytes, unit);
    writeFileSync(path, bytes);
  }
  const inArcSeconds: Made = {
    ...{ width: 24, height: 24, type: 'Float32', epsg: wgs84 },
    ...{ transform: [7200, 1, 0, 174_960, 0, -1], bands: [ramp] },
  };
  async function runIn(step: string, made: Made, parameters: StepParameters = {}) {
    const started = await startStepHost({ definition: allSteps, keepsChildren: true });
    toArcSeconds(make(join(started.inputDir, 'a.tif'), made));
    const input = { type: 'local', path: 'a.tif' } as const;
    return started.run(step, input, (await started.host.check(step, parameters, input)).parameters);
  }
  test.each(['cog', 'slope', 'band-math'])('%s delivers nothing where it does not lie', async (step) => {
    const parameters = step === 'band-math' ? { expression: '"1" + 1' } : {};
    await expect(runIn(step, inArcSeconds, parameters)).rejects.toMatchObject({ code: 'crs_not_stored' });
  });
  test('reproject brings arc-seconds to degrees', async () => {
    const { geoTransform } = read((await runIn('reproject', inArcSeconds, { crs: 'EPSG:4326' })).path);
    expect([geoTransform[0], geoTransform[3]].map((one) => one!.toFixed(3))).toEqual(['2.000', '48.600']);
  });
  test('a target that a GeoTIFF cannot store is refused, or stored', async () => {
    const made = run('reproject', { bands: [() => 1] }, { crs: 'EPSG:8857' });
    const result = await made.then(
      ({ path }) => gdal.open(path).srs?.isSame(gdal.SpatialReference.fromEPSG(8857)),
      (error: unknown) => (error as { code: string }).code === 'crs_not_stored',
    );
    expect(result).toBe(true);
  });
});

test('latitudes beyond the pole are no place', async () => {
  const made: Made = { type: 'Float32', epsg: 4326, transform: [0, 1, 0, 200, 0, -1], bands: [(x) => x] };
  await expect(run('slope', made)).rejects.toMatchObject({ code: 'not_placed' });
});

test.each(['polygonize', 'contours', 'slope'])('%s of a raster that points place is refused', async (step) => {
  const place = (dataset: gdal.Dataset) =>
    dataset.setGCPs(
      [
        [0, 0, 15, 45],
        [20, 0, 15.1, 45],
        [0, 10, 15, 44.9],
      ].map(([dfGCPPixel = 0, dfGCPLine = 0, dfGCPX = 0, dfGCPY = 0]) => ({
        ...{ dfGCPPixel, dfGCPLine, dfGCPX, dfGCPY },
        ...{ dfGCPZ: 0, pszId: '', pszInfo: '' },
      })),
      gdal.SpatialReference.fromEPSG(4326).toWKT(),
    );
  const made: Made = { type: 'Int32', epsg: null, transform: null, place, bands: [(x) => x] };
  await expect(run(step, made)).rejects.toMatchObject({ code: 'not_placed' });
});

describe('what is merged means the same', () => {
  const east = [500_600, 30, 0, 5_000_000, 0, -30];
  const palette =
    (...colours: [value: number, colour: [number, number, number]][]) =>
    (dataset: gdal.Dataset) => {
      const table = new gdal.ColorTable(gdal.GPI_RGB);
      for (const [value, [c1, c2, c3]] of colours) table.set(value, { c1, c2, c3, c4: 255 });
      dataset.bands.get(1).colorTable = table;
    };
  const blue = palette([1, [0, 0, 255]]);
  const of = (place: (dataset: gdal.Dataset) => void, transform?: readonly number[]): Made => ({
    ...{ type: 'Byte', bands: [() => 1], place },
    ...(transform && { transform }),
  });
  test.each(['last', 'max'])('class 1 of two palettes is refused (overlap %s)', async (overlap) => {
    const red = palette([1, [255, 0, 0]]);
    await expect(run('mosaic', [of(blue), of(red, east)], { overlap })).rejects.toMatchObject({
      code: 'classes_differ',
      message: expect.stringMatching(/^class 1 has another colour or name in b\.tif\b.* than in a\.tif\b/) as string,
    });
  });
  test.each<[string, StepParameters]>([
    ['reproject', { crs: 'EPSG:32633', resampling: 'bilinear' }],
    ['reproject', { crs: 'EPSG:32633', resampling: 'average' }],
    ['mosaic', { resampling: 'cubic' }],
    ['mosaic', { overlap: 'mean' }],
    ['mosaic', { overlap: 'median' }],
  ])('%s %j: classes are not blended', async (step, parameters) => {
    const made = step === 'mosaic' ? [of(blue), of(blue, east)] : of(blue);
    await expect(run(step, made, parameters)).rejects.toMatchObject({
      code: 'classes_blended',
      message: expect.stringContaining('a.tif, band 1 has a colour table') as string,
    });
  });
  test('a raster of classes among others is not blended either', async () => {
    const plain: Made = { type: 'Byte', bands: [(x) => (x % 2 === 0 ? 1 : 9)] };
    for (const parameters of [{ resampling: 'cubic' }, { overlap: 'mean' }])
      await expect(run('mosaic', [plain, of(blue, east)], parameters)).rejects.toMatchObject({
        code: 'classes_blended',
      });
  });
  test.each(['near', 'mode', 'max'])('control: %s keeps classes', async (resampling) => {
    const { bands } = (await run('reproject', of(blue), { crs: 'EPSG:32633', resampling })).raster();
    expect(new Set(bands[0])).toEqual(new Set([1]));
  });
  test('control: a class that differs and does not occur', async () => {
    const withOther = palette([1, [0, 0, 255]], [2, [9, 9, 9]]);
    const { bands } = (await run('mosaic', [of(blue), of(withOther, east)])).raster();
    expect(new Set(bands[0])).toEqual(new Set([1]));
  });
});

describe('quality bands', () => {
  async function maskedBy(quality: string, value: number, parameters: StepParameters): Promise<(number | null)[]> {
    const started = await startStepHost({ definition: allSteps, keepsChildren: true });
    make(join(started.inputDir, 'x_B4.tif'), { bands: [() => 7] });
    make(join(started.inputDir, `x_${quality}.tif`), { bands: [(x) => (x < 5 ? value : 0)] });
    const input = { type: 'local', path: '.' } as const;
    const { parameters: checked } = await started.host.check(
      'cloud-mask',
      { band: 'B4', quality, ...parameters },
      input,
    );
    return read((await started.run('cloud-mask', input, checked)).path).bands[0]!;
  }
  test.each([
    ['BQA', 384, 'bits_of_another', '0,4,8,12'],
    ['QA60', 1_024, 'bits_of_another', '10,11'],
    ['SCL', 9, 'bits_of_classes', undefined],
    ['AOT', 9, 'no_quality_band', undefined],
    ['QA_RADSAT', 9, 'no_quality_band', undefined],
  ])('%s is not read by the bits of QA_PIXEL', async (quality, value, code, bits) => {
    await expect(maskedBy(quality, value, {})).rejects.toMatchObject({ code });
    if (bits === undefined) return;
    expect(await maskedBy(quality, value, { bits })).toEqual(pixels(200, (i) => (i % 20 < 5 ? null : 7)));
  });
});

describe('64-bit integers', () => {
  const long = (value: number): Made => ({ type: 'Int64', bands: [() => value] });
  const east: Made['transform'] = [500_600, 30, 0, 5_000_000, 0, -30];
  test.each(['reproject', 'mosaic'])('%s refuses what it would change', async (step) => {
    const made = long(2 ** 53);
    await expect(
      run(step, step === 'mosaic' ? [made, { ...made, transform: east }] : made, { crs: 'EPSG:32633' }),
    ).rejects.toMatchObject({ code: 'type_not_supported' });
  });
  test.each<[string, StepParameters]>([
    ['band-math', { expression: '"1"' }],
    ['polygonize', {}],
    ['cloud-mask', { band: '1', quality: '2', bits: '0' }],
  ])('%s refuses what would lose digits', async (step, parameters) => {
    const made: Made = { type: 'Int64', bands: [() => 2 ** 53, () => 0], nodata: -1 };
    await expect(run(step, made, parameters)).rejects.toMatchObject({ code: 'type_not_supported' });
  });
  test('a masked number is no value', async () => {
    const made: Made = { type: 'Int64', bands: [(x) => (x === 0 ? 2 ** 60 : x)], mask: (x) => (x === 0 ? 0 : 255) };
    const { bands } = (await run('band-math', made, { expression: '"1"' })).raster();
    expect(bands[0]).toEqual(pixels(200, (i) => (i % 20 === 0 ? null : i % 20)));
  });
  test('the lowest number marks missing pixels', async () => {
    const started = await startStepHost({ definition: allSteps, keepsChildren: true });
    const plain = make(join(started.inputDir, 'plain.tif'), {
      type: 'Int64',
      bands: [(x) => (x === 0 ? -(2 ** 63) : x)],
    });
    // The bindings cannot write such a value.
    const options = ['-a_nodata', '-9223372036854775808'];
    gdal.translate(join(started.inputDir, 'a.tif'), gdal.open(plain), options).close();
    const input = { type: 'local', path: 'a.tif' } as const;
    const runStep = async (step: string, wanted: StepParameters) =>
      started.run(step, input, (await started.host.check(step, wanted, input)).parameters);
    const { bands } = read((await runStep('band-math', { expression: '"1"' })).path);
    expect(bands[0]).toEqual(pixels(200, (i) => (i % 20 === 0 ? null : i % 20)));
  });
  test('control: up to 2^52 they stay', async () => {
    const { bands } = (await run('reproject', long(2 ** 52 - 1), { crs: 'EPSG:32633' })).raster();
    expect(new Set(bands[0])).toEqual(new Set([2 ** 52 - 1]));
  });
});

test.each([
  ['x', 'nir08 (numbered as on Landsat 8, because no file name states the sensor)'],
  ['l8', 'nir08'],
  ['LC08_L1TP', 'nir08'],
  ['S2A', null],
])('files called %s_B4 and so on: the run says whose numbers they are taken for', async (prefix, band) => {
  const started = await startStepHost({ definition: allSteps, keepsChildren: true });
  for (const [name, value] of [
    ['B4', 1_000],
    ['B5', 3_000],
  ] as const)
    // oxfmt-ignore
    make(join(started.inputDir, `${prefix}_${name}.tif`), { bands: [() => value] });
  const input = { type: 'local', path: '.' } as const;
  const checked = started.host.check('ndvi', {}, input);
  if (band === null) return void (await expect(checked).rejects.toThrow());
  const { result } = await started.run('ndvi', input, (await checked).parameters);
  expect(result!.summary.readings[0]!.band).toBe(band);
});

describe('no part of a file is left out unsaid', () => {
  async function valuesOf(name: string, put: (path: string) => void): Promise<(number | null)[]> {
    const started = await startStepHost({ definition: allSteps, keepsChildren: true });
    put(join(started.inputDir, name));
    const input = { type: 'local', path: name } as const;
    const { parameters } = await started.host.check('band-math', { expression: '"1"' }, input);
    return read((await started.run('band-math', input, parameters)).path).bands[0]!;
  }
  const pages = (count: number) => (path: string) => {
    for (let page = 0; page < count; page++) {
      const plain = make(`${path}.page`, { bands: [() => page + 1] });
      const options = page === 0 ? [] : ['-co', 'APPEND_SUBDATASET=YES'];
      gdal.translate(path, gdal.open(plain), ['-of', 'GTiff', ...options]).close();
      rmSync(plain);
    }
  };
  test('a TIFF of two pages is refused', async () => {
    await expect(valuesOf('a.tif', pages(2))).rejects.toMatchObject({
      code: 'not_one_raster',
      message: expect.stringMatching(/^a\.tif holds 2 rasters \(pages\).*GTIFF_DIR:1:FILE/) as string,
    });
    expect(new Set(await valuesOf('a.tif', pages(1)))).toEqual(new Set([1]));
  });
  test('control: overviews and a mask are no pages', async () => {
    const values = await valuesOf('a.tif', (path) => {
      make(path, { width: 600, height: 600, bands: [() => 3], mask: (x) => (x === 0 ? 0 : 255) });
      const dataset = gdal.open(path, 'r+');
      dataset.buildOverviews('NEAREST', [2]);
      dataset.close();
    });
    expect(valid(values)).toEqual(pixels(599 * 600, () => 3));
  });
  test.each<[Parameters<typeof netcdf>[0], string]>([
    [{ _FillValue: [-999], missing_value: [3] }, 'a.nc names several values for missing data (-999 and 3)'],
    [{ missing_value: [3, 4] }, 'a.nc names several values for missing data (3 and {3,4})'],
  ])('netCDF with %j is refused', async (markers, message) => {
    await expect(valuesOf('a.nc', (path) => writeFileSync(path, netcdf(markers)))).rejects.toMatchObject({
      code: 'nodata_differs',
      message: expect.stringContaining(message) as string,
    });
  });
  test('netCDF of integers whose markers differ by one is refused', async () => {
    const file = netcdf({ _FillValue: [-2_147_483_647], missing_value: [-2_147_483_648] }, { isInteger: true });
    await expect(valuesOf('a.nc', (path) => writeFileSync(path, file))).rejects.toMatchObject({
      code: 'nodata_differs',
    });
  });
  test.each<[Parameters<typeof netcdf>[0], number | null]>([
    [{ _FillValue: [3], missing_value: ' ' }, 3],
    [{ missing_value: 'none' }, null],
    [{}, null],
    [{ missing_value: [3] }, 3],
    [{ _FillValue: [3], missing_value: [3] }, 3],
    [{ _FillValue: [3], missing_value: [NaN] }, 3],
  ])('control: netCDF with %j', async (markers, missing) => {
    const values = await valuesOf('a.nc', (path) => writeFileSync(path, netcdf(markers)));
    const rows = [8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3];
    expect(values).toEqual(rows.map((value) => (value === missing ? null : value)));
  });
});

describe('names and units stay', () => {
  const named = (dataset: gdal.Dataset) => {
    dataset.bands.get(1).unitType = 'reflectance';
  };
  const made: Made = { scale: [0.0001, -0.1], bands: [() => 4_500], place: named };
  const area = {
    type: 'Polygon',
    coordinates: [[[14.9, 44], [15.004, 44], [15.004, 46], [14.9, 46], [14.9, 44]]], // oxfmt-ignore
  } as const;
  test.each<[string, StepParameters]>([
    ['reproject', { crs: 'EPSG:32633' }],
    ['mosaic', { overlap: 'last' }],
    ['mosaic', { overlap: 'mean' }],
    ['clip', { area }],
    ['cog', {}],
  ])('%s %j', async (step, parameters) => {
    const input = step === 'mosaic' ? [made, { ...made, transform: [500_600, 30, 0, 5_000_000, 0, -30] }] : made;
    const started = await startStepHost({ definition: allSteps, keepsChildren: true });
    [input].flat().forEach((one, i) => {
      const raw = make(join(started.inputDir, `raw-${i}`), one);
      // Only the text of a view can name a band.
      const dataset = gdal.open(raw);
      gdal.drivers.get('VRT').createCopy(`${raw}.vrt`, dataset).close();
      dataset.close();
      const text = readFileSync(`${raw}.vrt`, 'utf8').replace('band="1">', 'band="1"><Description>red</Description>');
      writeFileSync(`${raw}.vrt`, text);
      gdal.translate(join(started.inputDir, `${i}.tif`), gdal.open(`${raw}.vrt`)).close();
      for (const path of [raw, `${raw}.vrt`]) rmSync(path);
    });
    const local = { type: 'local', path: [input].flat().length > 1 ? '.' : '0.tif' } as const;
    const { parameters: checked } = await started.host.check(step, parameters, local);
    const dataset = gdal.open((await started.run(step, local, checked)).path);
    const { description, unitType, scale } = dataset.bands.get(1);
    dataset.close();
    expect([description, unitType, scale]).toEqual(['red', 'reflectance', 0.0001]);
  });
});

test('a target with heights is one without them, as no value is converted', async () => {
  const { path } = await run('reproject', { type: 'Float32', bands: [() => 100] }, { crs: 'EPSG:5972' });
  const dataset = gdal.open(path);
  const [srs, value] = [dataset.srs, dataset.bands.get(1).pixels.get(3, 3)];
  dataset.close();
  expect([srs?.isCompound(), srs?.isProjected(), value]).toEqual([false, true, 100]);
});

describe('polynomial coefficients beside the transform of a file without one', () => {
  const none = ' 0'.repeat(17);
  const polynomials = {
    ...{ LINE_OFF: '5', SAMP_OFF: '10', LAT_OFF: '45', LONG_OFF: '15', HEIGHT_OFF: '0' },
    ...{ LINE_SCALE: '5', SAMP_SCALE: '10', LAT_SCALE: '0.1', LONG_SCALE: '0.1', HEIGHT_SCALE: '1' },
    ...{ LINE_NUM_COEFF: `0 0 -1${none}`, SAMP_NUM_COEFF: `0 1 0${none}` },
    ...{ LINE_DEN_COEFF: `1 0 0${none}`, SAMP_DEN_COEFF: `1 0 0${none}` },
  };
  const made = (transform: readonly number[] | null): Made => ({
    ...{ epsg: 4326, transform: null, bands: [(x) => x] },
    place(dataset) {
      if (transform) dataset.geoTransform = [...transform];
      dataset.setMetadata(polynomials, 'RPC');
    },
  });
  const identity = [0, 1, 0, 0, 0, 1];
  const area = JSON.stringify({ type: 'Polygon', coordinates: [[[2, 2], [5, 2], [5, 5], [2, 5], [2, 2]]] }); // oxfmt-ignore

  test('place the result of reproject', async () => {
    const [beside, alone] = await Promise.all(
      [identity, null].map(async (transform) =>
        (await run('reproject', made(transform), { crs: 'EPSG:3857' })).raster(),
      ),
    );
    expect(beside).toEqual(alone);
    // 14.9 to 15.1° E, 44.9 to 45.1° N, in metres of the Mercator projection.
    expect(beside!.geoTransform[0]).toBeCloseTo((14.895 * Math.PI * 6_378_137) / 180, -3);
  });

  test.each([
    ['clip', made(identity), { area }],
    ['mosaic', [{ epsg: 4326, transform: [15, 0.01, 0, 45, 0, -0.01], bands: [() => 1] }, made(identity)], {}],
  ] as const)('%s refuses them', async (step, rasters, parameters) => {
    await expect(run(step, rasters, parameters)).rejects.toMatchObject({ code: 'not_placed' });
  });
});

test('the lowest double marks missing pixels of a mosaic', async () => {
  const lowest = -Number.MAX_VALUE;
  const made: Made = { type: 'Float64', nodata: lowest, bands: [(x) => (x < 5 ? lowest : 3)] };
  const east = { ...made, transform: [500_600, 30, 0, 5_000_000, 0, -30] };
  const { bands } = (await run('mosaic', [made, east], { overlap: 'max' })).raster();
  expect(bands[0]!.slice(0, 40)).toEqual(pixels(40, (i) => (i % 20 < 5 ? null : 3)));
});

test('a raster without a place is named by the rule, and not by a path of the server', async () => {
  const made: Made = { epsg: null, transform: null, bands: [() => 1] };
  await expect(run('mosaic', [made, made])).rejects.toMatchObject({ code: 'not_placed' });
  await expect(run('mosaic', [made])).rejects.toMatchObject({ code: 'not_placed' });
});

test.each(['bilinear', 'cubic', 'average'])(
  'a blend by %s that equals the nodata value is a value',
  async (resampling) => {
    // Each result covers two columns, and the fifth one covers -100 and 100.
    const made: Made = { type: 'Int16', nodata: 0, bands: [(x) => (x < 9 ? -100 : 100)] };
    const parameters = { crs: 'EPSG:32633', resampling, pixelSize: 60 };
    const { bands } = (await run('reproject', made, parameters)).raster();
    expect(bands[0]!.slice(0, 10).map((value) => value && Math.sign(value))).toEqual(
      pixels(10, (x) => Math.sign(x - 4)),
    );
  },
);

test.each([
  [
    'the Moon',
    'GEOGCS["Moon 2000",DATUM["D_Moon_2000",SPHEROID["Moon_2000",1737400,0]],PRIMEM["Reference_Meridian",0],UNIT["degree",0.0174532925199433]]',
    1_737_400,
  ],
  [
    'Mars',
    'GEOGCS["Mars 2000",DATUM["D_Mars_2000",SPHEROID["Mars_2000",3396190,0]],PRIMEM["Reference_Meridian",0],UNIT["degree",0.0174532925199433]]',
    3_396_190,
  ],
] as const)('slopes on %s follow from its radius', async (_name, epsg, radius) => {
  // oxfmt-ignore
  const made: Made = {
    ...{ width: 24, height: 24, type: 'Float32', epsg },
    ...{ transform: [0, 0.001, 0, 0.012, 0, -0.001], bands: [(x: number) => 10 * x] },
  };
  const { bands } = (await run('slope', made)).raster();
  const metresPerPixel = ((radius * Math.PI) / 180) * 0.001;
  for (const value of bands[0]!.slice(12 * 24 + 1, 12 * 24 + 23))
    expect(value).toBeCloseTo((Math.atan(10 / metresPerPixel) * 180) / Math.PI, 2);
});

describe('a mosaic in another reference system', () => {
  const globe: Made = {
    ...{ width: 36, height: 18, epsg: 4326, type: 'Float32', transform: [-180, 10, 0, 90, 0, -10] },
    bands: [() => 1],
  };
  test('is refused where the grid is implausible', async () => {
    await expect(run('mosaic', globe, { crs: 'EPSG:3857' })).rejects.toMatchObject({ code: 'grid_implausible' });
  });

  test('is refused where it would go around the Earth', async () => {
    const zone = (epsg: number, west: number): Made => ({ epsg, transform: [west, 300, 0, 5_000_000, 0, -300], bands: [() => 1] }); // oxfmt-ignore
    const both = [zone(32660, 700_000), zone(32601, 280_000)];
    await expect(run('mosaic', both, { crs: 'EPSG:3857' })).rejects.toMatchObject({ code: 'crosses_antimeridian' });
    // The zone itself has no seam there.
    expect(valid((await run('mosaic', both, { crs: 'EPSG:32660' })).raster().bands[0]!).length).toBeGreaterThan(300);
  });
});

test('equal values have a deviation of 0, by shares too', async () => {
  const statistics = new ZoneStatistics({ percentiles: false, classes: false, shares: true, bands: 1 });
  for (let i = 0; i < 5_000; i++) statistics.add(-127.1, 0.1 + (i % 7) / 10);
  expect(statistics.values.stdDev).toBeCloseTo(0, 5);
  for (const value of [0.1, 1e6 + 0.1, -1 / 3])
    for (const weight of [0.1, 0.3, 1 / 7]) {
      const equal = new ZoneStatistics({ percentiles: false, classes: false, shares: true, bands: 1 });
      for (let i = 0; i < 100; i++) equal.add(value, weight);
      expect(Number.isNaN(equal.values.stdDev)).toBe(false);
    }
});

test.each([
  ['reproject', { crs: 'EPSG:54009' }],
  ['reproject', { from: 'EPSG:54009' }],
  ['mosaic', { crs: 'EPSG:54009' }],
] as const)('%s %o: a code that PROJ does not know is refused by its name', async (step, parameters) => {
  const refused = run(step, { bands: [() => 1] }, parameters);
  await expect(refused).rejects.toMatchObject({ code: 'unknown_crs', message: expect.stringContaining('EPSG:54009') as string }); // oxfmt-ignore
});
