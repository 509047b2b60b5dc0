/** Steps 1 and 2 of spec 4.8, and the contract's "Tokens". */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

const minute = 60_000;
const hour = 60 * minute;

const renew = (sandbox: TestSandbox, token: string) => sandbox.app('POST', `/token/${token}/renew`);
const use = (sandbox: TestSandbox, token: string) => sandbox.app('GET', `/user/${token}/detail`);
const now = async (sandbox: TestSandbox) => Date.parse((await sandbox.control('GET', 'clock')).now);

test('a token is URL-safe, at least 128 bits, and lives 60 minutes to the millisecond', async () => {
  const sandbox = await startSandbox({ machineNow: () => 1_800_000_000_000 });
  const { launchId, token, expiresAt } = await sandbox.launch();
  expect(token).toMatch(/^[A-Za-z0-9_-]{22,}$/);
  expect(Date.parse(expiresAt) - (await now(sandbox))).toBe(60 * minute);
  await sandbox.advance(60 * minute - 1, launchId);
  expect((await use(sandbox, token)).status).toBe(200);
  await sandbox.advance(1, launchId);
  expect((await use(sandbox, token)).body).toMatchObject({ error: 'Token expired', code: 'token_expired' });
});

test('user details: id, email, name, organization of the launching user', async () => {
  const sandbox = await startSandbox();
  const { users } = await sandbox.control('GET', 'users');
  expect(users.length).toBe(2);
  for (const user of users) {
    const { token } = await sandbox.launch({ userId: user.id });
    const answer = await use(sandbox, token);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual(user);
    expect(Object.keys(answer.body).sort()).toEqual(['email', 'id', 'name', 'organization']);
  }
});

test('policy extend: renewal answers the same token with a later expiry', async () => {
  const sandbox = await startSandbox({ machineNow: () => 1_800_000_000_000 });
  const { launchId, token } = await sandbox.launch({ renewPolicy: 'extend' });
  await sandbox.advance(30 * minute, launchId);
  const answer = await renew(sandbox, token);
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ token, expiresAt: new Date(1_800_000_000_000 + 90 * minute).toISOString() });
  await sandbox.advance(60 * minute - 1, launchId);
  expect((await use(sandbox, token)).status).toBe(200);
});

test('only a renewal extends a token: use does not', async () => {
  const sandbox = await startSandbox();
  const { launchId, token } = await sandbox.launch();
  for (let i = 0; i < 6; i++) {
    expect((await use(sandbox, token)).status).toBe(200);
    await sandbox.advance(10 * minute, launchId);
  }
  expect((await use(sandbox, token)).body.code).toBe('token_expired');
});

test.each(['extend', 'rotate'] as const)(
  '%s: renewal is accepted up to 5 min after expiry, and not later',
  async (renewPolicy) => {
    const sandbox = await startSandbox({ machineNow: () => 1_800_000_000_000 });
    const inTime = await sandbox.launch({ renewPolicy });
    const late = await sandbox.launch({ renewPolicy });
    await sandbox.advance(65 * minute, inTime.launchId);
    await sandbox.advance(65 * minute + 1, late.launchId);
    const renewed = await renew(sandbox, inTime.token);
    expect(renewed.status).toBe(200);
    expect((await use(sandbox, renewed.body.token)).status).toBe(200);
    expect((await renew(sandbox, late.token)).body).toMatchObject({ error: 'Token expired', code: 'token_expired' });
  },
);

test.each(['extend', 'rotate'] as const)(
  '%s: no renewal carries a token past 12 h after the launch',
  async (renewPolicy) => {
    const sandbox = await startSandbox({ machineNow: () => 1_800_000_000_000 });
    const launch = await sandbox.launch({ renewPolicy });
    const launchedAt = await now(sandbox);
    let { token } = launch;
    for (let elapsed = 0; elapsed < 12 * hour;) {
      const renewed = await renew(sandbox, token);
      expect(renewed.status).toBe(200);
      expect(Date.parse(renewed.body.expiresAt)).toBe(Math.min(launchedAt + elapsed + hour, launchedAt + 12 * hour));
      token = renewed.body.token;
      const step = Math.min(50 * minute, 12 * hour - elapsed);
      await sandbox.advance(step, launch.launchId);
      elapsed += step;
    }
    // 12 h to the millisecond, when the token has just ended and its grace has just begun.
    expect((await renew(sandbox, token)).body).toMatchObject({ code: 'token_expired' });
    expect((await use(sandbox, token)).status).toBe(403);
  },
);

