/** `npm run demo`, as a user runs it. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { landsatFolder, testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { startCommand } from '../support/processes.ts';
import { readGeoTiff } from '../support/read-geotiff.ts';
import { startScriptedServer } from '../support/scripted-server.ts';
import { landsat, needing } from '../support/needs.ts';
import { onlyInAll } from '../support/tags.ts';

const demo = (...args: string[]) => demoWith({}, ...args);

async function demoWith(env: Record<string, string>, ...args: string[]) {
  const { output, exited } = startCommand('demo', args, env);
  return { code: await exited, text: output() };
}

const statesIn = (text: string) =>
  [...text.matchAll(/^ *[\d.]+ s {2}([A-Z_]+) +\d{4}-\d\d-\d\dT/gm)].map(([, state]) => state);
const allStates = ['CREATED', 'AWAITING_APPROVAL', 'APPROVED', 'PROCESSING', 'UPLOADING', 'COMPLETED'];

async function expectDelivered(text: string, out: string): Promise<Buffer> {
  expect(statesIn(text)).toEqual(allStates);
  const field = (name: string) => new RegExp(`^${name} +(\\S+)`, 'm').exec(text)?.[1];
  const bytes = await readFile(field('output') ?? '');
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  expect([field('sha256 of output'), field('sha256 fetched'), field('size')]).toEqual([
    sha256,
    sha256,
    String(bytes.length),
  ]);
  expect(field('file id')).toMatch(/^[A-Za-z0-9_-]{22,}$/);
  expect(text).toMatch(/platform's file +COMPLETED/);
  const preview = await sharp(field('preview')).stats();
  expect(preview.channels.length).toBe(4);
  expect(preview.entropy).toBeGreaterThan(0.5);
  expect((await readdir(out)).length).toBe(2);
  return bytes;
}

describe.concurrent('demo', () => {
  test('with nothing given: an item of the demo catalog, all states, equal digests, a preview; a proxy hears of nothing', async () => {
    const out = await testFolder();
    const proxy = await startScriptedServer('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n');
    const named = Object.fromEntries(['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].map((name) => [name, proxy.url]));
    const { code, text } = await demoWith({ ...named, NODE_USE_ENV_PROXY: '1' }, '--out', out);
    expect(code, text).toBe(0);
    expect(proxy.requests).toEqual([]);
    await expectDelivered(text, out);
    expect(text).toMatch(/processing \d+ %/);
    expect(text).toMatch(/input +olinda-coast\/\S+ +by search/);
  });

  test('on a Landsat 8 scene given as a folder', { tags: [onlyInAll], ...needing(landsat) }, async () => {
    const out = await testFolder();
    const { code, text } = await demo('--input', landsatFolder, '--step', 'ndvi', '--out', out);
    expect(code, text).toBe(0);
    await expectDelivered(text, out);
    const ndvi = await readGeoTiff(join(out, 'ndvi.tif'));
    expect([ndvi.width, ndvi.height]).toEqual([627, 603]);
    expect(text).toMatch(/input +scene\/lc80200392015216lgn00 +by search/);
  });

  test(
    "on a picture without a place, which no catalog takes: from the app's own folder",
    { tags: [onlyInAll] },
    async () => {
      const [folder, out] = [await testFolder(), await testFolder()];
      await writeFile(
        join(folder, 'plain.png'),
        await sharp({ create: { width: 20, height: 10, channels: 3, background: 'red' } })
          .png()
          .toBuffer(),
      );
      const { code, text } = await demo('--input', join(folder, 'plain.png'), '--step', 'cog', '--out', out);
      expect(code, text).toBe(0);
      expect(text).toContain("from the app's own folder");
    },
  );

  test('on files given one by one, with parameters', { tags: [onlyInAll] }, async () => {
    const [folder, out] = [await testFolder(), await testFolder()];
    await writeFile(join(folder, 'x_B3.tif'), geoTiff({ width: 30, height: 20, value: () => 30 }));
    await writeFile(join(folder, 'x_B5.tif'), geoTiff({ width: 30, height: 20, value: (x) => 10 + x }));
    const { code, text } = await demo(
      '--input',
      join(folder, 'x_B3.tif'),
      '--input',
      join(folder, 'x_B5.tif'),
      '--param',
      'bandA=green',
      '--param',
      'bandB=nir',
      '--out',
      out,
    );
    expect(code, text).toBe(0);
    expect((await readGeoTiff(join(out, 'ndvi.tif'))).samples[0]).toBe(0.5);
  });

  test.each([
    ['reject', 'REJECTED'],
    ['expire', 'EXPIRED'],
  ])('--decision %s: nothing is processed and nothing uploaded', async (decision, state) => {
    const out = await testFolder();
    const { code, text } = await demo('--decision', decision, '--out', out);
    expect(code, text).toBe(0);
    expect(statesIn(text)).toEqual(['CREATED', 'AWAITING_APPROVAL', state]);
    expect(text).toContain('nothing was processed, 0 calls of the upload group');
    expect(await readdir(out)).toEqual([]);
  });

  test.each([
    [['--step', 'nope'], /there is no step "nope"; there are ndvi, spectral-index, .*, scale/],
    [['--step', 'hillshade', '--param', 'azimuth=400'], /azimuth: must be at most 360/],
    [['--step', 'hillshade', '--param', 'azimuth=north'], /azimuth: must be a number/],
    [['--param', 'nope=1'], /nope: is not a parameter of this step, which knows bandA, bandB/],
    [['--param', 'nope'], /--param nope must be name=value/],
    [['--input', '/no/such/file'], /\/no\/such\/file: there is no such file or folder/],
    [['--decision', 'maybe'], /--decision maybe must be one of approve, reject, expire/],
    [['--stpe', 'ndvi'], /there is no option --stpe\. Did you mean --step\?/],
    [['--out', '/dev/null/out'], /--out \/dev\/null\/out cannot be made or written to \(ENOTDIR\)/],
  ])('%j: exit 1, and what is wrong', { tags: [onlyInAll] }, async (args, message) => {
    const { code, text } = await demo('--out', await testFolder(), ...args);
    expect(code).toBe(1);
    expect(text).toMatch(message);
    expect(text).not.toMatch(/\n\s+at /);
  });

  test('an input that the step cannot use: exit 1, the reason, and what to do', { tags: [onlyInAll] }, async () => {
    const folder = await testFolder();
    await mkdir(join(folder, 'scene'));
    await writeFile(join(folder, 'scene', 'x_B4.tif'), geoTiff({ width: 30, height: 20, value: () => 30 }));
    const { code, text } = await demo('--input', join(folder, 'scene'), '--out', await testFolder());
    expect(code).toBe(1);
    expect(text).toMatch(/no band has the name "nir"; the input has red/);
    expect(text).toContain('the app refused');
  });
});

test('Ctrl-C: it ends, stops its servers, and leaves no folder behind', async () => {
  // A place of its own: other tests' demos run beside it.
  const place = await testFolder();
  const { child, output, exited } = startCommand('demo', ['--out', await testFolder()], { TMPDIR: place });
  while (!output().includes('AWAITING_APPROVAL')) await sleep(20);
  const ports = [...output().matchAll(/http:\/\/127\.0\.0\.1:(\d+)/g)].map(([url]) => url);
  expect(ports).toHaveLength(2);
  child.kill('SIGINT');
  expect(await exited).toBe(130);
  for (const url of ports) await expect(fetch(url)).rejects.toThrow();
  expect((await readdir(place)).filter((name) => name.startsWith('marketplace-app-kit-demo-'))).toEqual([]);
});
