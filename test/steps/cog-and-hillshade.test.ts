// @module-tag all
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cogDefects } from '../support/cog-check.ts';
import { geoTiff } from '../support/geotiff.ts';
import { readGeoTiff } from '../support/read-geotiff.ts';
import { startStepHost } from '../support/step-host.ts';

describe('cog', () => {
  test.each([
    { compression: 'DEFLATE', blockSize: 256, resampling: 'AVERAGE' },
    { compression: 'LZW', blockSize: 512, resampling: 'NEAREST' },
    { compression: 'NONE', blockSize: 512, resampling: 'CUBIC' },
  ])('is a valid Cloud Optimized GeoTIFF with the values of its input: %j', async (parameters) => {
    const { run, inputDir } = await startStepHost({ keepsChildren: true });
    const raster = { width: 1100, height: 900, value: (x: number, y: number) => (x * 31 + y * 17) % 65_536 };
    const input = geoTiff(raster);
    await writeFile(join(inputDir, 'a.tif'), input);
    await writeFile(join(inputDir, 'plain.tif'), input);
    expect(cogDefects(join(inputDir, 'plain.tif'))).not.toEqual([]);
    const output = await run('cog', { type: 'local', path: 'a.tif' }, parameters);
    expect(cogDefects(output.path)).toEqual([]);
    const read = await readGeoTiff(output.path);
    expect(read).toMatchObject({
      width: 1100,
      height: 900,
      epsg: 32633,
      bitsPerSample: 16,
      geoTransform: [500_000, 30, 0, 5_000_000, 0, -30],
    });
    expect(read.samples.every((value, i) => value === raster.value(i % 1100, Math.floor(i / 1100)))).toBe(true);
    expect(read.images).toBeGreaterThan(1);
  });

  test('several rasters are refused, by name', async () => {
    const { run, inputDir } = await startStepHost({ keepsChildren: true });
    for (const name of ['a.tif', 'b.tif'])
      await writeFile(join(inputDir, name), geoTiff({ width: 4, height: 4, value: () => 1 }));
    await expect(run('cog', { type: 'local', path: '.' })).rejects.toMatchObject({
      code: 'not_one_raster',
      message: expect.stringContaining('a.tif, b.tif') as string,
    });
  });

  test.each([{ compression: 'ZIP' }, { blockSize: 100 }, { blockSize: '512' }, { extra: 1 }])(
    '%j is refused before anything runs',
    async (parameters) => {
      const { run } = await startStepHost({ keepsChildren: true });
      await expect(
        run('cog', { type: 'synthetic', size: 64 }, parameters as unknown as Record<string, string>),
      ).rejects.toMatchObject({ code: 'invalid_parameters' });
    },
  );
});

describe('hillshade', () => {
  /** Horn's formula for a plane that rises by `slope` to the east: the same light everywhere. */
  function plane(slope: number, azimuth: number, altitude: number): number {
    const radians = Math.PI / 180;
    const steepness = Math.atan(slope);
    // A slope that rises to the east faces west: aspect 270 degrees.
    const light =
      Math.sin(altitude * radians) * Math.cos(steepness) +
      Math.cos(altitude * radians) * Math.sin(steepness) * Math.cos((azimuth - 270) * radians);
    return 1 + 254 * Math.max(0, light);
  }

  test.each([
    [315, 45],
    [270, 30],
    [90, 60],
  ])("of a plane is what Horn's formula says: azimuth %d, altitude %d", async (azimuth, altitude) => {
    const { run, inputDir } = await startStepHost({ keepsChildren: true });
    await writeFile(
      join(inputDir, 'dem.tif'),
      geoTiff({ width: 64, height: 48, type: 'Float32', value: (x) => x * 12 }),
    );
    const output = await run('hillshade', { type: 'local', path: 'dem.tif' }, { azimuth, altitude });
    expect(cogDefects(output.path)).toEqual([]);
    const { samples, nodata, bitsPerSample } = await readGeoTiff(output.path);
    expect([nodata, bitsPerSample]).toEqual([0, 8]);
    const middle = samples[24 * 64 + 32]!;
    expect(Math.abs(middle - plane(12 / 30, azimuth, altitude))).toBeLessThanOrEqual(1);
  });
});
