/** The sandbox's own pauses, restarts and clock, its lost calls, and clients that have left: none of it is held against an app. */
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { steadyClock } from '../../src/sandbox/clock.ts';
import { testFolder } from '../support/folders.ts';
import { startServer } from '../support/processes.ts';
import {
  adminKey,
  apiKey,
  approvedOperation,
  sandboxClient,
  sendChunk,
  sendComplete,
  someBytes,
  startSandbox,
  type TestSandbox,
} from '../support/sandbox.ts';
import { onlyInAll } from '../support/tags.ts';

/** Rules that failed or warn. */
async function accused(sandbox: TestSandbox, launchId: string): Promise<string[]> {
  const { rules } = await sandbox.control('GET', `launches/${launchId}/verdict`);
  return rules.filter(({ result }) => result === 'failed' || result === 'warning').map(({ rule }) => rule);
}

describe('the clock', () => {
  test('small steps of the machine’s clock move no time; the machine’s sleep does', () => {
    let [wall, passed] = [1_000_000, 0];
    const now = steadyClock(
      () => wall,
      () => passed,
    );
    const after = (ms: number, step: number) => {
      passed += ms;
      wall += ms + step;
      return now();
    };
    expect(now()).toBe(1_000_000);
    expect(after(100, -800)).toBe(1_000_100);
    expect(after(100, 500)).toBe(1_000_200);
    // It slept: its clock went on alone.
    expect(after(0, 3_600_000)).toBe(wall);
    expect(after(100, 0)).toBe(wall);
  });
});

test(
  'a sandbox that stands still for 8 s accuses nobody who gave up calls meanwhile',
  { tags: [onlyInAll] },
  async () => {
    const server = await startServer('sandbox', ['--port', '0', '--seed', 'none', '--data', await testFolder()], {
      SANDBOX_API_KEY: apiKey,
      SANDBOX_ADMIN_KEY: adminKey,
    });
    const sandbox = sandboxClient(server.url, '', () => Promise.resolve(), adminKey);
    const { launchId, token } = await sandbox.launch();
    const { operationId } = (await sandbox.app('POST', `/operation/${token}`, { body: { name: 'judged' } })).body;
    /** As an app that gives up a call after 1.5 s, and asks again 2.5 s after it began. */
    const poll = async () => {
      const next = sleep(2_500);
      const url = `${server.url}/public/external-app/operation/${token}?operationId=${operationId}`;
      await fetch(url, { headers: { 'x-api-key': apiKey }, signal: AbortSignal.timeout(1_500) }).catch(() => null);
      await next;
    };
    await poll();
    await sandbox.control('POST', `operations/${operationId}/approve`);
    server.child.kill('SIGSTOP');
    for (let i = 0; i < 3; i++) await poll();
    server.child.kill('SIGCONT');
    for (let i = 0; i < 2; i++) await poll();
    expect(await accused(sandbox, launchId)).toEqual([]);
    const polls = (await sandbox.trace(launchId)).filter(({ endpoint }) => endpoint === 'operation.status');
    expect(polls.map(({ delivered }) => delivered)).toEqual([true, false, false, false, true, true]);
  },
);

test('the time between a stop and a start counts for nobody', async () => {
  const dataDir = await testFolder();
  let now = Date.now();
  const options = { dataDir, machineNow: () => now };
  const first = await startSandbox(options);
  const { launchId, token } = await first.launch();
  const { operationId } = (await first.app('POST', `/operation/${token}`, { body: { name: 'judged' } })).body;
  const poll = (at: TestSandbox) => at.app('GET', `/operation/${token}?operationId=${operationId}`);
  now += 3_000;
  await poll(first);
  await first.close();
  now += 6_500;
  const second = await startSandbox(options);
  now += 1_000;
  await poll(second);
  expect(await accused(second, launchId)).toEqual([]);
  now += 12_000;
  await poll(second);
  expect(await accused(second, launchId)).toEqual(['poll-interval']);
});

test('calls that were forgotten for want of room prove nothing', async () => {
  const sandbox = await startSandbox();
  const { launchId, token, operationId } = await approvedOperation(sandbox);
  await sandbox.app('GET', `/operation/${token}?operationId=${operationId}`);
  const database = new Sqlite(join(sandbox.dataDir, 'sandbox.db'));
  database
    .prepare(
      `insert into calls (launch_id, at, launch_at, endpoint, method, status, duration_ms, delivered, request_bytes, response_bytes, detail, path, request, response)
       with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 50100)
       select ?, ? + n, ? + n, 'user.detail', 'GET', 200, 1, 1, 0, 0, '{}', '/', '{}', '{}' from numbers`,
    )
    .run(launchId, Date.now(), Date.now());
  database.close();
  await sleep(60); // The made calls end before what follows.
  const { uploadId, key } = (
    await sandbox.app('POST', `/file/${token}/upload/initiate`, { body: { operationId, fileName: 'a.tif' } })
  ).body;
  const upload = { launchId, token, operationId, uploadId, key };
  const parts = 110;
  for (let n = 1; n <= parts; n++) await sendChunk(sandbox, upload, n, someBytes(10, n));
  await sendComplete(sandbox, upload, parts * 10);
  const kept = await sandbox.trace(launchId);
  expect(kept.length).toBeGreaterThan(parts);
  expect(kept.some(({ endpoint }) => endpoint === 'operation.status')).toBe(false);
  expect(await accused(sandbox, launchId)).toEqual([]);
});

test('an answer to HEAD, and one that says to be of another type, told nothing', async () => {
  const sandbox = await startSandbox({ isBroken: true });
  const { launchId, token, operationId } = await approvedOperation(sandbox);
  const path = `/operation/${token}?operationId=${operationId}`;
  await sandbox.control('POST', 'faults', {
    launchId,
    endpoint: 'operation.status',
    after: 1,
    times: 3,
    effect: { contentType: 'text/html' },
  });
  await fetch(`${sandbox.url}/public/external-app${path}`, { method: 'HEAD', headers: { 'x-api-key': apiKey } });
  for (let i = 0; i < 3; i++) await sandbox.app('GET', path);
  await sandbox.app('POST', `/file/${token}/upload/initiate`, { body: { operationId, fileName: 'a.tif' } });
  expect(await accused(sandbox, launchId)).toEqual(['upload-after-approval']);
});
