/** Differences of a platform that a wire profile says as data: what goes out, what is read, and a sandbox that speaks it. */
import { describe, expect, test } from 'vitest';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import {
  assumedForm,
  assumedProfile,
  changedForm,
  NotFinishedError,
  wireCallNames,
  wireProfile,
  type CallChanges,
} from '../../src/contract/index.ts';
import { projectRoot } from '../support/folders.ts';
import { strangeProfile } from '../support/strange-profile.ts';
import { launchApp, smallRun, startApp } from '../support/app.ts';
import { chunkForm, startSandbox } from '../support/sandbox.ts';

const content = { sizeBytes: 1, open: () => [] as unknown as AsyncIterable<Uint8Array> };
const profile = wireProfile(strangeProfile);
const { calls } = profile;

describe('a request', () => {
  test('has its constants, in the body or in the query', () => {
    const created = calls.createOperation.encode({ token: 't', idempotencyKey: 'k', operation: { name: 'n' } });
    expect(created.body).toEqual({
      kind: 'json',
      value: { title: 'n', operationType: 'PROCESSING', meta: { version: 2 } },
    });
    expect(calls.getOperation.encode({ token: 't', operationId: 'o' }).query).toEqual({
      operationId: 'o',
      verbose: 'true',
    });
  });

  test('of a chunk has the file under its name, counts from 0, and says how many there are', () => {
    const chunk = { token: 't', uploadId: 'u', key: 'k', partNumber: 1, partCount: 3, content };
    expect(calls.uploadChunk.encode(chunk).body).toMatchObject({
      fields: { uploadId: 'u', key: 'k', partNumber: '0', totalParts: '3', kind: 'part' },
      file: { field: 'chunk' },
    });
    const assumed = assumedProfile.calls.uploadChunk.encode(chunk).body;
    expect(assumed).toMatchObject({ fields: { uploadId: 'u', key: 'k', partNumber: '1' }, file: { field: 'file' } });
    expect(JSON.stringify(assumed)).not.toContain('partCount');
  });

  test('of a completion says how many parts there were, and only where the platform wants it', () => {
    const completion = { uploadId: 'u', key: 'k', fileSize: 1, sourceType: 'UNKNOWN' as const, partCount: 3 };
    expect(calls.completeUpload.encode({ token: 't', completion }).body).toMatchObject({ value: { totalParts: 3 } });
    expect(JSON.stringify(assumedProfile.calls.completeUpload.encode({ token: 't', completion }))).not.toMatch(
      /[pP]art/,
    );
  });
});

describe('an answer', () => {
  test('of two names, in an envelope', () => {
    expect(calls.userDetail.decode({ data: { uid: 7, first: 'Amina', last: 'Diallo' } })).toMatchObject({
      id: '7',
      name: 'Amina Diallo',
    });
    expect(calls.userDetail.decode({ data: { uid: 'u', last: 'Diallo' } }).name).toBe('Diallo');
    expect(calls.userDetail.decode({ data: { uid: 'u' } }).name).toBeUndefined();
  });

  test('of words in any case', () => {
    for (const word of ['granted', 'GRANTED', 'Granted'])
      expect(calls.getOperation.decode({ operationId: 'o', state: word }).status).toBe('APPROVED');
    expect(() => calls.getOperation.decode({ operationId: 'o', state: 'APPROVED ' })).toThrow();
  });

  test('of times in seconds, since 1970 and from now', () => {
    const read = calls.getOperation.decode({ state: 'open', expiresAt: 1_790_000_000 });
    expect(read.expiresAt).toBe('2026-09-21T14:13:20.000Z');
    const before = Date.now();
    const { expiresAt = '' } = calls.createOperation.decode({ id: 'o', expires_in: 1_800 });
    expect(Math.abs(Date.parse(expiresAt) - before - 1_800_000)).toBeLessThan(5_000);
  });

  test('that comes before its result', () => {
    const head = (status: number) => ({ status, header: () => undefined });
    expect(() => calls.completeUpload.decode({ status: 'Processing' }, head(202))).toThrow(NotFinishedError);
    expect(calls.completeUpload.decode({ fileId: 'f' }, head(200)).fileId).toBe('f');
  });

  test('of an item that is found by its title', () => {
    const item = { type: 'Feature', id: 'i-1', title: 'scene one', collection: 'c' };
    expect(calls.getItem.decode(item).id).toBe('scene one');
    expect(calls.searchItems.decode({ type: 'FeatureCollection', features: [item] }).items[0]?.id).toBe('scene one');
  });

  test('of an error that only its status tells, and of the part that is next', () => {
    expect(profile.decodeError(410, {})).toMatchObject({ code: 'token_expired' });
    expect(profile.decodeError(410, { code: 'token_revoked' })).toMatchObject({ code: 'token_revoked' });
    expect(profile.decodeError(409, { code: 'chunk_out_of_order', expected: 2 }).expectedPart).toBe(3);
  });
});

