import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  createPlatformClient,
  PlatformError,
  type IdentityToken,
  type PlatformClientOptions,
} from '../../src/platform-client/index.ts';
import { assumedProfile, type Call } from '../../src/contract/index.ts';
import { createHttpTransport } from '../../src/platform-client/http-transport.ts';
import { parseRetryAfter } from '../../src/platform-client/retry-policy.ts';
import { testFolder } from '../support/folders.ts';
import { json, startScriptedServer, type ScriptedAnswer } from '../support/scripted-server.ts';

const user = { id: 'u', email: 'e@example.org', name: 'N', organization: 'O' };
const ok = json(200, user);
const fileAnswer = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbytes';
const quick = { minDelayMs: 1, maxDelayMs: 5 };
const secretKey = 'the-api-key/+=';
const secretToken = 'the identity token/+=';

async function start(
  answers: ScriptedAnswer[],
  options: Partial<PlatformClientOptions> = {},
  first: Partial<IdentityToken> = {},
) {
  const server = await startScriptedServer(...answers);
  const client = createPlatformClient({ baseUrl: server.url, apiKey: secretKey, retry: quick, ...options });
  const held = { value: { token: secretToken, expiresAtMs: null, ...first } };
  const calls = client.launch({ read: async () => held.value, write: async (token) => void (held.value = token) });
  const paths = () =>
    server.requests.map((request) =>
      decodeURIComponent(request.split(' ').slice(0, 2).join(' ').replace('/public/external-app', '')),
    );
  return { server, client, calls, held, paths };
}

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => {
      throw new Error('it succeeded');
    },
    (error: unknown) => error as PlatformError,
  );

describe('repeats what may get better', () => {
  test.each<[string, ScriptedAnswer]>([
    ['500', json(500, { error: 'x' })],
    ['502 with a page', 'HTTP/1.1 502 X\r\nContent-Length: 6\r\nContent-Type: text/html\r\n\r\n<html>'],
    ['503', json(503, {})],
    ['429', json(429, {})],
    ['a cut connection', 'cut'],
  ])('%s', async (_name, answer) => {
    const { calls, server } = await start([answer, answer, ok]);
    expect(await calls.userDetail()).toEqual(user);
    expect(server.requests).toHaveLength(3);
  });

  test('a poll is not repeated', async () => {
    const { calls, client, server } = await start([json(503, {}), json(503, {})]);
    expect(await failure(calls.getOperation({ operationId: 'o' }))).toMatchObject({ name: 'PlatformError' });
    expect(await failure(client.getInferenceStatus('i'))).toMatchObject({ name: 'PlatformError' });
    expect(server.requests).toHaveLength(2);
  });

  test('the error of a caller that gives up has the last response as its cause', async () => {
    const { calls } = await start([json(429, {}, { 'Retry-After': '60' }), ok]);
    const signal = AbortSignal.timeout(300);
    const error = (await failure(calls.userDetail({ signal }))) as Error;
    expect(error.name).toBe('TimeoutError');
    expect(error.cause).toMatchObject({ platformStatus: 429, retryAfterMs: 60_000 });
  });

  test('a connection that nobody takes', async () => {
    const client = createPlatformClient({
      baseUrl: 'http://127.0.0.1:1',
      apiKey: 'k',
      retry: { ...quick, retries: 2 },
    });
    const calls = client.launch({ read: async () => ({ token: 't', expiresAtMs: null }), write: async () => {} });
    expect(await failure(calls.userDetail())).toMatchObject({
      code: 'connection_failed',
      endpoint: 'user.detail',
      isTransient: true,
    });
  });

  test('a timeout', async () => {
    const { calls, server } = await start([{ afterMs: 60_000, answer: ok }, ok], { timeoutMs: 2_000 });
    expect(await calls.userDetail()).toEqual(user);
    expect(server.requests).toHaveLength(2);
  });

  test('a chunk, whose bytes are sent whole again', async () => {
    const { calls, server } = await start(['cut', json(500, {}), json(200, {})]);
    await calls.uploadChunk({
      uploadId: 'u',
      key: 'k',
      partNumber: 1,
      content: {
        sizeBytes: 5,
        open: async function* () {
          yield Buffer.from('bytes');
        },
      },
    });
    expect(server.requests.map((request) => request.includes('\r\n\r\nbytes\r\n'))).toEqual([true, true, true]);
  });

  test('a chunk whose answer does not come; one whose bytes trickle for longer than that is waited for', async () => {
    const timeouts = { timeoutMs: 60_000, chunkTimeoutMs: 2_000 };
    const chunk = (pauseMs: number) => ({
      uploadId: 'u',
      key: 'k',
      partNumber: 1,
      content: {
        sizeBytes: 5,
        open: async function* () {
          for (const letter of 'bytes') {
            await sleep(pauseMs);
            yield Buffer.from(letter);
          }
        },
      },
    });
    const silent = await start([{ afterMs: 60_000, answer: json(200, {}) }, json(200, {})], timeouts);
    await silent.calls.uploadChunk(chunk(0));
    expect(silent.server.requests).toHaveLength(2);
    const slow = await start([json(200, {})], timeouts);
    await slow.calls.uploadChunk(chunk(600));
    expect(slow.server.requests).toHaveLength(1);
  });

  test('as often as the policy says, and then tells the last failure', async () => {
    const { calls, server } = await start([json(500, { error: 'broken', code: 'internal_error', requestId: 'r-1' })], {
      retry: { ...quick, retries: 3 },
    });
    expect(await failure(calls.userDetail())).toMatchObject({
      code: 'internal_error',
      platformStatus: 500,
      requestId: 'r-1',
      endpoint: 'user.detail',
    });
    expect(server.requests).toHaveLength(4);
  });
});

