/**
 * Raw HTTP, written by hand from the service interface and the contract, against client and sandbox each
 * by itself: neither can agree with the other on something that is wrong.
 */
import { createConnection } from 'node:net';
import { describe, expect, test } from 'vitest';
import { createPlatformClient, type LaunchCalls } from '../../src/platform-client/index.ts';
import { apiKey, startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { json, startScriptedServer } from '../support/scripted-server.ts';

interface Fixture {
  readonly name: string;
  /** The request line and body, with {token}, {operationId}, {uploadId} and {key} to be filled in. */
  readonly requestLine: string;
  readonly requestHeaders: readonly string[];
  readonly requestBody: string;
  readonly call: (calls: LaunchCalls) => Promise<unknown>;
  readonly responseBody: unknown;
  readonly decoded: unknown;
  /** Required form of each field of the sandbox's answer. */
  readonly responseForm: Readonly<Record<string, RegExp>>;
}

const id = /^[A-Za-z0-9_-]{22,}$/;
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const content = {
  sizeBytes: 5,
  open: async function* () {
    yield Buffer.from('bytes');
  },
};

const fixtures: Fixture[] = [
  {
    name: 'step 1, renew',
    requestLine: 'POST /public/external-app/token/{token}/renew HTTP/1.1',
    requestHeaders: ['content-length: 0'],
    requestBody: '',
    call: (calls) => calls.keepAlive(),
    responseBody: { token: 'T', expiresAt: '2030-01-01T00:00:00.000Z' },
    decoded: undefined,
    responseForm: { token: id, expiresAt: time },
  },
  {
    name: 'step 2, user details',
    requestLine: 'GET /public/external-app/user/{token}/detail HTTP/1.1',
    requestHeaders: [],
    requestBody: '',
    call: (calls) => calls.userDetail(),
    responseBody: { id: 'u', email: 'e@example.org', name: 'N', organization: 'O' },
    decoded: { id: 'u', email: 'e@example.org', name: 'N', organization: 'O' },
    responseForm: { id: /./, email: /@/, name: /./, organization: /./ },
  },
  {
    name: 'step 3, create operation',
    requestLine: 'POST /public/external-app/operation/{token} HTTP/1.1',
    requestHeaders: ['content-type: application/json', 'idempotency-key: run-1'],
    requestBody: '{"name":"NDVI","description":"d","parameters":{"a":1}}',
    call: (calls) =>
      calls.createOperation({
        idempotencyKey: 'run-1',
        operation: { name: 'NDVI', description: 'd', parameters: { a: 1 } },
      }),
    responseBody: {
      operationId: 'op',
      status: 'REQUESTED',
      createdAt: '2030-01-01T00:00:00.000Z',
      expiresAt: '2030-01-01T00:30:00.000Z',
    },
    decoded: {
      operationId: 'op',
      status: 'REQUESTED',
      createdAt: '2030-01-01T00:00:00.000Z',
      expiresAt: '2030-01-01T00:30:00.000Z',
    },
    responseForm: { operationId: id, status: /^REQUESTED$/, createdAt: time, expiresAt: time },
  },
  {
    name: 'step 4, operation status',
    requestLine: 'GET /public/external-app/operation/{token}?operationId={operationId} HTTP/1.1',
    requestHeaders: [],
    requestBody: '',
    call: (calls) => calls.getOperation({ operationId: 'OPERATION' }),
    responseBody: {
      operationId: 'op',
      status: 'APPROVED',
      name: 'n',
      createdAt: '2030-01-01T00:00:00.000Z',
      updatedAt: '2030-01-01T00:00:00.000Z',
      expiresAt: '2030-01-01T00:30:00.000Z',
    },
    decoded: {
      operationId: 'op',
      status: 'APPROVED',
      name: 'n',
      createdAt: '2030-01-01T00:00:00.000Z',
      updatedAt: '2030-01-01T00:00:00.000Z',
      expiresAt: '2030-01-01T00:30:00.000Z',
    },
    responseForm: {
      operationId: id,
      status: /^(REQUESTED|APPROVED|REJECTED|EXPIRED)$/,
      name: /./,
      createdAt: time,
      updatedAt: time,
      expiresAt: time,
    },
  },
  {
    name: 'step 5, initiate',
    requestLine: 'POST /public/external-app/file/{token}/upload/initiate HTTP/1.1',
    requestHeaders: ['content-type: application/json'],
    requestBody: '{"operationId":"{operationId}","fileName":"a.tif","sourceType":"SAR"}',
    call: (calls) => calls.initiateUpload({ operationId: 'OPERATION', fileName: 'a.tif', sourceType: 'SAR' }),
    responseBody: { uploadId: 'u', key: 'k' },
    decoded: { uploadId: 'u', key: 'k' },
    responseForm: { uploadId: id, key: /./ },
  },
  {
    name: 'step 6, chunk',
    requestLine: 'POST /public/external-app/file/{token}/upload/chunk HTTP/1.1',
    requestHeaders: ['content-type: multipart/form-data; boundary={boundary}'],
    requestBody:
      '--{boundary}\r\ncontent-disposition: form-data; name="uploadid"\r\n\r\n{uploadId}\r\n' +
      '--{boundary}\r\ncontent-disposition: form-data; name="key"\r\n\r\n{key}\r\n' +
      '--{boundary}\r\ncontent-disposition: form-data; name="partnumber"\r\n\r\n1\r\n' +
      '--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="part-1"\r\ncontent-type: application/octet-stream\r\n\r\nbytes\r\n' +
      '--{boundary}--\r\n',
    call: (calls) => calls.uploadChunk({ uploadId: 'UPLOAD', key: 'KEY', partNumber: 1, content }),
    responseBody: { message: 'm', partNumber: 1, size: 5 },
    decoded: { message: 'm', partNumber: 1, size: 5 },
    responseForm: { message: /./, partNumber: /^1$/, size: /^5$/ },
  },
  {
    name: 'step 7, complete',
    requestLine: 'POST /public/external-app/file/{token}/upload/complete HTTP/1.1',
    requestHeaders: ['content-type: application/json'],
    requestBody: '{"uploadId":"{uploadId}","key":"{key}","fileSize":5,"sourceType":"SAR"}',
    call: (calls) => calls.completeUpload({ uploadId: 'UPLOAD', key: 'KEY', fileSize: 5, sourceType: 'SAR' }),
    responseBody: { fileId: 'f', originalName: 'a.tif', createdAt: '2030-01-01T00:00:00.000Z', size: 5 },
    decoded: { fileId: 'f', originalName: 'a.tif', createdAt: '2030-01-01T00:00:00.000Z', size: 5 },
    responseForm: { fileId: id, originalName: /^a\.tif$/, createdAt: time, size: /^5$/ },
  },
];

const inClient = { token: 'TOKEN', operationId: 'OPERATION', uploadId: 'UPLOAD', key: 'KEY' };

function fill(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{(token|operationId|uploadId|key|boundary)\}/g, (_, name: string) => values[name] ?? '');
}

