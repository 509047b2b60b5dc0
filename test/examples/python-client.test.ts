// @module-tag all
/** The client in Python keeps the rules of the kit's own: retries, tokens and uploads, on a platform that fails at every call. */
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/needs.mjs';
import { sourceTypes } from '../../src/contract/index.ts';
import { uploadDirectly } from '../support/files.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { needing, python, unless } from '../support/needs.ts';
import { json, startScriptedServer } from '../support/scripted-server.ts';
import { apiKey, startSandbox, type TestSandbox } from '../support/sandbox.ts';

const folder = join(projectRoot, 'examples/python');
const mypy = findProgram(['mypy'], undefined);

/** Runs a part of the driver. Whatever it prints must be JSON. */
async function drive(part: 'flow' | 'catalog' | 'user', env: Record<string, string>): Promise<Record<string, unknown>> {
  const child = spawn('python3', [join(projectRoot, 'test/support/drive_platform_client.py'), part], {
    env: {
      PATH: process.env['PATH'],
      CLIENT_FOLDER: folder,
      PLATFORM_API_KEY: apiKey,
      PYTHONDONTWRITEBYTECODE: '1',
      ...env,
    },
  });
  let [out, problems] = ['', ''];
  child.stdout.on('data', (text: Buffer) => (out += text.toString()));
  child.stderr.on('data', (text: Buffer) => (problems += text.toString()));
  await new Promise((resolve) => child.once('close', resolve));
  expect(problems).toBe('');
  // The driver prints one object.
  return JSON.parse(out) as Record<string, unknown>;
}

const raster = (side: number) => geoTiff({ width: side, height: side, value: (x, y) => (x * 7 + y * 13) % 60_000 });

async function bigFile(bytes: Uint8Array): Promise<string> {
  const path = join(await testFolder(), 'scene.tif');
  await writeFile(path, bytes);
  return path;
}

