// @module-tag all
/** No secret in a log, an error, a trace, a data folder, a page or a command line: with every process at trace level, error paths included. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { openSession, type BrowserSession } from '../support/app.ts';
import { testFolder } from '../support/folders.ts';
import { findLeaks, formsOf, readFolder } from '../support/leaks.ts';
import { startServer, type Server } from '../support/processes.ts';
import { sandboxClient, type TestSandbox } from '../support/sandbox.ts';

const key = 'odd+key/with=signs&more%41-0123456789';
const appSecret = 'the-secret-of-the-app-0123456789-abcdef';

async function endOf(session: BrowserSession, id: string): Promise<string> {
  for (;;) {
    const run = await session.run(id);
    if (run.isFinal) return run.state;
    await sleep(50);
  }
}

/** Runs that go well, are refused, fail and are cut, under both renewal policies. */
async function exercise(
  sandbox: TestSandbox,
  appUrl: string,
): Promise<{ secrets: string[]; seen: Map<string, string> }> {
  const secrets: string[] = [];
  const seen = new Map<string, string>();
  await sandbox.control('POST', 'apps', { id: 'tested', name: 'Tested', launchUrl: `${appUrl}/launch` });
  const launch = async (renewPolicy: 'extend' | 'rotate') => {
    const launched = await sandbox.launch({ appId: 'tested', renewPolicy });
    secrets.push(launched.token);
    return { ...launched, session: await openSession(launched.launchUrl) };
  };
  const run = { stepId: 'cog', input: { type: 'synthetic', size: 64 } };
  const waiting = async (session: BrowserSession) =>
    session.waitFor((await session.start(run)).id, 'AWAITING_APPROVAL');

  const good = await launch('rotate');
  for (const [endpoint, effect] of [
    ['upload.chunk', { reset: true }],
    ['upload.initiate', { status: 500 }],
    ['upload.complete', { dropResponse: true }],
    ['operation.status', { reset: true }],
  ] as const) {
    await sandbox.control('POST', 'faults', { launchId: good.launchId, endpoint, effect });
  }
  const first = await waiting(good.session);
  await sandbox.control('POST', `operations/${first.operationId}/approve`);
  await good.session.waitFor(first.id, 'APPROVED', 'PROCESSING', 'UPLOADING');
  await sandbox.advance(61 * 60_000, good.launchId);
  expect(await endOf(good.session, first.id)).toBe('COMPLETED');
  // The token in force by now, as an attacker with the sandbox's answers would see it.
  const renewed = await sandbox.request('POST', `/public/external-app/token/${good.token}/renew`, {
    headers: { 'x-api-key': key },
  });
  expect(renewed.status).toBe(403);

  const revoked = await launch('extend');
  const failing = await waiting(revoked.session);
  await sandbox.control('POST', `launches/${revoked.launchId}/revoke`);
  expect(await endOf(revoked.session, failing.id)).toBe('FAILED');

  for (const [name, url] of [
    ['replayed', good.launchUrl],
    ['unknown', `${appUrl}/launch?token=${good.token}x`],
    ['twice', `${good.launchUrl}&token=${good.token}`],
  ]) {
    const answer = await fetch(url!, { redirect: 'manual' });
    expect(answer.status).toBeGreaterThanOrEqual(400);
    seen.set(`page ${name}`, (await answer.text()) + JSON.stringify([...answer.headers]));
  }
  // Requests that are wrong in ways that tempt a server to repeat them.
  await sandbox.request('POST', `/public/external-app/operation/${good.token}`, {
    body: '{',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
  });
  await sandbox.request('GET', `/public/external-app/user/${good.token}/detail?key=${encodeURIComponent(key)}`, {
    headers: { 'x-api-key': `${key}x` },
  });
  await sandbox.request('GET', `/public/external-app/operation/${good.token}?operationId=${good.token}`, {
    headers: { 'x-api-key': key },
  });
  await sandbox.request('GET', `/nowhere/${good.token}`);
  for (const { launchId, session } of [good, revoked]) {
    seen.set(`trace ${launchId}`, JSON.stringify(await sandbox.trace(launchId)));
    seen.set(`launch ${launchId}`, JSON.stringify(await sandbox.control('GET', `launches/${launchId}`)));
    seen.set(`page ${launchId}`, await (await session.get('')).text());
    seen.set(`runs ${launchId}`, await (await session.get('api/runs')).text());
  }
  for (const list of ['operations', 'apps', 'keys', 'faults'])
    seen.set(list, JSON.stringify(await sandbox.control('GET', list)));
  return { secrets, seen };
}

test('token, API key and app secret stand nowhere', async () => {
  const [sandboxDir, appDir] = [await testFolder(), await testFolder()];
  const servers: Server[] = [];
  const start = async (...args: Parameters<typeof startServer>) => {
    const server = await startServer(...args);
    servers.push(server);
    return server;
  };
  const sandboxServer = await start('sandbox', ['--port', '0', '--data', sandboxDir], {
    SANDBOX_API_KEY: key,
    LOG_LEVEL: 'trace',
  });
  const app = await start('app', [], {
    PLATFORM_URL: sandboxServer.url,
    PLATFORM_API_KEY: key,
    APP_SECRET: appSecret,
    DATA_DIR: appDir,
    PORT: '0',
    POLL_INTERVAL_MS: '2000',
    LOG_LEVEL: 'trace',
  });
  const { secrets, seen } = await exercise(
    sandboxClient(sandboxServer.url, sandboxDir, async () => {}),
    app.url,
  );
  for (const server of servers) {
    seen.set(
      `command line ${server.child.pid}`,
      await readFile(`/proc/${server.child.pid}/cmdline`, 'latin1').catch(() => ''),
    );
    await server.kill('SIGTERM');
    seen.set(`output of ${server.url}`, server.output());
  }
  for (const [path, text] of [...(await readFolder(sandboxDir)), ...(await readFolder(appDir))]) seen.set(path, text);
  expect(servers[1]!.output()).toContain('run reached a state');
  expect(seen.size).toBeGreaterThan(15);
  expect(findLeaks([key, appSecret, ...secrets], seen)).toEqual([]);
});

describe('a planted leak is found', () => {
  const token = 'Zk3_planted-token-0123456789abcdefghijk';

  test.each(formsOf(token).map((form, i) => [i, form] as const))('form %d', (_i, form) => {
    expect(findLeaks([token], new Map([['log', `before ${form} after`]]))).not.toEqual([]);
  });

  test.each([0, 1, 2, 3, 4, 5])('inside other base64, after %d bytes', (shift) => {
    const text = Buffer.from(`${'x'.repeat(shift)}${token}{"more":1}`).toString('base64');
    expect(findLeaks([token], new Map([['log', text]]))).not.toEqual([]);
  });

  test('in a data folder', async () => {
    const folder = await testFolder();
    const { writeFile } = await import('node:fs/promises');
    await writeFile(join(folder, 'planted'), Buffer.concat([Buffer.from([0, 255, 1]), Buffer.from(token)]));
    expect(findLeaks([token], await readFolder(folder))).toHaveLength(1);
  });
});