describe.each(fixtures)('client: $name', (fixture) => {
  async function exchange(body: unknown) {
    const server = await startScriptedServer(json(200, body));
    const client = createPlatformClient({ baseUrl: server.url, apiKey: 'KEY-OF-THE-APP', retry: { retries: 0 } });
    // Step 1 is called for a token that ends soon; the others with one that does not.
    const expiresAtMs = fixture.name.startsWith('step 1') ? Date.now() + 1000 : null;
    const calls = client.launch({ read: async () => ({ token: 'TOKEN', expiresAtMs }), write: async () => {} });
    const decoded = await fixture.call(calls);
    client.close();
    return { decoded, request: server.requests[0]! };
  }

  test('sends just this, and reads that', async () => {
    const { decoded, request } = await exchange(fixture.responseBody);
    const [head = '', ...bodies] = request.split('\r\n\r\n');
    const body = bodies.join('\r\n\r\n');
    const [requestLine, ...headers] = head
      .split('\r\n')
      .map((line, i) => (i === 0 ? line : line.toLowerCase().replace(/boundary=.*/, 'boundary={boundary}')));
    const boundary = /boundary=(.*)/.exec(head)?.[1] ?? '';
    expect(requestLine).toBe(fill(fixture.requestLine, inClient));
    expect(headers).toEqual(expect.arrayContaining([...fixture.requestHeaders, 'x-api-key: key-of-the-app']));
    const lowerHeads = (text: string) => (boundary ? text.toLowerCase() : text);
    expect(lowerHeads(body)).toBe(lowerHeads(fill(fixture.requestBody, { ...inClient, boundary })));
    if (body) expect(headers).toContain(`content-length: ${body.length}`);
    expect(decoded).toEqual(fixture.decoded);
  });

  test('ignores unknown fields, and misses no optional one', async () => {
    const { decoded } = await exchange({
      ...(fixture.responseBody as object),
      somethingNew: { a: 1 },
      expiresAt: null,
      createdAt: null,
    });
    const missing = { expiresAt: undefined, createdAt: undefined };
    // For `toEqual`, an undefined field equals a missing one.
    expect(decoded).toEqual(fixture.decoded && { ...fixture.decoded, ...missing });
  });
});

