/** Files that name other files: what they name is neither read nor asked, by the sandbox, by a step or by a preview. */
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { runInChild, type ConfinementMode } from '../../src/child/index.ts';
import { launchApp } from '../support/app.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testConfinement } from '../support/confinement.ts';
import { downloaded, finalStatus, processed } from '../support/files.ts';
import { testFolder } from '../support/folders.ts';
import { harmlessTiff, netcdfOf, rawVrt, tiffThatNames } from '../support/hostile-files.ts';
import { startServer } from '../support/processes.ts';
import { readGeoTiff } from '../support/read-geotiff.ts';
import { apiKey, startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { startStepHost } from '../support/step-host.ts';
import { confined, fileNeeds } from '../support/needs.ts';
import { onlyInAll } from '../support/tags.ts';

fileNeeds(await confined());

const canary = 'a-secret-that-no-file-may-read';
let secretPath = '';
beforeAll(async () => {
  secretPath = join(await testFolder(), 'secret');
  await writeFile(secretPath, canary.repeat(200));
});

/** A TCP server, and how often somebody has called. */
async function listener(): Promise<{ port: number; calls: () => number }> {
  let calls = 0;
  const server = createServer((socket) => {
    calls += 1;
    socket.on('error', () => {}).destroy();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUpLater(() => void server.close());
  return { port: (server.address() as AddressInfo).port, calls: () => calls };
}

describe('control: read without care and unconfined, these files do give away what they name', () => {
  const module = new URL('../support/read-bytes-job.ts', import.meta.url);
  const readFrom = async (
    bytes: Buffer,
    name: string,
    input: { driver: string; overview: boolean },
    mode: ConfinementMode,
  ) => {
    const path = join(await testFolder(), name);
    await writeFile(path, bytes);
    return runInChild<string>({
      module,
      input,
      files: [{ path, name }],
      workFolder: join(await testFolder(), 'work'),
      confinement: await testConfinement(mode),
    });
  };

  test('netCDF-4 with external storage', async () => {
    expect(await readFrom(netcdfOf(secretPath), 'a.nc', { driver: 'netCDF', overview: false }, 'none')).toContain(
      canary,
    );
    await expect(
      readFrom(netcdfOf(secretPath), 'a.nc', { driver: 'netCDF', overview: false }, 'required'),
    ).rejects.toThrow();
  });

  test('a GeoTIFF whose overviews are another dataset', async () => {
    const evil = tiffThatNames(rawVrt(secretPath), 'OVERVIEWS');
    expect(await readFrom(evil, 'a.tif', { driver: 'GTiff', overview: true }, 'none')).toContain(canary.slice(0, 8));
    expect(
      await readFrom(evil, 'a.tif', { driver: 'GTiff', overview: true }, 'required').catch(() => ''),
    ).not.toContain(canary.slice(0, 8));
  });
});

describe.each<ConfinementMode>(['required', 'none'])('confinement %s: in a step', (mode) => {
  const deliver = async (bytes: Buffer, name: string) => {
    const { run, inputDir } = await startStepHost({ confinement: await testConfinement(mode) });
    await writeFile(join(inputDir, name), bytes);
    return run('cog', { type: 'local', path: name }).then(async ({ path }) =>
      Buffer.from((await readGeoTiff(path)).samples).toString('latin1'),
    );
  };

  test('netCDF-4 with external storage delivers nothing', async () => {
    expect(await deliver(netcdfOf(secretPath), 'a.nc').catch(String)).not.toContain(canary);
  });

  test.each(['OVERVIEWS', 'GEOLOCATION'] as const)(
    'a GeoTIFF that names a dataset in %s is refused, and says why',
    async (domain) => {
      const { port, calls } = await listener();
      for (const dataset of [
        rawVrt(secretPath),
        `PG:host=127.0.0.1 port=${port} dbname=x`,
        `/vsicurl/http://127.0.0.1:${port}/x.tif`,
      ]) {
        await expect(deliver(tiffThatNames(dataset, domain), 'a.tif')).rejects.toMatchObject({
          code: 'raster_names_files',
          message: expect.stringContaining(domain) as string,
        });
      }
      expect(calls()).toBe(0);
    },
  );

  test('control: one with metadata that names nothing is processed', async () => {
    expect((await deliver(harmlessTiff, 'a.tif')).length).toBe(512 * 512);
  });
});

describe('in the sandbox', () => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await startSandbox();
    return () => sandbox.close();
  });

  test.each(['MULTISPECTRAL', 'NETCDF', 'UNKNOWN'])(
    'netCDF-4 with external storage as %s: no answer holds what it names',
    async (sourceType) => {
      const { fileId } = await processed(sandbox, netcdfOf(secretPath), 'a.nc', sourceType);
      const items = await sandbox.request('GET', '/public/stac/collections', { headers: { 'x-api-key': apiKey } });
      expect(items.text).not.toContain(canary);
      expect((await downloaded(sandbox, fileId)).equals(netcdfOf(secretPath))).toBe(true);
    },
  );

  test('a GeoTIFF that names a dataset is FAILED, nobody is called, and the next file is processed', async () => {
    const { port, calls } = await listener();
    for (const dataset of [rawVrt(secretPath), `PG:host=127.0.0.1 port=${port} dbname=x`]) {
      expect(await processed(sandbox, tiffThatNames(dataset, 'OVERVIEWS'), 'a.tif', 'MULTISPECTRAL')).toMatchObject({
        status: 'FAILED',
      });
    }
    expect(calls()).toBe(0);
    expect(await processed(sandbox, harmlessTiff, 'a.tif', 'MULTISPECTRAL')).toMatchObject({ status: 'COMPLETED' });
  });

  test("a file of one user that takes for ever keeps no other user's waiting", async () => {
    const slow = await startSandbox({
      inspection: { job: new URL('../support/breaking-inspect-job.ts', import.meta.url) },
    });
    const [first, second] = (await slow.control('GET', 'users')).users;
    const upload = async (userId: string, name: string) => {
      const launch = await slow.launch({ userId });
      const { operationId } = (await slow.app('POST', `/operation/${launch.token}`, { body: { name: 'x' } })).body;
      await slow.control('POST', `operations/${operationId}/approve`);
      const { uploadId, key } = (
        await slow.app('POST', `/file/${launch.token}/upload/initiate`, { body: { operationId, fileName: name } })
      ).body;
      const form = new FormData();
      for (const [field, value] of Object.entries({ uploadId, key, partNumber: '1' })) form.append(field, value);
      form.append('file', new Blob(['x']), 'x');
      await slow.app('POST', `/file/${launch.token}/upload/chunk`, { body: form });
      return (
        await slow.app('POST', `/file/${launch.token}/upload/complete`, {
          body: { uploadId, key, fileSize: 1, sourceType: 'UNKNOWN' },
        })
      ).body.fileId;
    };
    for (let i = 0; i < 5; i++) await upload(first!.id, 'hang');
    expect(await finalStatus(slow, await upload(second!.id, 'fine'))).toBe('COMPLETED');
    await slow.close();
  });
});

