// @module-tag all
/** A step with several outputs: each held against its declaration, and uploaded under the one approved operation. */
import { requireOutputs } from '../../src/app/processing/take-outputs.ts';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import yauzl from 'yauzl';
import { checkDefinition } from '../../src/app/definition/check-definition.ts';
import { defineApp } from '../../src/app/definition/app-definition.ts';
import { defineStep, z, type OutputDeclaration } from '../../src/steps/index.ts';
import { fetchedDigest, launchApp, startApp } from '../support/app.ts';
import { startSandbox } from '../support/sandbox.ts';
import severalOutputs from '../support/several-outputs.ts';
import { startStepHost } from '../support/step-host.ts';
import { confined, needing } from '../support/needs.ts';

const synthetic = { type: 'synthetic', size: 64 } as const;
const isConfined = await confined();

test('a run uploads each of its outputs, and says which file each became', async () => {
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url, { definition: severalOutputs });
  const { session, launchId } = await launchApp(sandbox, app);
  const { id } = await session.start({ stepId: 'several', input: synthetic, parameters: { withNotes: true } });
  const waiting = await session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${waiting.operationId}/approve`);
  const run = await session.waitFor(id, 'COMPLETED');
  const names = ['heights.tif', 'zones.geojson', 'table.csv', 'notes.txt'];
  const delivered = ['heights_synthetic.tif', 'zones_synthetic.geojson', 'table_synthetic.csv', 'notes_synthetic.txt'];
  expect(run.files.map(({ fileName }) => fileName)).toEqual(delivered);
  expect(run.files.map(({ output }) => output)).toEqual(names);
  expect(run.outputs.map(({ fileName }) => fileName)).toEqual(names);
  for (const [i, { fileId, sha256 }] of run.files.entries()) {
    expect(await fetchedDigest(sandbox, fileId)).toBe(sha256);
    expect(run.outputs[i]?.sha256).toBe(sha256);
  }
  const { calls } = (await sandbox.control('GET', `launches/${launchId}/trace`)) as unknown as {
    calls: { endpoint: string; request: { body: { sourceType?: string } } }[];
  };
  const begun = calls.filter(({ endpoint }) => endpoint === 'upload.initiate');
  expect(begun.map(({ request }) => request.body.sourceType)).toEqual(['HEIGHTMAP', 'POLYGON', 'UNKNOWN', 'UNKNOWN']);
  expect(run.file).toEqual(run.files[0]);
  const verdict = await sandbox.control('GET', `launches/${launchId}/verdict`);
  expect(verdict).toMatchObject({ result: 'passed' });
  const page = await (await session.get(`runs/${id}`)).text();
  for (const name of delivered) expect(page).toContain(`<strong>${name}</strong>`);
});

test('where the profile wants one file, all outputs are one zip, the same each time', async () => {
  const { run } = await startStepHost({ definition: severalOutputs, packsOutputs: true, keepsChildren: true });
  const archives = [await run('several', synthetic), await run('several', synthetic)];
  expect(archives.map(({ outputs }) => outputs.length)).toEqual([1, 1]);
  expect(archives[0]!.sha256).toBe(archives[1]!.sha256);
  const { path, sizeBytes, sha256 } = archives[1]!;
  expect(path).toMatch(/several\.zip$/);
  const bytes = await readFile(path);
  expect([bytes.length, createHash('sha256').update(bytes).digest('hex')]).toEqual([sizeBytes, sha256]);
  const names: string[] = [];
  const zip = await yauzl.fromBufferPromise(bytes);
  for await (const { fileName } of zip.eachEntry()) names.push(fileName);
  // Nobody knows the time of a made input, so there is no STAC item.
  expect(names).toEqual(['heights.tif', 'zones.geojson', 'table.csv', 'table.csv-metadata.json', 'provenance.json']);
});

describe('what a step leaves is held against its declaration', () => {
  const host = startStepHost({ definition: severalOutputs, keepsChildren: true });
  const run = async (id: string) => (await host).run(id, synthetic);

  test('an optional output may be left out', async () => {
    const { outputs } = await run('several');
    expect(outputs.map(({ path }) => path.split('/').at(-1))).toEqual(['heights.tif', 'zones.geojson', 'table.csv']);
  });
  test.each(['well', 'dated', 'dated-package', 'without-features'])('%s', async (id) => {
    expect((await run(id)).outputs).toHaveLength(1);
  });
  test.each([
    ['nothing', /left no readable features/],
    ['no-features', /left no readable features: the file is no GeoJSON/],
    ['other-geometry', /wrote feature 1 as Point, but declares Polygon/],
    ['no-geometry', /wrote feature 1 as None, but declares Polygon/],
    ['field-missing', /left out the field count/],
    ['field-too-many', /wrote a field secret, which it does not declare/],
    ['field-of-another-type', /wrote the field count as string, but declares integer/],
    ['empty-file', /left an empty file/],
  ])('%s', async (id, message) => {
    await expect(run(id)).rejects.toMatchObject({
      code: 'step_broke_its_declaration',
      message: expect.stringMatching(message) as string,
    });
  });
  test('the host itself misses a file, whatever the child has said', () => {
    const several = severalOutputs.steps.find(({ id }) => id === 'several')!;
    const zones = new Map([['zones.geojson', '/work/zones.geojson']]);
    expect(() => requireOutputs(several, zones)).toThrow(/left no heights\.tif/);
    expect(() => requireOutputs(several, new Map([...zones, ['heights.tif', ''], ['table.csv', '']]))).not.toThrow();
  });
  test('a link in the place of a file is not taken', async () => {
    await expect(run('link')).rejects.toMatchObject({ code: 'job_output_unsafe' });
  });
  test('a program finds its outputs by name', needing(isConfined), async () => {
    const { outputs } = await run('by-command');
    expect(await Promise.all(outputs.map(({ path }) => readFile(path, 'utf8')))).toEqual(['2', '1']);
  });
});

describe('a definition is refused whose outputs', () => {
  const file: OutputDeclaration = { kind: 'file', fileName: 'a.txt', sourceType: 'UNKNOWN' };
  const raster = { fileName: 'b.tif', sourceType: 'UNKNOWN', bands: 'as-input', preview: { ramp: 'gray' } } as const;
  const check = (more: object) =>
    checkDefinition(
      defineApp({
        module: import.meta.url,
        id: 'x',
        name: 'x',
        description: 'x',
        steps: [
          defineStep({
            id: 'mine',
            version: '1.0.0',
            title: 'x',
            description: 'x',
            parameters: z.object({ many: z.boolean().default(true).meta({ title: 'x', description: 'x' }) }),
            input: { description: 'x', synthetic: 'elevation' },
            run: async () => {},
            ...more,
          }),
        ],
      }),
    );
  test.each([
    ['are none', {}, /output: is missing/],
    ['are of both kinds', { output: raster, outputs: { a: file } }, /outputs: the step has an output too/],
    ['have the same file name', { outputs: { a: file, b: file } }, /outputs\.b: another output has its file name/],
    ['are all optional', { outputs: { a: { ...file, optional: true } } }, /one must not be optional/],
    [
      'are of an unknown kind',
      { outputs: { a: { ...file, kind: 'video' } } },
      /outputs\.a.*kind must be raster, vector or file/,
    ],
    ['have the name of a parameter', { outputs: { many: file } }, /outputs\.many: the name is taken/],
    [
      'are features in a file of another ending',
      { outputs: { a: { kind: 'vector', fileName: 'a.shp', sourceType: 'POLYGON', geometry: 'Polygon', fields: {} } } },
      /outputs\.a\.fileName: must end in one of \.geojson/,
    ],
  ])('%s', (_name, more, message) => {
    expect(() => check(more)).toThrow(message);
  });
});
