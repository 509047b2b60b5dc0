/** Steps 3 and 4 of spec 4.8, spec 3.1, and the contract's rows for them. */
import { expect, test } from 'vitest';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

const minute = 60_000;
const create = (sandbox: TestSandbox, token: string, body: unknown, key?: string) =>
  sandbox.app('POST', `/operation/${token}`, { body, headers: key === undefined ? {} : { 'idempotency-key': key } });
const status = (sandbox: TestSandbox, token: string, operationId: string) =>
  sandbox.app('GET', `/operation/${token}?operationId=${encodeURIComponent(operationId)}`);

test('create answers operationId, REQUESTED, createdAt and expiresAt 30 minutes later', async () => {
  const sandbox = await startSandbox();
  const { token } = await sandbox.launch();
  const { status: code, body } = await create(sandbox, token, {
    name: 'NDVI',
    description: 'd',
    parameters: { a: [1, { b: null }] },
  });
  expect(code).toBe(200);
  expect(Object.keys(body).sort()).toEqual(['createdAt', 'expiresAt', 'operationId', 'status']);
  expect(body.status).toBe('REQUESTED');
  expect(body.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(Date.parse(body.expiresAt) - Date.parse(String(body.createdAt))).toBe(30 * minute);
  expect(body.operationId).toMatch(/^[A-Za-z0-9_-]{22,}$/);
});

test('status answers operationId, status, name and the three times', async () => {
  const sandbox = await startSandbox();
  const { token } = await sandbox.launch();
  const { operationId, createdAt, expiresAt } = (await create(sandbox, token, { name: 'NDVI' })).body;
  const answer = await status(sandbox, token, operationId);
  expect(answer.body).toEqual({
    operationId,
    status: 'REQUESTED',
    name: 'NDVI',
    createdAt,
    updatedAt: createdAt,
    expiresAt,
  });
});

test.each([
  ['no name', {}, 'name'],
  ['empty name', { name: '' }, 'name'],
  ['name of 201 characters', { name: 'x'.repeat(201) }, 'name'],
  ['name that is no text', { name: 7 }, 'name'],
  ['description that is no text', { name: 'x', description: 1 }, 'description'],
  ['parameters that are a list', { name: 'x', parameters: [] }, 'parameters'],
  ['parameters over 64 KiB', { name: 'x', parameters: { p: 'x'.repeat(64 * 1024) } }, 'parameters'],
])('create with %s: 400 with details', async (_name, body, path) => {
  const sandbox = await startSandbox();
  const { token } = await sandbox.launch();
  const answer = await create(sandbox, token, body);
  expect(answer.status).toBe(400);
  expect(answer.body.code).toBe('validation_failed');
  expect(answer.body.details.map((detail: { path: string }) => detail.path)).toContain(path);
});

test.each([600, 3_000, 30_000])('create with parameters nested %d deep: 400 with details, never 500', async (depth) => {
  const sandbox = await startSandbox();
  const { token } = await sandbox.launch();
  const body = `{"name":"x","parameters":{"p":${'['.repeat(depth)}${']'.repeat(depth)}}}`;
  const answer = await sandbox.app('POST', `/operation/${token}`, {
    body,
    headers: { 'content-type': 'application/json' },
  });
  expect([answer.status, answer.body.details?.[0]?.path]).toEqual([400, 'parameters']);
});

test('create accepts a name of 200 characters, whatever they are, and parameters of just 64 KiB', async () => {
  const sandbox = await startSandbox();
  const { token } = await sandbox.launch();
  for (const name of ['x', 'é'.repeat(200), '🛰'.repeat(200)])
    expect((await create(sandbox, token, { name })).status).toBe(200);
  const parameters = { p: 'x'.repeat(64 * 1024 - '{"p":""}'.length) };
  expect((await create(sandbox, token, { name: 'x', parameters })).status).toBe(200);
});

test('Idempotency-Key: the same key, launch and body give the same operation again', async () => {
  const sandbox = await startSandbox();
  const [a, b] = [await sandbox.launch(), await sandbox.launch()];
  const body = { name: 'x', parameters: { a: 1, b: { c: 2, d: 3 } } };
  const first = (await create(sandbox, a.token, body, 'key-1')).body;
  expect(
    (await create(sandbox, a.token, { parameters: { b: { d: 3, c: 2 }, a: 1 }, name: 'x' }, 'key-1')).body,
  ).toEqual(first);
  expect((await create(sandbox, a.token, body, 'key-2')).body.operationId).not.toBe(first.operationId);
  expect((await create(sandbox, b.token, body, 'key-1')).body.operationId).not.toBe(first.operationId);
  expect((await create(sandbox, a.token, body)).body.operationId).not.toBe(
    (await create(sandbox, a.token, body)).body.operationId,
  );
  const other = await create(sandbox, a.token, { name: 'y' }, 'key-1');
  expect([other.status, other.body.code]).toEqual([400, 'idempotency_key_reused']);
});

test('status without operationId, or with two: 400 with details', async () => {
  const sandbox = await startSandbox();
  const { token } = await sandbox.launch();
  for (const query of ['', '?operationId=', '?operationId=a&operationId=b', '?operationId[x]=a']) {
    const answer = await sandbox.app('GET', `/operation/${token}${query}`);
    expect([answer.status, answer.body.details?.[0]?.path], query).toEqual([400, 'operationId']);
  }
});

test('operation unknown, or of another launch: 404 Operation not found', async () => {
  const sandbox = await startSandbox();
  const [a, b] = [await sandbox.launch(), await sandbox.launch()];
  const { operationId } = (await create(sandbox, a.token, { name: 'x' })).body;
  for (const [token, id] of [
    [a.token, 'unknown'],
    [b.token, operationId],
    [a.token, `${operationId} or 1=1`],
  ] as const) {
    expect((await status(sandbox, token, id)).body).toMatchObject({
      error: 'Operation not found',
      code: 'operation_not_found',
    });
    const initiate = await sandbox.app('POST', `/file/${token}/upload/initiate`, {
      body: { operationId: id, fileName: 'a.tif' },
    });
    expect([initiate.status, initiate.body.code]).toEqual([404, 'operation_not_found']);
  }
});

test("the 30 minutes run on the launch's clock; EXPIRED to the millisecond, and never stale", async () => {
  const sandbox = await startSandbox({ machineNow: () => 1_800_000_000_000 });
  const [moved, other] = [await sandbox.launch(), await sandbox.launch()];
  const mine = (await create(sandbox, moved.token, { name: 'x' })).body;
  const theirs = (await create(sandbox, other.token, { name: 'x' })).body;
  await sandbox.advance(30 * minute - 1, moved.launchId);
  expect((await status(sandbox, moved.token, mine.operationId)).body.status).toBe('REQUESTED');
  await sandbox.advance(1, moved.launchId);
  const expired = (await status(sandbox, moved.token, mine.operationId)).body;
  expect(expired).toMatchObject({ status: 'EXPIRED', updatedAt: mine.expiresAt });
  expect((await status(sandbox, other.token, theirs.operationId)).body.status).toBe('REQUESTED');
  const { operations } = await sandbox.control('GET', 'operations');
  expect(operations.map((o: { status: string }) => o.status).sort()).toEqual(['EXPIRED', 'REQUESTED']);
});

test('approve and reject decide once; then 409 operation_not_requested, for an expired one too', async () => {
  const sandbox = await startSandbox();
  const { launchId, token } = await sandbox.launch();
  const decide = (id: string, what: string) => sandbox.request('POST', `/sandbox/operations/${id}/${what}`);
  const ids = await Promise.all(
    [1, 2, 3].map(async (n) => (await create(sandbox, token, { name: `${n}` })).body.operationId),
  );
  expect((await decide(ids[0]!, 'approve')).body).toMatchObject({ operationId: ids[0], launchId, status: 'APPROVED' });
  expect((await decide(ids[1]!, 'reject')).body).toMatchObject({ operationId: ids[1], status: 'REJECTED' });
  await sandbox.advance(30 * minute, launchId);
  for (const id of ids) {
    for (const what of ['approve', 'reject']) {
      const again = await decide(id, what);
      expect([again.status, again.body.code]).toEqual([409, 'operation_not_requested']);
    }
  }
  const seen = await Promise.all(ids.map(async (id) => (await status(sandbox, token, id)).body.status));
  expect(seen).toEqual(['APPROVED', 'REJECTED', 'EXPIRED']);
  expect((await decide('unknown', 'approve')).status).toBe(404);
});

test('an approved operation does not expire', async () => {
  const sandbox = await startSandbox();
  const { launchId, token } = await sandbox.launch();
  const { operationId } = (await create(sandbox, token, { name: 'x' })).body;
  await sandbox.control('POST', `operations/${operationId}/approve`);
  await sandbox.advance(31 * minute, launchId);
  expect((await status(sandbox, token, operationId)).body.status).toBe('APPROVED');
});

test('GET /sandbox/operations: newest first, with launch, app, user and parameters', async () => {
  const sandbox = await startSandbox();
  const { launchId, token } = await sandbox.launch();
  await create(sandbox, token, { name: 'first', parameters: { a: 1 } });
  await create(sandbox, token, { name: 'second' });
  const { operations } = await sandbox.control('GET', 'operations');
  expect(operations.map((o: { name: string }) => o.name)).toEqual(['second', 'first']);
  expect(operations[1]).toMatchObject({
    launchId,
    appId: 'reference-app',
    userId: expect.any(String) as string,
    parameters: { a: 1 },
  });
});
