/** `certify --upstream`: a referee between an app and a platform, which changes no byte, knows no secret and judges by what it can prove. */
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { connect, createServer as createNetServer } from 'node:net';
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
  const { handler, close } = forwardTo(new URL(upstream), {
    onBegun: () => observation.begin(),
    onPassed: (passed) => observation.note(passed),
  });
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

const oddHeaders = ['X-Odd', 'ü', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'Content-Type', 'application/x-odd'];

test('not a byte of request or answer is changed, and no header but Host', async () => {
  const seen: { url: string | undefined; headers: string[]; sha256: string }[] = [];
  const answered = randomBytes(3_000_000);
  const platform = await listen((req, res) => {
    void bodyOf(req).then((body) => {
      seen.push({ url: req.url, headers: req.rawHeaders, sha256: sha256(body) });
      res.writeHead(201, 'Made Up', oddHeaders);
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
  expect(answer.headers.slice(0, oddHeaders.length)).toEqual(oddHeaders);
  expect(sha256(body)).toBe(sha256(answered));
});

describe('what the platform does to a connection', () => {
  const token = 'a-token-of-a-launch';
  const path = `/public/external-app/operation/${token}?operationId=op`;

  test('nothing listens: 502 with the reason, and the call counts as not answered', async () => {
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
  expect(record.exchanges.map(({ call: name }) => name)).toEqual(
    expect.arrayContaining(['userDetail', 'createOperation', 'getOperation', 'completeUpload']),
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
    isUnfinished: false,
    isUnread: false,
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
    expect(scenarios[0]!.missing?.message).toContain('began unseen');
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
    // The platform is the sandbox itself, so what the app asked is the same there.
    const drift = spawn(process.execPath, [cli, 'drift', '--against', files.record]);
    let compared = '';
    for (const stream of [drift.stdout, drift.stderr]) stream.on('data', (bytes) => (compared += String(bytes)));
    expect([(await once(drift, 'exit'))[0], compared]).toEqual([
      0,
      expect.stringMatching(/same: .*d\.json, level write/),
    ]);
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

test('a taken port is said, and the command ends', async () => {
  const platform = await listen((_req, res) => res.end());
  const cli = join(projectRoot, 'bin/marketplace-app-kit.mjs');
  const port = new URL(platform).port;
  const child = spawn(process.execPath, [cli, 'certify', '--upstream', platform, '--port', port]);
  let said = '';
  child.stderr.on('data', (bytes) => (said += String(bytes)));
  expect((await once(child, 'close'))[0]).toBe(1);
  expect(said).toMatch(new RegExp(`port ${port} of 127.0.0.1 is in use`));
});

test('an app that refuses the launch is a finding, and the report is written', { timeout: 60_000 }, async () => {
  const platform = await listen((_req, res) => res.end());
  const app = await listen((_req, res) => res.writeHead(500).end());
  const file = join(await testFolder(), 'report.json');
  const cli = join(projectRoot, 'bin/marketplace-app-kit.mjs');
  const args = ['certify', '--upstream', platform, '--port', '0', '--launch-url', `${app}/launch`, '--json', file];
  const child = spawn(process.execPath, [cli, ...args], {
    env: { ...process.env, PLATFORM_TOKEN: 'a-token-of-16-characters' },
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (said += String(bytes)));
  expect((await once(child, 'close'))[0]).toBe(1);
  expect(said).toMatch(/the app answered the launch with 500/);
  expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ scenarios: [] });
});

test('what no profile knows, and what is no address, is counted and harms nothing', async () => {
  const platform = await listen((_req, res) => res.writeHead(404).end());
  const { observation, url } = await refereeOf(platform);
  for (const path of ['/public/elsewhere', '/%', '//', '/public/external-app/user/%E0%A4/detail'])
    expect((await exchange(`${url}${path}`, 'GET', ['Host', 'r'])).status).toBe(404);
  const socket = connect(Number(new URL(url).port), '127.0.0.1', () =>
    socket.write('GET http://[/ HTTP/1.1\r\nHost: r\r\nConnection: close\r\n\r\n'),
  );
  await once(socket.resume(), 'close');
  await expect.poll(() => [...observation.unknown.values()].reduce((sum, count) => sum + count, 0)).toBe(5);
  expect(observation.calls).toEqual([]);
});

test('a POST without a body has no chunks', async () => {
  let seen: string[] = [];
  const platform = await listen((req, res) => {
    seen = req.rawHeaders;
    res.end('{}');
  });
  const { url } = await refereeOf(platform);
  const socket = connect(Number(new URL(url).port), '127.0.0.1', () =>
    socket.write('POST /public/external-app/token/t/renew HTTP/1.1\r\nHost: r\r\nConnection: close\r\n\r\n'),
  );
  await once(socket.resume(), 'close');
  expect(seen.join(' ')).toMatch(/content-length 0/i);
  expect(seen.join(' ')).not.toMatch(/chunked/i);
});

test('an operation of another launch does not make a launch one that began unseen', () => {
  const [, second] = launchesOf([
    call(0, 'createOperation', { operationId: 'a' }),
    call(10, 'createOperation', { operationId: 'b' }, { token: 't2' }),
    call(20, 'getOperation', { operationId: 'a', operationStatus: 'REQUESTED' }, { token: 't2' }),
  ]);
  expect([second!.isWhole, second!.calls[1]!.detail.foreign]).toEqual([true, 'operation']);
});

test('a completion that is not finished is no file', async () => {
  const observation = new Observation(assumedProfile);
  observation.calls.push(
    call(0, 'createOperation', { operationId: 'a' }),
    call(10, 'getOperation', { operationId: 'a', operationStatus: 'APPROVED' }),
    call(20, 'initiateUpload', { operationId: 'a', uploadId: 'u', key: 'k' }),
    call(30, 'completeUpload', { uploadId: 'u', key: 'k', fileSize: 1 }, { status: 202, isUnfinished: true }),
  );
  const { scenarios } = await observation.report('app', 'platform', null);
  expect(scenarios[0]!.missing?.message).toContain('no file was completed');
  expect(driftRecordOf(observation.calls).exchanges).toEqual([]);
});

describe('a right app is not accused', () => {
  const verdict = async (calls: readonly ObservedCall[], nth = 0) => {
    const observation = new Observation(assumedProfile);
    observation.calls.push(...calls);
    const { scenarios } = await observation.report('app', 'platform', null);
    return scenarios[nth]!.rules.filter(({ result }) => result === 'failed').map(({ rule }) => rule);
  };
  const flow = (token: string, from: number, operationId: string, uploadId: string, key: string) => [
    call(from, 'createOperation', { operationId }, { token }),
    call(from + 10, 'getOperation', { operationId, operationStatus: 'APPROVED' }, { token }),
    call(from + 20, 'initiateUpload', { operationId, uploadId, key }, { token }),
    call(from + 30, 'uploadChunk', { uploadId, key, partNumber: 1, size: 1 }, { token }),
    call(from + 40, 'completeUpload', { uploadId, key, fileSize: 1, fileId: 'f' }, { token }),
  ];

  test('whose launches get the same key, or the same operation again', async () => {
    const keys = [...flow('t1', 0, 'a', 'u1', 'user/result.tif'), ...flow('t2', 5, 'b', 'u2', 'user/result.tif')];
    expect([await verdict(keys, 0), await verdict(keys, 1)]).toEqual([[], []]);
    const operations = [...flow('t1', 0, 'a', 'u1', 'k1'), ...flow('t2', 100, 'a', 'u2', 'k2')];
    expect([await verdict(operations, 0), await verdict(operations, 1)]).toEqual([[], []]);
  });

  test('of whose launch only refused calls were seen', async () => {
    const refused = { status: 503 };
    expect(await verdict([call(0, 'initiateUpload', { operationId: 'a' }, refused)])).toEqual([]);
    expect(
      await verdict([call(0, 'uploadChunk', { uploadId: 'u', key: 'k', partNumber: 3, size: 1 }, refused)]),
    ).toEqual([]);
  });

  test('whose renewals ran in parallel', async () => {
    const calls = [
      call(0, 'createOperation', { operationId: 'a' }),
      call(10, 'renewToken', {}, { nextToken: 'b' }),
      call(11, 'renewToken', {}, { nextToken: 'c' }),
      call(20, 'renewToken', {}, { token: 'c', nextToken: 'd' }),
      call(30, 'getOperation', { operationId: 'a', operationStatus: 'REQUESTED' }, { token: 'd' }),
      call(3_000, 'getOperation', { operationId: 'a', operationStatus: 'REQUESTED' }, { token: 'b' }),
    ];
    expect(await verdict(calls)).toEqual([]);
  });

  test('whose chunks have a content coding', async () => {
    const [create, poll, initiate, , complete] = flow('t1', 0, 'a', 'u', 'k');
    const chunk = call(30, 'uploadChunk', {}, { isUnread: true });
    expect(await verdict([create!, poll!, initiate!, chunk, complete!])).toEqual([]);
  });
});

test('a chunk that no platform got is not sent', async () => {
  const { observation, url } = await refereeOf('http://127.0.0.1:1');
  const form = chunkForm({ uploadId: 'u', key: 'k', partNumber: 1, file: someBytes(10) });
  await fetch(`${url}/public/external-app/file/t/upload/chunk`, { method: 'POST', body: form });
  await expect.poll(() => observation.calls.length).toBe(1);
  expect(observation.calls[0]).toMatchObject({ status: null, delivered: false, detail: { partNumber: 1 } });
  expect(observation.calls[0]!.detail.size).toBeUndefined();
});

test('secrets that stand where they do not belong are not kept', async () => {
  const [token, key] = ['a-token-of-a-launch-0123456789', 'an-api-key-0123456789'];
  const platform = await listen((_req, res) => {
    res
      .writeHead(200, { 'Content-Type': 'application/json' })
      .end(JSON.stringify({ code: 'SECRETTOKEN-abcdefghijklmnop', token: 'x' }));
  });
  const { observation, url } = await refereeOf(platform);
  const headers = ['Host', 'r', 'X-API-KEY', key];
  await exchange(`${url}/public/external-app/user/${token}/detail`, 'GET', headers);
  await exchange(`${url}/public/external-app/operation/op-1?operationId=${token}`, 'GET', headers);
  await exchange(`${url}/public/external-app/operation/${token}?operationId=${key}`, 'GET', headers);
  await exchange(`${url}/public/external-app/token/${token}/renew`, 'POST', [...headers, 'Content-Length', '0']);
  await expect.poll(() => observation.calls.length).toBe(4);
  const kept = JSON.stringify([await observation.report('app', 'platform', null), driftRecordOf(observation.calls)]);
  for (const secret of [token, key, 'SECRETTOKEN']) expect(kept).not.toContain(secret);
});

test('a platform that changes the protocol, or lets the client wait before it sends', async () => {
  const switching = createNetServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.write('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'));
  }).listen(0, '127.0.0.1');
  await once(switching, 'listening');
  cleanUpLater(() => void switching.close());
  const first = await refereeOf(`http://127.0.0.1:${(switching.address() as AddressInfo).port}`);
  await expect(exchange(`${first.url}/any`, 'GET', ['Host', 'r'])).rejects.toThrow(/hang up|ECONNRESET/);
});

test('a launch address with the token in it is refused, and not shown', async () => {
  const cli = join(projectRoot, 'bin/marketplace-app-kit.mjs');
  const args = [
    'certify',
    '--upstream',
    'http://127.0.0.1:1',
    '--launch-url',
    'http://127.0.0.1:2/launch?token=SECRET-0123',
  ];
  const child = spawn(process.execPath, [cli, ...args]);
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (said += String(bytes)));
  expect((await once(child, 'close'))[0]).toBe(1);
  expect(said).toMatch(/--launch-url must be the address without \?token=: give the token in PLATFORM_TOKEN/);
  expect(said).not.toContain('SECRET-0123');
});

test('an app that ends by itself is a finding', { timeout: 60_000 }, async () => {
  const platform = await listen((_req, res) => res.end());
  const folder = await testFolder();
  const code =
    "const s = require('node:http').createServer((q, r) => r.end('ok')).listen(process.env.PORT, '127.0.0.1'); setTimeout(() => process.exit(3), 4000);";
  await writeFile(join(folder, 'app.cjs'), code);
  const cli = join(projectRoot, 'bin/marketplace-app-kit.mjs');
  const start = `'${process.execPath}' '${join(folder, 'app.cjs')}'`;
  const child = spawn(process.execPath, [cli, 'certify', '--upstream', platform, '--port', '0', '--start', start], {
    env: { ...process.env, PLATFORM_API_KEY: apiKey },
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (said += String(bytes)));
  expect((await once(child, 'close'))[0]).toBe(1);
  expect(said).toMatch(/the app ended by itself \(exit code 3\)/);
});

test('the record has the form of a call, also if its first answer was lost', async () => {
  let asked = 0;
  const platform = await listen((req, res) => {
    res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '40' });
    if (asked++ > 0) return void res.end('{"status":"REQUESTED"}'.padEnd(40));
    res.write('{"status":');
    setTimeout(() => req.socket.destroy(), 50);
  });
  const { observation, url } = await refereeOf(platform);
  const path = `${url}/public/external-app/operation/a-token?operationId=op`;
  await expect(exchange(path, 'GET', ['Host', 'r'])).rejects.toThrow();
  await exchange(path, 'GET', ['Host', 'r']);
  await expect.poll(() => observation.calls.length).toBe(2);
  expect(
    driftRecordOf(observation.calls).exchanges.map(({ call: name, facts }) => [name, facts['body.status']]),
  ).toEqual([['getOperation', 'word']]);
});
