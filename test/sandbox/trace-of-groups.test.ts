// @module-tag all
/** Calls that carry no identity token are in the trace of the launch that they belong to, and judged with it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { judge } from '../../src/sandbox/referee/verdict.ts';
import type { TracedCall } from '../../src/sandbox/referee/traced-call.ts';
import { key } from '../support/files.ts';
import { makeFolder } from '../support/folders.ts';
import {
  apiKey,
  openUpload,
  sendChunk,
  sendComplete,
  someBytes,
  startSandbox,
  type TestSandbox,
} from '../support/sandbox.ts';

interface Told {
  readonly calls: {
    endpoint: string;
    status: number;
    path: string;
    at: string;
    launchAt: string;
    detail: Record<string, unknown>;
  }[];
}
const traceOf = async (sandbox: TestSandbox, launchId: string | null) =>
  (await sandbox.request('GET', launchId === null ? '/sandbox/trace' : `/sandbox/launches/${launchId}/trace`))
    .body as unknown as Told;

async function launched(sandbox: TestSandbox) {
  const { body } = await sandbox.request('POST', '/sandbox/launches', { body: {} });
  return body;
}

async function anItem(sandbox: TestSandbox) {
  const { body } = await sandbox.request('GET', '/public/stac/collections/coastal-optical/items?limit=1', {
    headers: key,
  });
  return (body as unknown as { features: { id: string; assets: { data: { href: string } } }[] }).features[0]!;
}

async function operationFor(sandbox: TestSandbox, token: string, itemId: string) {
  const { body } = await sandbox.request('POST', `/public/external-app/operation/${token}`, {
    headers: key,
    body: {
      name: 'ndvi',
      parameters: { input: { type: 'items', items: [{ collectionId: 'coastal-optical', itemId }] } },
    },
  });
  return body.operationId;
}

const resultOf = async (sandbox: TestSandbox, launchId: string, rule: string) =>
  (
    (await sandbox.request('GET', `/sandbox/launches/${launchId}/verdict`)).body as unknown as {
      advisories: { rule: string; result: string }[];
    }
  ).advisories.find((one) => one.rule === rule)!.result;

test('data of an item belongs to the launch whose operation names it; before the approval it is a warning', async () => {
  const sandbox = await startSandbox({ seed: 'demo' });
  const [early, late, other] = [await launched(sandbox), await launched(sandbox), await launched(sandbox)];
  const item = await anItem(sandbox);
  await operationFor(sandbox, early.token, item.id);
  await sandbox.request('POST', '/sandbox/clock', { body: { advanceMs: 60_000, launchId: early.launchId } });
  expect((await fetch(item.assets.data.href, { headers: { range: 'bytes=0-9' } })).status).toBe(206);
  await sleep(20);
  // If two operations name the item, the approved one counts: a user with an answer may fetch.
  const approved = await operationFor(sandbox, late.token, item.id);
  await sandbox.request('POST', `/sandbox/operations/${approved}/approve`, { body: {} });
  await operationFor(sandbox, late.token, item.id);
  const whole = await fetch(item.assets.data.href);
  expect(whole.status).toBe(200);
  await whole.arrayBuffer();
  // Refused: nobody got anything.
  expect((await fetch(`${item.assets.data.href}x`)).status).toBe(403);
  await sleep(20);
  const { calls } = await traceOf(sandbox, early.launchId);
  const data = calls.find(({ endpoint }) => endpoint === 'stac.data')!;
  expect(data).toMatchObject({ status: 206, detail: { itemId: item.id, operationStatus: 'REQUESTED' } });
  expect(data.path).not.toContain('?');
  expect(Date.parse(data.launchAt) - Date.parse(data.at)).toBeGreaterThanOrEqual(60_000);
  await expect.poll(() => resultOf(sandbox, early.launchId, 'no-data-before-approval')).toBe('warning');
  await expect.poll(() => resultOf(sandbox, late.launchId, 'no-data-before-approval')).toBe('passed');
  expect(await resultOf(sandbox, other.launchId, 'no-data-before-approval')).toBe('not_exercised');
});

test('no key and no token of anybody’s stands in a trace, wherever it came', async () => {
  const sandbox = await startSandbox();
  const { token, launchId } = await launched(sandbox);
  const other = await launched(sandbox);
  const form = (secret: string) => [secret, encodeURIComponent(`/${secret}`), Buffer.from(secret).toString('base64')];
  for (const secret of [...form(other.token), ...form(apiKey)]) {
    const headers = { ...key, 'user-agent': secret };
    await sandbox.request('GET', `/public/stac/collections/${encodeURIComponent(secret)}`, { headers });
    await sandbox.request('GET', `/public/file/status/${encodeURIComponent(secret)}`, { headers });
    await sandbox.request('POST', '/public/stac/search', { headers, body: { collections: [secret], [secret]: 1 } });
    await sandbox.request('POST', `/public/external-app/operation/${token}`, {
      headers,
      body: { name: secret, parameters: { [secret]: [secret] } },
    });
  }
  await sleep(20);
  for (const path of ['trace', `launches/${launchId}/trace`])
    for (const format of ['json', 'har']) {
      const { text } = await sandbox.request('GET', `/sandbox/${path}?format=${format}`);
      expect(text).toContain('[redacted]');
      for (const secret of [...form(other.token), ...form(apiKey), token]) expect(text).not.toContain(secret);
    }
});

test('a key of an app’s own tells its calls apart; those of any other are nobody’s', async () => {
  const sandbox = await startSandbox({ seed: 'demo' });
  const { launchId } = await launched(sandbox);
  const { apps } = (await sandbox.request('GET', '/sandbox/apps')).body as unknown as { apps: { id: string }[] };
  const made = await sandbox.request('POST', '/sandbox/keys', {
    body: { permissions: ['files_admin', 'inference'], appId: apps[0]!.id },
  });
  expect(made.status).toBe(201);
  const own = { 'x-api-key': made.body.apiKey };
  const search = { bbox: [-180, -90, 180, 90], collections: ['coastal-optical'], datetime: '2000-01-01T00:00:00Z/..' };
  await sandbox.request('POST', '/public/stac/search', { headers: own, body: search });
  await sandbox.request('GET', '/public/inference/models', { headers: own });
  await sandbox.request('GET', '/public/file/status/none', { headers: own });
  await sandbox.request('GET', '/public/inference/models', { headers: key });
  await sleep(20);
  expect((await traceOf(sandbox, launchId)).calls.map(({ endpoint, status }) => [endpoint, status])).toEqual([
    ['stac.search', 200],
    ['inference.models', 200],
    ['file.status', 404],
  ]);
  expect((await traceOf(sandbox, null)).calls.map(({ endpoint }) => endpoint)).toEqual(['inference.models']);
  const text = JSON.stringify([await traceOf(sandbox, launchId), await traceOf(sandbox, null)]);
  expect(text).not.toContain(made.body.apiKey);
  expect(text).not.toContain(apiKey);
  expect(
    (await sandbox.request('POST', '/sandbox/keys', { body: { permissions: ['inference'], appId: 'none' } })).status,
  ).toBe(404);
});

test('a download belongs to the launch that delivered the file, not to the newest launch of the app', async () => {
  const sandbox = await startSandbox({ seed: 'demo' });
  const { apps } = (await sandbox.request('GET', '/sandbox/apps')).body as unknown as { apps: { id: string }[] };
  const appId = apps[0]!.id;
  const upload = await openUpload(sandbox, 'a.tif', await sandbox.launch({ appId }));
  await sendChunk(sandbox, upload, 1, someBytes(10));
  const { fileId } = (await sendComplete(sandbox, upload, 10)).body;
  const second = await sandbox.launch({ appId });
  const made = await sandbox.request('POST', '/sandbox/keys', { body: { permissions: ['files_admin'], appId } });
  const headers = { 'x-api-key': made.body.apiKey };
  const asked = await sandbox.request('GET', `/public/file/download/url?fileId=${fileId}`, { headers });
  expect(asked.status).toBe(200);
  const downloadsOf = async (launchId: string) =>
    (await traceOf(sandbox, launchId)).calls.filter(({ endpoint }) => endpoint === 'file.download').length;
  await expect.poll(() => downloadsOf(upload.launchId)).toBe(1);
  expect(await downloadsOf(second.launchId)).toBe(0);
});

/** So that a response that the caller has is over for the server too, whatever its clock says. */
async function turns(): Promise<void> {
  for (let i = 0; i < 200; i++) await new Promise((resolve) => setImmediate(resolve));
}

