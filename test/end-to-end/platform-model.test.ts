// @module-tag all
/** A step that the platform's model does (spec 4.7): bands go there after approval, and classes come back. */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createPlatformModels, openModelService } from '../../src/app/processing/platform-models.ts';
import { wireProfile, type WireProfile } from '../../src/contract/index.ts';
import { fetchedBytes, launchApp, startApp } from '../support/app.ts';
import { testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import models from '../support/model-steps.ts';
import { putModel, thresholdGraph } from '../support/models.ts';
import { readGeoTiff } from '../support/read-geotiff.ts';
import { startSandbox } from '../support/sandbox.ts';

const [width, height] = [37, 23];
const valueAt = (x: number, y: number) => (x * 7 + y * 3) % 200;

async function start(profile?: WireProfile) {
  const dataDir = await testFolder();
  await putModel(dataDir, 'threshold', { bands: ['value'] }, thresholdGraph());
  await putModel(dataDir, 'elsewhere', { bands: ['another', 'one'] }, thresholdGraph());
  const sandbox = await startSandbox({ dataDir, ...(profile && { profile }) });
  const inputDir = await testFolder();
  await writeFile(join(inputDir, 'value.tif'), geoTiff({ width, height, value: valueAt }));
  const app = await startApp(sandbox.url, {
    definition: models,
    env: { INPUT_DIR: inputDir, UPLOAD_PART_BYTES: '400' },
    ...(profile && { profile }),
  });
  const { session, launchId } = await launchApp(sandbox, app);
  const run = async (stepId: string, parameters = {}) => {
    const { id } = await session.start({ stepId, parameters, input: { type: 'local', path: 'value.tif' } });
    const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
    await sandbox.control('POST', `operations/${operationId}/approve`);
    return session.waitFor(id, 'COMPLETED', 'FAILED');
  };
  return { sandbox, session, launchId, run };
}

const otherWire = wireProfile({
  name: 'other models',
  calls: {
    generateUploadId: { path: '/v2/uploads', request: { fileName: 'title' }, response: { uploadId: 'ref' } },
    uploadFileChunk: {
      method: 'PUT',
      path: '/v2/uploads/:uploadId/parts/:partNumber',
      body: 'raw',
      request: { key: { in: 'header', name: 'x-object-key' } },
    },
    completeFileUpload: {
      path: '/v2/uploads/:uploadId/finish',
      request: { fileSize: 'bytes' },
      response: { fileId: 'file.ref' },
    },
    listModels: { path: '/v2/models' },
    runInference: {
      path: '/v2/jobs',
      request: { modelId: 'model', fileId: 'file' },
      response: { id: 'ref', status: { name: 'state', values: { DONE: 'finished', FAILED: 'FAILED' } } },
    },
    getInferenceStatus: {
      path: '/v2/jobs/:inferenceId',
      response: { id: 'ref', status: { name: 'state', values: { DONE: 'DONE', SUBMITTED: 'PENDING' } } },
    },
    downloadInference: { path: '/v2/jobs/:inferenceJobId/result' },
  },
});

test.each([
  ['on the wire as assumed', undefined],
  ['on another wire', otherWire],
])('the classes of a model of the platform are the output, %s', { timeout: 900_000 }, async (_, profile) => {
  const { sandbox, launchId, run } = await start(profile);
  const done = await run('threshold');
  expect(done).toMatchObject({ state: 'COMPLETED' });
  const path = join(await testFolder(), 'classes.tif');
  await writeFile(path, await fetchedBytes(sandbox, done.file?.fileId));
  const raster = await readGeoTiff(path);
  expect(raster).toMatchObject({ width, height, nodata: 255, epsg: 32633 });
  const expected = Array.from({ length: width * height }, (__, i) =>
    valueAt(i % width, Math.floor(i / width)) > 100 ? 1 : 0,
  );
  expect(raster.samples).toEqual(expected);
  expect(await sandbox.control('GET', `launches/${launchId}/verdict`)).toMatchObject({ result: 'passed' });
});

test('a model looks only where the user says', { timeout: 900_000 }, async () => {
  const { sandbox, run } = await start();
  // The western half, more or less.
  const area = { type: 'Polygon', coordinates: [[[14.9, 45], [15.007, 45], [15.007, 45.2], [14.9, 45.2], [14.9, 45]]] }; // oxfmt-ignore
  const done = await run('threshold', { area });
  const path = join(await testFolder(), 'classes.tif');
  await writeFile(path, await fetchedBytes(sandbox, done.file?.fileId));
  const { samples } = await readGeoTiff(path);
  const missing = samples.flatMap((value, i) => (value === 255 ? [i % width] : []));
  expect(missing.length).toBeGreaterThan(0);
  expect(missing.length).toBeLessThan(width * height);
  expect(samples.some((value, i) => value !== 255 && i % width > Math.max(...missing))).toBe(false);
});

test('a model that the platform does not have is told before anybody is asked', { timeout: 900_000 }, async () => {
  const { session } = await start();
  const answer = await session.post('api/runs', { stepId: 'absent', input: { type: 'local', path: 'value.tif' } });
  expect(answer.status).toBe(400);
  expect(await answer.text()).toMatch(/the platform has no model nobody; it has .*threshold/);
});

test('a job that fails there fails the run, in words', { timeout: 900_000 }, async () => {
  const { run } = await start();
  expect(await run('other-bands')).toMatchObject({
    state: 'FAILED',
    failure: { code: 'model_failed', message: expect.stringMatching(/model elsewhere failed on this input/) as string },
  });
});

test('a step runs no model but those that it declares', { timeout: 900_000 }, async () => {
  const { run } = await start();
  expect(await run('undeclared')).toMatchObject({ state: 'FAILED', failure: { code: 'step_broke_its_declaration' } });
});

test('a child that asks for what is not its own gets nothing', async () => {
  const folder = await testFolder();
  const [stepFolder, ownFolder] = [join(folder, 'step'), join(folder, 'models')];
  const secret = join(folder, 'secret');
  await writeFile(secret, 'a secret');
  await mkdir(stepFolder);
  await symlink(secret, join(stepFolder, 'link.tif'));
  const nobody = () => Promise.reject(new Error('the platform must not be called'));
  const client = {
    listModels: nobody,
    generateUploadId: nobody,
    uploadFileChunk: nobody,
    completeFileUpload: nobody,
    runInference: nobody,
    getInferenceStatus: nobody,
    downloadInference: nobody,
  };
  const platform = createPlatformModels({
    client,
    limits: { chunkBytes: 1_000, maxPartNumber: 10 },
    uploadPartBytes: 1_000,
    pollIntervalMs: 10,
  });
  const service = await openModelService(
    platform,
    { id: 'x', platformModels: ['threshold'] },
    { stepFolder, ownFolder, maxBytes: 1_000 },
    { retryWhileDown: (call) => call(), onNote: () => {} },
  );
  const ask = (question: object) =>
    service.answer(
      { type: 'run-model', modelId: 'threshold', sourceType: 'UNKNOWN', area: null, ...question },
      new AbortController().signal,
    );
  await expect(ask({ fileName: '../secret' })).rejects.toThrow();
  await expect(ask({ fileName: 'step/../../secret' })).rejects.toThrow();
  await expect(ask({ fileName: 'link.tif' })).rejects.toMatchObject({ code: 'job_output_unsafe' });
  await expect(ask({ fileName: 'absent.tif' })).rejects.toMatchObject({ code: 'job_output_unsafe' });
  await expect(ask({ fileName: 'link.tif', type: 'another' })).rejects.toThrow();
  await expect(ask({ fileName: 'link.tif', modelId: 'other' })).rejects.toMatchObject({
    code: 'step_broke_its_declaration',
  });
});
