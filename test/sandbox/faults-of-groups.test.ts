// @module-tag all
/** Faults and limits of every call, and what they do to answers. */
import { describe, expect, test } from 'vitest';
import { key, processed } from '../support/files.ts';
import type { ItemPage } from '../support/stac.ts';
import { apiKey, startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { onlyInAll } from '../support/tags.ts';

const json = { ...key, 'content-type': 'application/json' };
const urlencoded = { ...key, 'content-type': 'application/x-www-form-urlencoded' };
const arm = (sandbox: TestSandbox, endpoint: string, effect: object, more: object = {}) =>
  sandbox.request('POST', '/sandbox/faults', { body: { endpoint, effect, ...more } });
const firedOf = async (sandbox: TestSandbox) =>
  (await sandbox.request('GET', '/sandbox/faults')).body.faults.map(({ fired }) => fired);

/** A call of each endpoint outside of the external-app group. */
async function callsOf<T>(
  sandbox: TestSandbox,
  of: (answer: Response) => T | Promise<T>,
): Promise<Record<string, () => Promise<T>>> {
  const { fileId } = await processed(sandbox, Buffer.from('0123456789'), 'a.txt', 'UNKNOWN');
  const url = (await sandbox.request('GET', `/public/file/download/url?fileId=${fileId}`, { headers: key })).text;
  const item = ((await sandbox.request('GET', '/public/stac/collections/coastal-optical/items?limit=1', { headers: key })).body as unknown as ItemPage).features[0] as unknown as { assets: Record<string, { href: string }> }; // oxfmt-ignore
  const ask =
    (path: string, init: RequestInit = { headers: key }) =>
    async () =>
      of(await fetch(sandbox.url + path, init));
  const get = (path: string) => ask(path);
  const post = (path: string, body: string, headers: Record<string, string>) =>
    ask(path, { method: 'POST', headers, body });
  const form = (path: string) => async () => {
    const body = new FormData();
    body.append('file', new Blob(['x']), 'x');
    return ask(path, { method: 'POST', headers: key, body })();
  };
  const fetched = (href: string) => async () => of(await fetch(href));
  return {
    'file.upload': form('/public/file/upload'),
    'file.generate': post('/public/file/generateUploadId', 'fileName=a', urlencoded),
    'file.chunk': form('/public/file/uploadChunk'),
    'file.complete': post('/public/file/completeUpload', '{}', json),
    'file.status': get(`/public/file/status/${fileId}`),
    'file.download': fetched(url),
    'stac.browse': get('/public/stac/'),
    'stac.search': post('/public/stac/search', '{}', json),
    'stac.data': fetched(item.assets['data']!.href),
    'stac.preview': fetched(item.assets['rendered_preview']!.href),
    'inference.models': get('/public/inference/models'),
    'inference.run': post('/public/inference/run', 'modelId=x', urlencoded),
    'inference.status': get('/public/inference/status?inferenceId=x'),
    'inference.download': get('/public/inference/download?inferenceJobId=x'),
  };
}

test(
  'every call of every group can be faulted, once, and no other is',
  { tags: [onlyInAll], timeout: 900_000 },
  async () => {
    const sandbox = await startSandbox({ seed: 'demo', isBroken: true });
    const calls = await callsOf(sandbox, async (answer) => {
      await answer.arrayBuffer();
      return answer.status;
    });
    for (const [endpoint, call] of Object.entries(calls)) {
      const usual = await call();
      await arm(sandbox, endpoint, { status: 503, retryAfterSeconds: 7 });
      for (const [other, callOther] of Object.entries(calls))
        if (other !== endpoint) expect(await callOther(), `${other} beside ${endpoint}`).not.toBe(503);
      expect([await call(), await call()], endpoint).toEqual([503, usual]);
      expect(await firedOf(sandbox)).toEqual([1]);
      await sandbox.request('DELETE', '/sandbox/faults');
    }
  },
);

test('a fault of a call that belongs to no launch takes no launch', async () => {
  const sandbox = await startSandbox({ isBroken: true });
  const { launchId } = await sandbox.launch();
  expect(await arm(sandbox, 'file.status', { status: 500 }, { launchId })).toMatchObject({
    status: 400,
    body: { details: [{ path: 'launchId' }] },
  });
});

test('every error row of the interface has its message: by a fault, and by one after the work', async () => {
  const sandbox = await startSandbox({ seed: 'demo', isBroken: true });
  const { token } = await sandbox.launch();
  const app = (method: string, path: string) => async () =>
    (await fetch(`${sandbox.url}/public/external-app${path}`, { method, headers: json })).json();
  const calls = await callsOf(sandbox, (answer) => answer.json());
  const all: Record<string, () => Promise<unknown>> = {
    ...calls,
    'token.renew': app('POST', `/token/${token}/renew`),
    'user.detail': app('GET', `/user/${token}/detail`),
    'operation.create': app('POST', `/operation/${token}`),
    'operation.status': app('GET', `/operation/${token}?operationId=x`),
    'upload.initiate': app('POST', `/file/${token}/upload/initiate`),
    'upload.chunk': app('POST', `/file/${token}/upload/chunk`),
    'upload.complete': app('POST', `/file/${token}/upload/complete`),
  };
  // Section 7, row by row.
  const rows: readonly (readonly [endpoint: string, status: number, message: string])[] = [
    ['file.upload', 401, 'Unauthorized Request'],
    ['file.upload', 400, 'Bad Request'],
    ['file.upload', 403, 'Permission Denied'],
    ['file.upload', 500, 'Internal Server Error'],
    ['file.generate', 500, 'Failed to generate upload ID'],
    ['file.chunk', 500, 'Failed to upload chunk'],
    ['file.complete', 500, 'Failed to complete upload'],
    ['file.status', 404, 'File not found'],
    ['file.status', 500, 'Internal Server Error'],
    ['file.download', 500, 'Internal Server Error'],
    ['inference.models', 401, 'Unauthorized Request'],
    ['inference.models', 500, 'Internal Server Error'],
    ['inference.run', 404, 'File not found'],
    ['inference.run', 500, 'Error occurred while running inference.'],
    ['inference.status', 404, 'Inference Job not found'],
    ['inference.status', 500, 'Internal Server Error'],
    ['inference.download', 400, 'InferenceJob id cannot be null or empty'],
    ['inference.download', 500, 'Error occurred while streaming the file'],
    ['user.detail', 403, 'Authentication failed'],
    ['token.renew', 404, 'Token not found'],
    ['operation.status', 404, 'Operation not found'],
    ['upload.chunk', 404, 'Upload session not found'],
    ['upload.complete', 500, 'Failed to complete upload'],
  ];
  for (const [endpoint, status, message] of rows)
    for (const effect of [{ status }, { status, afterWork: true }]) {
      await arm(sandbox, endpoint, effect);
      expect([endpoint, status, await all[endpoint]!()]).toMatchObject([endpoint, status, { error: message }]);
      await sandbox.request('DELETE', '/sandbox/faults');
    }
});

test('an address with a slash at its end is the same call', async () => {
  const sandbox = await startSandbox({ isBroken: true });
  await arm(sandbox, 'inference.models', { status: 503 });
  expect((await sandbox.request('GET', '/public/inference/models/', { headers: key })).status).toBe(503);
});

test('without its key a call meets no fault and uses up no limit', async () => {
  const sandbox = await startSandbox({ isBroken: true });
  await arm(sandbox, 'inference.models', { status: 503 });
  await sandbox.control('POST', 'rate-limit', { requestsPerMinute: 2 });
  const models = async (headers: Record<string, string>) =>
    (await sandbox.request('GET', '/public/inference/models', { headers })).status;
  for (let i = 0; i < 3; i++) expect(await models({})).toBe(401);
  expect([await models(key), await models(key), await models(key)]).toEqual([503, 200, 429]);
});

describe('what an effect does', () => {
  const detail = (sandbox: TestSandbox, token: string) =>
    fetch(`${sandbox.url}/public/external-app/user/${token}/detail`, { headers: key });

  test('after the work, that status: the operation is there, and the retry finds it', async () => {
    const sandbox = await startSandbox({ isBroken: true });
    const { token } = await sandbox.launch();
    await arm(sandbox, 'operation.create', { status: 500, afterWork: true });
    const create = () =>
      fetch(`${sandbox.url}/public/external-app/operation/${token}`, {
        method: 'POST',
        headers: { ...key, 'content-type': 'application/json', 'idempotency-key': 'k' },
        body: '{"name":"x"}',
      });
    const first = await create();
    expect([first.status, await first.json()]).toEqual([
      500,
      { error: 'Internal Server Error', code: 'internal_error', requestId: first.headers.get('x-request-id') },
    ]);
    const { operations } = await sandbox.control('GET', 'operations');
    expect(operations).toHaveLength(1);
    expect(await (await create()).json()).toMatchObject({ operationId: operations[0]!.operationId });
  });

  test('of a stream too: nothing of the file, and no header of it', async () => {
    const sandbox = await startSandbox({ isBroken: true });
    const { fileId } = await processed(sandbox, Buffer.alloc(300_000, 'x'), 'a.txt', 'UNKNOWN');
    const { text: href } = await sandbox.request('GET', `/public/file/download/url?fileId=${fileId}`, { headers: key });
    await arm(sandbox, 'file.download', { status: 502, afterWork: true });
    const answer = await fetch(href);
    expect(answer.status).toBe(502);
    expect(answer.headers.get('content-disposition')).toBeNull();
    expect(await answer.json()).toMatchObject({ code: 'internal_error' });
    expect((await (await fetch(href)).arrayBuffer()).byteLength).toBe(300_000);
  });

  test('half of the answer is no JSON, and the referee counts it as none', async () => {
    const sandbox = await startSandbox({ isBroken: true });
    const { token, launchId } = await sandbox.launch();
    const whole = await (await detail(sandbox, token)).text();
    await arm(sandbox, 'user.detail', { truncate: true });
    const cut = await (await detail(sandbox, token)).text();
    expect(cut).toBe(whole.slice(0, Math.floor(whole.length / 2)));
    const calls = await sandbox.trace(launchId);
    expect(calls.map(({ delivered }) => delivered)).toEqual([true, false]);
  });

  test('half of a file ends there', async () => {
    const sandbox = await startSandbox({ isBroken: true });
    const { fileId } = await processed(sandbox, Buffer.alloc(300_000, 'x'), 'a.txt', 'UNKNOWN');
    const { text: href } = await sandbox.request('GET', `/public/file/download/url?fileId=${fileId}`, { headers: key });
    await arm(sandbox, 'file.download', { truncate: true });
    expect((await (await fetch(href)).arrayBuffer()).byteLength).toBe(150_000);
  });

  test('a stream whose answer is lost, and one that is slow', async () => {
    const sandbox = await startSandbox({ isBroken: true });
    const { fileId } = await processed(sandbox, Buffer.alloc(2_000_000, 'x'), 'a.txt', 'UNKNOWN');
    const { text: href } = await sandbox.request('GET', `/public/file/download/url?fileId=${fileId}`, { headers: key });
    await arm(sandbox, 'file.download', { dropResponse: true });
    await expect(fetch(href).then((answer) => answer.arrayBuffer())).rejects.toThrow();
    await arm(sandbox, 'file.download', { slowBodyMs: 700 });
    const began = performance.now();
    const answer = await fetch(href);
    const reader = answer.body!.getReader();
    let [bytes, atHalf] = [0, NaN];
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      bytes += (part.value as Uint8Array).length;
      if (bytes <= 1_000_000) atHalf = performance.now();
    }
    expect([bytes, performance.now() - atHalf >= 690]).toEqual([2_000_000, true]);
    expect(performance.now() - began).toBeGreaterThan(690);
  });

  test('another content type, the same body', async () => {
    const sandbox = await startSandbox({ isBroken: true });
    const { token } = await sandbox.launch();
    const whole = await (await detail(sandbox, token)).text();
    await arm(sandbox, 'user.detail', { contentType: 'text/html' });
    const other = await detail(sandbox, token);
    expect([other.headers.get('content-type'), await other.text()]).toEqual(['text/html', whole]);
  });

  test('a slow body: the head at once, the rest later, all of it', async () => {
    const sandbox = await startSandbox({ isBroken: true });
    const { token } = await sandbox.launch();
    const whole = await (await detail(sandbox, token)).text();
    await arm(sandbox, 'user.detail', { slowBodyMs: 400 });
    const answer = await detail(sandbox, token);
    const headAt = performance.now();
    expect(await answer.text()).toBe(whole);
    expect(performance.now() - headAt).toBeGreaterThan(200);
  });
});

