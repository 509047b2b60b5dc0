/** Separation of launches, and the frames where the app belongs. */
import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { launchApp, smallRun, startApp, type StartAppOptions } from '../support/app.ts';
import { routesOf, type Route } from '../support/routes.ts';
import { startSandbox } from '../support/sandbox.ts';

async function start(options: StartAppOptions = {}) {
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url, options);
  return { sandbox, app };
}

/** Routes that are open to everybody, or that begin a launch. */
const open = [
  'GET /',
  'GET /health',
  'GET /ready',
  'GET /metrics',
  'GET /manifest',
  'GET /assets/icon',
  'HEAD /launch',
  'GET /launch',
  'POST /launch',
];

test("one user can neither see nor touch another's run: 404 on every route that the app has", async () => {
  const { sandbox, app } = await start();
  const owner = await launchApp(sandbox, app, { userId: 'amina' });
  const stranger = await launchApp(sandbox, app, { userId: 'bruno' });
  const { id } = await owner.session.start(smallRun);
  const routes = routesOf(app.handler);
  expect(routes.filter(({ path }) => path.includes('/runs')).length).toBeGreaterThan(4);
  const own = routes.filter(({ method, path }) => !open.includes(`${method} ${path}`));
  expect(own.length).toBe(routes.length - open.length);
  const call = ({ method, path }: Route, home: string, cookie: string) => {
    const address = path.replace(/^\/launches\/:launchId\/?/, '').replace(':runId', id);
    return fetch(new URL(address, home), {
      method,
      redirect: 'manual',
      headers: { cookie, 'content-type': 'application/json' },
      ...(method === 'GET' ? {} : { body: '{}' }),
    });
  };
  for (const route of own) {
    // With the stranger's cookie at the owner's address, and without any.
    for (const cookie of [stranger.session.cookie, ''])
      expect((await call(route, owner.session.home, cookie)).status, `${route.method} ${route.path}`).toBe(404);
  }
  // The owner's run under the stranger's own launch.
  for (const route of own.filter(({ path }) => path.includes(':runId')))
    expect(
      (await call(route, stranger.session.home, stranger.session.cookie)).status,
      `${route.method} ${route.path}`,
    ).toBe(404);
  const run = await owner.session.waitFor(id, 'AWAITING_APPROVAL');
  expect(run.state).toBe('AWAITING_APPROVAL');
});

describe('frames', () => {
  const secure = (url: string, path: string) =>
    new Promise<{
      cookie: string;
      cookies: readonly string[];
      policy: string;
      frame: string | undefined;
      status: number | undefined;
    }>((resolve, reject) => {
      request(`${url}${path}`, { headers: { 'x-forwarded-proto': 'https' } }, (res) => {
        res.resume();
        resolve({
          cookie: res.headers['set-cookie']?.[0] ?? '',
          cookies: res.headers['set-cookie'] ?? [],
          policy: String(res.headers['content-security-policy']),
          frame: res.headers['x-frame-options'] as string | undefined,
          status: res.statusCode,
        });
      })
        .on('error', reject)
        .end();
    });

  test('EMBEDDED_IN: that origin may frame the app, and over TLS the cookie works there', async () => {
    const { sandbox, app } = await start({ env: { EMBEDDED_IN: 'https://platform.example', TRUST_PROXY: 'true' } });
    await sandbox.control('POST', 'apps', { id: 'tested', name: 'Tested', launchUrl: `${app.url}/launch` });
    const { launchUrl } = await sandbox.launch({ appId: 'tested' });
    const answer = await secure(app.url, launchUrl.slice(app.url.length));
    expect(answer.status).toBe(303);
    expect(answer.cookie).toMatch(/; HttpOnly; Secure; Partitioned; SameSite=None$/);
    // Browsers drop a cookie of another site that is not secure.
    expect(answer.cookies).toHaveLength(2);
    for (const cookie of answer.cookies) expect(cookie).toMatch(/; HttpOnly; Secure; Partitioned; SameSite=None$/);
    expect(answer.policy).toContain("frame-ancestors 'self' https://platform.example");
    expect(answer.frame).toBeUndefined();
  });

  test('without it nobody else may, and the cookie stays at home', async () => {
    const { sandbox, app } = await start({ env: { TRUST_PROXY: 'true' } });
    await sandbox.control('POST', 'apps', { id: 'tested', name: 'Tested', launchUrl: `${app.url}/launch` });
    const { launchUrl } = await sandbox.launch({ appId: 'tested' });
    const answer = await secure(app.url, launchUrl.slice(app.url.length));
    expect(answer.cookie).toMatch(/; HttpOnly; Secure; SameSite=Lax$/);
    expect(answer.policy).toContain("frame-ancestors 'self'");
    expect(answer.policy).not.toContain('platform.example');
    expect(answer.frame).toBe('SAMEORIGIN');
  });

  test.each(['https://platform.example/', 'platform.example', 'https://platform.example/path', 'null'])(
    'EMBEDDED_IN=%s stops the start',
    async (value) => {
      await expect(start({ env: { EMBEDDED_IN: value } })).rejects.toThrow(/EMBEDDED_IN/);
    },
  );
});

test('too many launches from one address: 429 with Retry-After; the token is still good later', async () => {
  const { sandbox, app } = await start({ env: { LAUNCHES_PER_MINUTE: '3' } });
  await launchApp(sandbox, app);
  for (let i = 0; i < 2; i++) await fetch(`${app.url}/launch?token=nothing`, { redirect: 'manual' });
  const { launchUrl } = await sandbox.launch({ appId: 'tested' });
  const refused = await fetch(launchUrl, { redirect: 'manual' });
  expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true]);
  expect(await refused.text()).toContain('Try again in a minute');
  expect((await fetch(`${app.url}/health`)).status).toBe(200);
});