test('nobody’s calls are told as soon as they were answered, in order; a stop keeps them, a reset forgets them', async () => {
  const dataDir = await makeFolder();
  const sandbox = await startSandbox({ dataDir });
  const asked = ['/public/inference/models', '/public/file/status/none', '/public/inference/models'];
  const endpoints = ['inference.models', 'file.status', 'inference.models'];
  const told = async (from: TestSandbox) => (await traceOf(from, null)).calls.map(({ endpoint }) => endpoint);
  // No timer writes them: whoever asks does, and the stop.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  for (const path of asked) await sandbox.request('GET', path, { headers: key });
  await turns();
  expect(await told(sandbox)).toEqual(endpoints);
  await sandbox.request('GET', asked[0]!, { headers: key });
  await turns();
  await sandbox.close();
  vi.useRealTimers();
  const again = await startSandbox({ dataDir });
  expect(await told(again)).toEqual([...endpoints, 'inference.models']);
  for (const path of asked) await again.request('GET', path, { headers: key });
  await again.request('POST', '/sandbox/reset');
  expect(await told(again)).toEqual([]);
  await sleep(50);
  expect(await told(again)).toEqual([]);
});

test('a status call that does not wait as Retry-After asks is a warning; one that does is none', async () => {
  const sandbox = await startSandbox();
  const [hasty, patient] = [await launched(sandbox), await launched(sandbox)];
  for (const [{ launchId, token }, waitMs] of [
    [hasty, 0],
    [patient, 1_050],
  ] as const) {
    await sandbox.request('POST', '/sandbox/faults', {
      body: { launchId, endpoint: 'user.detail', effect: { status: 429, retryAfterSeconds: 1 } },
    });
    const ask = () => sandbox.request('GET', `/public/external-app/user/${token}/detail`, { headers: key });
    expect((await ask()).status).toBe(429);
    await sleep(waitMs);
    expect((await ask()).status).toBe(200);
  }
  await sleep(20);
  expect([
    await resultOf(sandbox, hasty.launchId, 'retry-after'),
    await resultOf(sandbox, patient.launchId, 'retry-after'),
  ]).toEqual(['warning', 'passed']);
});

test('of several operations each has its own wait', () => {
  const call = (id: number, at: number, operationId: string, status = 200): TracedCall => ({
    id,
    at,
    endedAt: at + 1,
    endpoint: 'operation.status',
    status,
    delivered: true,
    detail: { operationId, operationStatus: 'REQUESTED', ...(status === 429 ? { retryAfterSeconds: 5 } : {}) },
  });
  const result = (calls: readonly TracedCall[]) =>
    judge(calls).advisories.find(({ rule }) => rule === 'retry-after')!.result;
  expect(result([call(1, 0, 'a', 429), call(2, 2_500, 'b'), call(3, 5_000, 'a')])).toBe('passed');
  expect(result([call(1, 0, 'a', 429), call(2, 2_500, 'a')])).toBe('warning');
  expect(result([call(1, 0, 'a', 429)])).toBe('not_exercised');
});
