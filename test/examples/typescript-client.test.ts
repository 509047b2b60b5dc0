// @module-tag all
/** Types made from the OpenAPI document carry a whole flow, a search and an inference job without a cast. */
import { execFile } from 'node:child_process';
import { cp, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { projectRoot, testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { apiKey, startSandbox } from '../support/sandbox.ts';

const run = promisify(execFile);

/** The functions of the example. Its own compilation checks their types. */
interface Example {
  connect(baseUrl: string, apiKey: string): object;
  renewToken(platform: object, token: string): Promise<string>;
  user(platform: object, token: string): Promise<object>;
  createOperation(platform: object, token: string, name: string, key: string): Promise<string>;
  statusOf(platform: object, token: string, operationId: string): Promise<string>;
  upload(platform: object, token: string, operationId: string, file: object, chunkBytes: number): Promise<string>;
  search(platform: object, collection: string): Promise<{ collection: string }[]>;
  infer(platform: object, modelId: string, fileId: string): Promise<string>;
  jobStatus(platform: object, id: string): Promise<string>;
}

test('types are made from a running sandbox, and the calls hold to them', { timeout: 120_000 }, async () => {
  const sandbox = await startSandbox({ seed: 'demo' });
  const folder = join(await testFolder(), 'client');
  await cp(join(projectRoot, 'examples/typescript'), folder, { recursive: true });
  await symlink(join(projectRoot, 'node_modules'), join(folder, 'node_modules'));
  await run(process.execPath, ['make-types.mjs', `${sandbox.url}/openapi.json`, 'platform-types.d.ts'], {
    cwd: folder,
  });
  const types = await readFile(join(folder, 'platform-types.d.ts'), 'utf8');
  expect([types.includes('file: Blob'), types.includes('partNumber: number')]).toEqual([true, true]);
  await run(process.execPath, [join(projectRoot, 'node_modules/typescript/bin/tsc'), '-p', folder]).catch(
    (error: unknown) => {
      throw new Error((error as { stdout?: string }).stdout);
    },
  );
  const source = await readFile(join(folder, 'platform.ts'), 'utf8');
  expect(source.replaceAll(/\/\*\*.*\*\//g, '')).not.toMatch(/ as |@ts-|: any\b/);

  const client = (await import(join(folder, 'platform.ts'))) as Example;
  const platform = client.connect(sandbox.url, apiKey);
  const { token: first, launchId } = await sandbox.launch({ renewPolicy: 'rotate' });
  const token = await client.renewToken(platform, first);
  expect(token).not.toBe(first);
  expect(await client.user(platform, token)).toMatchObject({ id: expect.any(String) as string });
  const operationId = await client.createOperation(platform, token, 'In TypeScript', 'key-1');
  expect(await client.createOperation(platform, token, 'In TypeScript', 'key-1')).toBe(operationId);
  expect(await client.statusOf(platform, token, operationId)).toBe('REQUESTED');
  await sandbox.control('POST', `operations/${operationId}/approve`);
  await sandbox.advance(3_000, launchId);
  const bytes = geoTiff({ width: 64, height: 64, value: (x) => x });
  const file = { name: 'scene.tif', content: new Blob([new Uint8Array(bytes)]) };
  const fileId = await client.upload(platform, token, operationId, file, 3_000);
  const { size } = await sandbox.control('GET', `files/${fileId}`);
  expect(size).toBe(bytes.length);

  const items = await client.search(platform, 'olinda-coast');
  expect(items[0]?.collection).toBe('olinda-coast');
  const models = await sandbox.request('GET', '/public/inference/models', { headers: { 'x-api-key': apiKey } });
  const modelId = /"id":"([^"]+)"/.exec(models.text)![1]!;
  const job = await client.infer(platform, modelId, fileId);
  expect(['QUEUED', 'RUNNING', 'IN_PROGRESS', 'DONE', 'FAILED', 'COMPLETED']).toContain(
    await client.jobStatus(platform, job),
  );
  await expect(client.user(platform, 'nobody')).rejects.toThrow('404 Token not found');
});
