/** The contract's "Sandbox control": its calls and its guards. */
import { testFolder } from '../support/folders.ts';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import {
  adminKey,
  apiKey,
  openUpload,
  sendChunk,
  sendComplete,
  someBytes,
  startSandbox,
  type TestSandbox,
} from '../support/sandbox.ts';
import { onlyInAll } from '../support/tags.ts';

/** fetch sets Host, Origin and Sec-Fetch-Site by itself: these requests are made by hand. */
function bareRequest(
  sandbox: TestSandbox,
  method: string,
  path: string,
  headers: Record<string, string>,
  body = '',
): Promise<{ status: number; body: { code?: string } }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      `${sandbox.url}${path}`,
      { method, headers: { 'content-length': String(Buffer.byteLength(body)), ...headers } },
      (res) => {
        let text = '';
        res.setEncoding('utf8').on('data', (part: string) => (text += part));
        res.on('end', () =>
          resolve({ status: res.statusCode ?? 0, body: JSON.parse(text || '{}') as { code?: string } }),
        );
      },
    );
    sent.on('error', reject).end(body);
  });
}

describe('guards', () => {
  test.each(['127.0.0.1', 'localhost', 'localhost:4010', '[::1]:4010', '127.0.0.2', 'sandbox.localhost'])(
    'Host %s is served',
    async (host) => {
      expect((await bareRequest(await startSandbox(), 'GET', '/sandbox/apps', { host })).status).toBe(200);
    },
  );

  test.each(['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', '10.0.0.1', '0.0.0.0'])(
    'Host %j: 421',
    async (host) => {
      const answer = await bareRequest(await startSandbox(), 'GET', '/sandbox/apps', { host });
      expect([answer.status, answer.body.code]).toEqual([421, 'misdirected_request']);
    },
  );

  test('the configured Host is served', async () => {
    const sandbox = await startSandbox({
      env: { PUBLIC_URL: 'https://sandbox.example.org', SANDBOX_ADMIN_KEY: adminKey },
    });
    expect(
      (await bareRequest(sandbox, 'GET', '/sandbox/apps', { host: 'sandbox.example.org', 'x-admin-key': adminKey }))
        .status,
    ).toBe(200);
    expect(
      (
        await bareRequest(sandbox, 'POST', '/sandbox/launches', {
          host: 'sandbox.example.org',
          origin: 'https://sandbox.example.org',
          'x-admin-key': adminKey,
        })
      ).status,
    ).toBe(201);
  });

  test.each([
    [{ origin: 'http://evil.example' }],
    [{ origin: 'null' }],
    [{ origin: 'http://127.0.0.1:1' }],
    [{ 'sec-fetch-site': 'cross-site' }],
    [{ 'sec-fetch-site': 'same-site' }],
  ])('a page elsewhere %j may neither read nor change: 403', async (headers) => {
    const sandbox = await startSandbox();
    for (const [method, path] of [
      ['GET', '/sandbox/operations'],
      ['POST', '/sandbox/launches'],
      ['POST', '/sandbox/operations/x/approve'],
      ['DELETE', '/sandbox/faults'],
    ] as const) {
      const answer = await bareRequest(sandbox, method, path, headers);
      expect([answer.status, answer.body.code]).toEqual([403, 'foreign_origin']);
    }
    // The same for the platform's calls that change something.
    const { token } = await sandbox.launch();
    const create = await bareRequest(
      sandbox,
      'POST',
      `/public/external-app/operation/${token}`,
      { ...(headers as unknown as Record<string, string>), 'x-api-key': apiKey, 'content-type': 'application/json' },
      '{"name":"x"}',
    );
    expect(create.status).toBe(403);
  });

  test("the sandbox's own pages, and no page at all, may", async () => {
    const sandbox = await startSandbox();
    for (const headers of [
      { origin: sandbox.url },
      { 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'none' },
    ]) {
      expect(
        (await bareRequest(sandbox, 'POST', '/sandbox/launches', headers as unknown as Record<string, string>)).status,
      ).toBe(201);
    }
  });

  test('a body is application/json: another type is 415', async () => {
    const sandbox = await startSandbox();
    for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
      expect((await bareRequest(sandbox, 'POST', '/sandbox/launches', { 'content-type': type }, '{}')).status).toBe(
        415,
      );
    }
  });

  test('with SANDBOX_ADMIN_KEY, X-ADMIN-KEY is required: else 401', async () => {
    const sandbox = await startSandbox({ env: { SANDBOX_ADMIN_KEY: adminKey } });
    for (const headers of [{}, { 'x-admin-key': 'wrong' }]) {
      const answer = await sandbox.request('GET', '/sandbox/apps', { headers: headers });
      expect([answer.status, answer.body.code]).toEqual([401, 'admin_key_required']);
    }
    expect((await sandbox.request('GET', '/sandbox/apps', { headers: { 'x-admin-key': adminKey } })).status).toBe(200);
    expect((await sandbox.request('GET', '/health')).status).toBe(200);
  });

  test('wrong keys are counted, and the right one still answers', async () => {
    const sandbox = await startSandbox({ env: { SANDBOX_ADMIN_KEY: adminKey } });
    const get = async (key: string) =>
      (await sandbox.request('GET', '/sandbox/apps', { headers: { 'x-admin-key': key } })).status;
    const statuses = [];
    for (let i = 0; i < 22; i++) statuses.push(await get(`wrong ${i}`));
    expect(statuses).toEqual([...Array<number>(20).fill(401), 429, 429]);
    expect(await get(adminKey)).toBe(200);
    // A call without a key guesses nothing.
    expect((await sandbox.request('GET', '/sandbox/apps')).status).toBe(401);
  });

  test('a request that names two hosts is misdirected', async () => {
    const sandbox = await startSandbox();
    const { host, port } = new URL(sandbox.url);
    for (const path of ['/sandbox/apps', '/', '/catalogs']) {
      const socket = connect(Number(port), '127.0.0.1');
      socket.end(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nHost: evil.example\r\nConnection: close\r\n\r\n`);
      let answer = '';
      for await (const part of socket) answer += String(part);
      expect(answer, path).toMatch(/^HTTP\/1\.1 421 /);
    }
  });

  test('wrong method 405 with Allow; unknown path 404', async () => {
    const sandbox = await startSandbox();
    const answer = await sandbox.request('PUT', '/sandbox/apps');
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST']);
    expect((await sandbox.request('GET', '/sandbox/nothing')).status).toBe(404);
  });
});

describe('apps, users, keys', () => {
  test('there are always two users and the reference app at its default address', async () => {
    const sandbox = await startSandbox();
    expect((await sandbox.control('GET', 'users')).users).toHaveLength(2);
    expect((await sandbox.control('GET', 'apps')).apps).toMatchObject([
      { id: 'reference-app', launchUrl: 'http://127.0.0.1:3000/launch', launchMode: 'query' },
    ]);
  });

  test('an app is registered by its manifest, and launched', async () => {
    const sandbox = await startSandbox();
    const manifest = {
      id: 'mine',
      name: 'Mine',
      description: 'd',
      launchUrl: 'https://app.example.org/start?x=1',
      launchMode: 'form_post',
      icon: 'data:image/png;base64,AA==',
    };
    expect((await sandbox.request('POST', '/sandbox/apps', { body: manifest })).body).toEqual(manifest);
    expect((await sandbox.control('GET', 'apps')).apps).toContainEqual(manifest);
    const posted = await sandbox.launch({ appId: 'mine' });
    expect(posted.launchUrl).toBe(manifest.launchUrl);
    await sandbox.control('POST', 'apps', { ...manifest, launchMode: 'query' });
    const queried = await sandbox.launch({ appId: 'mine' });
    expect(queried.launchUrl).toBe(`https://app.example.org/start?x=1&token=${queried.token}`);
  });

  test.each([
    [{ launchUrl: 'ftp://x/' }, 'launchUrl'],
    [{ launchUrl: 'javascript:alert(1)' }, 'launchUrl'],
    [{ launchUrl: 'https://user:pass@x/' }, 'launchUrl'],
    [{ launchUrl: '/launch' }, 'launchUrl'],
    [{ launchMode: 'post' }, 'launchMode'],
    [{ icon: 'https://x/icon.png' }, 'icon'],
    [{ icon: 'data:text/html,x' }, 'icon'],
    [{ id: 'a b' }, 'id'],
    [{ name: '' }, 'name'],
    [{ name: undefined }, 'name'],
  ])('a manifest with %j: 400 with details', async (change, path) => {
    const sandbox = await startSandbox();
    const answer = await sandbox.request('POST', '/sandbox/apps', {
      body: { id: 'x', name: 'X', launchUrl: 'https://x/', ...change },
    });
    expect([answer.status, answer.body.details?.[0]?.path]).toEqual([400, path]);
  });

  test('a user is registered and launches', async () => {
    const sandbox = await startSandbox();
    const { id } = await sandbox.control('POST', 'users', { email: 'n@example.org', name: 'New', organization: 'O' });
    const { token } = await sandbox.launch({ userId: id });
    expect((await sandbox.app('GET', `/user/${token}/detail`)).body).toEqual({
      id,
      email: 'n@example.org',
      name: 'New',
      organization: 'O',
    });
    expect((await sandbox.request('POST', '/sandbox/users', { body: { email: 'x', name: 'New' } })).status).toBe(400);
  });

  test('a key is shown once, and revoked', async () => {
    const sandbox = await startSandbox();
    const { id, apiKey: made } = await sandbox.control('POST', 'keys', { permissions: ['external_app'] });
    const { keys } = await sandbox.control('GET', 'keys');
    expect(keys).toContainEqual(expect.objectContaining({ id, permissions: ['external_app'] }));
    expect(JSON.stringify(keys)).not.toContain(made);
    const { token } = await sandbox.launch();
    const use = () => sandbox.app('GET', `/user/${token}/detail`, { headers: { 'x-api-key': made } });
    expect((await use()).status).toBe(200);
    expect((await sandbox.request('DELETE', `/sandbox/keys/${id}`)).status).toBe(204);
    expect((await use()).status).toBe(403);
    expect((await sandbox.request('DELETE', `/sandbox/keys/${id}`)).status).toBe(404);
    expect((await sandbox.request('POST', '/sandbox/keys', { body: { permissions: ['root'] } })).status).toBe(400);
  });
});

describe('launches', () => {
  test('by ids, or the first app and user; unknown ids 404, another policy 400', async () => {
    const sandbox = await startSandbox();
    const { launchId, token, expiresAt } = await sandbox.launch({ renewPolicy: 'rotate', userId: 'bruno' });
    const view = await sandbox.control('GET', `launches/${launchId}`);
    expect(view).toEqual({
      launchId,
      appId: 'reference-app',
      userId: 'bruno',
      renewPolicy: 'rotate',
      createdAt: expect.any(String) as string,
      expiresAt,
      operations: [],
      uploads: [],
    });
    expect(JSON.stringify(view)).not.toContain(token);
    for (const body of [{ appId: 'none' }, { userId: 'none' }])
      expect((await sandbox.request('POST', '/sandbox/launches', { body })).status).toBe(404);
    expect((await sandbox.request('POST', '/sandbox/launches', { body: { renewPolicy: 'never' } })).status).toBe(400);
    expect((await sandbox.request('GET', '/sandbox/launches/none')).status).toBe(404);
    expect((await sandbox.request('POST', `/sandbox/launches/${launchId}/revoke`)).status).toBe(204);
  });
});

describe('clock', () => {
  test('answers now; moves all, or one launch; offsets add up', async () => {
    const sandbox = await startSandbox({ machineNow: () => 1_800_000_000_000 });
    const at = (ms: number) => ({ now: new Date(1_800_000_000_000 + ms).toISOString() });
    const { launchId } = await sandbox.launch();
    expect(await sandbox.control('GET', 'clock')).toEqual(at(0));
    expect(await sandbox.control('POST', 'clock', { advanceMs: 1000 })).toEqual(at(1000));
    expect(await sandbox.control('POST', 'clock', { advanceMs: 500, launchId })).toEqual(at(1500));
    expect(await sandbox.control('POST', 'clock', { advanceMs: 0 })).toEqual(at(1000));
    expect(await sandbox.control('GET', 'clock')).toEqual(at(1000));
  });

  test('begins at SANDBOX_CLOCK, in the past too; goes on after a restart, and begins again after a reset', async () => {
    let machineNow = 1_800_000_000_000;
    const dataDir = await testFolder();
    const options = { dataDir, machineNow: () => machineNow, env: { SANDBOX_CLOCK: '2020-02-29T01:00:00+01:00' } };
    const first = await startSandbox(options);
    expect(await first.control('GET', 'clock')).toEqual({ now: '2020-02-29T00:00:00.000Z' });
    const { token } = await first.launch();
    expect((await first.app('GET', `/user/${token}/detail`)).status).toBe(200);
    await first.control('POST', 'clock', { advanceMs: 1_000 });
    await first.close();
    machineNow += 60_000;
    const second = await startSandbox(options);
    expect(await second.control('GET', 'clock')).toEqual({ now: '2020-02-29T00:01:01.000Z' });
    await second.control('POST', 'reset');
    expect(await second.control('GET', 'clock')).toEqual({ now: '2020-02-29T00:00:00.000Z' });
    await second.close();
    // A folder in use keeps its time.
    const used = await testFolder();
    const before = await startSandbox({ dataDir: used, machineNow: () => machineNow });
    await before.launch();
    await before.close();
    const after = await startSandbox({ ...options, dataDir: used });
    expect(await after.control('GET', 'clock')).toEqual({ now: new Date(machineNow).toISOString() });
  });

  test.each([{ advanceMs: -1 }, { advanceMs: 1.5 }, { advanceMs: '1' }, {}, { advanceMs: 1e300 }, { advanceMs: null }])(
    '%j: 400',
    async (body) => {
      const sandbox = await startSandbox();
      expect((await sandbox.request('POST', '/sandbox/clock', { body })).status).toBe(400);
      expect(
        (await sandbox.request('POST', '/sandbox/clock', { body: { advanceMs: 1, launchId: 'none' } })).status,
      ).toBe(404);
    },
  );
});

describe('faults', () => {
  test('fire `times` times after `after` calls, on their endpoint and launch, and are counted', async () => {
    const sandbox = await startSandbox();
    const [mine, other] = [await sandbox.launch(), await sandbox.launch()];
    const { id } = await sandbox.control('POST', 'faults', {
      launchId: mine.launchId,
      endpoint: 'user.detail',
      after: 1,
      times: 2,
      effect: { status: 503, retryAfterSeconds: 7 },
    });
    const use = async (token: string) => {
      const answer = await sandbox.app('GET', `/user/${token}/detail`);
      return [answer.status, answer.headers.get('retry-after')];
    };
    expect(await use(other.token)).toEqual([200, null]);
    expect([await use(mine.token), await use(mine.token), await use(mine.token), await use(mine.token)]).toEqual([
      [200, null],
      [503, '7'],
      [503, '7'],
      [200, null],
    ]);
    expect((await sandbox.control('GET', 'faults')).faults).toMatchObject([{ id, fired: 2, times: 2, after: 1 }]);
    expect((await sandbox.request('DELETE', '/sandbox/faults')).status).toBe(204);
    expect((await sandbox.control('GET', 'faults')).faults).toEqual([]);
  });

  test('status comes before work; dropResponse after it; reset before it', async () => {
    const sandbox = await startSandbox();
    const { launchId, token } = await sandbox.launch();
    const create = () => sandbox.app('POST', `/operation/${token}`, { body: { name: 'x' } });
    const count = async () => (await sandbox.control('GET', `launches/${launchId}`)).operations.length;
    await sandbox.control('POST', 'faults', { endpoint: 'operation.create', effect: { status: 500 } });
    const failed = await create();
    expect(failed.body).toMatchObject({ error: 'Internal Server Error' });
    expect(await count()).toBe(0);
    await sandbox.control('POST', 'faults', { endpoint: 'operation.create', effect: { reset: true } });
    await expect(create()).rejects.toThrow();
    expect(await count()).toBe(0);
    await sandbox.control('POST', 'faults', { endpoint: 'operation.create', effect: { dropResponse: true } });
    await expect(create()).rejects.toThrow();
    expect(await count()).toBe(1);
    expect((await sandbox.trace(launchId)).map(({ status, delivered }) => [status, delivered])).toEqual([
      [500, true],
      [null, false],
      [200, false],
    ]);
  });

  test('reset of a chunk cuts it in its middle, and leaves no trace of it', async () => {
    const sandbox = await startSandbox();
    const upload = await openUpload(sandbox);
    for (const size of [100, 3_000_000]) {
      await sandbox.control('POST', 'faults', { endpoint: 'upload.chunk', effect: { reset: true } });
      await expect(sendChunk(sandbox, upload, 1, someBytes(size))).rejects.toThrow();
    }
    expect((await sandbox.control('GET', `launches/${upload.launchId}`)).uploads[0]!.parts).toEqual([]);
    expect((await sendChunk(sandbox, upload, 1, someBytes(10))).status).toBe(200);
    expect((await sandbox.control('GET', 'faults')).faults.map((fault: { fired: number }) => fault.fired)).toEqual([
      1, 1,
    ]);
  });

  test('delayMs delays the work', async () => {
    const sandbox = await startSandbox();
    const { launchId, token } = await sandbox.launch();
    await sandbox.control('POST', 'faults', { endpoint: 'user.detail', effect: { delayMs: 300 } });
    expect((await sandbox.app('GET', `/user/${token}/detail`)).status).toBe(200);
    const { calls } = await sandbox.control('GET', `launches/${launchId}/trace`);
    expect(calls[0]!.durationMs).toBeGreaterThan(250);
  });

  test.each([
    [{ endpoint: 'nope', effect: { reset: true } }],
    [{ endpoint: 'user.detail' }],
    [{ endpoint: 'user.detail', effect: {} }],
    [{ endpoint: 'user.detail', effect: { status: 200 } }],
    [{ endpoint: 'user.detail', effect: { reset: false } }],
    [{ endpoint: 'user.detail', effect: { delayMs: -1 } }],
    [{ endpoint: 'user.detail', effect: { reset: true, delayMs: 1 } }],
    [{ endpoint: 'user.detail', effect: { reset: true }, times: 0 }],
    [{ endpoint: 'user.detail', effect: { reset: true }, after: -1 }],
    [{ endpoint: 'user.detail', effect: { reset: true }, aftr: 1 }],
  ])('%j: 400', async (body) => {
    const sandbox = await startSandbox();
    expect((await sandbox.request('POST', '/sandbox/faults', { body })).status).toBe(400);
  });
});

test('trace: every call with its times, sizes and outcome, and no secret', async () => {
  const sandbox = await startSandbox();
  const upload = await openUpload(sandbox);
  await sendChunk(sandbox, upload, 1, someBytes(100));
  await sendComplete(sandbox, upload, 100);
  // An app that puts a secret where it does not belong.
  await sandbox.app('GET', `/operation/${upload.token}?operationId=${upload.token}${apiKey}`);
  const { calls } = await sandbox.control('GET', `launches/${upload.launchId}/trace`);
  expect(calls.map((call: { endpoint: string }) => call.endpoint)).toEqual([
    'operation.create',
    'upload.initiate',
    'upload.chunk',
    'upload.complete',
    'operation.status',
  ]);
  for (const call of calls) {
    expect(Object.keys(call)).toEqual(
      expect.arrayContaining([
        'at',
        'endpoint',
        'method',
        'status',
        'durationMs',
        'delivered',
        'requestBytes',
        'responseBytes',
        'detail',
      ]),
    );
  }
  expect(calls[2]).toMatchObject({
    method: 'POST',
    status: 200,
    delivered: true,
    detail: { partNumber: 1, size: 100, uploadId: upload.uploadId },
  });
  expect(calls[2]!.requestBytes).toBeGreaterThan(100);
  expect(JSON.stringify(calls)).not.toContain(upload.token);
  expect(JSON.stringify(calls)).not.toContain(apiKey);
});

test('reset: launches, files, faults, trace and clock are as seeded; keys stay', async () => {
  const sandbox = await startSandbox();
  const upload = await openUpload(sandbox);
  await sendChunk(sandbox, upload, 1, someBytes(100));
  const { fileId } = (await sendComplete(sandbox, upload, 100)).body;
  const { apiKey: made } = await sandbox.control('POST', 'keys', { permissions: ['files_admin'] });
  await sandbox.control('POST', 'faults', { endpoint: 'user.detail', effect: { reset: true } });
  await sandbox.advance(3_600_000);
  expect((await sandbox.request('POST', '/sandbox/reset')).status).toBe(200);
  expect((await sandbox.request('GET', `/sandbox/launches/${upload.launchId}`)).status).toBe(404);
  expect((await sandbox.app('GET', `/user/${upload.token}/detail`)).status).toBe(404);
  expect(
    (await sandbox.request('GET', `/public/file/status/${fileId}`, { headers: { 'x-api-key': made } })).status,
  ).toBe(404);
  expect((await sandbox.control('GET', 'operations')).operations).toEqual([]);
  expect((await sandbox.control('GET', 'faults')).faults).toEqual([]);
  expect(Math.abs(Date.parse((await sandbox.control('GET', 'clock')).now) - Date.now())).toBeLessThan(60_000);
  const again = await openUpload(sandbox);
  expect((await sendChunk(sandbox, again, 1, someBytes(100))).status).toBe(200);
});

test('health: ok', async () => {
  expect((await (await startSandbox()).request('GET', '/health')).body).toEqual({ status: 'ok' });
});

test('lists of operations have the newest thousand', { tags: [onlyInAll] }, async () => {
  const sandbox = await startSandbox();
  const { launchId, token } = await sandbox.launch();
  for (let i = 0; i < 1_002; i++)
    await sandbox.app('POST', `/operation/${token}`, { body: { name: `operation ${i}` } });
  for (const path of ['operations', `launches/${launchId}`]) {
    const { operations } = await sandbox.control('GET', path);
    expect(operations.map(({ name }: { name: string }) => name)).toEqual(
      Array.from({ length: 1_000 }, (_, i) => `operation ${1_001 - i}`),
    );
  }
});
