// @module-tag all
/** Provenance of an output: in its metadata, in the run, and enough to make it again. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import gdal from 'gdal-async';
import { expect, test } from 'vitest';
import { digestOfFolder } from '../../src/app/processing/code-digest.ts';
import { provenanceTag } from '../../src/app/processing/make-provenance.ts';
import type { Provenance } from '../../src/app/processing/provenance.ts';
import { fetchedBytes, launchApp, startApp } from '../support/app.ts';
import { testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { startSandbox } from '../support/sandbox.ts';
import severalOutputs from '../support/several-outputs.ts';
import { startStepHost } from '../support/step-host.ts';

const sortedJson = (value: object) =>
  JSON.stringify(value, (_key, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );

function metadataOf(path: string): Readonly<Record<string, string>> {
  // GDAL 3.6 does not read the metadata of GeoJSON.
  if (path.endsWith('.geojson'))
    return (JSON.parse(readFileSync(path, 'utf8')) as { metadata: Record<string, string> }).metadata;
  const dataset = gdal.open(path);
  const metadata = dataset.getMetadata() as Record<string, string>;
  dataset.close();
  return metadata;
}

/** The provenance in a file's metadata, after its digest was compared with one that is computed here. */
function provenanceOf(path: string): Provenance {
  const made = JSON.parse(metadataOf(path)[provenanceTag]!) as Provenance;
  const { digest, ...rest } = made;
  expect(createHash('sha256').update(sortedJson(rest)).digest('hex')).toBe(digest);
  return made;
}

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
  expect(provenanceOf(path)).toEqual(made);
  const page = await (await session.get(`runs/${id}`)).text();
  expect(page).toContain(made.step.code);
});

test('GeoTIFF and GeoJSON hold it; a zip of several outputs has it as a file', async () => {
  const { run } = await startStepHost({ definition: severalOutputs });
  const { outputs } = await run('several', { type: 'synthetic', size: 64 });
  for (const { path } of outputs.filter(({ path }) => /\.(tif|geojson)$/.test(path)))
    expect(provenanceOf(path)).toMatchObject({ step: { id: 'several' } });
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
  expect(provenanceOf(made[1]!.path)).toMatchObject({ step: { id: 'contours' } });
});

test('a file of a strange name is processed like any other', async () => {
  const inputDir = await testFolder();
  const { run } = await startStepHost({ inputDir });
  const name = 'a\\b \u0007.tif';
  await writeFile(join(inputDir, name), geoTiff({ width: 8, height: 8, value: (x) => x }));
  const { path } = await run('cog', { type: 'local', path: name });
  const made = provenanceOf(path);
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
