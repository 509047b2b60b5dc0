/** Steps that keep values keep them exactly in every type, and heights have the stated unit. */
import { join } from 'node:path';
import gdal from 'gdal-async';
import { describe, expect, test } from 'vitest';
import allSteps from '../support/all-steps.ts';
import { make, read, run, type Made } from '../support/made-rasters.ts';
import { startStepHost } from '../support/step-host.ts';

/** Numbers that Float32 cannot store. */
const beyondFloat32 = { Int32: 16_777_217, UInt32: 4_294_967_293, Float64: 0.1 };

describe.each(Object.entries(beyondFloat32))('%s', (type, value) => {
  const made: Made = { type, bands: [() => value, () => 1] };
  test.each([
    ['harmonize', {}],
    ['cloud-mask', { band: '1', quality: '2', bits: '4' }],
    ['band-math', { expression: '"1" * "2"' }],
  ])('%s keeps it', async (step, parameters) => {
    const { bands } = (await run(step, made, parameters)).raster();
    expect(new Set(bands[0])).toEqual(new Set([value]));
  });
});

test('harmonize keeps values of another grid', async () => {
  const { host, inputDir, run: runStep } = await startStepHost({ definition: allSteps, keepsChildren: true });
  make(join(inputDir, 'fine.tif'), { bands: [() => 1] });
  make(join(inputDir, 'coarse.tif'), {
    ...{ type: 'Int32', width: 10, height: 5, transform: [500_000, 60, 0, 5_000_000, 0, -60] },
    bands: [() => 16_777_217],
  });
  const input = { type: 'local', path: '.' } as const;
  const { parameters } = await host.check('harmonize', { resampling: 'near' }, input);
  const { bands } = read((await runStep('harmonize', input, parameters)).path);
  expect(bands.map((values) => new Set(values))).toEqual([new Set([16_777_217]), new Set([1])]);
});

test('band-math has Float32 for small integers', async () => {
  const { path } = await run('band-math', { bands: [() => 3] }, { expression: '"1" / 2' });
  expect(gdal.open(path).bands.get(1).dataType).toBe('Float32');
});

describe('heights', () => {
  /** Rises 1 unit of height per pixel of 30 units of the map, to the east. */
  const rising = (unit: string, epsg: number, size = 30): Made => ({
    ...{ type: 'Float32', epsg, transform: [500_000, size, 0, 5_000_000, 0, -size], bands: [(x: number) => x] },
    place: (dataset) => (dataset.bands.get(1).unitType = unit),
  });
  const percent = async (made: Made, parameters = {}) =>
    (await run('slope', made, { unit: 'percent', ...parameters })).raster().bands[0]![105]!;

  // EPSG:2249 is in US survey feet: 1200 / 3937 m.
  test.each([
    ['feet on a map in metres', 'ft', 32_633, 30.48],
    ['US survey feet on a map in metres', 'US survey foot', 32_633, (100 / 30) * (1200 / 3937)],
    ['metres on a map in US survey feet', 'm', 2249, (100 / 30) * (3937 / 1200)],
    ['without a unit, those of the map', '', 2249, 100 / 30],
    ['centimetres', 'cm', 32_633, 1 / 30],
  ])('%s', async (_what, unit, epsg, expected) => {
    const made = unit === 'ft' ? { ...rising(unit, epsg, 1) } : rising(unit, epsg);
    expect(await percent(made)).toBeCloseTo(expected, 4);
  });

  test('in feet on a map in degrees', async () => {
    const inDegrees = (unit: string): Made => ({ ...rising(unit, 4326), transform: [10, 0.001, 0, 45, 0, -0.001] });
    const [feet, metres] = [await percent(inDegrees('ft')), await percent(inDegrees('m'))];
    expect(feet / metres).toBeCloseTo(0.3048, 5);
  });

  test('a scale that is given replaces the units', async () => {
    expect(await percent(rising('ft', 32_633), { scale: 1 })).toBeCloseTo(100 / 30, 4);
  });

  test('a hillshade of feet is that of the same heights in metres', async () => {
    const steep = (unit: string, factor: number): Made => ({
      ...rising(unit, 32_633),
      bands: [(x, y) => factor * (20 * x + 5 * y)],
    });
    const feet = (await run('hillshade', steep('ft', 1))).raster().bands;
    const metres = (await run('hillshade', steep('m', 0.3048))).raster().bands;
    expect(feet).toEqual(metres);
    expect(feet).not.toEqual((await run('hillshade', steep('m', 1))).raster().bands);
  });
});

test('the summary of a scaled raster has physical values and their unit', async () => {
  const made: Made = {
    ...{ bands: [(x: number) => 1000 + x], scale: [-0.01, 5] },
    place: (dataset) => (dataset.bands.get(1).unitType = 'K'),
  };
  const { result } = await run('cog', made);
  const [band] = result!.summary.bands;
  expect(band).toMatchObject({ unit: 'K' });
  expect([band!.min, band!.max, band!.mean]).toEqual(
    [-5.19, -5, -5.095].map((value) => expect.closeTo(value, 9) as number),
  );
  expect(band!.histogram.low).toBeCloseTo(-5.19, 9);
  expect(result!.summary.values!.rows[0]).toBe(-5);
});

test('an expression can name the alpha band', async () => {
  const { raster } = await run(
    'band-math',
    { type: 'Byte', bands: [() => 7, (x) => (x === 3 ? 0 : 200)], hasAlpha: true },
    { expression: 'alpha' },
  );
  const { bands } = raster();
  expect(bands[0]!.slice(2, 5)).toEqual([200, 0, 200]);
});
