import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createPlatformClient } from '../../src/platform-client/index.ts';
import { startSandbox } from '../../src/testing/index.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { projectRoot, testFolder } from '../support/folders.ts';

test("in three lines: a platform, a launch of an app that is anybody's, and the user's decision", async () => {
  await using platform = await startSandbox();
  const seen: string[] = [];
  const someApp = createServer((req, res) => {
    seen.push(new URL(req.url!, 'http://app').searchParams.get('token') ?? '');
    res.end('ok');
  });
  await new Promise<void>((resolve) => someApp.listen(0, '127.0.0.1', resolve));
  cleanUpLater(() => void someApp.close());
  const { launchId, launchUrl, token } = await platform.launch(
    `http://127.0.0.1:${(someApp.address() as AddressInfo).port}/start`,
  );
  await fetch(launchUrl);
  expect(seen).toEqual([token]);

  const client = createPlatformClient({ baseUrl: platform.url, apiKey: platform.apiKey });
  cleanUpLater(() => void client.close());
  const calls = client.launch({ read: async () => ({ token, expiresAtMs: null }), write: async () => {} });
  // It may be asked for before the app has come so far.
  const approved = platform.approve({ launchId });
  const { operationId } = await calls.createOperation({ idempotencyKey: 'k', operation: { name: 'a run' } });
  expect(await approved).toMatchObject({ operationId, status: 'APPROVED', name: 'a run' });
  expect(await calls.getOperation({ operationId })).toMatchObject({ status: 'APPROVED' });

  await platform.arm({ launchId, endpoint: 'user.detail', effect: { status: 500 } });
  await calls.userDetail();
  const trace = await platform.trace(launchId);
  expect(trace.map(({ endpoint, status }) => `${endpoint} ${status}`)).toEqual([
    'operation.create 200',
    'operation.status 200',
    'user.detail 500',
    'user.detail 200',
  ]);
  await platform.revoke(launchId);
  await expect(calls.userDetail()).rejects.toMatchObject({ code: 'token_revoked' });
  expect((await platform.verdict(launchId)).rules.map(({ rule }) => rule)).toContain('poll-stops');
});

test('a launch whose app asks for nothing is told as that', async () => {
  await using platform = await startSandbox();
  const { launchId } = await platform.launch('http://127.0.0.1:9/launch');
  await expect(platform.approve({ launchId, timeoutMs: 300 })).rejects.toMatchObject({ code: 'no_operation' });
});

test('what cannot be imported is told, and nothing is started in silence', async () => {
  const path = join(await testFolder(), 'item.json');
  await writeFile(path, '{"type": "Feature"}');
  await expect(startSandbox({ imports: [path] })).rejects.toThrow(path);
});

test.each([
  ['a port that is taken', (port: number) => ({ port }), /port/],
  ['a setting that is wrong', () => ({ env: { LOG_LEVEL: 'loud' } }), /LOG_LEVEL/],
  ['a file that is not there', () => ({ imports: ['/nowhere/item.json'] }), /nowhere/],
])('a start with %s leaves nothing behind', async (_, options, message) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUpLater(() => void server.close());
  const folder = await testFolder();
  vi.stubEnv('TMPDIR', folder);
  onTestFinished(() => void vi.unstubAllEnvs());
  await expect(startSandbox(options((server.address() as AddressInfo).port))).rejects.toThrow(message);
  expect((await readdir(folder)).filter((name) => name.startsWith('marketplace-app-kit-test'))).toEqual([]);
});

test('a program that forgets to close it ends all the same, and leaves no folder', async () => {
  const folder = await testFolder();
  const script = join(folder, 'forgets.ts');
  await writeFile(
    script,
    `import { startSandbox } from ${JSON.stringify(join(projectRoot, 'src/testing/index.ts'))};
     const platform = await startSandbox();
     await platform.launch('http://127.0.0.1:9/launch');
     console.log((await platform.operations()).length);`,
  );
  const { stdout } = await promisify(execFile)(process.execPath, [script], {
    env: { ...process.env, TMPDIR: folder },
    timeout: 900_000,
  });
  expect(stdout.trim()).toBe('0');
  expect((await readdir(folder)).filter((name) => name.startsWith('marketplace-app-kit'))).toEqual([]);
});
