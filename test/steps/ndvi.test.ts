import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cogDefects } from '../support/cog-check.ts';
import { landsatFolder } from '../support/folders.ts';
import { geoTiff, type TinyRaster } from '../support/geotiff.ts';
import { readGeoTiff } from '../support/read-geotiff.ts';
import { startStepHost } from '../support/step-host.ts';
import { landsat, needing } from '../support/needs.ts';

/** The definition, pixel by pixel, in float32; NaN marks no data. */
function expected(nir: number, red: number): number {
  return nir === 0 && red === 0 ? NaN : Math.fround((nir - red) / (nir + red));
}

async function scene(files: Record<string, TinyRaster>) {
  const started = await startStepHost({ keepsChildren: true });
  await mkdir(join(started.inputDir, 'scene'));
  for (const [name, raster] of Object.entries(files))
    await writeFile(join(started.inputDir, 'scene', name), geoTiff(raster));
  return started;
}

const grid = { width: 40, height: 30 };

test(
  'NDVI of a Landsat 8 scene equals the definition, pixel for pixel, on the same grid',
  needing(landsat),
  async () => {
    const { run } = await startStepHost({ inputDir: join(landsatFolder, '..') });
    const output = await run('ndvi', { type: 'local', path: 'landsat8' });
    const [ndvi, nir, red] = await Promise.all(
      [output.path, join(landsatFolder, 'l8_B5.tif'), join(landsatFolder, 'l8_B4.tif')].map(readGeoTiff),
    );
    expect(ndvi!.geoTransform).toEqual(nir!.geoTransform);
    expect([ndvi!.width, ndvi!.height, ndvi!.epsg, ndvi!.nodata]).toEqual([627, 603, nir!.epsg, NaN]);
    const differences = ndvi!.samples.map((value, i) => {
      const wanted = expected(nir!.samples[i]!, red!.samples[i]!);
      return Object.is(value, wanted) ? 0 : Math.abs(value - wanted);
    });
    expect(differences.reduce((a, b) => Math.max(a, b), 0)).toBeLessThanOrEqual(6e-8);
    expect(new Set(nir!.samples).size).toBeGreaterThan(1000);
    expect(cogDefects(output.path)).toEqual([]);
  },
);

test('equals the definition on rasters made by hand; no data just where both are 0', async () => {
  const nir = (x: number, y: number) => ((x + y) % 5 === 0 ? 0 : x * 700 + y);
  const red = (x: number, y: number) => ((x + y) % 10 === 0 ? 0 : y * 800 + 3);
  const { run } = await scene({ 'x_B5.tif': { ...grid, value: nir }, 'x_B4.tif': { ...grid, value: red } });
  const output = await readGeoTiff((await run('ndvi', { type: 'local', path: 'scene' })).path);
  output.samples.forEach((value, i) => {
    const [x, y] = [i % grid.width, Math.floor(i / grid.width)];
    const wanted = expected(nir(x, y), red(x, y));
    if (Number.isNaN(wanted)) expect(value).toBe(NaN);
    else expect(value).toBeCloseTo(wanted, 6);
  });
  expect(output.samples.filter(Number.isNaN).length).toBe(120);
  expect(output).toMatchObject({
    epsg: 32633,
    geoTransform: [500_000, 30, 0, 5_000_000, 0, -30],
    nodata: NaN,
    bitsPerSample: 32,
  });
});

test('any two bands, by common name, name or file name', async () => {
  const { run } = await scene({
    'x_B3.tif': { ...grid, value: (): number => 30 },
    'x_B5.tif': { ...grid, value: () => 10 },
  });
  for (const bands of [
    { bandA: 'green', bandB: 'nir' },
    { bandA: 'b3', bandB: 'B5' },
    { bandA: 'x_B3', bandB: 'x_B5' },
  ]) {
    const output = await readGeoTiff((await run('ndvi', { type: 'local', path: 'scene' }, bands)).path);
    expect(output.samples[0]).toBe(0.5);
  }
});

test('negative and float values; a sum of 0 is no data', async () => {
  const { run } = await scene({
    'x_B5.tif': { ...grid, type: 'Float32', value: (x) => x - 20 },
    'x_B4.tif': { ...grid, type: 'Float32', value: () => 5 },
  });
  const output = await readGeoTiff((await run('ndvi', { type: 'local', path: 'scene' })).path);
  expect(output.samples[15]).toBe(NaN);
  expect(output.samples[16]).toBeCloseTo((-4 - 5) / (-4 + 5), 6);
});

describe('refused, with what is wrong', () => {
  test.each<[string, TinyRaster]>([
    ['size', { ...grid, width: 41, value: () => 1 }],
    ['geotransform', { ...grid, origin: [500_030, 5_000_000, 30] as const, value: () => 1 }],
    ['CRS', { ...grid, epsg: 32634, value: () => 1 }],
  ])('bands on different grids: %s', async (what, other) => {
    const { run } = await scene({ 'x_B5.tif': { ...grid, value: () => 1 }, 'x_B4.tif': other });
    await expect(run('ndvi', { type: 'local', path: 'scene' })).rejects.toMatchObject({
      code: 'grids_differ',
      message: expect.stringContaining(what) as string,
    });
  });

  test('a band that is not there; the message tells which are', async () => {
    const { run } = await scene({ 'x_B5.tif': { ...grid, value: () => 1 } });
    await expect(run('ndvi', { type: 'local', path: 'scene' })).rejects.toMatchObject({
      code: 'band_not_found',
      message: expect.stringContaining('nir') as string,
    });
  });

  test('a name that two bands have', async () => {
    const { run } = await scene({
      'x_B5.tif': { ...grid, value: () => 1 },
      'y_B5.tif': { ...grid, value: () => 1 },
      'x_B4.tif': { ...grid, value: () => 1 },
    });
    await expect(run('ndvi', { type: 'local', path: 'scene' })).rejects.toMatchObject({ code: 'band_ambiguous' });
  });
});

test('the synthetic scene is the same on every run, and has water, vegetation and no data', async () => {
  const { run } = await startStepHost({ keepsChildren: true });
  const first = await run('ndvi', { type: 'synthetic', size: 256 });
  const second = await run('ndvi', { type: 'synthetic', size: 256 });
  expect(first.sha256).toBe(second.sha256);
  const { samples } = await readGeoTiff(second.path);
  for (const isThere of [Number.isNaN, (v: number) => v > -0.5 && v < 0, (v: number) => v > 0.4])
    expect(samples.filter(isThere).length).toBeGreaterThan(100);
});
