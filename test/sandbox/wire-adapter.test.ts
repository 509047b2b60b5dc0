/** The sandbox on another platform's wire: what a fork meets there, it meets here. */
import { expect, test } from 'vitest';
import { assumedProfile, wireProfile } from '../../src/contract/index.ts';
import { launchApp, startApp } from '../support/app.ts';
import { otherProfile } from '../support/other-wire.ts';
import { apiKey, startSandbox } from '../support/sandbox.ts';

const key = { authorization: `Key ${apiKey}` };

test('the whole flow: app and sandbox on the same data, judged by the same rules', async () => {
  const sandbox = await startSandbox({ profile: otherProfile });
  const app = await startApp(sandbox.url, { profile: otherProfile, env: { UPLOAD_PART_BYTES: '5000' } });
  const { launchId, session } = await launchApp(sandbox, app);
  const { id } = await session.start({ stepId: 'cog', input: { type: 'synthetic', size: 128 } });
  const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${operationId}/approve`);
  const run = await session.waitFor(id, 'COMPLETED');
  expect(run.output?.sizeBytes).toBeGreaterThan(5_000);
  expect(await sandbox.control('GET', `launches/${launchId}/verdict`)).toMatchObject({ result: 'passed' });
  // The trace speaks the contract's words, and holds no key.
  const calls = await sandbox.trace(launchId);
  expect(new Set(calls.map(({ endpoint }) => endpoint))).toContain('upload.chunk');
  const page = await sandbox.request('GET', `/launches/${launchId}`);
  expect(page.text).not.toContain(apiKey);
  expect(page.text).toContain('upload.chunk');
  const link = await sandbox.request('GET', `/v2/files/${run.file?.fileId}/link`, { headers: key });
  expect(link.body).toMatchObject({ link: { href: expect.stringContaining('/download/') as string } });
}, 900_000);

test('each call stands where the platform has it, and nowhere else', async () => {
  const sandbox = await startSandbox({ profile: otherProfile });
  const { token, launchUrl } = await sandbox.launch();
  expect(new URL(launchUrl).searchParams.get('session')).toBe(token);
  const at = (path: string) => `/v2/sessions/${token}/${path}`;

  const user = await sandbox.request('GET', at('whoami'), { headers: key });
  expect(user.body).toEqual({
    mail: expect.stringContaining('@') as string,
    user_name: expect.any(String) as string,
    organization: expect.any(String) as string,
  });
  // The contract's own address and header are nobody's there.
  expect((await sandbox.app('GET', `/user/${token}/detail`)).status).toBe(404);
  expect((await sandbox.request('GET', at('whoami'), { headers: { 'x-api-key': apiKey } })).status).toBe(403);
  expect((await sandbox.request('GET', at('whoami'), { headers: { authorization: apiKey } })).status).toBe(403);

  const job = () =>
    sandbox.request('POST', at('jobs'), { headers: key, body: { title: 'one', args: { a: 1 }, clientRef: 'k1' } });
  const first = await job();
  expect(first.body).toMatchObject({ jobRef: expect.any(String) as string, status: 'REQUESTED' });
  const { jobRef } = first.body as unknown as { jobRef: string };
  // The reference in the body is the key that makes a repeat harmless.
  expect((await job()).body).toMatchObject({ jobRef });
  const [operation] = (await sandbox.control('GET', 'operations')).operations;
  expect(operation).toMatchObject({ operationId: jobRef, name: 'one', parameters: { a: 1 } });
  const wrong = await sandbox.request('POST', at('jobs'), { headers: key, body: { name: 'one' } });
  expect(wrong).toMatchObject({ status: 400, body: { fault: { says: 'Bad Request', kind: 'validation_failed' } } });

  const status = () => sandbox.request('GET', `${at('jobs')}?ref=${jobRef}`, { headers: key });
  expect((await status()).body).toMatchObject({ verdict: 'waiting' });
  await sandbox.control('POST', `operations/${jobRef}/approve`);
  expect((await status()).body).toMatchObject({ verdict: 'granted' });

  const begun = await sandbox.request('POST', at('uploads'), { headers: key, body: { job: jobRef, name: 'a.bin' } });
  const { upload_id, object_key } = begun.body as unknown as { upload_id: string; object_key: string };
  const chunk = (bytes: Uint8Array, part = 1, headers: Record<string, string> = { 'x-object-key': object_key }) =>
    sandbox.request('PUT', at(`uploads/${upload_id}/parts/${part}`), { headers: { ...key, ...headers }, body: bytes });
  expect((await chunk(new Uint8Array(7_000))).body).toMatchObject({ fault: { kind: 'chunk_too_large' } });
  expect((await chunk(new Uint8Array(10), 2)).body).toMatchObject({ fault: { kind: 'chunk_out_of_order' } });
  expect((await chunk(new Uint8Array(10), 1, {})).body).toMatchObject({ details: [{ path: 'x-object-key' }] });
  expect((await chunk(new Uint8Array(5_000).fill(7))).status).toBe(200);
  expect((await chunk(new Uint8Array(5_000).fill(7))).status).toBe(200);
  expect((await chunk(new Uint8Array(5_000).fill(8))).body).toMatchObject({ fault: { kind: 'chunk_conflict' } });
  const done = await sandbox.request('POST', at(`uploads/${upload_id}/finish`), {
    headers: key,
    body: { object_key, bytes: 5_000, sourceType: 'UNKNOWN' },
  });
  expect(done.body).toMatchObject({ file: { ref: expect.any(String) as string }, size: 5_000 });

  await sandbox.control('POST', 'clock', { advanceMs: 61 * 60_000 });
  const late = await sandbox.request('GET', at('whoami'), { headers: key });
  expect(late.body).toMatchObject({ fault: { says: 'Token expired', kind: 'session-over' } });
});

test('what the contract calls so is nothing on a wire that calls it otherwise, wherever it stands', async () => {
  const profile = wireProfile({
    name: 'renamed',
    calls: {
      getOperation: { request: { operationId: 'ref' } },
      createOperation: {
        request: { name: 'title', description: 'name', idempotencyKey: { in: 'header', name: 'X-Once' } },
      },
      initiateUpload: { request: { operationId: { in: 'query', name: 'op' } } },
      userDetail: { path: '/me', request: { token: { in: 'header', name: 'X-Session' } } },
    },
  });
  const sandbox = await startSandbox({ profile });
  const { token } = await sandbox.launch();
  const create = (body: object, headers: Record<string, string> = {}) =>
    sandbox.app('POST', `/operation/${token}`, { body, headers });
  // A name that is another field's on the wire: neither takes the other away.
  const { operationId } = (await create({ title: 'T', name: 'D' }, { 'X-Once': 'k' })).body;
  expect((await sandbox.control('GET', 'operations')).operations[0]).toMatchObject({ name: 'T', description: 'D' });
  expect((await create({ title: 'T', name: 'D' }, { 'X-Once': 'k' })).body.operationId).toBe(operationId);
  expect((await create({ title: 'T', name: 'D' }, { 'Idempotency-Key': 'k' })).body.operationId).not.toBe(operationId);
  expect((await sandbox.app('GET', `/operation/${token}?ref=${operationId}`)).status).toBe(200);
  expect((await sandbox.app('GET', `/operation/${token}?operationId=${operationId}`)).status).toBe(400);
  await sandbox.control('POST', `operations/${operationId}/approve`);
  const initiate = (query: string, body: object) =>
    sandbox.app('POST', `/file/${token}/upload/initiate${query}`, { body });
  expect((await initiate(`?op=${operationId}`, { fileName: 'a.bin' })).status).toBe(200);
  expect((await initiate('', { fileName: 'a.bin', operationId })).status).toBe(400);
  const me = (headers: Record<string, string>) =>
    sandbox.request('GET', '/me', { headers: { 'x-api-key': apiKey, ...headers } });
  expect((await me({ 'X-Session': token })).status).toBe(200);
  expect(await me({})).toMatchObject({
    status: 400,
    body: { details: [{ path: 'X-Session', message: 'is required' }] },
  });
  expect((await sandbox.request('GET', '//nowhere')).status).toBe(404);
});

test('limits of the platform are those of the sandbox', async () => {
  const profile = wireProfile({
    name: 'quick',
    limits: { operationWindowMs: 60_000, tokenLifetimeMs: 120_000 },
    uploadsCollection: 'files-of-:userId',
  });
  const sandbox = await startSandbox({ profile });
  const { token, expiresAt } = await sandbox.launch();
  expect(Date.parse(expiresAt) - Date.now()).toBeLessThanOrEqual(120_000);
  const { body } = await sandbox.app('POST', `/operation/${token}`, { body: { name: 'x' } });
  expect(Date.parse(body.expiresAt) - Date.parse(String(body.createdAt))).toBe(60_000);
  const { users } = await sandbox.control('GET', 'users');
  const uploads = await sandbox.request('GET', `/public/stac/collections/files-of-${users[0]!.id}`, {
    headers: { 'x-api-key': apiKey },
  });
  expect(uploads.status).toBe(200);
});

test('a profile that is no data cannot be spoken, and says what would be right', async () => {
  await expect(startSandbox({ profile: { ...assumedProfile, name: 'mine', changes: null } })).rejects.toThrow(
    /mine.*wireProfile/,
  );
});

test.each([
  [
    { name: 'x', calls: { createOperation: { request: { nmae: 'title' } } } },
    /calls\.createOperation\.request: there is no field nmae; known are token, name/,
  ],
  [{ name: 'x', calls: { userDetail: { path: '/me' } } }, /calls\.userDetail\.path: :token is missing/],
  [
    { name: 'x', calls: { userDetail: { path: '/me', request: { token: 'session' } } } },
    /calls\.userDetail\.path: :token is missing/,
  ],
  [{ name: 'x', calls: { userDetail: { path: '/me/:tokne' } } }, /there is no field tokne/],
  [{ name: 'x', calls: { nothing: {} } }, /calls/],
  [{ name: 'x', limits: { pollIntervalMs: { min: 5, max: 1 } } }, /limits\.pollIntervalMs/],
  [
    { name: 'x', calls: { getOperation: { request: { operationId: { in: 'body', name: 'op' } } } } },
    /cannot go into the body/,
  ],
  [{ name: 'x', calls: { searchItems: { request: { bbox: { in: 'query', name: 'bbox' } } } } }, /is no plain value/],
  [{ name: 'x', calls: { uploadChunk: { request: { key: 'object.key' } } } }, /a form has no names with dots/],
  [{ name: 'x', calls: { userDetail: { path: '/s-:token' } } }, /must be a whole segment/],
  [{ name: 'x', pages: { item: '/i/:id' } }, /must hold :collectionId and :itemId/],
  [{ name: 'x', uploadsCollection: 'uploads' }, /must hold :userId/],
  [{}, /name/],
])('%j is refused with its place and rule', (changes, message) => {
  expect(() => wireProfile(changes as never)).toThrow(message);
});
