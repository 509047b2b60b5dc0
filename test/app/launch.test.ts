/** The contract's "Launch". */
import { once } from 'node:events';
import { get, request, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { Secret } from '../../src/app/config.ts';
import { openDatabase } from '../../src/app/database.ts';
import { createTokenSealer } from '../../src/app/launch/sealed-token.ts';
import { hasBegunHere } from '../../src/app/launch/sessions.ts';
import { SqlSessionStore } from '../../src/app/launch/session-store.ts';
import { SqlLaunchStore } from '../../src/app/launch/sql-launch-store.ts';
import { launchApp, openSession, sessionOf, startApp, type StartAppOptions } from '../support/app.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testFolder } from '../support/folders.ts';
import { startSandbox } from '../support/sandbox.ts';

async function start(options: StartAppOptions = {}) {
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url, options);
  await sandbox.control('POST', 'apps', { id: 'tested', name: 'Tested', launchUrl: `${app.url}/launch` });
  const launch = (userId?: string) => sandbox.launch({ appId: 'tested', userId });
  return { sandbox, app, launch };
}

const open = (launchUrl: string) => fetch(launchUrl, { redirect: 'manual' });
const post = (url: string, token: string) =>
  fetch(`${url}/launch`, {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams({ token }),
    headers: { origin: 'https://marketplace.example' },
  });

test.each([
  ['sec-purpose', 'prefetch;prerender'],
  ['sec-purpose', 'prefetch'],
  ['purpose', 'prefetch'],
  ['x-purpose', 'preview'],
  ['x-moz', 'prefetch'],
])('a request ahead of its user (%s: %s) uses up nothing', async (name, value) => {
  const { launch } = await start();
  const { launchUrl } = await launch('bruno');
  const ahead = await fetch(launchUrl, { redirect: 'manual', headers: { [name]: value } });
  expect([ahead.status, ahead.headers.get('cache-control'), ahead.headers.getSetCookie()]).toEqual([
    503,
    'no-store',
    [],
  ]);
  expect((await open(launchUrl)).status).toBe(303);
});

describe.each(['query', 'form_post'])('%s', (mode) => {
  test('303 to an address without the token, in a new session; the page knows the user', async () => {
    const { app, launch } = await start();
    const { token, launchUrl } = await launch('bruno');
    const answer = mode === 'query' ? await open(launchUrl) : await post(app.url, token);
    expect(answer.status).toBe(303);
    const location = answer.headers.get('location') ?? '';
    expect(location).toMatch(/^\/launches\/[A-Za-z0-9_-]{22}\/$/);
    const [cookie] = answer.headers.getSetCookie();
    expect(cookie).toMatch(/^app\.sid=[^;]+; Path=\/launches\/[A-Za-z0-9_-]{22}; HttpOnly; SameSite=Lax$/);
    for (const [name, value] of answer.headers) expect(value, name).not.toContain(token);
    const session = sessionOf(answer, launchUrl);
    const page = await session.get('');
    expect(page.status).toBe(200);
    const text = await page.text();
    expect(text).toContain('Bruno Keller');
    expect(text).not.toContain(token);
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');
    expect(await (await session.get('api/launch')).json()).toMatchObject({ user: { id: 'bruno' } });
  });

  test('a token begins one session: replayed it is refused, and so is a race of two', async () => {
    const { app, launch } = await start();
    const { token, launchUrl } = await launch();
    const begin = () => (mode === 'query' ? open(launchUrl) : post(app.url, token));
    const raced = await Promise.all([begin(), begin(), begin()]);
    expect(raced.map(({ status }) => status).sort()).toEqual([303, 403, 403]);
    const replayed = await begin();
    expect(replayed.status).toBe(403);
    expect(replayed.headers.getSetCookie()).toEqual([]);
    expect(await replayed.text()).not.toContain(token);
  });
});

/** Opens an address as a browser's tab does: `fetch` would name itself another kind of client. */
function openTab(url: string, cookie = ''): Promise<{ status: number; location: string; cookies: string }> {
  return new Promise((resolve, reject) => {
    get(url, { headers: { 'sec-fetch-mode': 'navigate', ...(cookie && { cookie }) } }, (answer) => {
      answer.resume();
      const cookies = (answer.headers['set-cookie'] ?? []).map((line) => line.split(';')[0]).join('; ');
      resolve({ status: answer.statusCode ?? 0, location: answer.headers.location ?? '', cookies });
    }).once('error', reject);
  });
}

