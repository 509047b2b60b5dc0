/** Sentences of the contract that an audit from outside found broken, each at its call. */
import { describe, expect, test } from 'vitest';
import { apiKey, openUpload, someBytes, startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { rawRequest } from '../support/raw-request.ts';
import { key } from '../support/stac.ts';

describe('the body is checked before the resource and its state', () => {
  type Field = readonly [name: string, value: string | Uint8Array];
  const chunk = (sandbox: TestSandbox, token: string, fields: readonly Field[]) => {
    const body = new FormData();
    for (const [name, value] of fields)
      body.append(name, typeof value === 'string' ? value : new Blob([Uint8Array.from(value)]), ...(typeof value === 'string' ? [] : ['a'])); // oxfmt-ignore
    return sandbox.app('POST', `/file/${token}/upload/chunk`, { body });
  };
  const unknown: readonly Field[] = [['uploadId', 'none'], ['key', 'none'], ['partNumber', '1']]; // oxfmt-ignore

  test.each<[string, readonly Field[], string]>([
    ['an empty file', [['file', new Uint8Array()]], 'file'],
    ['two files', [['file', someBytes(3)], ['file', someBytes(3)]], 'file'], // oxfmt-ignore
    ['a field twice', [['file', someBytes(3)], ['key', 'other']], 'key'], // oxfmt-ignore
  ])('%s of an unknown upload: 400', async (_what, fields, path) => {
    const sandbox = await startSandbox();
    const { token } = await openUpload(sandbox);
    const answer = await chunk(sandbox, token, [...unknown, ...fields]);
    expect([answer.status, answer.body.details?.[0]?.path]).toEqual([400, path]);
  });

  test('a good form of an unknown upload: 404; an empty file out of order: 400 of the file', async () => {
    const sandbox = await startSandbox();
    const upload = await openUpload(sandbox);
    expect((await chunk(sandbox, upload.token, [...unknown, ['file', someBytes(3)]])).status).toBe(404);
    const of = (partNumber: string, bytes: Uint8Array): readonly Field[] => [
      ['uploadId', upload.uploadId],
      ['key', upload.key],
      ['partNumber', partNumber],
      ['file', bytes],
    ];
    const empty = await chunk(sandbox, upload.token, of('5', new Uint8Array()));
    expect([empty.status, empty.body.details?.[0]?.path]).toEqual([400, 'file']);
    expect((await chunk(sandbox, upload.token, of('5', someBytes(3)))).body.code).toBe('chunk_out_of_order');
    // The upload is as good as before.
    expect((await chunk(sandbox, upload.token, of('1', someBytes(3)))).status).toBe(200);
  });

  test('path and method come before the admin key', async () => {
    const sandbox = await startSandbox({ env: { SANDBOX_ADMIN_KEY: 'k'.repeat(40) } });
    expect((await sandbox.request('PUT', '/sandbox/clock')).status).toBe(405);
    expect((await sandbox.request('GET', '/sandbox/nothing')).status).toBe(404);
    expect((await sandbox.request('GET', '/sandbox/clock')).status).toBe(401);
    // Its body is not read either.
    expect((await sandbox.request('POST', '/sandbox/clock', { body: '{' })).status).toBe(401);
  });
});

describe('the catalog', () => {
  const items = (sandbox: TestSandbox, query: string) =>
    sandbox.request('GET', `/public/stac/collections/coastal-optical/items?${query}`, { headers: key });

  test.each(['9007199254740991', '9007199254740992', '99999999999999999999'])(
    'a limit of %s is clamped',
    async (limit) => {
      const sandbox = await startSandbox({ seed: 'demo' });
      expect((await items(sandbox, `limit=${limit}`)).status).toBe(200);
      const body = {
        bbox: [-180, -90, 180, 90],
        collections: ['coastal-optical'],
        datetime: '2000-01-01T00:00:00Z/..',
      };
      const found = await sandbox.request('POST', '/public/stac/search', {
        headers: key,
        body: { ...body, limit: Number(limit) },
      });
      expect([found.status, found.body]).toMatchObject([200, { limit: 1_000 }]);
    },
  );
  test('control: other limits', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    for (const limit of ['0', '-1', '1.5', 'x', ''])
      expect((await items(sandbox, `limit=${limit}`)).status, limit).toBe(400);
  });

  test('a single instant only when not strict', async () => {
    const instant = 'datetime=2024-03-01T10:12:33.417Z';
    expect((await items(await startSandbox({ seed: 'demo' }), instant)).status).toBe(400);
    const lenient = await startSandbox({ seed: 'demo', env: { SANDBOX_STAC_STRICT: 'false' } });
    expect((await items(lenient, instant)).status).toBe(200);
  });

  test('the thumbnail of a collection is an attachment, as other assets', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const { body } = await sandbox.request('GET', '/public/stac/collections/coastal-optical', { headers: key });
    const { assets } = body as unknown as { assets: { thumbnail: { href: string } } };
    const { headers } = await fetch(assets.thumbnail.href);
    expect(headers.get('content-disposition')).toMatch(/^attachment/);
  });
});