describe('never repeats', () => {
  test.each([400, 401, 404, 405, 409, 413, 415, 422])('%d', async (status) => {
    const { calls, server } = await start([
      json(status, { error: 'no', code: 'validation_failed', details: [{ path: 'a.b', message: 'wrong' }] }),
    ]);
    expect(await failure(calls.userDetail())).toMatchObject({
      platformStatus: status,
      code: 'validation_failed',
      details: [{ path: 'a.b', message: 'wrong' }],
    });
    expect(server.requests).toHaveLength(1);
  });

  test.each([301, 302, 303, 307, 308])(
    'a redirect %d: it is not followed, and the key goes nowhere',
    async (status) => {
      const elsewhere = await startScriptedServer(ok);
      const { calls, server } = await start([
        `HTTP/1.1 ${status} X\r\nLocation: ${elsewhere.url}/\r\nContent-Length: 0\r\n\r\n`,
      ]);
      expect(await failure(calls.userDetail())).toMatchObject({ code: 'redirect_refused', platformStatus: status });
      expect([server.requests.length, elsewhere.requests.length]).toEqual([1, 0]);
    },
  );

  test('a 2xx that cannot be read: the error names the path and the type, and no value', async () => {
    const { calls, server } = await start([json(200, { status: 'REQUESTED', operationId: {}, secret: 'eyJ-secret' })]);
    const error = await failure(calls.createOperation({ idempotencyKey: 'k', operation: { name: 'x' } }));
    expect(error).toMatchObject({ code: 'unexpected_answer' });
    expect((error as Error).message).toMatch(
      /answered 200 with a body that the wire profile cannot read: operationId must be string/,
    );
    expect((error as Error).message).not.toContain('secret');
    expect(server.requests).toHaveLength(1);
  });

  test('a status word that the profile lacks: the error names the words that it has, and not this one', async () => {
    const { calls } = await start([json(200, { operationId: 'o', status: 'denied' })]);
    const { message } = (await failure(calls.getOperation({ operationId: 'o' }))) as Error;
    expect(message).toContain('status is none of REQUESTED, APPROVED, REJECTED, EXPIRED');
    expect(message).not.toContain('denied');
  });

  test("an error of a profile's own decoder says so", async () => {
    const decode = (body: unknown) => ('id' in (body as { token: object }).token ? {} : {}) as never;
    const profile = {
      ...assumedProfile,
      calls: { ...assumedProfile.calls, userDetail: { ...assumedProfile.calls.userDetail, decode } },
    };
    const { calls } = await start([json(200, { token: 'eyJ-secret' })], { profile });
    const error = (await failure(calls.userDetail())) as Error;
    expect(error.message).toMatch(/answered 200 and the decoder of the wire profile threw TypeError/);
    expect(error.message).not.toContain('secret');
  });
});