test('two tabs of one browser that open a launch at once get one session; another browser gets none', async () => {
  const { launch } = await start();
  const { launchUrl } = await launch();
  const tabs = await Promise.all([openTab(launchUrl), openTab(launchUrl)]);
  expect(tabs.map(({ status }) => status).toSorted()).toEqual([303, 307]);
  const first = tabs.find(({ status }) => status === 303)!;
  const second = tabs.find(({ status }) => status === 307)!;
  const again = new URL(second.location, launchUrl).href;
  expect(await openTab(again, first.cookies)).toMatchObject({ status: 303, location: first.location });
  expect(await openTab(again)).toMatchObject({ status: 403, cookies: '' });
});

test('two tabs of one browser that post a launch at once get one session', async () => {
  const { app, launch } = await start();
  const { token } = await launch();
  const tabs = await Promise.all([postInTab(`${app.url}/launch`, token), postInTab(`${app.url}/launch`, token)]);
  expect(tabs.map(({ status }) => status).toSorted()).toEqual([303, 307]);
  const [first, second] = [303, 307].map((status) => tabs.find((tab) => tab.status === status)!);
  const again = new URL(second!.location, app.url).href;
  expect(await postInTab(again, token, first!.cookies)).toMatchObject({ status: 303, location: first!.location });
  expect(await postInTab(again, token)).toMatchObject({ status: 403, cookies: '' });
});

/** Posts like a tab of a browser. `fetch` would set another `sec-fetch-mode`. */
async function postInTab(url: string, token: string, cookie = '') {
  const headers = { 'sec-fetch-mode': 'navigate', 'content-type': 'application/x-www-form-urlencoded', origin: 'https://marketplace.example', ...(cookie && { cookie }) }; // oxfmt-ignore
  const sending = request(url, { method: 'POST', headers }).end(new URLSearchParams({ token }).toString());
  const [answer] = (await once(sending, 'response')) as [IncomingMessage];
  answer.resume();
  const cookies = (answer.headers['set-cookie'] ?? []).map((line) => line.split(';')[0]).join('; ');
  return { status: answer.statusCode, location: answer.headers.location ?? '', cookies };
}

test.each([
  ['app.begun=aa.bb', true],
  ['sid=1; app.begun=aa.bb', true],
  ['sid=1; app.begun=bb; other=2', true],
  ['app.begun=aa; sid=bb', false],
  ['not-app.begun=bb', false],
])('the cookie %s', (cookie, hasBegun) => {
  expect(
    hasBegunHere({ session: {}, headers: { cookie } } as unknown as Parameters<typeof hasBegunHere>[0], 'bb'),
  ).toBe(hasBegun);
});

/** A browser's cookies of an address, by their paths. */
function jar() {
  const kept = new Map<string, { pair: string; path: string }>();
  return {
    take: (answer: Response) => {
      for (const line of answer.headers.getSetCookie()) {
        const [pair = '', path = '/'] = [line.split(';')[0], /; Path=([^;]+)/.exec(line)?.[1]];
        kept.set(`${pair.split('=')[0]} ${path}`, { pair, path });
      }
    },
    of: (pathname: string) =>
      [...kept.values()]
        .filter(({ path }) => pathname === path || pathname.startsWith(path.replace(/\/?$/, '/')))
        .map(({ pair }) => pair)
        .join('; '),
  };
}

