/** The child process that a step runs in: its limits, its death, and what it may not see. */
import { access, readFile, rm, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import gdal from 'gdal-async';
import { describe, expect, test, vi } from 'vitest';
import { ChildJobError } from '../../src/child/index.ts';
import { codeOf, folderBytes } from '../../src/files/index.ts';
import type { PlatformInput } from '../../src/app/processing/platform-input.ts';
import { createWorkSpace } from '../../src/app/processing/work-space.ts';
import toySteps from '../support/toy-steps/app.ts';
import badSteps from '../support/bad-steps.ts';
import { testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { readGeoTiff } from '../support/read-geotiff.ts';
import { processesIn } from '../support/processes.ts';
import { startStepHost } from '../support/step-host.ts';

const synthetic = { type: 'synthetic', size: 64 } as const;

test('a step from outside: one folder and one line in a registry', async () => {
  const { run, inputDir, host } = await startStepHost({ definition: toySteps });
  await writeFile(join(inputDir, 'a.tif'), geoTiff({ width: 5, height: 4, value: (x, y) => x + 10 * y }));
  expect(host.steps.map(({ id }) => id)).toEqual(['multiply', 'classify']);
  const output = await run('multiply', { type: 'local', path: 'a.tif' }, { factor: 3 });
  const { samples } = await readGeoTiff(output.path);
  expect(samples).toEqual(Array.from({ length: 20 }, (_, i) => 3 * ((i % 5) + 10 * Math.floor(i / 5))));
  await expect(run('multiply', { type: 'local', path: 'a.tif' }, { factr: 3 })).rejects.toMatchObject({
    code: 'invalid_parameters',
    details: expect.arrayContaining([
      { path: 'factr', message: expect.stringContaining('factor') as string },
    ]) as unknown[],
  });
  await expect(run('multiply', { type: 'local', path: 'a.tif' }, { factor: 1000 })).rejects.toMatchObject({
    code: 'invalid_parameters',
  });
});

describe('limits', () => {
  test('time: an endless step is ended, child and all', async () => {
    // Long enough for a child to begin on a busy machine.
    const { run, workFolder } = await startStepHost({ definition: badSteps, limits: { timeoutMs: 10_000 } });
    await expect(run('endless', synthetic)).rejects.toMatchObject({ code: 'job_timeout' });
    expect(processesIn(workFolder)).toEqual([]);
  });

  test('memory: a step that takes too much is ended', async () => {
    const { run } = await startStepHost({ definition: badSteps, limits: { memoryBytes: 400 * 2 ** 20 } });
    await expect(run('greedy', synthetic)).rejects.toMatchObject({ code: 'job_memory_exceeded' });
  });

  test('disk: a step that writes too much is ended', async () => {
    const { run } = await startStepHost({ definition: badSteps, limits: { diskBytes: 50 * 2 ** 20 } });
    await expect(run('wordy', synthetic)).rejects.toMatchObject({ code: 'job_disk_exceeded' });
  });

  test('all work folders together: a step waits while they are full, and may take what is left', async () => {
    const folder = await testFolder();
    const { run } = await startStepHost({
      definition: badSteps,
      workSpace: createWorkSpace({ folder, quotaBytes: 50 * 2 ** 20 }),
      workFolder: join(folder, 'mine'),
    });
    await writeFile(join(folder, 'another'), Buffer.alloc(50 * 2 ** 20));
    const notes: (string | null)[] = [];
    const running = run('wordy', synthetic, {}, undefined, (_fraction, note) => notes.push(note));
    running.catch(() => {});
    await vi.waitFor(() => expect(notes).toContain('waiting for space in the work folders'), 300_000);
    await expect(access(join(folder, 'mine'))).rejects.toMatchObject({ code: 'ENOENT' });
    // Files of other runs are no fault of the user's: the step is tried again.
    await writeFile(join(folder, 'another'), Buffer.alloc(10 * 2 ** 20));
    await expect(running).rejects.toMatchObject({
      ...{ code: 'work_disk_full', kind: 'transient', status: 503 },
      data: { limit: 40 * 2 ** 20 },
    });
    await rm(join(folder, 'another'));
    await expect(run('wordy', synthetic)).rejects.toMatchObject({
      ...{ code: 'job_disk_exceeded', kind: 'input' },
      data: { limit: 50 * 2 ** 20 },
    });
  });

  test('runs hold no input before their step is near, and their wait for a fetch does not count as one', async () => {
    const folder = await testFolder();
    const gate = Promise.withResolvers<undefined>();
    let [begun, isOpen] = [0, false];
    const { host } = await startStepHost({
      concurrency: 1,
      limits: { timeoutMs: 2_000 },
      platformInput: {
        check: async () => [],
        fetch: async (_items: unknown, to: string) => {
          begun += 1;
          await mkdir(to, { recursive: true });
          const path = join(to, 'a.tif');
          await writeFile(path, 'pixels');
          if (isOpen) await sleep(300);
          return [{ path, ofItem: { observedAt: null, bands: [] } }];
        },
      } as unknown as PlatformInput,
      inChild: async () => {
        await gate.promise;
        throw new ChildJobError('job_failed', 'this step has no output', { kind: 'input' });
      },
    });
    const step = host.find('cog');
    const signal = new AbortController().signal;
    const codes = Array.from({ length: 12 }, (_, i) =>
      host
        .run(
          {
            ...{ owner: 'tester', stepId: 'cog', stepVersion: step.version, parameters: {} },
            input: { type: 'platform', items: [{ collectionId: 'c', itemId: 'i' }] },
            workFolder: join(folder, String(i)),
          },
          { signal, onProgress: () => {} },
        )
        .catch((error: unknown) => codeOf(error)),
    );
    await expect.poll(() => begun).toBe(2);
    await sleep(300);
    expect([begun, host.load().waiting]).toEqual([2, 11]);
    isOpen = true;
    gate.resolve(undefined);
    // The last one waits for longer than a fetch may take.
    expect(new Set(await Promise.all(codes))).toEqual(new Set(['job_failed']));
    expect(begun).toBe(12);
  });

  test('all work folders together: many runs that wait share a look at the folder', async () => {
    const folder = await testFolder();
    await writeFile(join(folder, 'full'), Buffer.alloc(10));
    let looks = 0;
    const space = createWorkSpace({
      folder,
      quotaBytes: 10,
      bytesOf: async (path) => {
        looks += 1;
        return folderBytes(path);
      },
    });
    const abort = new AbortController();
    const waiting = Array.from({ length: 300 }, () => space.waitForRoom(abort.signal, () => {}).catch(() => 'gave up'));
    await vi.waitFor(() => expect(looks).toBeGreaterThan(0), 300_000);
    abort.abort(new Error('enough'));
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['gave up']));
    expect(looks).toBeLessThan(5);
  });
});

