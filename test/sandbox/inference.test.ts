/** Spec 2.6, 3.3, 4.7, 7 and the contract's "Inference". */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromFile } from 'geotiff';
import { describe, expect, test } from 'vitest';
import { inferenceState } from '../../src/contract/index.ts';
import { runInChild } from '../../src/child/index.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testConfinement } from '../support/confinement.ts';
import { key, processed, uploadDirectly } from '../support/files.ts';
import { landsatFolder, projectRoot, testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { putModel, thresholdGraph, tileGraph } from '../support/models.ts';
import { readGeoTiff } from '../support/read-geotiff.ts';
import {
  apiKey,
  someBytes,
  startSandbox,
  type Answer,
  type StartOptions,
  type TestSandbox,
} from '../support/sandbox.ts';
import { stackName, type StackInput } from '../support/stack-job.ts';
import { landsat, needing } from '../support/needs.ts';
import { onlyInAll } from '../support/tags.ts';

function run(
  sandbox: TestSandbox,
  fields: Record<string, string>,
  headers: Record<string, string> = key,
): Promise<Answer> {
  return sandbox.request('POST', '/public/inference/run', {
    body: new URLSearchParams(fields).toString(),
    headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
  });
}

const status = (sandbox: TestSandbox, id: string) =>
  sandbox.request('GET', `/public/inference/status?inferenceId=${id}`, { headers: key });

async function finished(sandbox: TestSandbox, id: string): Promise<string> {
  for (;;) {
    const { body } = await status(sandbox, id);
    if (inferenceState(body.status) === 'done' || inferenceState(body.status) === 'failed') return body.status;
    await sleep(50);
  }
}

/** A sandbox with models of the test's own beside the shipped ones. */
function sandboxWithModels(put: (dataDir: string) => Promise<void>, options: StartOptions = {}): Promise<TestSandbox> {
  return testFolder().then(async (dataDir) => {
    await put(dataDir);
    return startSandbox({ ...options, dataDir });
  });
}

async function uploaded(sandbox: TestSandbox, bytes: Uint8Array): Promise<string> {
  const { fileId, status: state } = await processed(sandbox, bytes, 'scene.tif', 'MULTISPECTRAL');
  expect(state).toBe('COMPLETED');
  return fileId;
}

async function result(
  sandbox: TestSandbox,
  modelId: string,
  fileId: string,
  geometry?: string,
): Promise<{ headers: Headers; bytes: Buffer }> {
  const { body } = await run(sandbox, { modelId, fileId, ...(geometry ? { geometry } : {}) });
  expect(await finished(sandbox, body.id)).toBe('DONE');
  const answer = await fetch(`${sandbox.url}/public/inference/download?inferenceJobId=${body.id}`, { headers: key });
  expect(answer.status).toBe(200);
  return { headers: answer.headers, bytes: Buffer.from(await answer.arrayBuffer()) };
}

async function classes(bytes: Buffer) {
  const path = join(await testFolder(), 'result.tif');
  await writeFile(path, bytes);
  return readGeoTiff(path);
}

describe('models', () => {
  test('an array of id, name, version, type and labels, at least two whatever the seed', async () => {
    const sandbox = await startSandbox();
    const { status: code, body } = await sandbox.request('GET', '/public/inference/models', { headers: key });
    const models = body as unknown as { id: string; type: string; labels: string[] }[];
    expect(code).toBe(200);
    expect(models.length).toBeGreaterThanOrEqual(2);
    for (const model of models) expect(Object.keys(model)).toEqual(['id', 'name', 'version', 'type', 'labels']);
    expect(models.map(({ id, type }) => [id, type])).toEqual([
      ['vegetation', 'CLASSIFICATION'],
      ['water', 'SEGMENTATION'],
    ]);
  });

  test('the key may also come as a bearer token, here and nowhere else', async () => {
    const sandbox = await startSandbox();
    const ask = (path: string, authorization: string) => sandbox.request('GET', path, { headers: { authorization } });
    expect((await ask('/public/inference/models', `Bearer ${apiKey}`)).status).toBe(200);
    for (const wrong of ['Bearer wrong', `Basic ${apiKey}`, 'Bearer', apiKey])
      expect((await ask('/public/inference/models', wrong)).status).toBe(401);
    expect((await ask('/public/inference/status?inferenceId=x', `Bearer ${apiKey}`)).status).toBe(401);
  });

  test("a folder of one's own is a model; one that is not right is left out", async () => {
    const sandbox = await sandboxWithModels(async (dataDir) => {
      await putModel(dataDir, 'mine', {}, thresholdGraph());
      await putModel(dataDir, 'broken', { overlap: 8, tileSize: 16 }, thresholdGraph());
      await putModel(dataDir, 'boxes', { type: 'DETECTION' }, thresholdGraph());
      await mkdir(join(dataDir, 'models', 'empty'));
    });
    const { body } = await sandbox.request('GET', '/public/inference/models', { headers: key });
    expect((body as unknown as { id: string }[]).map(({ id }) => id)).toEqual(['vegetation', 'water', 'mine']);
  });
});

describe('run, status, download', () => {
  test('a job is SUBMITTED, then DONE; its result streams out as an attachment', async () => {
    const sandbox = await sandboxWithModels((dataDir) => putModel(dataDir, 'threshold', {}, thresholdGraph()));
    const fileId = await uploaded(sandbox, geoTiff({ width: 50, height: 40, value: (x) => x * 5 }));
    const { status: code, body } = await run(sandbox, { modelId: 'threshold', fileId });
    expect([code, Object.keys(body).sort()]).toEqual([200, ['id', 'startedAt', 'status', 'type']]);
    expect(body).toMatchObject({ status: 'SUBMITTED', type: 'SEGMENTATION' });
    expect(await finished(sandbox, body.id)).toBe('DONE');
    expect(Object.keys((await status(sandbox, body.id)).body).sort()).toEqual(['id', 'startedAt', 'status', 'type']);
    const answer = await fetch(`${sandbox.url}/public/inference/download?inferenceJobId=${body.id}`, { headers: key });
    expect(
      Object.fromEntries(
        [
          'content-type',
          'content-disposition',
          'transfer-encoding',
          'x-content-type-options',
          'content-security-policy',
        ].map((name) => [name, answer.headers.get(name)]),
      ),
    ).toEqual({
      'content-type': 'application/octet-stream',
      'content-disposition': 'attachment; filename=scene-threshold.tif',
      'transfer-encoding': 'chunked',
      'x-content-type-options': 'nosniff',
      'content-security-policy': 'sandbox',
    });
  });

  test('the parameters may come as a multipart form', async () => {
    const sandbox = await startSandbox();
    const { fileId } = (await uploadDirectly(sandbox, someBytes(10), 'x.tif')).body;
    const form = new FormData();
    form.append('modelId', 'water');
    form.append('fileId', fileId);
    expect((await sandbox.request('POST', '/public/inference/run', { body: form, headers: key })).body.status).toBe(
      'SUBMITTED',
    );
  });

  test('errors, message for message', async () => {
    const sandbox = await startSandbox();
    const { fileId } = (await uploadDirectly(sandbox, someBytes(10), 'x.tif')).body;
    const { apiKey: weak } = await sandbox.control('POST', 'keys', { permissions: ['files_admin'] });
    for (const [method, path] of [
      ['GET', 'models'],
      ['POST', 'run'],
      ['GET', 'status'],
      ['GET', 'download'],
    ] as const) {
      const none = await sandbox.request(method, `/public/inference/${path}`);
      expect([none.status, none.body.error]).toEqual([401, 'Unauthorized Request']);
      const denied = await sandbox.request(method, `/public/inference/${path}`, { headers: { 'x-api-key': weak } });
      expect([denied.status, denied.body.error]).toEqual([403, 'Permission Denied']);
    }
    const told = ({ status: code, body }: Answer) => [code, body.error, body.details?.[0]?.path];
    expect(told(await run(sandbox, { modelId: 'water', fileId: 'nothing' }))).toEqual([
      404,
      'File not found',
      undefined,
    ]);
    expect(told(await run(sandbox, { modelId: 'nothing', fileId }))).toEqual([404, 'Model not found', undefined]);
    expect(told(await run(sandbox, { modelId: 'water' }))).toEqual([400, 'Bad Request', 'fileId']);
    expect(told(await run(sandbox, { fileId }))).toEqual([400, 'Bad Request', 'modelId']);
    for (const geometry of ['here', 'POLYGON((0 0,1 0,1 1))', 'POINT(1 2)'])
      expect(told(await run(sandbox, { modelId: 'water', fileId, geometry }))).toEqual([
        400,
        'Bad Request',
        'geometry',
      ]);
    expect(told(await status(sandbox, 'nothing'))).toEqual([404, 'Inference Job not found', undefined]);
    expect(told(await sandbox.request('GET', '/public/inference/status', { headers: key }))).toEqual([
      400,
      'Bad Request',
      'inferenceId',
    ]);
    for (const query of ['', '?inferenceJobId='])
      expect(told(await sandbox.request('GET', `/public/inference/download${query}`, { headers: key }))).toEqual([
        400,
        'InferenceJob id cannot be null or empty',
        'inferenceJobId',
      ]);
    expect(
      told(await sandbox.request('GET', '/public/inference/download?inferenceJobId=nothing', { headers: key })),
    ).toEqual([404, 'Inference Job not found', undefined]);
    expect(
      (await sandbox.request('POST', '/public/inference/run', { body: { modelId: 'water', fileId }, headers: key }))
        .status,
    ).toBe(415);
  });

  test('a file that is no raster, or lacks a band, fails the job; its download is 400', async () => {
    const sandbox = await startSandbox();
    for (const bytes of [someBytes(100), geoTiff({ width: 8, height: 8, value: () => 1 })]) {
      const { fileId } = (await uploadDirectly(sandbox, bytes, 'x.tif')).body;
      const { body } = await run(sandbox, { modelId: 'water', fileId });
      expect(await finished(sandbox, body.id)).toBe('FAILED');
      const answer = await sandbox.request('GET', `/public/inference/download?inferenceJobId=${body.id}`, {
        headers: key,
      });
      expect([answer.status, answer.body.code]).toEqual([400, 'inference_job_not_done']);
    }
  });

  test('a job goes on after a restart, and its result stays; a reset takes both', async () => {
    const dataDir = await testFolder();
    await putModel(dataDir, 'threshold', {}, thresholdGraph());
    const first = await startSandbox({ dataDir });
    const fileId = await uploaded(first, geoTiff({ width: 9, height: 9, value: () => 200 }));
    const { body } = await run(first, { modelId: 'threshold', fileId });
    await first.close();
    const second = await startSandbox({ dataDir });
    expect(await finished(second, body.id)).toBe('DONE');
    await second.control('POST', 'reset');
    expect((await status(second, body.id)).status).toBe(404);
  });

  test('without onnxruntime the sandbox runs, lists the models, and says why it cannot run them', async () => {
    const sandbox = await startSandbox({ inferenceProblem: () => 'onnxruntime-node is not installed' });
    const { fileId } = (await uploadDirectly(sandbox, someBytes(10), 'x.tif')).body;
    const answer = await run(sandbox, { modelId: 'water', fileId });
    expect([answer.status, answer.body.error, answer.body.code]).toEqual([
      500,
      'Error occurred while running inference.',
      'inference_unavailable',
    ]);
    expect(answer.body.details[0]?.message).toContain('onnxruntime-node is not installed');
    expect((await sandbox.request('GET', '/public/inference/models', { headers: key })).status).toBe(200);
  });
});

describe('a raster of classes', () => {
  const value = (x: number, y: number) => ((x * 7 + y * 13) % 40 < 20 ? 50 : 150);

  test('on the grid of the input, pixel for pixel, over many tiles', async () => {
    const sandbox = await sandboxWithModels((dataDir) => putModel(dataDir, 'threshold', {}, thresholdGraph()));
    const fileId = await uploaded(
      sandbox,
      geoTiff({ width: 53, height: 41, value, epsg: 32633, origin: [560_000, 5_500_000, 30] }),
    );
    const read = await classes((await result(sandbox, 'threshold', fileId)).bytes);
    expect(read).toMatchObject({
      width: 53,
      height: 41,
      epsg: 32633,
      geoTransform: [560_000, 30, 0, 5_500_000, 0, -30],
      nodata: 255,
    });
    expect(read.samples).toEqual(
      Array.from({ length: 53 * 41 }, (_, i) => (value(i % 53, Math.floor(i / 53)) > 100 ? 1 : 0)),
    );
  });

  test('with an overlap tiles do not show: the same as of one tile', async () => {
    const sandbox = await sandboxWithModels(async (dataDir) => {
      await putModel(dataDir, 'tiled', { overlap: 2 }, thresholdGraph(true));
      await putModel(dataDir, 'whole', { tileSize: 64 }, thresholdGraph(true));
    });
    const fileId = await uploaded(sandbox, geoTiff({ width: 64, height: 64, value }));
    const [tiled, whole] = [
      await classes((await result(sandbox, 'tiled', fileId)).bytes),
      await classes((await result(sandbox, 'whole', fileId)).bytes),
    ];
    // At the raster's own edge the one pads with zeros, the other with what is nearest.
    const inner = (samples: number[]) => samples.filter((_, i) => i % 64 > 0 && i % 64 < 63 && i >= 64 && i < 63 * 64);
    expect(inner(tiled.samples)).toEqual(inner(whole.samples));
  });

  test('scores of a whole tile fill the tile', async () => {
    const sandbox = await sandboxWithModels((dataDir) =>
      putModel(dataDir, 'tile', { type: 'CLASSIFICATION' }, tileGraph()),
    );
    const fileId = await uploaded(sandbox, geoTiff({ width: 32, height: 16, value: (x) => (x < 16 ? 50 : 150) }));
    expect((await classes((await result(sandbox, 'tile', fileId)).bytes)).samples).toEqual(
      Array.from({ length: 32 * 16 }, (_, i) => (i % 32 < 16 ? 0 : 1)),
    );
  });

  test('no data stays no data', async () => {
    const sandbox = await sandboxWithModels((dataDir) => putModel(dataDir, 'threshold', {}, thresholdGraph()));
    const fileId = await uploaded(
      sandbox,
      geoTiff({ width: 20, height: 20, type: 'Float32', value: (x) => (x < 10 ? NaN : 150) }),
    );
    expect((await classes((await result(sandbox, 'threshold', fileId)).bytes)).samples).toEqual(
      Array.from({ length: 400 }, (_, i) => (i % 20 < 10 ? 255 : 1)),
    );
  });

  test('restricted to a geometry: no class outside of it', async () => {
    const sandbox = await sandboxWithModels((dataDir) => putModel(dataDir, 'threshold', {}, thresholdGraph()));
    const fileId = await uploaded(
      sandbox,
      geoTiff({ width: 40, height: 40, value: () => 150, epsg: 4326, origin: [10, 51, 0.01] }),
    );
    const { samples } = await classes(
      (await result(sandbox, 'threshold', fileId, 'POLYGON((10.1 50.7, 10.2 50.7, 10.2 50.9, 10.1 50.9, 10.1 50.7))'))
        .bytes,
    );
    expect(samples).toEqual(
      Array.from({ length: 1600 }, (_, i) =>
        i % 40 >= 10 && i % 40 < 20 && Math.floor(i / 40) >= 10 && Math.floor(i / 40) < 30 ? 1 : 255,
      ),
    );
    const outside = await run(sandbox, {
      modelId: 'threshold',
      fileId,
      geometry: 'POLYGON((100 0, 101 0, 101 1, 100 0))',
    });
    expect(await finished(sandbox, outside.body.id)).toBe('FAILED');
  });

  test('a geometry in degrees finds its place in a projected raster', async () => {
    const sandbox = await sandboxWithModels((dataDir) => putModel(dataDir, 'threshold', {}, thresholdGraph()));
    const fileId = await uploaded(
      sandbox,
      geoTiff({ width: 100, height: 100, value: () => 150, epsg: 32633, origin: [500_000, 5_500_000, 100] }),
    );
    // 15 degrees east is the western edge; half of ten kilometres is 0.0696 degrees at this latitude.
    const { samples } = await classes(
      (await result(sandbox, 'threshold', fileId, 'POLYGON((14 49, 15.0692 49, 15.0692 50, 14 50, 14 49))')).bytes,
    );
    const row = samples.slice(50 * 100, 51 * 100);
    expect(row.filter((one) => one === 1).length).toBeGreaterThan(48);
    expect(row.filter((one) => one === 1).length).toBeLessThan(52);
    expect(row.indexOf(255)).toBe(row.filter((one) => one === 1).length);
  });
});

describe('the values that a model takes', () => {
  const values = [
    { name: 'shares', from: 0, to: 1, factor: 200 },
    { name: 'small numbers', from: 0, to: 50, factor: 10, offset: -100 },
  ];
  const withRanges = () => sandboxWithModels((dataDir) => putModel(dataDir, 'own', { values }, thresholdGraph()));

  test.each([
    ['shares', 1, (value: number) => value * 200 > 100],
    ['small numbers', 40, (value: number) => value * 10 - 100 > 100],
  ] as const)('the first matching range converts %s to the numbers of the training', async (name, most, isHigh) => {
    const sandbox = await withRanges();
    const value = (x: number) => Math.fround((x / 19) * most);
    const file = await uploaded(sandbox, geoTiff({ width: 20, height: 3, type: 'Float32', value }));
    const { bytes } = await result(sandbox, 'own', file);
    const { samples, fileDirectory } = await classes(bytes);
    expect(samples).toEqual(samples.map((_, i) => (isHigh(value(i % 20)) ? 1 : 0)));
    expect(new Set(samples)).toEqual(new Set([0, 1]));
    expect(bytes.toString('latin1'), Object.keys(fileDirectory).join()).toContain(`MODEL_VALUES">${name}`);
  });

  test('values outside all ranges fail the job, and the error names the ranges', async () => {
    const sandbox = await withRanges();
    const file = await uploaded(sandbox, geoTiff({ width: 20, height: 3, value: (x) => 1_000 + x }));
    const { body } = await run(sandbox, { modelId: 'own', fileId: file });
    expect(await finished(sandbox, body.id)).toBe('FAILED');
    expect(await (await fetch(`${sandbox.url}/inference`)).text()).toContain(
      'the values of the bands are between 1000 and 1019, but model own accepts 0 to 1 (shares), 0 to 50 (small numbers)',
    );
  });

  test('the shipped models agree with their indices on the shipped scene, class by class', async () => {
    const sandbox = await startSandbox();
    const path = join(projectRoot, 'src/sandbox/scenes/olinda-landsat7.tif');
    const scene = await fromFile(path);
    cleanUpLater(() => scene.close());
    const rasters = (await (await scene.getImage()).readRasters()) as unknown as ArrayLike<number>[];
    const names = ['blue', 'green', 'red', 'nir', 'swir16', 'swir22'];
    const index = (a: string, b: string, i: number) => {
      const [one, other] = [rasters[names.indexOf(a)]![i]!, rasters[names.indexOf(b)]![i]!];
      return (one - other) / (one + other);
    };
    const file = await uploaded(sandbox, await readFile(path));
    const recalls = async (model: string, wanted: (i: number) => number) => {
      const { samples } = await classes((await result(sandbox, model, file)).bytes);
      const counts = new Map<number, { all: number; right: number }>();
      samples.forEach((found, i) => {
        const one = counts.get(wanted(i)) ?? { all: 0, right: 0 };
        counts.set(wanted(i), { all: one.all + 1, right: one.right + (found === wanted(i) ? 1 : 0) });
      });
      return [...counts].sort(([a], [b]) => a - b).map(([, { all, right }]) => right / all);
    };
    const water = await recalls('water', (i) => (index('green', 'swir16', i) > 0 ? 1 : 0));
    expect(water).toHaveLength(2);
    expect(Math.min(...water)).toBeGreaterThan(0.97);
    const classOf = (ndvi: number) => (ndvi >= 0.55 ? 2 : ndvi >= 0.25 ? 1 : 0);
    const vegetation = await recalls('vegetation', (i) => classOf(index('nir', 'red', i)));
    expect(vegetation).toHaveLength(3);
    // The scene has 56 pixels of dense vegetation.
    expect(Math.min(...vegetation)).toBeGreaterThan(0.8);
  });
});

describe('the shipped models on the Landsat crop', needing(landsat), () => {
  test(
    'water and vegetation agree with their indices on the half that they were not fitted on',
    { tags: [onlyInAll] },
    async () => {
      const sandbox = await startSandbox();
      const folder = await testFolder();
      const path = join(folder, stackName);
      const numbers = { green: 3, red: 4, nir: 5, swir16: 6 };
      const sources = Object.fromEntries(
        Object.entries(numbers).map(([name, n]) => [name, join(landsatFolder, `l8_B${n}.tif`)]),
      );
      const input: StackInput = { bands: Object.keys(sources) };
      const files = Object.values(sources).map((one) => ({ path: one, name: basename(one) }));
      await runInChild({
        module: new URL('../support/stack-job.ts', import.meta.url),
        input,
        files,
        workFolder: folder,
        confinement: await testConfinement(),
      });
      const fileId = await uploaded(sandbox, await readFile(path));
      const bands: Record<string, number[]> = {};
      for (const [name, band] of Object.entries(sources)) bands[name] = (await readGeoTiff(band)).samples;
      const sun = Math.sin((64.74360932 * Math.PI) / 180);
      const reflectance = (name: string, i: number) => (bands[name]![i]! * 2e-5 - 0.1) / sun;
      const index = (a: string, b: string, i: number) =>
        (reflectance(a, i) - reflectance(b, i)) / (reflectance(a, i) + reflectance(b, i));
      const agreement = async (model: string, wanted: (i: number) => number) => {
        const { samples, width } = await classes((await result(sandbox, model, fileId)).bytes);
        const held = Array.from(samples.keys()).filter((i) => i % width >= width / 2 && samples[i] !== 255);
        return held.filter((i) => samples[i] === wanted(i)).length / held.length;
      };
      expect(await agreement('water', (i) => (index('green', 'swir16', i) > 0 ? 1 : 0))).toBeGreaterThan(0.995);
      expect(
        await agreement('vegetation', (i) =>
          index('nir', 'red', i) >= 0.55 ? 2 : index('nir', 'red', i) >= 0.25 ? 1 : 0,
        ),
      ).toBeGreaterThan(0.99);
    },
  );

  test('the script makes the shipped models anew, byte for byte', { tags: [onlyInAll] }, async () => {
    const out = await testFolder();
    const { stdout } = await promisify(execFile)(process.execPath, [
      join(projectRoot, 'lab/models/train.ts'),
      '--data',
      landsatFolder,
      '--out',
      out,
    ]);
    expect(stdout).toContain('| water | MNDWI');
    for (const id of ['water', 'vegetation']) {
      for (const name of ['model.onnx', 'model.json'])
        expect(await readFile(join(out, id, name)), `${id}/${name}`).toEqual(
          await readFile(join(projectRoot, 'src/sandbox/models', id, name)),
        );
    }
  });
});