describe('a rate limit', () => {
  test('of all calls together: 429 with Retry-After over it, until it is lifted', async () => {
    const sandbox = await startSandbox();
    const { token } = await sandbox.launch();
    expect((await sandbox.request('GET', '/sandbox/rate-limit')).body).toEqual({
      requestsPerMinute: null,
      endpoint: null,
    });
    await sandbox.request('POST', '/sandbox/rate-limit', { body: { requestsPerMinute: 2 } });
    const models = () => fetch(`${sandbox.url}/public/inference/models`, { headers: { 'x-api-key': apiKey } });
    const user = () => fetch(`${sandbox.url}/public/external-app/user/${token}/detail`, { headers: key });
    expect([(await models()).status, (await user()).status]).toEqual([200, 200]);
    const over = await user();
    expect([over.status, (await models()).status]).toEqual([429, 429]);
    expect(Number(over.headers.get('retry-after'))).toBeGreaterThan(50);
    expect(await over.json()).toMatchObject({ code: 'too_many_requests' });
    // The sandbox's own calls are not the platform's.
    expect((await sandbox.request('GET', '/sandbox/rate-limit')).body).toMatchObject({ requestsPerMinute: 2 });
    await sandbox.request('DELETE', '/sandbox/rate-limit');
    expect([(await user()).status, (await user()).status, (await models()).status]).toEqual([200, 200, 200]);
  });

  test('of one endpoint leaves the others alone, and ends with a reset', async () => {
    const sandbox = await startSandbox();
    const set = (body: object) => sandbox.request('POST', '/sandbox/rate-limit', { body });
    expect((await set({ requestsPerMinute: 1, endpoint: 'inference.models' })).body).toEqual({
      requestsPerMinute: 1,
      endpoint: 'inference.models',
    });
    const get = async (path: string) => (await sandbox.request('GET', path, { headers: key })).status;
    expect([await get('/public/inference/models'), await get('/public/inference/models'), await get('/public/stac/')]).toEqual([200, 429, 200]); // oxfmt-ignore
    await sandbox.request('POST', '/sandbox/reset', { body: {} });
    expect(await get('/public/inference/models')).toBe(200);
    for (const wrong of [
      {},
      { requestsPerMinute: 0 },
      { requestsPerMinute: 1.5 },
      { requestsPerMinute: 5, endpoint: 'nothing' },
    ])
      expect((await set(wrong)).status).toBe(400);
  });
});