describe.each(['query', 'form_post'])('the browser that began a session, %s', (mode) => {
  async function browser() {
    const it = await start();
    const cookies = jar();
    const begin = async ({ token, launchUrl }: { token: string; launchUrl: string }, signal?: AbortSignal) => {
      const answer = await fetch(mode === 'query' ? launchUrl : `${it.app.url}/launch`, {
        ...(mode === 'query' ? {} : { method: 'POST', body: new URLSearchParams({ token }) }),
        redirect: 'manual',
        headers: { cookie: cookies.of('/launch') },
        ...(signal && { signal }),
      });
      cookies.take(answer);
      return answer;
    };
    return { ...it, cookies, begin };
  }

  test('gets back into it, into each of several; another browser does not', async () => {
    const { app, cookies, launch, begin } = await browser();
    const launches = [await launch('amina'), await launch('bruno')];
    const begun = [];
    for (const one of launches) begun.push((await begin(one)).headers.get('location') ?? '');
    for (const [i, one] of launches.entries()) {
      const again = await begin(one);
      expect([again.status, again.headers.get('location')]).toEqual([303, begun[i]]);
      const home = new URL(begun[i]!, app.url);
      const page = await fetch(new URL('api/launch', home), { headers: { cookie: cookies.of(home.pathname) } });
      expect(await page.json()).toMatchObject({ user: { id: i === 0 ? 'amina' : 'bruno' } });
      const other = await (mode === 'query' ? open(one.launchUrl) : post(app.url, one.token));
      expect(other.status).toBe(403);
    }
  });

  test('gets back into its eight newest launches', async () => {
    const { launch, begin } = await browser();
    const launches = [];
    for (let i = 0; i < 9; i++) {
      launches.push(await launch());
      expect((await begin(launches[i]!)).status).toBe(303);
    }
    const answers = [];
    // The oldest comes last, because each of these requests makes its launch the newest again.
    for (const recent of launches.slice(1)) answers.push((await begin(recent)).status);
    answers.push((await begin(launches[0]!)).status);
    expect(answers).toEqual([303, 303, 303, 303, 303, 303, 303, 303, 403]);
  });

  test('is let in after a reload while the platform was slow', async () => {
    const { sandbox, launch, begin } = await browser();
    const one = await launch();
    await sandbox.control('POST', 'faults', {
      launchId: one.launchId,
      endpoint: 'user.detail',
      effect: { delayMs: 3_000 },
    });
    const impatient = new AbortController();
    const first = begin(one, impatient.signal);
    await new Promise((resolve) => setTimeout(resolve, 500));
    impatient.abort();
    await expect(first).rejects.toThrow();
    await new Promise((resolve) => setTimeout(resolve, 3_500));
    expect((await begin(one)).status).toBe(303);
  });
});

test('a browser that leaves while its session is stored begins it at its next request', async () => {
  const database = await openDatabase({ dataDir: await testFolder(), databaseUrl: null });
  const sessions = new SqlSessionStore(database, Date.now);
  const [reached, gate] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
  const set = sessions.set.bind(sessions);
  sessions.set = (id, data, done) => {
    reached.resolve(undefined);
    void gate.promise.then(() => set(id, data, done));
  };
  const { launch } = await start({ stores: { sessions } });
  cleanUpLater(() => database.destroy());
  const { launchUrl } = await launch();
  const leaving = new AbortController();
  const left = fetch(launchUrl, { redirect: 'manual', signal: leaving.signal });
  await reached.promise;
  leaving.abort();
  await expect(left).rejects.toThrow();
  // The app is in this process, and sees the end of the connection meanwhile.
  await new Promise((resolve) => setTimeout(resolve, 500));
  gate.resolve(undefined);
  await expect.poll(async () => (await open(launchUrl)).status).toBe(303);
});

test('the token that a renewal gave has begun the session too, and begins no second one', async () => {
  const database = await openDatabase({ dataDir: await testFolder(), databaseUrl: null });
  cleanUpLater(() => database.destroy());
  const launches = new SqlLaunchStore(database, createTokenSealer([new Secret('s'.repeat(32))]));
  const launch = { id: 'launch', user: { id: 'u' }, createdAtMs: 0 };
  // The platform renewed it when the user's details were asked.
  await launches.begin(launch, 'first', { token: 'second', expiresAtMs: null });
  expect(await Promise.all(['first', 'second', 'third'].map((token) => launches.begunBy(token)))).toEqual([
    'launch',
    'launch',
    null,
  ]);
  await launches.tokens('launch').write({ token: 'third', expiresAtMs: null });
  expect(await Promise.all(['first', 'third'].map((token) => launches.begunBy(token)))).toEqual(['launch', 'launch']);
});