describe('cancel', () => {
  test.each(['endless', 'cooperative'])('%s: rejects with the reason, and the child is gone', async (stepId) => {
    const { run, workFolder } = await startStepHost({ definition: badSteps });
    const abort = new AbortController();
    const running = run(stepId, synthetic, {}, abort.signal);
    running.catch(() => {});
    await vi.waitFor(() => access(join(workFolder, 'step', 'work', 'pid')), 300_000);
    expect(processesIn(workFolder)).not.toEqual([]);
    abort.abort(new Error('the user has had enough'));
    await expect(running).rejects.toThrow('the user has had enough');
    expect(processesIn(workFolder)).toEqual([]);
  });

  test('before it began: nothing is started', async () => {
    const { run, workFolder } = await startStepHost({ definition: badSteps });
    await expect(run('endless', synthetic, {}, AbortSignal.abort(new Error('no')))).rejects.toThrow('no');
    await expect(access(workFolder)).rejects.toThrow();
  });
});

describe('a bad step touches nothing but its run', () => {
  test.each([
    ['crashing', 'job_crashed'],
    ['exiting', 'job_crashed'],
    ['throwing', 'job_failed'],
    ['silent', 'step_broke_its_declaration'],
    ['wrong-bands', 'step_broke_its_declaration'],
    ['wrong-type', 'step_broke_its_declaration'],
    ['wrong-nodata', 'step_broke_its_declaration'],
    ['stray-nan', 'step_broke_its_declaration'],
  ])('%s: %s', async (stepId, code) => {
    const { run } = await startStepHost({ definition: badSteps });
    await expect(run(stepId, synthetic)).rejects.toMatchObject({ code });
  });

  test.each([
    ['misusing', 'description is a read-only property', /bad-steps\.ts:\d+:\d+/],
    ['opening-nothing', 'No such file or directory', /exist\.tif/],
    [
      'needing-a-package',
      'Install it where the app runs: npm install a-package-that-is-not-there',
      /Cannot find package/,
    ],
    ['not-awaiting', 'the planted rejection', /bad-steps\.ts:\d+:\d+/],
  ])('%s: reported as a defect of the step, with its place', async (stepId, message, place) => {
    const { run } = await startStepHost({ definition: badSteps });
    const error = await run(stepId, synthetic).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      code: 'job_failed',
      claimedKind: 'bug',
      childStack: expect.stringMatching(place) as string,
    });
    expect((error as Error).message).toContain(message);
  });

  test('a damaged input is reported as the input error, even if a step reads it without the kit', async () => {
    const { run, inputDir } = await startStepHost({ definition: badSteps });
    const path = join(inputDir, 'damaged.tif');
    const raster = gdal.open(path, 'w', 'GTiff', 256, 256, 1, 'Byte', ['COMPRESS=DEFLATE', 'TILED=YES']);
    raster.srs = gdal.SpatialReference.fromEPSG(32_631);
    raster.geoTransform = [500_000, 10, 0, 5_000_000, 0, -10];
    const noise = Uint8Array.from({ length: 65_536 }, (_, i) => (Math.imul(i, 2_654_435_761) >>> 13) & 255);
    raster.bands.get(1).pixels.write(0, 0, 256, 256, noise);
    raster.close();
    const local = { type: 'local', path: 'damaged.tif' } as const;
    await expect(run('reading-by-itself', local)).rejects.toMatchObject({ claimedKind: 'bug' });
    const bytes = await readFile(path);
    await writeFile(path, bytes.fill(0, 600, bytes.length - 600));
    await expect(run('reading-by-itself', local)).rejects.toMatchObject({ code: 'job_failed', claimedKind: 'input' });
  });

  test('an output that a step leaves open is named', async () => {
    const { run } = await startStepHost({ definition: badSteps });
    await expect(run('unclosed', synthetic)).rejects.toThrow('left out.tif open: close each dataset');
  });

  test('no secret of the server reaches the child', async () => {
    process.env['PLATFORM_API_KEY'] = 'a-secret-that-steps-must-not-see';
    const { run } = await startStepHost({ definition: badSteps });
    const { message: seen } = await run('curious', synthetic).then(
      () => new Error('it told nothing'),
      (error: unknown) => error as Error,
    );
    delete process.env['PLATFORM_API_KEY'];
    expect(Object.keys(JSON.parse(seen) as object)).toContain('GDAL_DISABLE_READDIR_ON_OPEN');
    expect(seen).not.toContain('a-secret-that-steps-must-not-see');
  });
});

