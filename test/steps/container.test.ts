// @module-tag all
/** A step in a container image: by an engine of the test's own, and by the machine's where it has one. */
import { execFileSync } from 'node:child_process';
import { chmod, copyFile, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { createContainers } from '../../src/app/processing/containers.ts';
import containerSteps, { testImage } from '../support/container-steps.ts';
import { makeFolder, projectRoot, testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { readGeoTiff } from '../support/read-geotiff.ts';
import { startStepHost } from '../support/step-host.ts';
import { installCommand } from '../../scripts/needs.mjs';
import { confined, needing, unless, type Condition } from '../support/needs.ts';

const isConfined = await confined();
const local = { type: 'local', path: 'a file, of: mine.tif' } as const;
const synthetic = { type: 'synthetic', size: 32 } as const;

async function tinyEngine() {
  const folder = await makeFolder();
  const engine = join(folder, 'tiny-engine.mjs');
  await copyFile(join(projectRoot, 'test/support/tiny-engine.mjs'), engine);
  await chmod(engine, 0o755);
  const calls = async () =>
    (await readFile(join(folder, 'calls.jsonl'), 'utf8').catch(() => ''))
      .trim()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as string[]);
  const running = async () => (await readdir(folder)).filter((name) => name.endsWith('.pid'));
  return { engine, calls, running, environment: () => readFile(join(folder, 'environment'), 'utf8') };
}

/** The machine's engine, with an image that holds nothing but a shell; null where there is none that works. */
function realEngine(): string | null {
  for (const engine of ['docker', 'podman'])
    try {
      const folder = execFileSync('mktemp', ['-d'], { encoding: 'utf8' }).trim();
      const archive = join(folder, 'image.tar');
      const shell = 'mkdir -p bin tmp && cp "$(command -v busybox)" bin/busybox && for i in sh cp cat touch grep env id sleep ln echo printf; do ln -s busybox bin/$i; done && tar -cf "$1" bin tmp'; // oxfmt-ignore
      execFileSync('sh', ['-ec', shell, 'sh', archive], { cwd: folder, stdio: 'ignore' });
      execFileSync(engine, ['import', archive, testImage], { stdio: 'ignore', timeout: 900_000 });
      execFileSync(engine, ['run', '--rm', '--network', 'none', '--pull', 'never', testImage, 'sh', '-c', 'true'], {
        stdio: 'ignore',
        timeout: 900_000,
      });
      return engine;
    } catch {
      continue;
    }
  return null;
}

const real = realEngine();

const machines = unless(
  real !== null,
  'neither podman nor docker runs an image here',
  `sudo ${installCommand(['podman'])}`,
);
const engines: [string, Condition[], () => Promise<string>][] = [
  ['an engine of the test’s own', [], async () => (await tinyEngine()).engine],
  ['the machine’s engine', [machines], async () => real ?? ''],
];

for (const [name, wanted, engineOf] of engines)
  describe(`by ${name}`, { timeout: 900_000, ...needing(isConfined, ...wanted) }, () => {
    let engine: string;
    beforeAll(async () => (engine = await engineOf()));

    async function start(limits: { diskBytes?: number } = {}) {
      const inputDir = await testFolder();
      await writeFile(join(inputDir, local.path), geoTiff({ width: 5, height: 4, value: (x, y) => x + 10 * y }));
      return startStepHost({
        definition: containerSteps,
        inputDir,
        containers: createContainers(engine, 'a test'),
        limits,
      });
    }

    test.each([local, synthetic])('its program reads $type input and writes the output', async (input) => {
      const { host, run } = await start();
      await host.check('copies', {}, input);
      const told: [number, string | null][] = [];
      const { outputs } = await run('copies', input, {}, undefined, (fraction, note) => told.push([fraction, note]));
      if (input === local) expect((await readFile(outputs[0]!.path)).length).toBeGreaterThan(0);
      expect(told).toContainEqual([0.5, 'half of it']);
    });

    test('what it prints is in the log, and percents are progress', async () => {
      const { host, workFolder, run } = await start();
      const printed: string[] = [];
      const signal = new AbortController().signal;
      await host.run(
        {
          owner: 'a',
          stepId: 'copies',
          stepVersion: '1.0.0',
          parameters: { text: 'so' },
          input: synthetic,
          workFolder,
        },
        { signal, onProgress: () => {}, onPrinted: (line) => printed.push(line) },
      );
      expect(printed).toContain('said so');
      const told: number[] = [];
      await run('percent', synthetic, {}, undefined, (fraction) => told.push(fraction));
      expect(told.some((fraction) => Math.abs(fraction - 0.32) < 0.001)).toBe(true);
    });

    test('its refusal is the user’s to read, and its mistake is a defect', async () => {
      const { run } = await start();
      await expect(run('refuses', synthetic)).rejects.toMatchObject({
        code: 'no_snow',
        message: 'there is no snow in it',
      });
      await expect(run('breaks', synthetic)).rejects.toMatchObject({
        claimedKind: 'bug',
        message: expect.stringContaining('a mistake in the image') as string,
      });
    });

    test('the job file names what the container has', async () => {
      const { run } = await start();
      const { outputs } = await run('tells', local);
      expect(JSON.parse(await readFile(outputs[0]!.path, 'utf8'))).toMatchObject({
        inputs: [{ path: `/input/0/${local.path}`, bands: [{ names: expect.any(Array) as string[] }] }],
        output: '/output/told.txt',
        workFolder: '/work',
        parameters: { text: 'plain' },
      });
    });

    test('it has no network, no secret, and writes nowhere but to its own folders', async () => {
      vi.stubEnv('PLATFORM_API_KEY', 'a secret');
      const { run } = await start();
      const { outputs } = await run('looks-around', local);
      expect((await readFile(outputs[0]!.path, 'utf8')).trim()).toMatch(/^user \d+$/);
    });

    test('a cancel ends it', async () => {
      const { host, workFolder } = await start();
      const cancel = new AbortController();
      const began = performance.now();
      await expect(
        host.run(
          { owner: 'a', stepId: 'sleeps', stepVersion: '1.0.0', parameters: {}, input: synthetic, workFolder },
          {
            signal: cancel.signal,
            onProgress: () => {},
            onPrinted: (line) => line === 'begun' && cancel.abort(new Error('not wanted any more')),
          },
        ),
      ).rejects.toThrow('not wanted any more');
      expect(performance.now() - began).toBeLessThan(30_000);
      expect(await createContainers(engine, 'a test').sweep()).toBe(0);
    });

    test('it cannot fill the disk', async () => {
      const { run } = await start({ diskBytes: 3_000_000 });
      await expect(run('fills', synthetic)).rejects.toMatchObject({ code: 'job_disk_exceeded' });
    });

    test('a link in place of an output leads nowhere', async () => {
      const { run } = await start();
      await expect(run('links', synthetic)).rejects.toMatchObject({ code: 'step_broke_its_declaration' });
    });

    test('an image that is not there is told before anybody is asked', async () => {
      const { host } = await start();
      await expect(host.check('is-not-there', {}, synthetic)).rejects.toMatchObject({
        code: 'no_container_image',
        message: expect.stringContaining('pull marketplace-app-kit-absent:1') as string,
      });
    });
  });

test(
  'a cancel before the program begins starts nothing; one while it begins ends it',
  { timeout: 900_000, ...needing(isConfined) },
  async () => {
    const { engine, calls, running } = await tinyEngine();
    const folder = await testFolder();
    const task = { image: testImage, progress: 'json', inputs: [], stepFolder: folder, folder: join(folder, 'own'), limits: { memoryBytes: 1e9, diskBytes: 1e9 }, question: { type: 'run-container', argv: ['sleep', '60'], files: {}, gives: [], upTo: 1 } } as const; // oxfmt-ignore
    const reason = new Error('not wanted any more');
    const started = (signal: AbortSignal) =>
      createContainers(engine, 'a test').run(
        { ...task, question: { ...task.question, argv: ['sleep', '60'], gives: [] } },
        { signal, onProgress: () => {}, onPrinted: () => {} },
      );
    const early = new AbortController();
    const first = started(early.signal);
    early.abort(reason);
    await expect(first).rejects.toBe(reason);
    expect((await calls()).filter(([verb]) => verb === 'run')).toEqual([]);
    for (const waitMs of [0, 5, 20, 60, 120]) {
      const cancel = new AbortController();
      const run = started(cancel.signal);
      run.catch(() => {});
      await expect
        .poll(async () => (await calls()).filter(([verb]) => verb === 'run').length, { interval: 5 })
        .toBeGreaterThan(0);
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      cancel.abort(reason);
      await expect(run).rejects.toBe(reason);
      expect(await running()).toEqual([]);
    }
  },
);

test(
  'whatever it prints, the server reads no more than it can',
  { timeout: 900_000, ...needing(isConfined) },
  async () => {
    const { host, workFolder } = await startStepHost({
      definition: containerSteps,
      containers: createContainers((await tinyEngine()).engine, 'a test'),
    });
    const printed: string[] = [];
    let longestMs = 0;
    let last = performance.now();
    const pulse = setInterval(() => {
      longestMs = Math.max(longestMs, performance.now() - last);
      last = performance.now();
    }, 10);
    const before = process.memoryUsage().rss;
    await host
      .run(
        { owner: 'a', stepId: 'prints', stepVersion: '1.0.0', parameters: {}, input: synthetic, workFolder },
        { signal: new AbortController().signal, onProgress: () => {}, onPrinted: (line) => printed.push(line) },
      )
      .catch(() => {});
    clearInterval(pulse);
    expect(printed.length).toBeLessThan(20_000);
    expect(Math.max(...printed.map(({ length }) => length))).toBeLessThanOrEqual(2_000);
    expect(process.memoryUsage().rss - before).toBeLessThan(200e6);
    expect(longestMs).toBeLessThan(2_000);
  },
);

test('what it reads is not what it has written', needing(isConfined), async () => {
  const inputDir = await testFolder();
  await writeFile(join(inputDir, local.path), geoTiff({ width: 300, height: 300, value: () => 1 }));
  const { run } = await startStepHost({
    definition: containerSteps,
    inputDir,
    containers: createContainers((await tinyEngine()).engine, 'a test'),
    limits: { diskBytes: 150_000 },
  });
  expect((await run('tells', local)).outputs).toHaveLength(1);
});

test('the engine is told to give the program nothing', needing(isConfined), async () => {
  vi.stubEnv('PLATFORM_API_KEY', 'a secret');
  const { engine, calls, environment } = await tinyEngine();
  const { run } = await startStepHost({ definition: containerSteps, containers: createContainers(engine, 'a test') });
  await run('copies', synthetic);
  const [args = []] = (await calls()).filter(([verb]) => verb === 'run');
  for (const flags of [
    '--network none',
    '--read-only',
    '--cap-drop ALL',
    '--security-opt no-new-privileges',
    '--pull never',
  ])
    expect(args.join(' ')).toContain(` ${flags} `);
  expect(args[args.indexOf('--user') + 1]).not.toMatch(/^0:/);
  expect(await environment()).toContain('PATH');
  expect(await environment()).not.toContain('PLATFORM_API_KEY');
});

test('without an engine, or with one that is not there, it is told what to set', async () => {
  const none = await startStepHost({ definition: containerSteps });
  if (isConfined.reason === null)
    await expect(none.host.check('copies', {}, synthetic)).rejects.toMatchObject({
      code: 'no_container_engine',
      message: expect.stringContaining('CONTAINER_ENGINE') as string,
    });
  await expect(createContainers('/no/such/engine', 'a test').require('x')).rejects.toMatchObject({
    code: 'no_container_engine',
  });
});

test('a child’s word does not make the host touch what is not the child’s', async () => {
  const folder = await testFolder();
  const stepFolder = join(folder, 'step');
  await mkdir(stepFolder);
  const secret = join(folder, 'secret');
  await writeFile(secret, 'a secret');
  await symlink(secret, join(stepFolder, 'link.tif'));
  const { engine } = await tinyEngine();
  const task = { image: testImage, progress: 'json', inputs: [], stepFolder, folder: join(folder, 'own'), limits: { memoryBytes: 1e9, diskBytes: 1e9 } } as const; // oxfmt-ignore
  const question = { type: 'run-container', files: {}, upTo: 1 } as const;
  const options = { signal: new AbortController().signal, onProgress: () => {}, onPrinted: () => {} };
  await expect(
    createContainers(engine, 'a test').run(
      { ...task, question: { ...question, argv: ['true'], gives: ['link.tif'] } },
      options,
    ),
  ).rejects.toMatchObject({ code: 'job_output_unsafe' });
  expect(await readFile(secret, 'utf8')).toBe('a secret');
});

const shipped = 'marketplace-app-kit/ndvi:1.0.0';
const hasShipped =
  real !== null &&
  (() => {
    try {
      execFileSync(real, ['image', 'inspect', shipped], { stdio: 'ignore' });
      return true;
    } catch {
      return false;
    }
  })();
const shippedImage = unless(
  hasShipped,
  `there is no image ${shipped} here`,
  `podman build --tag ${shipped} src/steps/ndvi-image`,
);

test('NDVI in an image: the pixels of the one in TypeScript', needing(isConfined, shippedImage), async () => {
  const { run } = await startStepHost({
    definition: containerSteps,
    containers: createContainers(real ?? '', 'a test'),
  });
  const [there, here] = [await run('ndvi-image', synthetic), await run('ndvi', synthetic)];
  const [theirs, ours] = [await readGeoTiff(there.path), await readGeoTiff(here.path)];
  expect(theirs.samples).toEqual(ours.samples);
});