test(
  'app and sandbox speak all of it at once, and the file is there when the run is COMPLETED',
  { timeout: 60_000 },
  async () => {
    const sandbox = await startSandbox({ profile });
    const app = await startApp(sandbox.url, { profile, env: { UPLOAD_PART_BYTES: '5000' } });
    const { launchId, session } = await launchApp(sandbox, app);
    const { id } = await session.start(smallRun);
    const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
    await sandbox.control('POST', `operations/${operationId}/approve`);
    const run = await session.waitFor(id, 'COMPLETED');
    expect(run.file?.fileId).toEqual(expect.any(String));
    expect(await sandbox.control('GET', `launches/${launchId}/verdict`)).toMatchObject({ result: 'passed' });
    const calls = await sandbox.trace(launchId);
    const completions = calls.filter(({ endpoint }) => endpoint === 'upload.complete').map(({ status }) => status);
    expect(completions).toEqual([202, 200]);
    expect(
      calls.filter(({ endpoint }) => endpoint === 'upload.chunk').map(({ detail }) => detail['partNumber'])[0],
    ).toBe(1);
  },
);

test('a sandbox that speaks it refuses what lacks it', async () => {
  const sandbox = await startSandbox({ profile: wireProfile(strangeProfile) });
  const { token } = await sandbox.launch();
  const create = (body: object) => sandbox.app('POST', `/operation/${token}`, { body });
  expect((await create({ title: 'n', operationType: 'OTHER', meta: { version: 2 } })).body.details).toEqual([
    { path: 'operationType', message: 'must be PROCESSING' },
  ]);
  const created = await create({ title: 'n', operationType: 'PROCESSING', meta: { version: 2 } });
  const { id: operationId, operationId: ours } = created.body;
  expect(ours).toBeUndefined();
  await sandbox.control('POST', `operations/${operationId}/approve`);
  const begin = { body: { operationId, fileName: 'a.tif' } };
  const { uploadId, key } = (await sandbox.app('POST', `/file/${token}/upload/initiate`, begin)).body;
  const chunk = (form: FormData) => sandbox.app('POST', `/file/${token}/upload/chunk`, { body: form });
  const file = new Uint8Array(10);
  const whole = { uploadId, key, partNumber: 0, totalParts: 1, kind: 'part' };
  const uncounted = { uploadId, key, partNumber: 0, kind: 'part' };
  expect((await chunk(chunkForm({ ...uncounted, chunk: file }))).body.details).toEqual([
    { path: 'totalParts', message: 'is required' },
  ]);
  expect((await chunk(chunkForm({ ...whole, kind: 'whole', chunk: file }))).body.details).toEqual([
    { path: 'kind', message: 'must be part' },
  ]);
  const misnamed = await chunk(chunkForm({ ...whole, file }));
  expect(misnamed.body.details[0]?.message).toContain(`file part is called "file", and must be called "chunk"`);
  expect((await chunk(chunkForm({ ...whole, totalParts: 'banana', chunk: file }))).body.details).toEqual([
    { path: 'totalParts', message: 'must be the number of parts' },
  ]);
  expect((await chunk(chunkForm({ ...whole, constructor: 'x', chunk: file }))).body.details).not.toEqual(
    expect.arrayContaining([expect.objectContaining({ path: 'constructor' })]),
  );
  expect((await create({ title: 'n', operationType: { toString: 1 }, meta: { version: 2 } })).status).toBe(400);
  expect((await create({ title: 'n', operationType: ['PROCESSING'], meta: { version: 2 } })).status).toBe(400);
  expect((await create({ title: 'n', operationType: 'PROCESSING', meta: { version: '2' } })).status).toBe(400);
  const socket = connect(Number(new URL(sandbox.url).port), '127.0.0.1', () =>
    socket.write('GET http://a:99999/ HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n'),
  );
  const [head] = (await once(socket, 'data')) as [Buffer];
  expect(head.toString()).toMatch(/^HTTP\/1\.1 4\d\d /);
  socket.destroy();
  expect((await sandbox.app('GET', `/operation/${token}?operationId=o`)).body.details).toEqual([
    { path: 'verbose', message: 'must be true' },
  ]);
  expect((await chunk(chunkForm({ ...whole, chunk: file }))).status).toBe(200);
});

