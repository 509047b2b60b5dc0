/** `certify --upstream`: a referee between an app and a platform, which changes no byte, knows no secret and judges by what it can prove. */
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, request, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { forwardTo } from '../../src/commands/certify/observe/forward.ts';
import { Observation } from '../../src/commands/certify/observe/observation.ts';
import type { ObservedCall } from '../../src/commands/certify/observe/observed-call.ts';
import { launchesOf } from '../../src/commands/certify/observe/observed-launches.ts';
import { driftRecordOf } from '../../src/commands/certify/observe/drift-record.ts';
import { recording } from '../../src/commands/drift/recorded-files.ts';
import { assumedProfile, type WireProfile } from '../../src/contract/index.ts';
import { serve } from '../../src/server/index.ts';
import { launchApp, smallRun, startApp } from '../support/app.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { otherProfile } from '../support/other-wire.ts';
import { apiKey, chunkForm, someBytes, startSandbox } from '../support/sandbox.ts';

async function listen(handler: RequestListener): Promise<string> {
  const server = createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUpLater(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function refereeOf(upstream: string, profile: WireProfile = assumedProfile) {
  const observation = new Observation(profile);
  const { handler, close } = forwardTo(new URL(upstream), (passed) => observation.note(passed));
  const served = await serve(handler, { host: '127.0.0.1', port: 0, portSetting: '--port' });
  cleanUpLater(() => {
    close();
    return served.close(0);
  });
  return { observation, url: served.url };
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of message) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** Sends a request as it is, and reads the answer as it comes. */
async function exchange(url: string, method: string, headers: string[], body?: Uint8Array) {
  const sent = request(url, { method, headers, agent: false });
  sent.end(body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return {
    status: answer.statusCode,
    reason: answer.statusMessage,
    headers: answer.rawHeaders,
    body: await bodyOf(answer),
  };
}

test('not a byte of request or answer is changed, and no header but Host', async () => {
  const seen: { url: string | undefined; headers: string[]; sha256: string }[] = [];
  const answered = randomBytes(3_000_000);
  const platform = await listen((req, res) => {
    void bodyOf(req).then((body) => {
      seen.push({ url: req.url, headers: req.rawHeaders, sha256: sha256(body) });
      res.writeHead(201, 'Made Up', [
        'X-Odd',
        'ü'.normalize(),
        'Set-Cookie',
        'a=1',
        'Set-Cookie',
        'b=2',
        'Content-Type',
        'application/x-odd',
      ]);
      res.end(answered);
    });
  });
  const { url } = await refereeOf(`${platform}/base/`);
  const sent = randomBytes(5_000_000);
  const headers = [
    'Host',
    'referee',
    'X-API-KEY',
    'k',
    'x-Odd-Case',
    '1',
    'x-Odd-Case',
    '2',
    'Content-Length',
    String(sent.length),
  ];
  const { body, ...answer } = await exchange(`${url}/any/%2Fpath?a=1&a=%20`, 'PUT', headers, sent);
  expect(seen[0]).toMatchObject({ url: '/base/any/%2Fpath?a=1&a=%20', sha256: sha256(sent) });
  expect(seen[0]!.headers).toEqual(['Host', new URL(platform).host, ...headers.slice(2), 'Connection', 'close']);
  expect(answer).toMatchObject({ status: 201, reason: 'Made Up' });
  expect(answer.headers.slice(0, 8)).toEqual([
    'X-Odd',
    'ü',
    'Set-Cookie',
    'a=1',
    'Set-Cookie',
    'b=2',
    'Content-Type',
    'application/x-odd',
  ]);
  expect(sha256(body)).toBe(sha256(answered));
});

describe('what the platform does to a connection', () => {
  const token = 'a-token-of-a-launch';
  const path = `/public/external-app/operation/${token}?operationId=op`;

  test('nothing listens: 502 with the reason, and the call counts as answered by it', async () => {
    const { observation, url } = await refereeOf('http://127.0.0.1:1');
    const { status, body } = await exchange(`${url}${path}`, 'GET', ['Host', 'r']);
    expect([status, JSON.parse(body.toString())]).toEqual([
      502,
      {
        error: expect.stringContaining('http://127.0.0.1:1 cannot be reached') as string,
        code: 'upstream_unavailable',
      },
    ]);
    await expect.poll(() => observation.calls.length).toBe(1);
    expect(observation.calls[0]).toMatchObject({ status: null, detail: { operationId: 'op' } });
  });

  test('it cuts the connection before an answer, and in the middle of one: the app sees the same', async () => {
    let cuts = 0;
    const platform = await listen((req, res) => {
      if (cuts++ === 0) return void req.socket.destroy();
      res.writeHead(200, { 'Content-Length': '100', 'Content-Type': 'application/json' });
      res.write('{"status":"APPR');
      setTimeout(() => req.socket.destroy(), 50);
    });
    const { observation, url } = await refereeOf(platform);
    await expect(exchange(`${url}${path}`, 'GET', ['Host', 'r'])).rejects.toThrow(/hang up|ECONNRESET/);
    await expect(exchange(`${url}${path}`, 'GET', ['Host', 'r'])).rejects.toThrow(/aborted/);
    await expect.poll(() => observation.calls.map(({ delivered }) => delivered)).toEqual([false, false]);
    expect(observation.calls.map(({ detail }) => detail.operationStatus)).toEqual([undefined, undefined]);
  });

  test('an answer in gzip is passed as it is, and read', async () => {
    const packed = gzipSync(JSON.stringify({ operationId: 'op', status: 'APPROVED' }));
    const platform = await listen((_req, res) =>
      res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }).end(packed),
    );
    const { observation, url } = await refereeOf(platform);
    expect((await exchange(`${url}${path}`, 'GET', ['Host', 'r'])).body.equals(packed)).toBe(true);
    await expect.poll(() => observation.calls[0]?.detail.operationStatus).toBe('APPROVED');
  });
});

describe('a chunk is read by the ends of its form', () => {
  const fields = { uploadId: 'u', key: 'k/ã 1', partNumber: 7 };
  const path = '/public/external-app/file/token-of-the-chunk/upload/chunk';

  test.each([
    ['nothing', 0],
    ['less than an end', 1_000],
    ['about both ends', 131_072],
    ['more than both ends', 5_000_001],
  ])('a file of %s, before and after its fields', async (_what, size) => {
    const platform = await listen((req, res) => void bodyOf(req).then(() => res.end('{}')));
    const { observation, url } = await refereeOf(platform);
    const file = someBytes(size, size + 1);
    for (const form of [chunkForm({ file, ...fields }), chunkForm({ ...fields, file })])
      await fetch(`${url}${path}`, { method: 'POST', body: form });
    await expect.poll(() => observation.calls.length).toBe(2);
    const detail = { uploadId: 'u', key: 'k/ã 1', partNumber: 7, size };
    expect(observation.calls.map((call) => call.detail)).toEqual([detail, detail]);
  });

  test('a form that is cut has no size, and a malformed one is no reason to stop', async () => {
    const platform = await listen(
      (req, res) =>
        void bodyOf(req)
          .then(() => res.end('{}'))
          .catch(() => {}),
    );
    const { observation, url } = await refereeOf(platform);
    const type = 'multipart/form-data; boundary=b';
    await exchange(`${url}${path}`, 'POST', ['Host', 'r', 'Content-Type', type], Buffer.from('no form at all'));
    await exchange(`${url}${path}`, 'POST', ['Host', 'r', 'Content-Type', 'multipart/form-data'], Buffer.from('x'));
    const cut = request(`${url}${path}`, {
      method: 'POST',
      headers: { 'Content-Type': type, 'Content-Length': '1000' },
    });
    cut.on('error', () => {});
    cut.write('--b\r\nContent-Disposition: form-data; name="uploadId"\r\n\r\nu\r\n--b\r\n', () =>
      setTimeout(() => cut.destroy(), 50),
    );
    await expect.poll(() => observation.calls.length).toBe(3);
    expect(observation.calls.map(({ detail }) => detail.size)).toEqual([undefined, undefined, undefined]);
    expect(observation.calls[2]).toMatchObject({ delivered: false, detail: { uploadId: 'u' } });
  });
});

test.each([
  ['the wire of the contract', assumedProfile],
  ['another wire', otherProfile],
])('the reference app on %s passes, and nothing secret is kept', { timeout: 60_000 }, async (_what, profile) => {
  const sandbox = await startSandbox({ ...(profile !== assumedProfile && { profile }) });
  const { observation, url } = await refereeOf(sandbox.url, profile);
  const app = await startApp(url, { profile, env: { UPLOAD_PART_BYTES: '5000' } });
  const { token, session } = await launchApp(sandbox, app);
  const { id } = await session.start(smallRun);
  const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${operationId}/approve`);
  await session.waitFor(id, 'COMPLETED');
  await expect
    .poll(() => observation.calls.some(({ name }) => name === 'completeUpload'), { timeout: 20_000 })
    .toBe(true);
  const report = await observation.report('http://app/launch', url, 'App');
  expect(Object.fromEntries(report.rules.map(({ rule, result }) => [rule, result]))).toMatchObject({
    'upload-after-approval': 'PASSED',
    'upload-identity': 'PASSED',
    'chunk-order': 'PASSED',
    'poll-stops': 'PASSED',
    'token-scope': 'PASSED',
  });
  expect(report).toMatchObject({ level: null, status: 'FINISHED', platform: url });
  const kept = JSON.stringify([report, observation.calls]);
  for (const secret of [token, encodeURIComponent(token), apiKey, Buffer.from(token).toString('base64')])
    expect(kept).not.toContain(secret);
  expect(observation.calls.every(({ unreadable }) => unreadable === null)).toBe(true);

  const record = { format: 'marketplace-drift-record/1', ...driftRecordOf(observation.calls) };
  expect(recording.safeParse(JSON.parse(JSON.stringify(record))).success).toBe(true);
  expect(record.level).toBe('write');
  expect(record.exchanges.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      'user-detail/of the launch',
      'create-operation/created',
      'approval/approved',
      'complete-upload/completed',
    ]),
  );
});

const call = (
  at: number,
  name: ObservedCall['name'],
  detail: ObservedCall['detail'] = {},
  more: Partial<ObservedCall> = {},
): ObservedCall => ({
  ...{
    at,
    endedAt: at + 5,
    name,
    endpoint: assumedProfile.calls[name].endpoint as ObservedCall['endpoint'],
    method: 'GET',
    path: '/',
  },
  ...{
    status: 200,
    delivered: true,
    requestBytes: 0,
    responseBytes: 0,
    token: 't1',
    nextToken: null,
    facts: null,
    unreadable: null,
  },
  detail,
  ...more,
});

describe('launches', () => {
  test('a token and what renewals answered are one launch, in order; others are others', () => {
    const launches = launchesOf([
      call(0, 'createOperation', { operationId: 'a' }),
      call(10, 'renewToken', {}, { nextToken: 't2' }),
      call(20, 'getOperation', { operationId: 'a' }, { token: 't2' }),
      call(25, 'searchItems', {}, { token: null }),
      call(30, 'getOperation', { operationId: 'a' }, { token: 'other' }),
      call(40, 'renewToken', {}, { token: 't2', nextToken: 't1' }),
    ]);
    expect(launches.map(({ calls }) => calls.map(({ detail }) => [detail.tokenNumber, detail.operationId, detail.foreign]))).toEqual([
      [[1, 'a', undefined], [1, undefined, undefined], [2, 'a', undefined], [2, undefined, undefined]],
      [[1, undefined, 'operation']],
    ]); // oxfmt-ignore
  });

  test('a launch that had begun before is not accused of what nobody saw', async () => {
    const observation = new Observation(assumedProfile);
    observation.calls.push(
      call(0, 'uploadChunk', { uploadId: 'u', key: 'k', partNumber: 5, size: 10 }),
      call(10, 'uploadChunk', { uploadId: 'u', key: 'k', partNumber: 6, size: 10 }),
      call(20, 'completeUpload', { uploadId: 'u', key: 'k', fileSize: 60, fileId: 'f' }),
    );
    const { result, scenarios } = await observation.report('app', 'platform', null);
    expect(result).toBe('NOT_EXERCISED');
    expect(scenarios[0]!.missing?.message).toContain('had begun before');
  });
});

test(
  'the command: calls as they come, the verdict at the end, and exit 1 for a broken rule',
  { timeout: 60_000 },
  async () => {
    const sandbox = await startSandbox();
    const folder = await testFolder();
    const files = { json: join(folder, 'r.json'), html: join(folder, 'r.html'), record: join(folder, 'd.json') };
    const cli = join(projectRoot, 'bin/marketplace-app-kit.mjs');
    const options = Object.entries(files).flatMap(([name, path]) => [`--${name}`, path]);
    const child = spawn(process.execPath, [
      cli,
      'certify',
      '--upstream',
      sandbox.url,
      '--port',
      '0',
      '--idle',
      '600',
      ...options,
    ]);
    cleanUpLater(() => void child.kill('SIGKILL'));
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (said += String(bytes)));
    await expect.poll(() => said, { timeout: 30_000 }).toMatch(/referee ready http:\S+/);
    const [, url = ''] = /referee ready (http:\S+)/.exec(said) ?? [];
    const { token } = await sandbox.launch();
    const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
    const app = (method: string, path: string, body?: object) =>
      fetch(`${url}/public/external-app${path}`, { method, headers, body: body ? JSON.stringify(body) : null }).then(
        (answer) => answer.json() as Promise<{ operationId: string }>,
      );
    const { operationId } = await app('POST', `/operation/${token}`, { name: 'too early' });
    await app('POST', `/file/${token}/upload/initiate`, { operationId, fileName: 'a.tif' });
    await expect.poll(() => said).toMatch(/upload\.initiate/);
    const exited = once(child, 'exit');
    child.kill('SIGINT');
    const [code] = (await exited) as [number];
    expect(said).toMatch(/upload-after-approval +FAILED/);
    expect(said).toMatch(/FINISHED FAILED/);
    expect(code).toBe(1);
    const written = (await Promise.all(Object.values(files).map((file) => readFile(file, 'utf8')))).join('\n');
    for (const secret of [token, apiKey]) expect(said + written).not.toContain(secret);
  },
);

test(
  'with the token of a launch it starts the app, opens the launch, and ends when the file is there',
  { timeout: 90_000 },
  async () => {
    const sandbox = await startSandbox();
    const { token, launchId } = await sandbox.launch();
    const cli = join(projectRoot, 'bin/marketplace-app-kit.mjs');
    const start = `python3 '${join(projectRoot, 'examples/python/app.py')}'`;
    const child = spawn(
      process.execPath,
      [cli, 'certify', '--upstream', sandbox.url, '--port', '0', '--start', start],
      {
        env: { ...process.env, PLATFORM_API_KEY: apiKey, PLATFORM_TOKEN: token },
      },
    );
    cleanUpLater(() => void child.kill('SIGKILL'));
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (said += String(bytes)));
    const exited = once(child, 'exit') as Promise<[number]>;
    await expect.poll(() => said, { timeout: 30_000 }).toMatch(/operation\.create/);
    const { operations } = (await sandbox.control('GET', `launches/${launchId}`)) as unknown as {
      operations: { operationId: string }[];
    };
    await sandbox.control('POST', `operations/${operations[0]!.operationId}/approve`);
    expect((await exited)[0]).toBe(0);
    expect(said).toMatch(/chunk-order +PASSED/);
    for (const secret of [token, apiKey]) expect(said).not.toContain(secret);
  },
);

test.each([
  [['--scenario', 'reject'], /--upstream leads no scenario, and takes no --scenario/],
  [['--idle', '3'], /--idle 3 must be 10 to 86400 seconds/],
  [['--start', 'true'], /--start needs PLATFORM_API_KEY/],
])('refused: %j', async (args, message) => {
  const cli = join(projectRoot, 'bin/marketplace-app-kit.mjs');
  const env = { ...process.env, PLATFORM_API_KEY: '' };
  const child = spawn(process.execPath, [cli, 'certify', '--upstream', 'http://127.0.0.1:1', ...args], { env });
  let said = '';
  child.stderr.on('data', (bytes) => (said += String(bytes)));
  expect((await once(child, 'close'))[0]).toBe(1);
  expect(said).toMatch(message);
});
