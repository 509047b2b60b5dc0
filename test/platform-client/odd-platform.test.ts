/** A platform that keeps to the interface, in ways that the sandbox does not: the client follows. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { uploadFile } from '../../src/app/upload/uploader.ts';
import {
  assumedLimits,
  inferenceState,
  wireProfile,
  type Content,
  type WireChanges,
} from '../../src/contract/index.ts';
import { createPlatformClient, type PlatformClientOptions } from '../../src/platform-client/index.ts';
import { testFolder } from '../support/folders.ts';
import { json, startScriptedServer, type ScriptedAnswer } from '../support/scripted-server.ts';

const quick = { minDelayMs: 1, maxDelayMs: 2 };
const ok = json(200, { id: 'u', email: 'e@example.org', name: 'N', organization: 'O' });
const bytes = (text: string): Content => ({
  sizeBytes: text.length,
  open: async function* () {
    yield Buffer.from(text);
  },
});
const chunk = { uploadId: 'u', key: 'k', partNumber: 1, content: bytes('bytes') };

async function start(answers: ScriptedAnswer[], options: Partial<PlatformClientOptions> = {}) {
  const server = await startScriptedServer(...answers);
  const client = createPlatformClient({ baseUrl: server.url, apiKey: 'key', retry: quick, ...options });
  const held = { value: { token: 't', expiresAtMs: null as number | null } };
  const calls = client.launch({ read: async () => held.value, write: async (token) => void (held.value = token) });
  return { server, client, calls, held };
}

const text = (body: string, contentType: string) =>
  `HTTP/1.1 200 OK\r\nContent-Type: ${contentType}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

const jsonText = (body: string) => text(body, 'application/json');

describe('a success in words', () => {
  test.each([
    ['plain text', text('Chunk uploaded successfully', 'text/plain')],
    ['text that is called JSON', text('Chunk uploaded successfully', 'application/json')],
    ['a JSON string', text('"Chunk 1 uploaded"', 'application/json')],
  ])('of a call that needs nothing of it: %s', async (_name, answer) => {
    const { calls, server } = await start([answer]);
    await calls.uploadChunk(chunk);
    expect(server.requests).toHaveLength(1);
  });

  test.each([
    ['a page', text('<html>log in</html>', 'text/html'), 'broken_answer'],
    ['a page without angle brackets', text('log in', 'text/html'), 'broken_answer'],
    ['JSON that was cut', text('{"a":', 'application/json'), 'broken_answer'],
  ])('%s is none', async (_name, answer, code) => {
    const { calls } = await start([answer], { retry: { retries: 0 } });
    await expect(calls.uploadChunk(chunk)).rejects.toMatchObject({ code });
  });

  test('of a call that needs a field: text is broken, a JSON string is another answer', async () => {
    const create = { idempotencyKey: 'k', operation: { name: 'x' } };
    for (const [answer, code] of [
      [text('created', 'text/plain'), 'broken_answer'],
      [text('"created"', 'application/json'), 'unexpected_answer'],
    ] as const) {
      const { calls } = await start([answer], { retry: { retries: 0 } });
      await expect(calls.createOperation(create)).rejects.toMatchObject({ code });
    }
  });
});

test('an id of 64 bits, written as a number, keeps its digits', async () => {
  const { calls } = await start([text('{"operationId": 9007199254740993}', 'application/json')]);
  expect(await calls.createOperation({ idempotencyKey: 'k', operation: { name: 'x' } })).toMatchObject({
    operationId: '9007199254740993',
  });
});

test('a large number that is no id stays a number: nodata of 32-bit floats, as PostgreSQL writes it', async () => {
  for (const [text, value] of [
    ['-340282346638528860000000000000000000000', -3.4028234663852886e38],
    ['-9223372036854775808', -9223372036854775808],
  ] as const) {
    const item = `{"type": "Feature", "id": "i", "assets": {"data": {"href": "http://x.example/d", "bands": [{"name": "b", "nodata": ${text}}]}}, "properties": {}, "links": []}`;
    const { client } = await start([jsonText(item)]);
    expect((await client.getItem('c', 'i')).bands?.[0]?.nodata).toBe(value);
  }
});

test.each([408, 425])('%i is asked again', async (status) => {
  const { calls, server } = await start([json(status, {}), ok]);
  await calls.userDetail();
  expect(server.requests).toHaveLength(2);
});

test('an answer of more than 4 MiB is told as that, once', async () => {
  const large = json(200, { id: 'x'.repeat(5 * 1024 * 1024) });
  const { calls, server } = await start([large]);
  await expect(calls.userDetail()).rejects.toMatchObject({
    code: 'unexpected_answer',
    message: expect.stringMatching(/more than 4194304 bytes/) as string,
  });
  expect(server.requests).toHaveLength(1);
});

test('a completion may take longer than a small call', async () => {
  const { calls, server } = await start([{ afterMs: 600, answer: json(200, {}) }], {
    timeoutMs: 100,
    chunkTimeoutMs: 30_000,
  });
  await calls.completeUpload({ uploadId: 'u', key: 'k', fileSize: 5, sourceType: 'UNKNOWN' });
  expect(server.requests).toHaveLength(1);
});

describe('the end of a token that a launch has handed over', () => {
  const renewed = json(200, { token: 't', expiresAt: new Date(Date.now() + 3_000_000).toISOString() });

  test('is asked for by work that makes no calls, once', async () => {
    const { calls, server, held } = await start([renewed]);
    await calls.keepAlive();
    await calls.keepAlive();
    expect(server.requests).toHaveLength(1);
    expect(held.value.expiresAtMs).toBeGreaterThan(Date.now() + 2_900_000);
  });

  test('may stay unknown: a refused renewal is no failure of the work', async () => {
    const { calls, held } = await start([json(403, { error: 'no', code: 'permission_denied' })]);
    await calls.keepAlive();
    expect(held.value.expiresAtMs).toBeNull();
  });

  test('is not asked for again within a minute after a refusal', async () => {
    const { calls, server } = await start([json(404, { error: 'no' })]);
    await Promise.all(Array.from({ length: 20 }, () => calls.keepAlive()));
    await calls.keepAlive();
    expect(server.requests).toHaveLength(1);
  });

  test('stays unknown after words in the place of a renewed token', async () => {
    const { calls, held } = await start([text('eyJhbGciOiJub25lIn0', 'text/plain')], { retry: { retries: 0 } });
    await calls.keepAlive();
    expect(held.value).toEqual({ token: 't', expiresAtMs: null });
  });

  test('ahead of it a renewal is tried once, while the platform is away', async () => {
    const { calls, server, held } = await start([json(503, {}), ok]);
    held.value = { token: 't', expiresAtMs: Date.now() + 1_000 };
    await calls.userDetail();
    expect(server.requests.map((one) => one.split(' ')[0])).toEqual(['POST', 'GET']);
  });
});

describe('the uploader', () => {
  async function upload(answers: ScriptedAnswer[], content: string | null = 'bytes') {
    const { calls, server } = await start(answers, { retry: { retries: 0 } });
    const path = join(await testFolder(), 'output.tif');
    if (content !== null) await writeFile(path, content);
    const task = {
      operationId: 'o',
      path,
      sizeBytes: 5,
      fileName: 'output.tif',
      sourceType: 'UNKNOWN',
      resume: null,
    } as const;
    const uploaded = uploadFile(task, {
      calls,
      limits: assumedLimits,
      partSizeBytes: 1_000,
      save: async () => {},
      onProgress: () => {},
      signal: new AbortController().signal,
    });
    return { uploaded, server };
  }
  const begun = json(200, { uploadId: 'u', key: 'k' });

  test('begins anew after a 404 without a code: parts were cleaned up, as the interface says', async () => {
    const lost = json(404, { error: 'Upload session not found' });
    const { uploaded, server } = await upload([begun, json(200, {}), lost, begun, json(200, {}), json(200, {})]);
    await uploaded;
    expect(server.requests).toHaveLength(6);
  });

  test('does not begin anew for a 404 of the launch or the operation', async () => {
    const { uploaded, server } = await upload([json(404, { error: 'Operation not found' })]);
    await expect(uploaded).rejects.toMatchObject({ platformStatus: 404 });
    expect(server.requests).toHaveLength(1);
  });

  test.each([
    ['is gone', null, { code: 'ENOENT' }],
    ['became shorter', 'by', { code: 'output_changed' }],
  ])('an output that %s is told as that, and not as the connection', async (_what, content, error) => {
    const { uploaded } = await upload([begun, json(200, {})], content);
    await expect(uploaded).rejects.toMatchObject(error);
  });
});

describe('the catalog', () => {
  const child = (id: string) => ({ rel: 'child', href: `/public/stac/v1/collections/${id}` });
  const root = json(200, { id: 'root', links: [child('one'), child('two')] });

  test('is listed without a collection that the key may not see, or that fails', async () => {
    for (const status of [403, 404, 500]) {
      const answers = [root, json(status, { error: 'no' }), json(200, { id: 'two', title: 'Two' })];
      const { client } = await start(answers, { retry: { retries: 0 } });
      expect((await client.listCollections()).length, String(status)).toBe(1);
    }
  });

  test.each([
    ['/public/stac/v1/collections/one', 'one'],
    ['/public/stac/v1/collections/one/', 'one'],
    ['https://elsewhere.example/stac/collections/one', 'one'],
    ['collections/one', 'one'],
    ['./collections/a%20b', 'a b'],
  ])('reads the id of a collection from %s', async (href, id) => {
    const links = [{ rel: 'child', href }];
    const { server, client } = await start([json(200, { id: 'root', links }), json(200, { id, title: 'T' })]);
    expect((await client.listCollections()).map((entry) => entry.id)).toEqual([id]);
    expect(server.requests[1]).toMatch(`/${encodeURIComponent(id)} HTTP`);
  });

  test('is an error if nothing below the root answers', async () => {
    const { client } = await start([root, json(500, {})], { retry: { retries: 0 } });
    await expect(client.listCollections()).rejects.toMatchObject({ platformStatus: 500 });
  });

  test('has items with relative links to their data', async () => {
    const item = { type: 'Feature', id: 'i', assets: { data: { href: '../../files/f' } }, properties: {}, links: [] };
    const { client, server } = await start([json(200, item)]);
    expect((await client.getItem('c', 'i')).dataHref).toBe(`${server.url}/public/stac/collections/files/f`);
  });
});

test.each(['ERROR', 'cancelled', 'CANCELED', 'ABORTED', 'TIMEOUT', 'EXPIRED', 'FAILED'])(
  'a job that is %s has ended without a result',
  (word) => expect(inferenceState(word)).toBe('failed'),
);

describe('a wire profile', () => {
  const named = { name: 'other' };

  test('puts an id with a pattern into the collection of uploads as it is', () => {
    const profile = wireProfile({ ...named, uploadsCollection: 'uploads-:userId' });
    expect(profile.uploadsCollection("a$&b$'")).toBe("uploads-a$&b$'");
  });

  test('refuses a value that a header would cut', () => {
    const profile = wireProfile({
      ...named,
      calls: { createOperation: { request: { idempotencyKey: { in: 'header', name: 'X-Key' } } } },
    });
    const encode = (idempotencyKey: string) =>
      profile.calls.createOperation.encode({ token: 't', idempotencyKey, operation: { name: 'x' } });
    expect(encode('plain').headers).toMatchObject({ 'X-Key': 'plain' });
    expect(() => encode('größe-日本')).toThrow(/idempotencyKey cannot stand in a header/);
  });

  test('refuses a body of a GET', () => {
    const changes: WireChanges = { ...named, calls: { initiateUpload: { method: 'GET' } } };
    expect(() => wireProfile(changes)).toThrow(/stands in the body, and a GET has none/);
  });
});

describe('an answer that is too large', () => {
  const large = `{"id":"${'x'.repeat(5 * 1024 * 1024)}"}`;
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';
  test.each([
    ['says its length', `${head}Content-Length: ${large.length}\r\n\r\n${large}`],
    ['does not say its length', `${head}Connection: close\r\n\r\n${large}`],
  ])('and %s is refused, and not read again', async (_name, answer) => {
    const { calls, server } = await start([answer]);
    await expect(calls.userDetail()).rejects.toMatchObject({
      code: 'unexpected_answer',
      message: expect.stringContaining('answered with more than 4194304 bytes') as string,
    });
    expect(server.requests).toHaveLength(1);
  });
});

test("a Retry-After that is a date counts from the platform's own clock", async () => {
  const [now, later] = ['Mon, 02 Mar 2020 10:00:00 GMT', 'Mon, 02 Mar 2020 10:00:30 GMT'];
  const { calls } = await start([json(503, {}, { Date: now, 'Retry-After': later })], { retry: { retries: 0 } });
  await expect(calls.userDetail()).rejects.toMatchObject({ platformStatus: 503, retryAfterMs: 30_000 });
});