describe('what is read', () => {
  const vrt =
    '<VRTDataset rasterXSize="40" rasterYSize="40"><VRTRasterBand dataType="Byte" band="1" subClass="VRTRawRasterBand"><SourceFilename relativetoVRT="0">/etc/passwd</SourceFilename><ImageOffset>0</ImageOffset><PixelOffset>1</PixelOffset><LineOffset>40</LineOffset></VRTRasterBand></VRTDataset>';

  test.each([
    ['a VRT disguised as .tif', vrt],
    ['text', 'hello'],
    ['an empty file', ''],
    ['a GeoTIFF cut off in its header', geoTiff({ width: 4, height: 4, value: () => 1 }).subarray(0, 60)],
  ])('%s is no raster', async (_name, bytes) => {
    const { run, inputDir } = await startStepHost();
    await writeFile(join(inputDir, 'evil.tif'), bytes);
    await expect(run('cog', { type: 'local', path: 'evil.tif' })).rejects.toMatchObject({ code: 'not_a_raster' });
  });

  test('a GeoTIFF that claims too many pixels is refused before one is read', async () => {
    const { run, inputDir } = await startStepHost();
    const huge = geoTiff({ width: 4, height: 4, value: () => 1 });
    huge.writeUInt32LE(2 ** 31 - 1, 10 + 8); // the first two tags are width and height
    huge.writeUInt32LE(2 ** 31 - 1, 22 + 8);
    await writeFile(join(inputDir, 'huge.tif'), huge);
    await expect(run('cog', { type: 'local', path: 'huge.tif' })).rejects.toMatchObject({
      code: expect.stringMatching(/^(raster_too_large|not_a_raster)$/) as string,
    });
    huge.writeUInt32LE(200_000, 10 + 8);
    huge.writeUInt32LE(200_000, 22 + 8);
    await writeFile(join(inputDir, 'huge.tif'), huge);
    await expect(run('cog', { type: 'local', path: 'huge.tif' })).rejects.toMatchObject({ code: 'raster_too_large' });
  });

  test.each(['/etc/passwd', '../x.tif', '/vsicurl/http://127.0.0.1:1/a.tif', 'http://127.0.0.1:1/a.tif'])(
    '%s is refused',
    async (path) => {
      const { run } = await startStepHost();
      await expect(run('cog', { type: 'local', path })).rejects.toMatchObject({ code: 'unsafe_path' });
    },
  );

  test('a folder without rasters says what was looked for', async () => {
    const { run, inputDir } = await startStepHost();
    await mkdir(join(inputDir, 'empty'));
    await expect(run('cog', { type: 'local', path: 'empty' })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('.tif') as string,
    });
  });
});

test("an earlier try's folder is cleared, and no file is left in it but the new ones", async () => {
  const { run, workFolder } = await startStepHost();
  await mkdir(workFolder, { recursive: true });
  await writeFile(join(workFolder, 'left-over'), 'x');
  await run('cog', synthetic);
  expect(await readdir(workFolder)).not.toContain('left-over');
});