describe.each(fixtures)('sandbox: $name', (fixture) => {
  test('takes the same bytes and answers in the same form', async () => {
    const sandbox = await startSandbox();
    const values = await prepare(sandbox);
    const boundary = 'a-boundary';
    // Field names in the fixture are lower case, as the client's bytes are compared without case.
    const body = fill(fixture.requestBody, { ...values, boundary })
      .replace('"uploadid"', '"uploadId"')
      .replace('"partnumber"', '"partNumber"');
    if (fixture.name === 'step 7, complete') await sendRaw(sandbox, fixtures[5]!, values);
    const answer = await send(
      sandbox,
      fill(fixture.requestLine, values),
      fixture.requestHeaders.map((line) => fill(line, { boundary })),
      body,
    );
    expect(answer.split('\r\n')[0]).toBe('HTTP/1.1 200 OK');
    expect(answer.toLowerCase()).toContain('content-type: application/json');
    const read = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as Record<string, unknown>;
    expect(Object.keys(read).sort()).toEqual(Object.keys(fixture.responseForm).sort());
    for (const [name, form] of Object.entries(fixture.responseForm)) expect(String(read[name]), name).toMatch(form);
  });
});

function sendRaw(sandbox: TestSandbox, fixture: Fixture, values: Readonly<Record<string, string>>): Promise<string> {
  const body = fill(fixture.requestBody, { ...values, boundary: 'b' })
    .replace('"uploadid"', '"uploadId"')
    .replace('"partnumber"', '"partNumber"');
  return send(
    sandbox,
    fill(fixture.requestLine, values),
    fixture.requestHeaders.map((line) => fill(line, { boundary: 'b' })),
    body,
  );
}

/** A launch with an approved operation and an open upload, made by raw requests too. */
async function prepare(
  sandbox: TestSandbox,
): Promise<{ token: string; operationId: string; uploadId: string; key: string }> {
  const { token } = await sandbox.launch();
  const bodyOf = (answer: string) => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as Record<string, string>;
  const values: Record<string, string> = { token };
  Object.assign(
    values,
    bodyOf(await sendRaw(sandbox, { ...fixtures[2]!, requestHeaders: ['content-type: application/json'] }, values)),
  );
  await sandbox.control('POST', `operations/${values['operationId']}/approve`);
  Object.assign(values, bodyOf(await sendRaw(sandbox, fixtures[4]!, values)));
  return values as ReturnType<typeof prepare> extends Promise<infer T> ? T : never;
}

function send(sandbox: TestSandbox, requestLine: string, headers: readonly string[], body: string): Promise<string> {
  const kept = headers.filter((line) => !line.startsWith('content-length'));
  const head = [
    requestLine,
    'Host: platform.example',
    `X-API-KEY: ${apiKey}`,
    'Connection: close',
    `Content-Length: ${body.length}`,
    ...kept,
  ];
  return new Promise((resolve, reject) => {
    const socket = createConnection(Number(new URL(sandbox.url).port), '127.0.0.1', () =>
      socket.write(`${head.join('\r\n')}\r\n\r\n${body}`),
    );
    let answer = '';
    socket.setEncoding('utf8').on('data', (part: string) => (answer += part));
    socket.on('end', () => resolve(answer)).on('error', reject);
  });
}