/** Approves the operation of a launch when it comes. */
async function approveOf(sandbox: TestSandbox, launchId: string) {
  for (;;) {
    const { operations } = await sandbox.control('GET', `launches/${launchId}`);
    if (operations[0]) return sandbox.control('POST', `operations/${operations[0].operationId}/approve`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const effects = {
  'no failure': [],
  'failures at every call': [
    ['user.detail', { status: 503, retryAfterSeconds: 1 }],
    ['operation.create', { dropResponse: true }],
    ['operation.status', { reset: true }],
    ['upload.initiate', { status: 429, retryAfterSeconds: 1 }],
    ['upload.chunk', { dropResponse: true }],
    ['upload.chunk', { truncate: true }],
    ['upload.chunk', { reset: true }],
    ['upload.complete', { dropResponse: true }],
  ],
  'a chunk that something in between finds too large': [['upload.chunk', { status: 413 }]],
} as const;

describe('the flow', needing(python), () => {
  test.each(Object.entries(effects))('%s', { timeout: 60_000 }, async (_, faults) => {
    const sandbox = await startSandbox({ isBroken: true });
    const { token, launchId } = await sandbox.launch({ renewPolicy: 'rotate' });
    // Each comes once, one after the other.
    for (const [i, [endpoint, effect]] of faults.entries())
      await sandbox.control('POST', 'faults', {
        launchId,
        endpoint,
        after: faults.slice(0, i).filter(([earlier]) => earlier === endpoint).length,
        effect,
      });
    const bytes = raster(300);
    const approved = approveOf(sandbox, launchId);
    const env = { PLATFORM_URL: sandbox.url, PLATFORM_TOKEN: token, FILE: await bigFile(bytes), CHUNK_BYTES: '131072' };
    const done = await drive('flow', env);
    await approved;
    expect(done).toMatchObject({ status: 'APPROVED', file: { size: bytes.length } });
    const armed = (await sandbox.control('GET', 'faults')).faults;
    expect(armed.filter(({ fired }) => fired === 0)).toEqual([]);
    const { operations } = await sandbox.control('GET', `launches/${launchId}`);
    expect(operations).toHaveLength(1);
    const { fileId } = done['file'] as { fileId: string };
    const download = await sandbox.request('GET', `/public/file/download/url?fileId=${fileId}`, {
      headers: { 'x-api-key': apiKey },
    });
    const fetched = Buffer.from(await (await fetch(download.text)).arrayBuffer());
    expect(createHash('sha256').update(fetched).digest('hex')).toBe(createHash('sha256').update(bytes).digest('hex'));
    const verdict = await sandbox.control('GET', `launches/${launchId}/verdict`);
    expect(verdict.rules.filter(({ result }) => result === 'failed')).toEqual([]);
  });

  test('a token that ended, and that a renewal replaces', { timeout: 60_000 }, async () => {
    const sandbox = await startSandbox();
    const { token, launchId } = await sandbox.launch({ renewPolicy: 'rotate' });
    await sandbox.advance(61 * 60_000, launchId);
    const approved = approveOf(sandbox, launchId);
    const bytes = raster(10);
    const done = await drive('flow', {
      PLATFORM_URL: sandbox.url,
      PLATFORM_TOKEN: token,
      FILE: await bigFile(bytes),
      CHUNK_BYTES: '100',
    });
    await approved;
    expect(done).toMatchObject({ status: 'APPROVED', file: { size: bytes.length } });
    expect(done['names']).toHaveLength(4);
    const renewals = (await sandbox.trace(launchId)).filter(({ endpoint }) => endpoint === 'token.renew');
    expect(renewals).toHaveLength(1);
  });
});

describe('a platform that misbehaves', needing(python), () => {
  const token = `token-${randomBytes(12).toString('hex')}`;
  const user = (answer: Parameters<typeof startScriptedServer>[0], ...more: Parameters<typeof startScriptedServer>) =>
    startScriptedServer(answer, ...more).then(async (server) => {
      const said = await drive('user', { PLATFORM_URL: server.url, PLATFORM_TOKEN: token });
      expect(JSON.stringify(said).includes(token) || JSON.stringify(said).includes(apiKey)).toBe(false);
      return { said, requests: server.requests };
    });

  test('a redirect is not followed, and the key stays here', async () => {
    const thief = await startScriptedServer(json(200, { id: 'thief' }));
    const { said } = await user(json(302, {}, { Location: `${thief.url}/public` }));
    expect(said).toMatchObject({ status: 302 });
    expect(thief.requests).toEqual([]);
  });

  test('a refusal is not tried again, and half an answer is', async () => {
    const refused = await user(json(404, { error: 'Token not found', code: 'token_not_found' }));
    expect([refused.requests.length, refused.said]).toEqual([
      1,
      { error: 'user: 404 Token not found', status: 404, code: 'token_not_found' },
    ]);
    const half =
      'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\nConnection: close\r\n\r\n{"id": "u"';
    const notJson = json(200, {}).replace('{}', '{"');
    const mended = await user(notJson, half.replace('{"id": "u"', '{"id":"u"}'));
    expect([mended.requests.length, mended.said]).toEqual([2, { id: 'u' }]);
  });

  test('an error that repeats the token and the key holds neither', async () => {
    const echo = { error: `Cannot GET /user/${token}/detail with ${apiKey}`, code: 'validation_failed' };
    const { said } = await user(json(404, echo));
    expect(said).toMatchObject({ error: 'user: 404 Cannot GET /user/[redacted]/detail with [redacted]' });
  });

  test('a page of something in between is no answer', { timeout: 60_000 }, async () => {
    const page = json(200, {}).replace('application/json', 'text/html').replace('{}', 'hi');
    const { said, requests } = await user(page, json(200, { id: 'u' }));
    expect([requests.length, said]).toEqual([2, { id: 'u' }]);
  });

  test('a Retry-After of an hour is not waited for', { timeout: 10_000 }, async () => {
    const { said, requests } = await user(json(503, { error: 'away' }, { 'Retry-After': '3600' }));
    expect([said['status'], requests.length]).toEqual([503, 1]);
  });

  test('nobody there: the error has neither address nor token', { timeout: 60_000 }, async () => {
    const said = await drive('user', { PLATFORM_URL: 'http://127.0.0.1:9', PLATFORM_TOKEN: token });
    expect(said).toEqual({ error: 'user: no answer (ConnectionRefusedError)', status: null, code: null });
  });
});

test('search, item, models and an inference job', needing(python), async () => {
  const sandbox = await startSandbox({ seed: 'demo' });
  const { token } = await sandbox.launch();
  const { body } = await uploadDirectly(sandbox, raster(64), 'scene.tif', 'MULTISPECTRAL');
  const done = await drive('catalog', { PLATFORM_URL: sandbox.url, PLATFORM_TOKEN: token, FILE_ID: body.fileId });
  expect(done).toMatchObject({ item: expect.stringContaining('olinda') as string, file: body.fileId });
  expect(done['job']).toEqual(expect.any(String));
});

test('its kinds of data are those of section 2.8', async () => {
  const source = await readFile(join(folder, 'platform_client.py'), 'utf8');
  const listed = /SourceType = Literal\[([^\]]*)\]/.exec(source)![1]!;
  expect([...listed.matchAll(/"(\w+)"/g)].map(([, name]) => name)).toEqual([...sourceTypes]);
});

test('its types hold', needing(unless(mypy !== null, 'there is no mypy here', 'apt-get install mypy')), async () => {
  const child = spawn(mypy!, ['--strict', '--cache-dir', await testFolder(), join(folder, 'platform_client.py')]);
  let said = '';
  child.stdout.on('data', (text: Buffer) => (said += text.toString()));
  await new Promise((resolve) => child.once('close', resolve));
  expect(said).toContain('Success');
});
