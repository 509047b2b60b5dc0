/** The referee must not accuse an app because of the sandbox's pauses, restarts, clock or deleted calls. */
import { Agent, get } from 'node:http';
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

/** Returns the rules that failed or warned. */
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
    // The machine slept, so only its clock advanced.
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
    /** Polls like an app that gives up a call after 1.5 s. Uses one connection, or a new one for each call. */
    const start = async (agent: Agent | false) => {
      const { launchId, token } = await sandbox.launch();
      const { operationId } = (await sandbox.app('POST', `/operation/${token}`, { body: { name: 'judged' } })).body;
      const url = `${server.url}/public/external-app/operation/${token}?operationId=${operationId}`;
      const poll = () =>
        new Promise<void>((resolve) => {
          const request = get(url, { agent, headers: { 'x-api-key': apiKey } }, (res) =>
            res.resume().once('end', resolve),
          );
          request.once('error', () => resolve());
          request.setTimeout(1_500, () => request.destroy());
        });
      return { launchId, poll, approve: () => sandbox.control('POST', `operations/${operationId}/approve`) };
    };
    const agent = new Agent({ keepAlive: true });
    const apps = [await start(agent), await start(false)];
    /** Polls every 2.5 s. */
    const pollAll = async (times: number) => {
      for (let i = 0; i < times; i++) await Promise.all([sleep(2_500), ...apps.map(({ poll }) => poll())]);
    };
    await pollAll(1);
    for (const { approve } of apps) await approve();
    server.child.kill('SIGSTOP');
    await pollAll(3);
    server.child.kill('SIGCONT');
    await pollAll(2);
    agent.destroy();
    for (const { launchId } of apps) {
      expect(await accused(sandbox, launchId)).toEqual([]);
      const polls = (await sandbox.trace(launchId)).filter(({ endpoint }) => endpoint === 'operation.status');
      expect(polls).toHaveLength(6);
      expect([polls[0], polls[4], polls[5]].map((one) => one!.delivered)).toEqual([true, true, true]);
    }
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
  // On a busy machine the sandbox may have been late before this poll, which then proves nothing.
  const last = (await second.trace(launchId)).findLast(({ endpoint }) => endpoint === 'operation.status');
  const wasLate = Number(last?.detail['lateMs'] ?? 0) >= 200;
  expect(await accused(second, launchId)).toEqual(wasLate ? [] : ['poll-interval']);
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
  await sleep(60); // The inserted calls must end before the next calls.
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