describe("an answer that was cut on its way, or is not the platform's", () => {
  const whole = JSON.stringify({ operationId: 'op-1' });
  test.each([
    [
      'JSON that ends too early',
      `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n${whole.slice(0, 9)}`,
    ],
    [
      'a page of something in between',
      'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n<html>hi</html>',
    ],
    ['no body at all', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'],
  ])('%s: asked again', async (_what, broken) => {
    const { calls, server } = await start([broken, json(200, { operationId: 'op-1' })]);
    expect(await calls.createOperation({ idempotencyKey: 'k', operation: { name: 'x' } })).toMatchObject({
      operationId: 'op-1',
    });
    expect(server.requests).toHaveLength(2);
  });
});

describe('Retry-After', () => {
  test('is waited for', async () => {
    const { calls } = await start([json(503, {}, { 'Retry-After': '1' }), ok]);
    const began = performance.now();
    await calls.userDetail();
    expect(performance.now() - began).toBeGreaterThanOrEqual(990);
  });

  test('longer than the policy allows: the error is thrown and tells', async () => {
    const { calls, server } = await start([json(429, {}, { 'Retry-After': '3600' })]);
    expect(await failure(calls.userDetail())).toMatchObject({ retryAfterMs: 3_600_000 });
    expect(server.requests).toHaveLength(1);
  });

  test.each([
    ['7', 7000],
    ['0', 0],
    ['Thu, 01 Jan 1970 00:01:00 GMT', 50_000],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
    ['soon', null],
    ['-1', null],
    [undefined, null],
  ])('%j reads as %j ms', (header, expected) =>
    expect(parseRetryAfter(header, 'Thu, 01 Jan 1970 00:00:10 GMT')).toBe(expected),
  );
});

describe('abort', () => {
  test("rejects with the signal's reason, while a call is under way and while one waits", async () => {
    for (const answer of [{ afterMs: 60_000, answer: ok }, json(503, {}, { 'Retry-After': '60' })]) {
      const { calls } = await start([answer]);
      const abort = new AbortController();
      const called = failure(calls.userDetail({ signal: abort.signal }));
      setTimeout(() => abort.abort(new Error('enough')), 100);
      expect((await called).message).toBe('enough');
    }
  });

  test('before a call sends nothing', async () => {
    const { calls, server } = await start([ok]);
    const signal = AbortSignal.abort(new Error('enough'));
    const content = { sizeBytes: 1, open: async function* () {} };
    for (const called of [
      calls.userDetail({ signal }),
      calls.getOperation({ operationId: 'op' }, { signal }),
      calls.uploadChunk({ uploadId: 'upload', key: 'key', partNumber: 1, content }, { signal }),
    ])
      expect((await failure(called)).message).toBe('enough');
    expect(server.requests).toEqual([]);
  });
});

describe('the identity token', () => {
  const expired = json(403, { error: 'Token expired', code: 'token_expired' });
  const revoked = json(403, { error: 'Token revoked', code: 'token_revoked' });
  const renewedTo = (token: string) => json(200, { token, expiresAt: new Date(Date.now() + 3_600_000).toISOString() });

  test('is renewed ahead of its end, before the call', async () => {
    const { calls, paths, held } = await start(
      [renewedTo('second'), ok],
      {},
      { token: 'first', expiresAtMs: Date.now() + 60_000 },
    );
    await calls.userDetail();
    expect(paths()).toEqual(['POST /token/first/renew', 'GET /user/second/detail']);
    expect(held.value.token).toBe('second');
  });

  test('is left alone while it has time', async () => {
    const { calls, paths } = await start([ok], {}, { token: 'first', expiresAtMs: Date.now() + 1_800_000 });
    await calls.userDetail();
    expect(paths()).toEqual(['GET /user/first/detail']);
  });

  test('is renewed once when the platform says that it expired, and the call repeated with what was returned', async () => {
    const { calls, paths } = await start([expired, renewedTo('second'), ok], {}, { token: 'first' });
    expect(await calls.userDetail()).toEqual(user);
    expect(paths()).toEqual(['GET /user/first/detail', 'POST /token/first/renew', 'GET /user/second/detail']);
  });

  test('that expired again is not renewed again', async () => {
    const { calls, paths } = await start([expired, renewedTo('second'), expired], {}, { token: 'first' });
    expect(await failure(calls.userDetail())).toMatchObject({ code: 'token_expired' });
    expect(paths()).toHaveLength(3);
  });

  test('that is revoked is not renewed', async () => {
    const { calls, paths } = await start([revoked], {}, { token: 'first' });
    expect(await failure(calls.userDetail())).toMatchObject({ code: 'token_revoked' });
    expect(paths()).toHaveLength(1);
  });

  test("is renewed for a 403 whose meaning is not known, as the spec's 403 covers expiry; for a known one it is not", async () => {
    const unknown = await start([json(403, { message: 'Forbidden' }), renewedTo('second'), ok], {}, { token: 'first' });
    expect(await unknown.calls.userDetail()).toEqual(user);
    const known = await start(
      [json(403, { error: 'Permission Denied', code: 'permission_denied' })],
      {},
      { token: 'first' },
    );
    expect(await failure(known.calls.userDetail())).toMatchObject({ code: 'permission_denied' });
    expect(known.paths()).toHaveLength(1);
  });

  test('is renewed by one call at a time, however many ask', async () => {
    const { calls, paths } = await start(
      [renewedTo('second'), ok],
      {},
      { token: 'first', expiresAtMs: Date.now() + 1000 },
    );
    await Promise.all(Array.from({ length: 10 }, () => calls.userDetail()));
    expect(paths().filter((path) => path.includes('renew'))).toEqual(['POST /token/first/renew']);
    expect(paths().filter((path) => path.includes('detail'))).toEqual(
      Array.from({ length: 10 }, () => 'GET /user/second/detail'),
    );
  });

  test('is written down before it is used', async () => {
    const order: string[] = [];
    const server = await startScriptedServer(renewedTo('second'), ok);
    const client = createPlatformClient({ baseUrl: server.url, apiKey: 'k' });
    let held: IdentityToken = { token: 'first', expiresAtMs: Date.now() };
    const calls = client.launch({
      read: async () => held,
      write: async (token) => {
        order.push(`write after ${server.requests.length} requests`);
        held = token;
      },
    });
    await calls.userDetail();
    expect(order).toEqual(['write after 1 requests']);
    expect(server.requests[1]).toContain('/user/second/');
  });

  test('a call that waits for its repeat while another rotates it is repeated with the new one', async () => {
    const renewed = { token: 'the successor', expiresAtMs: null };
    const started = await start([json(500, {}), ok], { onCall: () => (started.held.value = renewed) });
    expect(await started.calls.userDetail()).toEqual(user);
    expect(started.paths()).toEqual([`GET /user/${secretToken}/detail`, 'GET /user/the successor/detail']);
  });

  test('a call that was under way while another rotated it is repeated with the new one', async () => {
    const { calls, held, paths } = await start([{ afterMs: 100, answer: revoked }, ok], {}, { token: 'first' });
    const called = calls.userDetail();
    held.value = { token: 'second', expiresAtMs: null };
    expect(await called).toEqual(user);
    expect(paths().at(-1)).toBe('GET /user/second/detail');
  });

  test('a renewal ahead that fails for now does not stop the call', async () => {
    const { calls } = await start(
      [json(500, {}), ok],
      { retry: { retries: 0 } },
      { token: 'first', expiresAtMs: Date.now() + 60_000 },
    );
    expect(await calls.userDetail()).toEqual(user);
  });
});

test.for([
  ['operation', { operationId: 'a b&c=d+e:f,g$é/?#%' }],
  ['operation?as=json', { operationId: 'x', more: 'y' }],
  ['operation', {}],
  ['operation', undefined],
] as const)('an address holds its query, whatever stands in it: %s with %o', async ([path, query]) => {
  const server = await startScriptedServer(ok);
  const call: Call<null, unknown> = {
    endpoint: 'operation.status',
    encode: () => ({ method: 'GET', path: `/${path}`, ...(query ? { query } : {}) }),
    decode: (body) => body,
  };
  const transport = createHttpTransport({ baseUrl: server.url, apiKey: 'k', profile: assumedProfile });
  expect(await transport.send(call, null, { timeoutMs: 5_000, secrets: [] })).toEqual(user);
  const asked = new URL(server.requests[0]!.split(' ')[1]!, server.url);
  expect(asked.pathname).toBe('/operation');
  expect(Object.fromEntries(asked.searchParams)).toEqual({ ...(path.includes('?') ? { as: 'json' } : {}), ...query });
  transport.close();
});

describe("a proxy that the machine's environment names", () => {
  afterEach(() => vi.unstubAllEnvs());
  const elsewhere = 'http://platform.invalid:8000';
  const quiet = ['http_proxy', 'HTTP_PROXY', 'all_proxy', 'ALL_PROXY', 'no_proxy', 'NO_PROXY'];

  test.for(['http_proxy', 'HTTP_PROXY', 'ALL_PROXY'])('takes the calls: %s', async (name) => {
    for (const one of quiet) vi.stubEnv(one, undefined);
    const proxy = await startScriptedServer(ok);
    vi.stubEnv(name, proxy.url);
    const { calls } = await start([ok], { baseUrl: elsewhere });
    expect(await calls.userDetail()).toEqual(user);
    expect(proxy.requests[0]).toMatch(/^GET http:\/\/platform\.invalid:8000\/\S+ HTTP\/1\.1\r\n/);
  });

  test('takes downloads too', async () => {
    for (const one of quiet) vi.stubEnv(one, undefined);
    const proxy = await startScriptedServer(fileAnswer);
    vi.stubEnv('HTTP_PROXY', proxy.url);
    const { client } = await start([], { baseUrl: elsewhere });
    const path = join(await testFolder(), 'file');
    await client.download({ href: `${elsewhere}/data`, allowedOrigins: [elsewhere], path, maxBytes: 100 });
    await client.downloadInference({ inferenceJobId: 'j', path, maxBytes: 100 });
    expect(await readFile(path, 'utf8')).toBe('bytes');
    expect(proxy.requests[0]).toMatch(/^GET http:\/\/platform\.invalid:8000\/data HTTP\/1\.1\r\n/);
    expect(proxy.requests[1]).toMatch(/^GET http:\/\/platform\.invalid:8000\/\S+ HTTP\/1\.1\r\n/);
  });

  test('is never asked for this machine, and so reads no key', async () => {
    for (const one of quiet) vi.stubEnv(one, undefined);
    const proxy = await startScriptedServer(ok);
    vi.stubEnv('HTTP_PROXY', proxy.url);
    const { calls, client, server } = await start([ok, fileAnswer]);
    expect(await calls.userDetail()).toEqual(user);
    const path = join(await testFolder(), 'file');
    await client.download({ href: `${server.url}/data`, allowedOrigins: [server.url], path, maxBytes: 100 });
    await client.downloadInference({ inferenceJobId: 'j', path, maxBytes: 100 });
    expect([server.requests.length, proxy.requests.length]).toEqual([3, 0]);
  });

  test('does not take calls to a host that NO_PROXY names', async () => {
    for (const one of quiet) vi.stubEnv(one, undefined);
    const proxy = await startScriptedServer(ok);
    vi.stubEnv('HTTP_PROXY', proxy.url);
    vi.stubEnv('NO_PROXY', 'platform.invalid');
    const { calls } = await start([ok], { baseUrl: elsewhere, retry: { retries: 0 } });
    expect(await failure(calls.userDetail())).toMatchObject({ code: 'connection_failed' });
    expect(proxy.requests).toEqual([]);
  });
});

describe('a download', () => {
  const compressed = gzipSync('bytes');
  test.for<[string, ScriptedAnswer, string]>([
    ['part of a file that nobody asked for', fileAnswer.replace('200 OK', '206 X'), 'unknown_error'],
    [
      'a compressed body that was cut on its way',
      Buffer.concat([
        Buffer.from(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${compressed.length - 6}\r\n\r\n`),
        compressed.subarray(0, -6),
      ]),
      'connection_failed',
    ],
    ['a redirect', 'HTTP/1.1 302 X\r\nLocation: /\r\nContent-Length: 0\r\n\r\n', 'redirect_refused'],
    [
      'an encoding that nobody asked for',
      fileAnswer.replace('200 OK', '200 OK\r\nContent-Encoding: zstd'),
      'unexpected_answer',
    ],
    ['more than the app takes', fileAnswer.replace('5', '500'), 'asset_too_large'],
  ])('is refused: %s', async ([, answer, code]) => {
    const { client, server } = await start([answer], { retry: { retries: 0 } });
    const path = join(await testFolder(), 'file');
    const wanted = { href: `${server.url}/data`, allowedOrigins: [server.url], path, maxBytes: 100 };
    expect(await failure(client.download(wanted))).toMatchObject({ code });
  });

  test('tells an error of its own file as what it is', async () => {
    const { client, server } = await start([fileAnswer], { retry: { retries: 0 } });
    const wanted = { href: `${server.url}/data`, allowedOrigins: [server.url], path: '/dev/full', maxBytes: 100 };
    expect(await failure(client.download(wanted))).toMatchObject({ code: 'ENOSPC', syscall: 'write' });
    expect(await failure(client.download({ ...wanted, path: '/' }))).toMatchObject({ code: 'EISDIR' });
  });
});

test('no error holds the key, the token or an address, raw or encoded, on itself or on its causes', async () => {
  const echo = json(400, {
    error: `bad token ${secretToken} and key ${encodeURIComponent(secretKey)}`,
    code: 'x',
    details: [{ path: 'a', message: secretToken }],
  });
  for (const answer of [
    echo,
    'cut',
    { afterMs: 9_000, answer: ok },
    'HTTP/1.1 301 X\r\nLocation: /\r\nContent-Length: 0\r\n\r\n',
  ] as ScriptedAnswer[]) {
    const { calls } = await start([answer], { retry: { retries: 0 }, timeoutMs: 300 });
    const error = await failure(calls.userDetail());
    const { inspect } = await import('node:util');
    const all =
      inspect(error, { depth: 20, showHidden: true }) +
      JSON.stringify(error) +
      String(error.stack) +
      String(error.cause);
    for (const secret of [secretToken, secretKey, encodeURIComponent(secretToken), encodeURIComponent(secretKey)])
      expect(all).not.toContain(secret);
  }
});