test('reads of many tokens at once are one query, and see what another process wrote before', async () => {
  const database = await openDatabase({ dataDir: await testFolder(), databaseUrl: null });
  cleanUpLater(() => database.destroy());
  const queries = vi.fn();
  const counting = database.withPlugin({
    transformQuery({ node }) {
      if (node.kind === 'SelectQueryNode') queries();
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  const sealer = createTokenSealer([new Secret('s'.repeat(32))]);
  const [own, other] = [new SqlLaunchStore(counting, sealer), new SqlLaunchStore(database, sealer)];
  const ids = Array.from({ length: 300 }, (_, i) => `launch-${i}`);
  for (const id of ids)
    await own.begin({ id, user: { id: 'u' }, createdAtMs: 0 }, `${id}-first`, { token: id, expiresAtMs: null });
  const readAll = () => Promise.all(ids.map(async (id) => (await own.tokens(id).read()).token));
  expect(await readAll()).toEqual(ids);
  expect(queries).toHaveBeenCalledTimes(1);
  await other.tokens('launch-7').write({ token: 'renewed', expiresAtMs: null });
  expect((await readAll())[7]).toBe('renewed');
  await expect(Promise.allSettled(['launch-1', 'none'].map((id) => own.tokens(id).read()))).resolves.toMatchObject([
    { status: 'fulfilled' },
    { status: 'rejected', reason: { message: 'there is no launch none' } },
  ]);
  // Polls come one by one.
  queries.mockClear();
  const fromMs = performance.now();
  for (const id of ids.slice(0, 100)) {
    void own.tokens(id).read();
    await sleep(5);
  }
  expect((await own.tokens('launch-7').read()).token).toBe('renewed');
  expect(queries.mock.calls.length).toBeLessThanOrEqual((performance.now() - fromMs) / 100 + 2);
});

test('an old session id is not carried into a launch', async () => {
  const { launch } = await start();
  const { launchUrl } = await launch();
  const answer = await fetch(launchUrl, {
    redirect: 'manual',
    headers: { cookie: 'app.sid=s%3Achosen-by-an-attacker.x' },
  });
  expect(answer.headers.getSetCookie()[0]).not.toContain('chosen-by-an-attacker');
  const first = (await launch()).launchUrl;
  const session = await openSession(first);
  const again = await fetch((await launch()).launchUrl, { redirect: 'manual', headers: { cookie: session.cookie } });
  expect(again.headers.getSetCookie()[0]).not.toContain(session.cookie);
});

test('two launches of two users in one browser do not mix', async () => {
  const { launch } = await start();
  const [amina, bruno] = [
    await openSession((await launch('amina')).launchUrl),
    await openSession((await launch('bruno')).launchUrl),
  ];
  const userOf = async (response: Response) => ((await response.json()) as { user: { id: string } }).user.id;
  expect([await userOf(await amina.get('api/launch')), await userOf(await bruno.get('api/launch'))]).toEqual([
    'amina',
    'bruno',
  ]);
  const run = await amina.start({ stepId: 'cog' });
  // A browser sends each cookie to its own path; even if it sent both, or the wrong one, nothing would mix.
  for (const path of ['', 'api/launch', 'api/runs', `api/runs/${run.id}`]) {
    const crossed = await fetch(new URL(path, amina.home), { headers: { cookie: bruno.cookie } });
    expect(crossed.status, path).toBe(404);
  }
  expect((await bruno.get(`api/runs/${run.id}`)).status).toBe(404);
  expect((await bruno.post(`api/runs/${run.id}/cancel`)).status).toBe(404);
  expect((await bruno.post(`api/runs/${run.id}/retry`)).status).toBe(404);
});

describe('refused, with a page that says why and what to do', () => {
  test.each(['', '?token=', '?token=a&token=b', '?token=a%20b', `?token=${'x'.repeat(5000)}`, '?other=x'])(
    'launch%s: 400',
    async (query) => {
      const { app } = await start();
      const answer = await open(`${app.url}/launch${query}`);
      expect(answer.status).toBe(400);
      expect(await answer.text()).toContain('launch the app again');
    },
  );

  test('a token that the platform does not know, has revoked or that is over: 403', async () => {
    const { app, sandbox, launch } = await start();
    const revoked = await launch();
    await sandbox.control('POST', `launches/${revoked.launchId}/revoke`);
    const over = await launch();
    await sandbox.advance(66 * 60_000, over.launchId);
    for (const url of [`${app.url}/launch?token=unknown`, revoked.launchUrl, over.launchUrl]) {
      const answer = await open(url);
      expect(answer.status).toBe(403);
      expect(await answer.text()).toContain('launch the app again');
    }
  });

  test('the platform is away: 502, and the launch is still good afterwards', async () => {
    const { sandbox, launch } = await start();
    const { launchId, launchUrl } = await launch();
    await sandbox.control('POST', 'faults', { launchId, endpoint: 'user.detail', times: 6, effect: { status: 503 } });
    const answer = await open(launchUrl);
    expect(answer.status).toBe(502);
    expect(await answer.text()).toContain('Reload this page');
    expect((await open(launchUrl)).status).toBe(303);
  });

  test("the app's own key is refused: 502, and it says whom to tell", async () => {
    const sandbox = await startSandbox();
    const app = await startApp(sandbox.url, { env: { PLATFORM_API_KEY: 'wrong' } });
    const { token } = await sandbox.launch();
    const answer = await open(`${app.url}/launch?token=${token}`);
    expect(answer.status).toBe(502);
    expect(await answer.text()).toContain('refuses its API key');
  });

  test('no session, or an unknown launch: 404', async () => {
    const { app } = await start();
    for (const path of ['/launches/unknown/', '/launches/unknown/api/runs', '/nowhere']) {
      const answer = await fetch(`${app.url}${path}`);
      expect(answer.status).toBe(404);
      expect(answer.headers.get('content-type')).toContain(path.includes('/api/') ? 'application/json' : 'text/html');
    }
  });
});

test('the page of a launch that was removed meanwhile answers 404', async () => {
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url);
  const { session } = await launchApp(sandbox, app);
  const file = new Sqlite(join(app.dataDir, 'app.db'));
  file.exec('delete from launches');
  file.close();
  const { status } = await fetch(session.home, { headers: { cookie: session.cookie }, redirect: 'manual' });
  expect(status).toBe(404);
});

test('a token that is late but renewable is renewed on the way', async () => {
  const { sandbox, launch } = await start();
  const { launchId, launchUrl } = await launch();
  await sandbox.advance(62 * 60_000, launchId);
  expect((await open(launchUrl)).status).toBe(303);
});

test('the session outlives a restart of the app', async () => {
  const sandbox = await startSandbox();
  const first = await startApp(sandbox.url, { env: {} });
  const { mkdtemp, rm, cp } = await import('node:fs/promises');
  const copy = await mkdtemp('/tmp/marketplace-app-kit-test-');
  const { launchUrl } = await (async () => {
    await sandbox.control('POST', 'apps', { id: 'tested', name: 'Tested', launchUrl: `${first.url}/launch` });
    return sandbox.launch({ appId: 'tested' });
  })();
  const session = await openSession(launchUrl);
  await cp(first.dataDir, copy, { recursive: true });
  await first.close();
  const second = await startApp(sandbox.url, { dataDir: copy });
  const answer = await fetch(session.home.replace(first.url, second.url), { headers: { cookie: session.cookie } });
  expect(answer.status).toBe(200);
  await second.close();
  await rm(copy, { recursive: true, force: true });
});

describe("what changes something must come from the app's own pages", () => {
  test.each([
    [{ origin: 'https://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ 'content-type': 'text/plain' }, 415],
    [{ 'content-type': 'application/x-www-form-urlencoded' }, 415],
  ])('%j: %d', async (headers, status) => {
    const { app, launch } = await start();
    const session = await openSession((await launch()).launchUrl);
    const { request } = await import('node:http');
    const answered = await new Promise<number>((resolve, reject) => {
      const all = {
        cookie: session.cookie,
        'content-type': 'application/json',
        ...(headers as Record<string, string>),
      };
      const sent = request(
        `${session.home}api/runs`,
        { method: 'POST', headers: all },
        (res) => (res.resume(), resolve(res.statusCode ?? 0)),
      );
      sent.on('error', reject).end('{"stepId":"cog"}');
    });
    expect(answered).toBe(status);
    expect(await (await fetch(`${app.url}/health`)).json()).toEqual({ status: 'ok' });
  });
});
