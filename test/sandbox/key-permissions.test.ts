/** A key does what it was issued for: its permissions, and the launches of its app. */
import { expect, test } from 'vitest';
import { readSandboxConfig } from '../../src/sandbox/config.ts';
import { startSandbox as startPublished } from '../../src/testing/index.ts';
import { testFolder } from '../support/folders.ts';
import { apiKey, startSandbox } from '../support/sandbox.ts';

const userDetail = (token: string) => `/public/external-app/user/${token}/detail`;

test('SANDBOX_API_KEY_PERMISSIONS names the permissions of the key; what is left out is answered with 403', async () => {
  const sandbox = await startSandbox({ env: { SANDBOX_API_KEY_PERMISSIONS: 'external_app, files_upload' } });
  const headers = { 'x-api-key': apiKey };
  const ask = async (path: string, method = 'GET') => (await sandbox.request(method, path, { headers })).status;
  expect(await ask('/public/file/status/x')).toBe(403);
  expect(await ask('/public/inference/models')).toBe(403);
  expect(await ask('/public/file/generateUploadId?fileName=a.tif', 'POST')).toBe(200);
  expect(await ask('/public/stac/')).toBe(200);
  expect(() => readSandboxConfig({ SANDBOX_API_KEY_PERMISSIONS: 'files' }, {})).toThrow(
    'SANDBOX_API_KEY_PERMISSIONS=files must be one or more of files_admin, files_upload, external_app, inference',
  );
});

test('a restart with fewer permissions removes them from the key', async () => {
  const dataDir = await testFolder();
  const statusWith = async (permissions: string) => {
    const sandbox = await startSandbox({ dataDir, env: { SANDBOX_API_KEY_PERMISSIONS: permissions } });
    const { status } = await sandbox.request('GET', '/public/inference/models', { headers: { 'x-api-key': apiKey } });
    await sandbox.close();
    return status;
  };
  expect(await statusWith('external_app, inference')).toBe(200);
  expect(await statusWith('external_app')).toBe(403);
  expect(await statusWith('external_app, inference')).toBe(200);
});

test('a key of one app is refused for launches of another', async () => {
  const sandbox = await startSandbox();
  for (const id of ['own', 'other'])
    await sandbox.control('POST', 'apps', { id, name: id, launchUrl: `http://127.0.0.1:1/${id}` });
  const { apiKey: ofOwn } = (await sandbox.control('POST', 'keys', { permissions: ['external_app'], appId: 'own' })) as { apiKey: string }; // oxfmt-ignore
  const ask = async (appId: string) => {
    const { token } = await sandbox.launch({ appId });
    return sandbox.request('GET', userDetail(token), { headers: { 'x-api-key': ofOwn } });
  };
  expect((await ask('own')).status).toBe(200);
  expect(await ask('other')).toMatchObject({ status: 403, body: { error: 'Permission Denied' } });
});

test('the key of a test has the one permission that apps have; a test makes others', async () => {
  await using platform = await startPublished();
  const status = async (key: string) =>
    (await fetch(`${platform.url}/public/file/status/x`, { headers: { 'x-api-key': key } })).status;
  expect(await status(platform.apiKey)).toBe(403);
  const { id, apiKey: other } = await platform.createKey(['files_admin']);
  expect(await status(other)).toBe(404);
  await platform.revokeKey(id);
  expect(await status(other)).not.toBe(404);
  await using generous = await startPublished({ permissions: ['external_app', 'files_admin'] });
  expect((await fetch(`${generous.url}/public/file/status/x`, { headers: { 'x-api-key': generous.apiKey } })).status).toBe(404); // oxfmt-ignore
});