describe('a 400 says what was wrong', () => {
  test.each(['/public/stac/collections/%ff', '/public/file/status/%', '/sandbox/launches/%ff'])(
    'the path %s',
    async (path) => {
      const head = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: ${apiKey}\r\nConnection: close\r\n\r\n`;
      const answer = await rawRequest(await startSandbox(), head);
      expect(answer).toMatch(
        /^HTTP\/1\.1 400 [^]*"details":\[{"path":"","message":"the path is not percent-encoded UTF-8"}\]/,
      );
    },
  );

  test('a body that is not gzip, or no UTF-8, or too large', async () => {
    const sandbox = await startSandbox();
    const { token } = await sandbox.launch();
    const create = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
      fetch(`${sandbox.url}/public/external-app/operation/${token}`, {
        method: 'POST',
        headers: { 'x-api-key': apiKey, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : new Blob([Uint8Array.from(body)]),
      }).then(async (answer) => [answer.status, await answer.json()]);
    expect(await create('{"name":"a"}', { 'content-encoding': 'gzip' })).toMatchObject([
      400,
      { details: [{ message: expect.stringContaining('Content-Encoding') as string }] },
    ]);
    const latin1 = Buffer.from('{"name":"\xe9"}', 'latin1');
    expect(await create(latin1)).toMatchObject([400, { code: 'malformed_json' }]);
    expect(await create('{"name":"é"}')).toMatchObject([200, {}]);
    const form = await fetch(`${sandbox.url}/public/file/generateUploadId`, {
      method: 'POST',
      headers: { 'x-api-key': apiKey, 'content-type': 'application/x-www-form-urlencoded' },
      body: new Blob([Buffer.from('fileName=\xff.tif', 'latin1')]),
    });
    expect([form.status, await form.json()]).toMatchObject([400, { code: 'malformed_form' }]);
    const large = JSON.stringify({ name: 'x'.repeat(2 ** 20) });
    expect(await create(large)).toMatchObject([
      expect.any(Number) as number,
      { details: [{ message: 'must have at most 1048576 bytes' }] },
    ]);
  });
});

describe('control calls', () => {
  test('a null inside an effect is absent; the clock takes no other field', async () => {
    const sandbox = await startSandbox();
    const fault = (effect: object) =>
      sandbox.request('POST', '/sandbox/faults', { body: { endpoint: 'user.detail', effect } });
    expect((await fault({ status: 500, retryAfterSeconds: null })).body).toMatchObject({ effect: { status: 500 } });
    expect((await fault({ status: null, reset: true })).status).toBe(400);
    expect((await fault({ status: null })).status).toBe(400);
    const clock = (body: object) => sandbox.request('POST', '/sandbox/clock', { body });
    expect((await clock({ advanceMs: 1, zz: 1 })).status).toBe(400);
    expect((await clock({ advanceMs: 1, launchId: null })).status).toBe(200);
  });

  test.each([
    ...['x-azure-clientip', 'x-azure-socketip', 'x-appengine-user-ip', 'x-vercel-forwarded-for', 'x-sucuri-clientip'],
    ...['x-nf-client-connection-ip', 'cloudfront-viewer-address', 'x-amz-cf-id', 'x-forward-for', 'fly-forwarded-port'],
    ...['x-original-host', 'x-varnish', 'x-bluecoat-via'],
  ])('%s shows a forwarder: 403', async (header) => {
    const sandbox = await startSandbox();
    expect((await sandbox.request('GET', '/sandbox/clock', { headers: { [header]: '203.0.113.7' } })).status).toBe(403);
  });
});
