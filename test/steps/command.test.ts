// @module-tag all
/** Steps in any language: the same pixels, the same words for the user, and the same walls. */
import { once } from 'node:events';
import { access, readFile, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import gdal from 'gdal-async';
import { describe, expect, test, vi } from 'vitest';
import myApp from '../../src/my-app/app.ts';
import commandSteps from '../support/command-steps.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testConfinement } from '../support/confinement.ts';
import { geoTiff } from '../support/geotiff.ts';
import { processesIn } from '../support/processes.ts';
import { readGeoTiff } from '../support/read-geotiff.ts';
import { startStepHost } from '../support/step-host.ts';
import { confined, needing } from '../support/needs.ts';

const isConfined = await confined();
/** With 7 for no data. */
function writeRaster(
  path: string,
  { width, height }: { width: number; height: number },
  value: (x: number, y: number) => number,
): void {
  const dataset = gdal.open(path, 'w', 'GTiff', width, height, 1, 'UInt16');
  dataset.geoTransform = [500_000, 30, 0, 5_000_000, 0, -30];
  dataset.srs = gdal.SpatialReference.fromEPSG(32_633);
  const band = dataset.bands.get(1);
  band.noDataValue = 7;
  band.pixels.write(
    0,
    0,
    width,
    height,
    Uint16Array.from({ length: width * height }, (_, i) => value(i % width, Math.floor(i / width))),
  );
  dataset.close();
}

const synthetic = { type: 'synthetic', size: 64 } as const;

describe('NDVI in Python', needing(isConfined, 'python-gdal'), () => {
  test.each([
    ['odd sizes, over several strips', { width: 301, height: 517 }],
    ['one pixel', { width: 1, height: 1 }],
    ['one row', { width: 700, height: 1 }],
    ['one column', { width: 1, height: 700 }],
  ])('%s: the pixels of the one in TypeScript, bit for bit', async (_name, size) => {
    const files = await startStepHost({ definition: commandSteps });
    const kits = await startStepHost({ definition: myApp, inputDir: files.inputDir });
    // Zeros, equal values, no data in either band, and everything between.
    for (const [band, value] of [
      ['B4', (x: number, y: number) => (x * 7919 + y * 104729) % 65_536],
      ['B5', (x: number, y: number) => (x % 11 === 0 ? 0 : x % 13 === 1 ? 7 : (x * 31 + y * 17) % 40_000)],
    ] as const)
      writeRaster(join(files.inputDir, `l8_${band}.tif`), size, value);
    const input = { type: 'local', path: '.' } as const;
    const parameters = { bandA: 'nir', bandB: 'red' };
    const [ours, theirs] = [
      await readGeoTiff((await kits.run('ndvi', input, parameters)).path),
      await readGeoTiff((await files.run('ndvi-python', input, parameters)).path),
    ];
    expect([theirs.width, theirs.height]).toEqual([size.width, size.height]);
    expect(theirs.samples.length).toBe(size.width * size.height);
    const differing = ours.samples.flatMap((value, i) => (Object.is(value, theirs.samples[i]) ? [] : [i]));
    expect(differing).toEqual([]);
  });

  test('tells a band that is not there as the other does', async () => {
    const { run, inputDir } = await startStepHost({ definition: commandSteps });
    await writeFile(join(inputDir, 'l8_B4.tif'), geoTiff({ width: 3, height: 2, value: () => 1 }));
    await expect(
      run('ndvi-python', { type: 'local', path: '.' }, { bandA: 'nir', bandB: 'red' }),
    ).rejects.toMatchObject({
      code: 'band_not_found',
      message: 'no band has the name "nir"; the input has red',
      claimedKind: 'input',
    });
  });
});

test(
  'gdaldem slope: degrees by the formula of Horn, with its progress',
  needing(isConfined, 'gdal-programs'),
  async () => {
    const { run, inputDir } = await startStepHost({ definition: commandSteps });
    const height = (x: number, y: number) => 3 * x + 40 * Math.sin(y / 5);
    await writeFile(
      join(inputDir, 'dem.tif'),
      geoTiff({
        width: 80,
        height: 70,
        value: (x, y) => Math.round(height(x, y)) + 1_000,
        origin: [500_000, 5_000_000, 10],
      }),
    );
    const fractions: number[] = [];
    const output = await run('slope', { type: 'local', path: 'dem.tif' }, { scale: 1 }, undefined, (fraction) =>
      fractions.push(fraction),
    );
    const { samples, width } = await readGeoTiff(output.path);
    const z = (x: number, y: number) => Math.round(height(x, y)) + 1_000;
    for (const [x, y] of [
      [1, 1],
      [40, 33],
      [78, 68],
    ] as const) {
      const dx =
        (z(x + 1, y - 1) + 2 * z(x + 1, y) + z(x + 1, y + 1) - z(x - 1, y - 1) - 2 * z(x - 1, y) - z(x - 1, y + 1)) /
        80;
      const dy =
        (z(x - 1, y + 1) + 2 * z(x, y + 1) + z(x + 1, y + 1) - z(x - 1, y - 1) - 2 * z(x, y - 1) - z(x + 1, y - 1)) /
        80;
      expect(samples[y * width + x]).toBeCloseTo((Math.atan(Math.hypot(dx, dy)) * 180) / Math.PI, 3);
    }
    expect(fractions.length).toBeGreaterThan(3);
    expect(Math.max(...fractions)).toBeGreaterThan(0.9);
  },
);

describe('a program', needing(isConfined, 'python-gdal'), () => {
  test('finds its job, tells progress, and what it prints is heard', async () => {
    const { host, workFolder, inputDir } = await startStepHost({ definition: commandSteps });
    await writeFile(join(inputDir, 'a.tif'), geoTiff({ width: 5, height: 4, value: (x, y) => x + y }));
    const [printed, notes]: [string[], (string | null)[]] = [[], []];
    const task = {
      owner: 'tester',
      stepId: 'copies',
      stepVersion: '1.0.0',
      parameters: { text: 'a; rm -rf / "$HOME"' },
      input: { type: 'local', path: 'a.tif' } as const,
      workFolder,
    };
    const {
      outputs: [output],
    } = await host.run(task, {
      signal: new AbortController().signal,
      onProgress: (_fraction, note) => notes.push(note),
      onPrinted: (line) => printed.push(line),
    });
    expect((await readGeoTiff(output!.path)).samples.slice(0, 6)).toEqual([0, 1, 2, 3, 4, 1]);
    expect(notes).toContain('a quarter');
    expect(printed).toEqual(['said a; rm -rf / "$HOME"']);
  });

  test('takes an area as a file of GeoJSON', async () => {
    const { run } = await startStepHost({ definition: commandSteps });
    const place = { type: 'Polygon', coordinates: [[[10, 40], [11, 40], [11, 41], [10, 40]]] } as const; // oxfmt-ignore
    const { path } = await run('area-file', { type: 'synthetic', size: 64 }, { place });
    expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({ features: [{ geometry: place }] });
  });

  test.each([
    ['refuses', {}, { code: 'no_snow', message: 'there is no snow in it', claimedKind: 'input' }],
    [
      'breaks',
      {},
      {
        code: 'job_failed',
        message: expect.stringContaining('ValueError: a mistake in Python') as string,
        claimedKind: 'bug',
      },
    ],
    ['refuses-at-length', {}, { code: 'no_snow', message: 'ж'.repeat(2_000), claimedKind: 'input' }],
    [
      'joins-text',
      { text: '-rf' },
      { code: 'invalid_parameters', message: 'text must not begin with -', claimedKind: 'input' },
    ],
    ['is-not-there', {}, { code: 'program_not_found', claimedKind: 'bug' }],
    [
      'takes-text',
      { text: '--help' },
      { code: 'invalid_parameters', message: 'text must not begin with -', claimedKind: 'input' },
    ],
  ])('that %s: whose failure it is, in words', async (stepId, parameters, failure) => {
    const { run } = await startStepHost({ definition: commandSteps });
    await expect(run(stepId, synthetic, { text: 'plain', ...parameters })).rejects.toMatchObject(failure);
  });

  test("does not reach this machine's own servers, though they listen", async () => {
    let visitors = 0;
    const server = createServer((socket) => void ((visitors += 1), socket.end())).listen(0, '127.0.0.1');
    await once(server, 'listening');
    cleanUpLater(() => server.close());
    const text = String((server.address() as AddressInfo).port);
    const { run } = await startStepHost({ definition: commandSteps });
    await expect(run('looks-around', synthetic, { text })).rejects.toMatchObject({
      message: expect.stringContaining('Address family not supported') as string,
      claimedKind: 'bug',
    });
    expect(visitors).toBe(0);
  });

  test('ends when the run is cancelled', async () => {
    const { run, workFolder } = await startStepHost({ definition: commandSteps });
    const abort = new AbortController();
    const running = run('sleeps', synthetic, { text: 'plain' }, abort.signal);
    running.catch(() => {});
    await vi.waitFor(() => access(join(workFolder, 'step', 'work', 'pid')), 300_000);
    abort.abort(new Error('the user has had enough'));
    await expect(running).rejects.toThrow('the user has had enough');
    expect(processesIn(workFolder)).toEqual([]);
  });
});

test('without confinement a program is not run', async () => {
  const { run } = await startStepHost({ definition: commandSteps, confinement: await testConfinement('none') });
  await expect(run('copies', synthetic, { text: 'plain' })).rejects.toMatchObject({
    code: 'not_confined',
    message: expect.stringContaining('the log of its start says why') as string,
  });
});

test('and nobody is asked to approve it', async () => {
  const { host } = await startStepHost({ definition: commandSteps, confinement: await testConfinement('none') });
  await expect(host.check('copies', {}, synthetic)).rejects.toMatchObject({
    code: 'not_confined',
    message: expect.stringContaining('STEP_CONFINEMENT=none') as string,
  });
});
