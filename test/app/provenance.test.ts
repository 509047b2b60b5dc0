// @module-tag all
/** Provenance of an output: in its metadata, in the run, and enough to make it again. */
import { appendFile, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { digestOfFolder } from '../../src/app/processing/code-digest.ts';
import { makeProvenance, provenanceTag } from '../../src/app/processing/make-provenance.ts';
import { readProvenance, type Provenance } from '../../src/app/processing/provenance.ts';
import { bringInputs } from '../../src/commands/reproduce/given-inputs.ts';
import { runInChild } from '../../src/child/index.ts';
import { metadataJob } from '../../src/raster/index.ts';
import { fetchedBytes, launchApp, startApp } from '../support/app.ts';
import { testConfinement } from '../support/confinement.ts';
import { testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { startCommand } from '../support/processes.ts';
import { startSandbox } from '../support/sandbox.ts';
import severalOutputs from '../support/several-outputs.ts';
import { startStepHost } from '../support/step-host.ts';

async function metadataOf(path: string): Promise<Record<string, string>> {
  return runInChild<Record<string, string>>({
    module: metadataJob,
    input: null,
    files: [{ path, name: path.split('/').at(-1)! }],
    workFolder: join(await testFolder(), 'work'),
    confinement: await testConfinement(),
  });
}

async function reproduce(args: readonly string[], env: Record<string, string> = {}) {
  const command = startCommand('reproduce', args, { PLATFORM_URL: '', ...env });
  return { code: await command.exited, text: command.output() };
}

/** An output of hillshade on one small file, with what it was made of. */
async function madeOfFile() {
  const inputDir = await testFolder();
  const folder = await testFolder();
  await writeFile(join(inputDir, 'scene.tif'), geoTiff({ width: 64, height: 64, value: (x, y) => 1 + ((x * y) % 97) }));
  const { run } = await startStepHost({ inputDir });
  const { path } = await run('hillshade', { type: 'local', path: 'scene.tif' });
  await copyFile(path, join(folder, 'hillshade.tif'));
  return { file: join(folder, 'hillshade.tif'), input: join(inputDir, 'scene.tif'), inputDir, folder };
}

async function flipped(path: string, at: (bytes: Buffer) => number, to: string): Promise<string> {
  const bytes = await readFile(path);
  const place = at(bytes);
  bytes[place] = bytes[place]! ^ 1;
  await writeFile(to, bytes);
  return to;
}

/** The place so many bytes after a text that is there. */
const after = (text: string, bytes: number) => (within: Buffer) => {
  expect(within.includes(text), `the file holds ${text}`).toBe(true);
  return within.indexOf(text) + text.length + bytes;
};

test("a run says what made its output, and so do the output's own metadata", async () => {
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url);
  const { session } = await launchApp(sandbox, app);
  const { id } = await session.start({ stepId: 'cog', input: { type: 'synthetic', size: 64 } });
  const waiting = await session.waitFor(id, 'AWAITING_APPROVAL');
  expect(waiting.provenance).toBeNull();
  await sandbox.control('POST', `operations/${waiting.operationId}/approve`);
  const run = await session.waitFor(id, 'COMPLETED');
  const made = run.provenance as Provenance;
  expect(made).toMatchObject({
    step: { id: 'cog', version: run.step.version, code: expect.stringMatching(/^[0-9a-f]{64}$/) as string },
    input: { type: 'synthetic', size: 64 },
    inputs: [{ name: 'input', files: [] }],
    operationId: run.operationId,
  });
  expect(Object.keys(made.software)).toEqual(['marketplace-app-kit', 'GDAL']);
  const path = join(await testFolder(), 'cog.tif');
  await writeFile(path, await fetchedBytes(sandbox, run.file?.fileId));
  expect(JSON.parse((await metadataOf(path))[provenanceTag]!)).toEqual(made);
  const page = await (await session.get(`runs/${id}`)).text();
  expect(page).toContain(`npm run kit -- reproduce ${id}`);
  expect(page).toContain(made.step.code);
});

test('GeoTIFF and GeoJSON hold it; a zip of several outputs has it as a file', async () => {
  const { run } = await startStepHost({ definition: severalOutputs });
  const { outputs } = await run('several', { type: 'synthetic', size: 64 });
  for (const { path } of outputs.filter(({ path }) => /\.(tif|geojson)$/.test(path)))
    expect(readProvenance((await metadataOf(path))[provenanceTag]!)).toMatchObject({ step: { id: 'several' } });
  const packed = await startStepHost({ definition: severalOutputs, packsOutputs: true });
  const { path } = await packed.run('several', { type: 'synthetic', size: 64 });
  expect((await readFile(path)).includes('provenance.json')).toBe(true);
});

test('a GeoPackage is the same each time, and says what made it', async () => {
  const { run } = await startStepHost();
  const made = [];
  for (let i = 0; i < 2; i++) {
    made.push(await run('contours', { type: 'synthetic', size: 64 }));
    // It would say when it was written, to the second.
    if (i === 0) await new Promise((later) => setTimeout(later, 1_100));
  }
  expect(made[1]!.sha256).toBe(made[0]!.sha256);
  expect(readProvenance((await metadataOf(made[1]!.path))[provenanceTag]!)).toMatchObject({ step: { id: 'contours' } });
});

test('of what it says, a change is found', () => {
  const known = { step: { id: 'a', version: '1.0.0', code: 'a'.repeat(64) }, parameters: { z: 1, a: 2 } } as const;
  const made = makeProvenance(
    { ...known, input: { type: 'synthetic', size: 64 }, operationId: null, software: {} },
    [],
    '3.12.3',
  );
  expect(readProvenance(JSON.stringify(made))).toEqual(made);
  expect(readProvenance(JSON.stringify({ ...made, parameters: { a: 2, z: 1 } }))).not.toBeNull();
  for (const changed of [{ parameters: { z: 1, a: 3 } }, { operationId: 'op_1' }, { software: { GDAL: '3.12.4' } }])
    expect(readProvenance(JSON.stringify({ ...made, ...changed }))).toBeNull();
  expect(readProvenance('{')).toBeNull();
});

test('what a foreign file says of its inputs leads nowhere else', async () => {
  const file = (fileName: string) => ({ fileName, sizeBytes: 1, sha256: 'a'.repeat(64) });
  const saying = (path: string, name: string, fileName: string) =>
    makeProvenance(
      {
        step: { id: 'a', version: '1.0.0', code: 'a'.repeat(64) },
        ...{ parameters: {}, operationId: null, software: {} },
        input: { type: 'local', path },
      },
      [{ name, files: [file(fileName)] }],
      '3.12.3',
    );
  const read = (made: Provenance) => readProvenance(JSON.stringify(made));
  expect(read(saying('scene', 'input', 'a.tif'))).not.toBeNull();
  for (const name of ['../a.tif', '/etc/a.tif', '..', 'a\\b.tif', 'a\u001b[2J.tif'])
    expect([read(saying('scene', 'input', name)), read(saying('scene', name, 'a.tif'))], name).toEqual([null, null]);
  const folder = await testFolder();
  for (const path of ['../../b', '/tmp/b', '..'])
    await expect(bringInputs(saying(path, 'input', 'a.tif'), [], folder)).rejects.toThrow(/no path below a folder/);
});

test('a file of a strange name is processed like any other', async () => {
  const inputDir = await testFolder();
  const { run } = await startStepHost({ inputDir });
  const name = 'a\\b \u0007.tif';
  await writeFile(join(inputDir, name), geoTiff({ width: 8, height: 8, value: (x) => x }));
  const { path } = await run('cog', { type: 'local', path: name });
  const made = readProvenance((await metadataOf(path))[provenanceTag]!);
  expect(made?.inputs[0]?.files.map(({ fileName }) => fileName)).toEqual(['a_b _.tif']);
});

test("the digest of a step's code changes with any of its files, and not with its cases", async () => {
  const folder = await testFolder();
  await mkdir(join(folder, 'more'));
  for (const name of ['index.ts', 'more/help.py', 'cases.json']) await writeFile(join(folder, name), 'x');
  const before = await digestOfFolder(folder);
  await appendFile(join(folder, 'cases.json'), 'y');
  expect(await digestOfFolder(folder)).toBe(before);
  await appendFile(join(folder, 'more/help.py'), 'y');
  expect(await digestOfFolder(folder)).not.toBe(before);
});

describe('kit reproduce', () => {
  test('the same comes out of the same input, by its digest and whatever its name', async () => {
    const { file, input, inputDir, folder } = await madeOfFile();
    const renamed = join(folder, 'renamed.tif');
    await copyFile(input, renamed);
    const given = await reproduce([file, '--input', renamed]);
    expect(given).toMatchObject({ code: 0, text: expect.stringMatching(/the same +hillshade\.tif/) as string });
    const own = await reproduce([file], { PLATFORM_URL: 'http://127.0.0.1:1', PLATFORM_API_KEY: 'k', INPUT_DIR: inputDir, DATA_DIR: folder }); // oxfmt-ignore
    expect(own).toMatchObject({ code: 0, text: expect.stringMatching(/the same +hillshade\.tif/) as string });
  });

  test('a flipped bit of the input is found, where it is given and where the app has it', async () => {
    const { file, input, inputDir, folder } = await madeOfFile();
    await flipped(input, (bytes) => bytes.length - 9, input);
    const given = await reproduce([file, '--input', input]);
    expect(given).toMatchObject({ code: 1, text: expect.stringMatching(/scene\.tif .*it is another file/) as string });
    const own = await reproduce([file], { PLATFORM_URL: 'http://127.0.0.1:1', PLATFORM_API_KEY: 'k', INPUT_DIR: inputDir, DATA_DIR: folder }); // oxfmt-ignore
    expect(own).toMatchObject({ code: 1, text: expect.stringMatching(/DIFFERS +the input/) as string });
  });

  test.each([
    ['its last pixels', (bytes: Buffer) => bytes.length - 40, /DIFFERS +hillshade\.tif/],
    ['a parameter', after('azimuth&amp;quot;:', 1), /what it says has changed/],
    ['what it says of the software', after('GDAL&amp;quot;:&amp;quot;', 0), /what it says has changed/],
    ['the name of that', after('PROVE', 0), /does not say what made it/],
  ])('a flipped bit of the output is found: %s', async (_what, at, says) => {
    const { file, input } = await madeOfFile();
    await flipped(file, at, file);
    const { code, text } = await reproduce([file, '--input', input]);
    expect(text).toMatch(says);
    expect(code).toBe(1);
  });

  test('a run, by its id and by its JSON', async () => {
    const sandbox = await startSandbox();
    const dataDir = await testFolder();
    const app = await startApp(sandbox.url, { dataDir });
    const { session } = await launchApp(sandbox, app);
    const { id } = await session.start({ stepId: 'cog', input: { type: 'synthetic', size: 64 } });
    const waiting = await session.waitFor(id, 'AWAITING_APPROVAL');
    await sandbox.control('POST', `operations/${waiting.operationId}/approve`);
    const run = await session.waitFor(id, 'COMPLETED');
    const env = { PLATFORM_URL: sandbox.url, PLATFORM_API_KEY: 'k', DATA_DIR: dataDir };
    expect(await reproduce([id], env)).toMatchObject({ code: 0, text: expect.stringMatching(/the same +cog\.tif/) as string }); // oxfmt-ignore
    expect((await reproduce(['no-run'], env)).text).toContain('the app has no run no-run');
    const path = join(await testFolder(), 'run.json');
    await writeFile(path, JSON.stringify({ ...run, outputs: [{ ...run.outputs[0], sha256: '0'.repeat(64) }] }));
    expect(await reproduce([path])).toMatchObject({ code: 1, text: expect.stringMatching(/DIFFERS +cog\.tif/) as string }); // oxfmt-ignore
    await writeFile(path, JSON.stringify({ ...run, outputs: [] }));
    expect(await reproduce([path])).toMatchObject({ code: 1, text: expect.stringContaining('nothing to compare') as string }); // oxfmt-ignore
  });
});