test('policy rotate: a new token; the old one works until the new one is first used', async () => {
  const sandbox = await startSandbox();
  const { token: old } = await sandbox.launch({ renewPolicy: 'rotate' });
  const { token: successor, expiresAt } = (await renew(sandbox, old)).body;
  expect(successor).not.toBe(old);
  expect((await use(sandbox, old)).status).toBe(200);
  // A lost answer: renewing the old one again answers the same successor.
  expect((await renew(sandbox, old)).body).toEqual({ token: successor, expiresAt });
  expect((await use(sandbox, old)).status).toBe(200);
  expect((await use(sandbox, successor)).status).toBe(200);
  expect((await use(sandbox, old)).body).toMatchObject({ error: 'Token revoked', code: 'token_revoked' });
  expect((await renew(sandbox, old)).body).toMatchObject({ code: 'token_revoked' });
  expect((await use(sandbox, successor)).status).toBe(200);
});

test('policy rotate: a renewal that is repeated late gives the same token a life of its own', async () => {
  const sandbox = await startSandbox();
  const { token: old, launchId } = await sandbox.launch({ renewPolicy: 'rotate' });
  const { token: successor, expiresAt } = (await renew(sandbox, old)).body;
  await sandbox.advance(62 * 60_000, launchId);
  const again = (await renew(sandbox, old)).body;
  expect(again.token).toBe(successor);
  expect(Date.parse(again.expiresAt) - Date.parse(expiresAt)).toBeGreaterThan(60 * 60_000);
  expect((await use(sandbox, successor)).status).toBe(200);
});

test('policy rotate: renewing the successor is a use of it', async () => {
  const sandbox = await startSandbox();
  const { token: first } = await sandbox.launch({ renewPolicy: 'rotate' });
  const { token: second } = (await renew(sandbox, first)).body;
  const { token: third } = (await renew(sandbox, second)).body;
  expect(new Set([first, second, third]).size).toBe(3);
  expect((await use(sandbox, first)).body.code).toBe('token_revoked');
  expect((await use(sandbox, second)).status).toBe(200);
});

test('operations and uploads belong to the launch and stay valid across renewals', async () => {
  const sandbox = await startSandbox();
  const { token: old } = await sandbox.launch({ renewPolicy: 'rotate' });
  const { operationId } = (await sandbox.app('POST', `/operation/${old}`, { body: { name: 'x' } })).body;
  const { token } = (await renew(sandbox, old)).body;
  expect((await sandbox.app('GET', `/operation/${token}?operationId=${operationId}`)).body.status).toBe('REQUESTED');
});

test('revoked: renewal and use are 403 Token revoked, for the successor too', async () => {
  const sandbox = await startSandbox();
  const { launchId, token } = await sandbox.launch({ renewPolicy: 'rotate' });
  const { token: successor } = (await renew(sandbox, token)).body;
  await sandbox.control('POST', `launches/${launchId}/revoke`);
  for (const held of [token, successor]) {
    expect((await renew(sandbox, held)).body.code).toBe('token_revoked');
    expect((await use(sandbox, held)).body.code).toBe('token_revoked');
  }
});

test('tokens and keys are not in the data folder', async () => {
  const sandbox = await startSandbox();
  const { token } = await sandbox.launch({ renewPolicy: 'rotate' });
  const { token: successor } = (await renew(sandbox, token)).body;
  const { apiKey } = await sandbox.control('POST', 'keys', { permissions: ['files_admin'] });
  const names = await readdir(sandbox.dataDir, { recursive: true, withFileTypes: true });
  for (const entry of names.filter((name) => name.isFile())) {
    const bytes = await readFile(join(entry.parentPath, entry.name), 'latin1');
    for (const secret of [token, successor, apiKey]) expect(bytes.includes(secret), entry.name).toBe(false);
  }
});
