/** The pages of operators at `/ops`. */
import { Writable } from 'node:stream';
import { pino } from 'pino';
import supertest from 'supertest';
import { describe, expect, test } from 'vitest';
import { readAppConfig } from '../../src/app/config.ts';
import { apiKey, startSandbox } from '../support/sandbox.ts';
import { launchApp, smallRun, startApp } from '../support/app.ts';

const adminKey = 'an-admin-key-of-32-characters-or-more';

async function startWithKey() {
  const sandbox = await startSandbox();
  const lines: string[] = [];
  const log = pino(
    { level: 'trace' },
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        lines.push(chunk.toString());
        done();
      },
    }),
  );
  const app = await startApp(sandbox.url, { env: { ADMIN_KEY: adminKey }, log });
  return { sandbox, app, lines, read: (path: string) => supertest(app.handler).get(path).auth('admin', adminKey) };
}

test('without ADMIN_KEY there are no such pages', async () => {
  const app = await startApp((await startSandbox()).url);
  await supertest(app.handler).get('/ops').auth('admin', '').expect(404);
});

test('a short ADMIN_KEY is refused with what would be right, and without the key', () => {
  const env = { PLATFORM_URL: 'http://127.0.0.1:1', PLATFORM_API_KEY: apiKey, APP_SECRET: 'x'.repeat(32) };
  expect(() => readAppConfig({ ...env, ADMIN_KEY: 'short-key' }, () => {})).toThrow(
    /^ADMIN_KEY must have at least 32 characters: make one with openssl rand -base64 32$/,
  );
});

describe('with ADMIN_KEY', () => {
  test('only the key opens them; wrong ones are limited, and the right one still works', async () => {
    const { app, lines, read } = await startWithKey();
    const ask = (header: string) => supertest(app.handler).get('/ops').set('Authorization', header);
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
    const refused = await supertest(app.handler).get('/ops').expect(401);
    expect(refused.text).toContain('admin_key_required');
    expect(refused.headers['www-authenticate']).toBe('Basic realm="operators", charset="UTF-8"');
    for (const header of [
      basic(`admin:${adminKey.slice(1)}`),
      basic(`${adminKey}:`),
      basic('admin'),
      `Bearer ${adminKey}`,
      'Basic !',
    ])
      await ask(header).expect(401);
    for (let i = 0; i < 5; i++) await ask(basic('admin:x'));
    await ask(basic('admin:x')).expect(429);
    await read('/ops/runs/none').expect(404);
    const page = await read('/ops').expect(200);
    expect(page.text).toContain('No runs');
    expect(page.headers['cache-control']).toBe('no-store');
    expect(lines.join('')).toContain('/ops');
    expect(lines.join('')).not.toContain(adminKey);
    expect(lines.join('')).not.toContain(basic(`admin:${adminKey}`).slice(6));
  });

  test('runs by state, a filter, and one run with its states and stages', { timeout: 60_000 }, async () => {
    const { sandbox, app, read } = await startWithKey();
    const { session } = await launchApp(sandbox, app);
    const { id } = await session.start(smallRun);
    await session.waitFor(id, 'AWAITING_APPROVAL');
    const overview = (await read('/ops').expect(200)).text;
    expect(overview).toContain('/ops?where=state%3DAWAITING_APPROVAL');
    expect(overview).toContain(`/ops/runs/${id}`);
    const list = async (where: string) => (await read(`/ops?where=${encodeURIComponent(where)}`).expect(200)).text;
    expect(await list('step=cog,since=1h')).toContain(`/ops/runs/${id}`);
    expect(await list('state=FAILED')).not.toContain(`/ops/runs/${id}`);
    expect(await list('stat=FAILED')).toMatch(/filter stat=FAILED: give state=.*Did you mean state/);
    const run = (await read(`/ops/runs/${id}`).expect(200)).text;
    for (const part of ['cog@', 'CREATED', 'AWAITING_APPROVAL']) expect(run).toContain(part);
    await session.post(`api/runs/${id}/cancel`);
  });

  test('failures of the last day by code', { timeout: 60_000 }, async () => {
    const { sandbox, app, read } = await startWithKey();
    const { launchId, session } = await launchApp(sandbox, app);
    const { id } = await session.start(smallRun);
    await session.waitFor(id, 'AWAITING_APPROVAL');
    await sandbox.control('POST', `launches/${launchId}/revoke`);
    await session.waitFor(id, 'FAILED');
    const page = (await read('/ops').expect(200)).text;
    expect(page).toContain('/ops?where=state%3DFAILED%2Ccode%3Dtoken_revoked%2Csince%3D24h');
    const run = (await read(`/ops/runs/${id}`).expect(200)).text;
    expect(run).toContain('token_revoked');
  });
});