test(
  'the keys of an app that runs: an item that names its environment delivers nothing of it',
  { tags: [onlyInAll] },
  async () => {
    const [sandbox, folder] = [await startSandbox(), await testFolder()];
    const inputDir = await testFolder();
    const app = await startServer('app', [], {
      PLATFORM_URL: sandbox.url,
      PLATFORM_API_KEY: apiKey,
      APP_SECRET: canary.repeat(3),
      DATA_DIR: folder,
      INPUT_DIR: inputDir,
      PORT: '0',
      POLL_INTERVAL_MS: '2000',
      LOG_LEVEL: 'error',
      STEP_CONFINEMENT: 'required',
    });
    await writeFile(join(inputDir, 'a.nc'), netcdfOf(`/proc/${app.child.pid}/environ`));
    const { session } = await launchApp(sandbox, app);
    const { id } = await session.start({ stepId: 'cog', input: { type: 'local', path: 'a.nc' } });
    const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
    await sandbox.control('POST', `operations/${operationId}/approve`);
    const { state, file, failure } = await session.waitFor(id, 'FAILED', 'COMPLETED');
    const delivered =
      state === 'COMPLETED' ? (await downloaded(sandbox, file!.fileId!)).toString('latin1') : JSON.stringify(failure);
    expect(delivered).not.toContain(canary);
    expect(delivered).not.toContain(apiKey);
  },
);