test('the profile of docs/wire-profile.md, which has every call and field, changes nothing', async () => {
  const page = await readFile(join(projectRoot, 'docs/wire-profile.md'), 'utf8');
  const [, text = ''] =
    /<!-- calls: [^>]+-->\s+```ts\s+import [^\n]+\s+export default wireProfile\(([\s\S]+?)\);\s+```/.exec(page) ?? [];
  const { default: changes } = (await import(`data:text/javascript,export default ${encodeURIComponent(text)}`)) as {
    default: { calls: Record<string, CallChanges> };
  };
  expect(Object.keys(changes.calls)).toEqual(wireCallNames);
  for (const name of wireCallNames) expect(changedForm(name, changes.calls[name]!), name).toEqual(assumedForm(name));
  const identity = wireProfile({ ...changes, name: 'same' });
  const answer = { operationId: 'o', status: 'APPROVED' };
  expect(identity.calls.getOperation.decode(answer)).toEqual(assumedProfile.calls.getOperation.decode(answer));
});

test('constants leave the parameters of the caller as they are', () => {
  const parameters = { a: 1 };
  const { calls: own } = wireProfile({
    name: 'p',
    calls: { createOperation: { constants: { 'parameters.kind': 'x' } } },
  });
  const { body } = own.createOperation.encode({
    token: 't',
    idempotencyKey: 'k',
    operation: { name: 'n', parameters },
  });
  expect(body).toMatchObject({ value: { parameters: { a: 1, kind: 'x' } } });
  expect(parameters).toEqual({ a: 1 });
});

test.each<[changes: object, message: RegExp]>([
  [{ calls: { createOperation: { constant: { a: 1 } } } }, /calls\.createOperation\.constant is not known; known are method, path, body, file, constants, .*Did you mean constants/i],
  [{ errors: { status: {} } }, /errors\.status is not known; known are fields, codes, statuses/],
  [{ apiKey: { header: 'X', prefx: 'a' } }, /apiKey\.prefx is not known; known are header, prefix/],
  [{ calls: { getItem: { file: 'f' } } }, /calls\.getItem\.file: the request has none/],
  [{ calls: { createOperation: { request: { partCount: 'n' } } } }, /createOperation\.request: there is no field partCount/],
  [{ limits: { firstPartNumber: 2 } }, /limits\.firstPartNumber/],
  [{ calls: { getOperation: { response: { status: { vals: {} } } } } }, /response\.status.*(is not known; known are name, values, join, as|must be the name of a field)/],
  [{ calls: { getOperation: { request: { operationId: { inn: 'query', name: 'x' } } } } }, /request\.operationId.*(known are in, name|must be the name of a field, or \{in, name\})/],
  [{ errors: { fields: { mesage: 'm' } } }, /errors\.fields\.mesage is not known; known are error, code/],
  [{ calls: { userDetail: { response: { name: { join: ['a', 'b'], name: 'c' } } } } }, /join stands alone/],
  [{ calls: { createOperation: { unfinished: 202 } } }, /unfinished: only completeUpload and completeFileUpload/],
  [{ calls: { createOperation: { request: { nam: 'x' } } } }, /there is no field nam; known are/],
])('%j is refused with the valid names', (changes, message) => {
  expect(() => wireProfile({ name: 'wrong', ...changes })).toThrow(message);
}); // oxfmt-ignore
