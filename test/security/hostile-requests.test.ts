/** Requests that mean harm, and those that merely look so: each is answered as it should be, and beside each stands one that is let through. */
import { chmod, readFile, stat } from 'node:fs/promises';
import { request as rawRequest } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { appManifest, fillPath } from '../../src/contract/index.ts';
import { readSandboxConfig } from '../../src/sandbox/config.ts';
import { loggedPath } from '../../src/app/web/logged-path.ts';
import { serve } from '../../src/server/index.ts';
import { launchApp, openSession, smallRun, startApp } from '../support/app.ts';
import { key } from '../support/files.ts';
import { testFolder } from '../support/folders.ts';
import { json, startScriptedServer } from '../support/scripted-server.ts';
import { startServer } from '../support/processes.ts';
import { adminKey, apiKey, startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { onlyInAll } from '../support/tags.ts';

/** With headers that `fetch` would not send as they are. */
function raw(
  url: string,
  options: { method?: string; headers?: Record<string, string>; path?: string } = {},
): Promise<{ status: number; headers: Record<string, unknown>; text: string }> {
  const { hostname, port, pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    const sent = rawRequest(
      {
        hostname,
        port,
        path: options.path ?? pathname + search,
        method: options.method ?? 'GET',
        headers: options.headers,
      },
      (res) => {
        let text = '';
        res.setEncoding('utf8').on('data', (part: string) => (text += part));
        res.on('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers, text }));
      },
    );
    sent.once('error', reject).end();
  });
}

describe('who may control the sandbox', () => {
  const control = (sandbox: TestSandbox, headers: Record<string, string>) =>
    raw(`${sandbox.url}/sandbox/operations`, { headers });

  test.each([
    ...['Forwarded', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'x-real-ip', 'Via', 'X-Client-IP'],
    ...['True-Client-IP', 'CF-Connecting-IP', 'X-Cluster-Client-IP', 'Fastly-Client-IP', 'X-Original-Forwarded-For'],
  ])('without an admin key a request that a proxy passed on (%s) is refused, on the pages too', async (header) => {
    const sandbox = await startSandbox();
    expect((await control(sandbox, {})).status).toBe(200);
    expect((await control(sandbox, { [header]: 'for=203.0.113.7' })).status).toBe(403);
    expect((await raw(`${sandbox.url}/approvals`, { headers: { [header]: '203.0.113.7' } })).status).toBe(403);
    expect((await raw(`${sandbox.url}/approvals`)).status).toBe(200);
  });

  test('with an admin key the key decides, through a proxy and without', async () => {
    const sandbox = await startSandbox({ env: { SANDBOX_ADMIN_KEY: adminKey } });
    expect((await control(sandbox, { 'x-forwarded-for': '203.0.113.7' })).status).toBe(401);
    expect((await control(sandbox, { 'x-forwarded-for': '203.0.113.7', 'x-admin-key': adminKey })).status).toBe(200);
  });

  test('a start that would leave control open to everybody is refused, and says what to set', () => {
    const read = (env: Record<string, string>) => readSandboxConfig({ SANDBOX_API_KEY: apiKey, ...env }, {});
    expect(() => read({ PUBLIC_URL: 'https://sandbox.example' })).toThrow(/SANDBOX_ADMIN_KEY/);
    expect(() => read({ PUBLIC_URL: 'https://sandbox.example', SANDBOX_ADMIN_KEY: 'short' })).toThrow(
      /at least 32 characters/,
    );
    expect(read({ PUBLIC_URL: 'https://sandbox.example', SANDBOX_ADMIN_KEY: adminKey }).adminKey).toBe(adminKey);
    for (const url of [
      'http://localhost:4010',
      'http://127.0.0.1:4010',
      'http://[::1]:4010',
      'http://sandbox.localhost',
    ])
      expect(read({ PUBLIC_URL: url }).publicUrl).toBe(url);
  });

  test('wrong keys at the sign-in are counted, and the right one is let in before that', async () => {
    const sandbox = await startSandbox({ env: { SANDBOX_ADMIN_KEY: adminKey, PUBLIC_URL: 'https://sandbox.example' } });
    const signIn = (given: string) =>
      fetch(`${sandbox.url}/sign-in`, {
        method: 'POST',
        redirect: 'manual',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ adminKey: given, to: '/' }),
      });
    const good = await signIn(adminKey);
    expect([good.status, good.headers.get('set-cookie')]).toEqual([
      303,
      expect.stringMatching(/HttpOnly; Secure; SameSite=Strict/),
    ]);
    const statuses: number[] = [];
    for (let i = 0; i < 22; i++) statuses.push((await signIn(`wrong-${i}`)).status);
    expect([statuses[0], statuses.at(-1)]).toEqual([401, 429]);
    // And nobody with the right key is locked out by them.
    expect((await signIn(adminKey)).status).toBe(303);
    expect((await raw(`${sandbox.url}/sandbox/operations`, { headers: { 'x-admin-key': adminKey } })).status).toBe(200);
  });

  test.each([
    '[::1].evil.example',
    'evil.example#.localhost',
    'evil.example?.localhost',
    'evil.example/.localhost',
    'evil@127.0.0.1',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '::1',
    'localhost:4010:80',
    'evil.example',
  ])('Host %j is not this machine: 421', async (host) => {
    const sandbox = await startSandbox();
    expect((await control(sandbox, { host })).status).toBe(421);
  });

  test.each(['localhost', 'LOCALHOST:4010', '127.0.0.1', '127.9.9.9:1', '[::1]', '[::1]:4010', 'sandbox.localhost'])(
    'Host %s is',
    async (host) => {
      expect((await control(await startSandbox(), { host })).status).toBe(200);
    },
  );
});

describe('what an app says of itself', () => {
  const manifest = (launchUrl: string) => appManifest.safeParse({ id: 'a', name: 'a', launchUrl }).success;

  test.each([
    "http://a;script-src 'unsafe-inline'/",
    'http://a;frame-ancestors *;/',
    'http://a,b.example/',
    "http://a'b.example/",
    'http://*.example/',
    'http://a&b/',
    'http://a(b)/',
    'http://-;-/',
    'ftp://a/',
    'http://u:p@a/',
  ])('%s is no launch address', (launchUrl) => {
    expect(manifest(launchUrl)).toBe(false);
  });

  test.each([
    'http://127.0.0.1:3000/launch',
    'https://app.example/launch?x=1;y=2',
    'http://[::1]:3000/launch',
    'https://xn--bcher-kva.example/',
    'https://bücher.example/',
    'http://localhost/',
  ])('%s is one', (launchUrl) => {
    expect(manifest(launchUrl)).toBe(true);
  });

  test('an IPv6 address is left out of the policy of the pages, which has no words for it', async () => {
    const sandbox = await startSandbox();
    await sandbox.control('POST', 'apps', { id: 'six', name: 'six', launchUrl: 'http://[::1]:3000/launch' });
    const policy = String((await raw(`${sandbox.url}/`)).headers['content-security-policy']);
    expect(policy).not.toContain('[');
    expect(policy).toContain("form-action 'self'");
  });
});

describe('tokens and addresses', () => {
  test.each(['.', '..', '', '\ud800'])('%j fills no path', (token) => {
    expect(() => fillPath('/public/external-app/user/:token/detail', { token })).toThrow(/cannot stand in an address/);
  });

  test.each(['...', 'a/../b', '%2e%2e', '..%2f', 'a.b'])('%j does, as one segment', (token) => {
    expect(fillPath('/x/:token/y', { token }).split('/')).toHaveLength(4);
  });

  test('a launch with a token that climbs is refused before anybody is asked, key and all', async () => {
    const platform = await startScriptedServer(json(200, { id: 'u' }));
    const app = await startApp(platform.url);
    for (const token of ['.', '..'])
      expect((await fetch(`${app.url}/launch?token=${token}`, { redirect: 'manual' })).status).toBe(400);
    expect(platform.requests).toEqual([]);
    expect((await fetch(`${app.url}/launch?token=fine`, { redirect: 'manual' })).status).toBe(303);
  });

  test('a user whom the platform does not name begins no session', async () => {
    for (const body of [{}, { id: '' }, { name: 'N' }]) {
      const app = await startApp((await startScriptedServer(json(200, body))).url);
      const answer = await fetch(`${app.url}/launch?token=t`, { redirect: 'manual' });
      expect([answer.status, answer.headers.getSetCookie()]).toEqual([502, []]);
    }
  });

  test('HEAD looks, and uses up nothing', async () => {
    const sandbox = await startSandbox();
    const app = await startApp(sandbox.url);
    await sandbox.control('POST', 'apps', { id: 'tested', name: 'Tested', launchUrl: `${app.url}/launch` });
    const { launchUrl } = await sandbox.launch({ appId: 'tested' });
    const head = await fetch(launchUrl, { method: 'HEAD', redirect: 'manual' });
    expect([head.status, head.headers.getSetCookie()]).toEqual([204, []]);
    await openSession(launchUrl);
  });

  test('what is logged of an address is words and ids of ours', { tags: [onlyInAll] }, async () => {
    expect(loggedPath('/launch?token=secret')).toBe('/launch');
    const [launch, run] = ['AbC_123-aaaaaaaaaaaaaa', 'xY-9zzzzzzzzzzzzzzzzzz'];
    expect(loggedPath(`/launches/${launch}/api/runs/${run}/cancel`)).toBe(`/launches/${launch}/api/runs/${run}/cancel`);
    // A token where an id belongs.
    expect(loggedPath('/launches/Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA')).toBe('/launches/:redacted');
    expect(loggedPath('/launch/Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA')).toBe('/launch/:redacted');
    const app = await startServer('app', [], {
      PLATFORM_URL: 'http://127.0.0.1:9',
      PLATFORM_API_KEY: apiKey,
      APP_SECRET: 's'.repeat(32),
      DATA_DIR: await testFolder(),
      PORT: '0',
      LOG_LEVEL: 'debug',
    });
    const token = 'Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA';
    for (const path of [`/launch/${token}`, `/${token}`, `/launches/${token}%20/x`, `/launch?token=${token}&x=1`]) {
      const answer = await fetch(app.url + path, { redirect: 'manual' });
      expect(await answer.text()).not.toContain(token);
    }
    expect(app.output()).toContain(':redacted');
    expect(app.output()).not.toContain(token);
  });
});

describe('what may be kept, and by whom', () => {
  test('pages and answers of a launch are not stored; assets are', async () => {
    const sandbox = await startSandbox();
    const app = await startApp(sandbox.url);
    const { session } = await launchApp(sandbox, app);
    for (const path of ['', 'api/runs', 'api/launch', 'new/cog', 'api/nothing'])
      expect((await session.get(path)).headers.get('cache-control'), path).toBe('no-store');
    expect((await fetch(`${app.url}/launch`)).headers.get('cache-control')).toBe('no-store');
    expect((await fetch(`${app.url}/assets/shared/style.css`)).headers.get('cache-control')).toContain('max-age');
    for (const path of ['/sandbox/operations', '/sandbox/launches/x', '/', '/approvals', '/public/stac/']) {
      expect((await sandbox.request('GET', path, { headers: key })).headers.get('cache-control'), path).toBe(
        'no-store',
      );
    }
    expect(
      (await sandbox.app('GET', `/user/${(await sandbox.launch()).token}/detail`)).headers.get('cache-control'),
    ).toBe('no-store');
    expect((await sandbox.request('GET', '/assets/shared/style.css')).headers.get('cache-control')).toContain(
      'max-age',
    );
  });

  test("databases are their owner's alone, those from before too", async () => {
    const folder = join(await testFolder(), 'data');
    const first = await startSandbox({ dataDir: folder });
    await first.close();
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    await chmod(join(folder, 'sandbox.db'), 0o644);
    const again = await startSandbox({ dataDir: folder });
    await again.launch();
    for (const name of ['sandbox.db', 'sandbox.db-wal'])
      expect((await stat(join(folder, name))).mode & 0o077, name).toBe(0);
    await again.close();
    const appFolder = await testFolder();
    await startApp(again.url, { dataDir: appFolder });
    expect((await stat(join(appFolder, 'app.db'))).mode & 0o077).toBe(0);
  });

  test.each(['forwarded', 'x-forwarded-for', 'x-real-ip', 'x-forwarded-proto'])(
    "/metrics is for this machine: with %s a request is somebody else's",
    async (header) => {
      const app = await startApp((await startSandbox()).url);
      expect((await raw(`${app.url}/metrics`)).status).toBe(200);
      expect((await raw(`${app.url}/metrics`, { headers: { [header]: '203.0.113.7' } })).status).toBe(404);
    },
  );
});

describe("the caller's mistakes are told, and are never a 500", () => {
  const form = (fields: Record<string, string>, file: [string, Uint8Array] | null) => {
    const body = new FormData();
    for (const [name, value] of Object.entries(fields)) body.append(name, value);
    if (file) body.append(file[0], new Blob([new Uint8Array(file[1])]), 'a.bin');
    return body;
  };
  const bytes = new Uint8Array([1, 2, 3]);

  test('a file part of another name, in every upload call', async () => {
    const sandbox = await startSandbox();
    const direct = await sandbox.request('POST', '/public/file/upload', {
      headers: key,
      body: form({}, ['datei', bytes]),
    });
    expect([direct.status, direct.body.details[0]?.path, direct.body.details[0]?.message]).toEqual([
      400,
      'file',
      expect.stringContaining('"datei"'),
    ]);
    const { uploadId, key: uploadKey } = (
      await sandbox.request('POST', '/public/file/generateUploadId?fileName=a', { headers: key })
    ).body;
    const fields = { uploadId, key: uploadKey, partNumber: '1' };
    const chunk = (name: string) =>
      sandbox.request('POST', '/public/file/uploadChunk', { headers: key, body: form(fields, [name, bytes]) });
    expect([(await chunk('chunk')).status, (await chunk('chunk')).body.details[0]?.path]).toEqual([400, 'file']);
    expect((await chunk('file')).status).toBe(200);

    const { token } = await sandbox.launch();
    const { operationId } = (await sandbox.app('POST', `/operation/${token}`, { body: { name: 'x' } })).body;
    await sandbox.control('POST', `operations/${operationId}/approve`);
    const begun = (
      await sandbox.app('POST', `/file/${token}/upload/initiate`, { body: { operationId, fileName: 'a' } })
    ).body;
    const send = (name: string) =>
      sandbox.app('POST', `/file/${token}/upload/chunk`, {
        body: form({ uploadId: begun.uploadId, key: begun.key, partNumber: '1' }, [name, bytes]),
      });
    expect((await send('part')).status).toBe(400);
    expect((await send('file')).status).toBe(200);
  });

  test('a field that comes twice is named', async () => {
    const sandbox = await startSandbox();
    const twice = form({}, ['file', bytes]);
    for (const type of ['SAR', 'PDF']) twice.append('sourceType', type);
    const direct = await sandbox.request('POST', '/public/file/upload', { headers: key, body: twice });
    expect([direct.status, direct.body.details]).toEqual([400, [{ path: 'sourceType', message: 'must come once' }]]);
    const names = await sandbox.request('POST', '/public/file/generateUploadId', {
      headers: { ...key, 'content-type': 'application/x-www-form-urlencoded' },
      body: 'fileName=a&fileName=b',
    });
    expect([names.status, names.body.details[0]?.path]).toEqual([400, 'fileName']);
  });

  test('parameters nested 5,000 deep, and an item whose id is half a character', async () => {
    const sandbox = await startSandbox();
    const app = await startApp(sandbox.url);
    const { session, token } = await launchApp(sandbox, app);
    const deep = `{"a":`.repeat(5_000) + '1' + '}'.repeat(5_000);
    const post = (text: string) =>
      fetch(new URL('api/runs', session.home), {
        method: 'POST',
        headers: { cookie: session.cookie, 'content-type': 'application/json' },
        body: text,
      });
    expect((await post(`{"stepId":"cog","parameters":${deep}}`)).status).toBe(400);
    expect(
      (
        await sandbox.request('POST', `/public/external-app/operation/${token}`, {
          headers: { ...key, 'content-type': 'application/json' },
          body: `{"name":"x","parameters":${deep}}`,
        })
      ).status,
    ).toBe(400);
    const item = (itemId: string) =>
      post(`{"stepId":"cog","input":{"type":"platform","items":[{"collectionId":"a","itemId":"${itemId}"}]}}`);
    for (const itemId of ['\\ud800', '..', '.', '']) expect((await item(itemId)).status, itemId).toBe(400);
    expect((await post(JSON.stringify(smallRun))).status).toBe(201);
  });

  test('a GeometryCollection within two others is searched by', async () => {
    const sandbox = await startSandbox();
    const within = (geometry: object) => ({ type: 'GeometryCollection', geometries: [geometry] });
    const search = await sandbox.request('POST', '/public/stac/search', {
      headers: key,
      body: {
        bbox: [-180, -90, 180, 90],
        collections: ['x'],
        datetime: '2000-01-01T00:00:00Z/..',
        intersects: within(within(within({ type: 'Point', coordinates: [1, 2] }))),
      },
    });
    expect(search.status).toBe(200);
  });
});

describe('what nobody may have without end', () => {
  test('runs of one user that have not ended: one more is refused with a sentence, until one has ended; another user is not', async () => {
    const sandbox = await startSandbox();
    const app = await startApp(sandbox.url, { env: { RUNS_PER_USER: '2' } });
    const { session } = await launchApp(sandbox, app);
    const [, other] = (await sandbox.control('GET', 'users')).users;
    const first = await session.start(smallRun);
    const again = await launchApp(sandbox, app);
    await again.session.start(smallRun);
    const refused = await session.post('api/runs', smallRun);
    expect([refused.status, await refused.json()]).toEqual([
      429,
      expect.objectContaining({
        code: 'too_many_runs',
        error: expect.stringContaining('2 runs that have not ended') as string,
      }),
    ]);
    expect(
      (await (await launchApp(sandbox, app, { userId: other!.id })).session.post('api/runs', smallRun)).status,
    ).toBe(201);
    await session.post(`api/runs/${first.id}/cancel`);
    // Many at once: one place is one place.
    const statuses = await Promise.all(
      Array.from({ length: 10 }, async () => (await session.post('api/runs', smallRun)).status),
    );
    expect(statuses.sort()).toEqual([201, ...Array.from({ length: 9 }, () => 429)]);
  });

  test('event streams of one user: so many, and no more until one is closed', async () => {
    const sandbox = await startSandbox();
    const app = await startApp(sandbox.url);
    const { session } = await launchApp(sandbox, app);
    const abort = new AbortController();
    const open = (signal: AbortSignal) =>
      fetch(new URL('events', session.home), { headers: { cookie: session.cookie }, signal });
    const one = new AbortController();
    await open(one.signal);
    for (let i = 0; i < 19; i++) expect((await open(abort.signal)).status).toBe(200);
    expect((await open(abort.signal)).status).toBe(429);
    one.abort();
    await expect.poll(async () => (await open(abort.signal)).status).toBe(200);
    abort.abort();
  });

  test('a request that dribbles in is ended', async () => {
    const served = await serve((_req, res) => void res.end('answered'), {
      host: '127.0.0.1',
      port: 0,
      portSetting: 'PORT',
      requestTimeoutMs: 500,
    });
    const { hostname, port } = new URL(served.url);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n');
    const dribble = setInterval(() => socket.write('x: y\r\n'), 100);
    const ended = new Promise<string>((resolve) => {
      let text = '';
      socket.on('data', (part) => (text += part.toString())).on('close', () => resolve(text));
    });
    expect(await ended).toContain('408');
    clearInterval(dribble);
    await served.close(0);
  });

  test('readiness asks the platform once for many who ask', async () => {
    const platform = await startScriptedServer(json(200, {}));
    const app = await startApp(platform.url);
    await Promise.all(Array.from({ length: 30 }, () => fetch(`${app.url}/ready`)));
    expect(platform.requests.length).toBe(1);
  });
});

describe('APP_SECRET is replaced', () => {
  const [older, newer] = ['o'.repeat(32), 'n'.repeat(32)];

  test('with the older one beside it sessions and runs go on; without it the user is told to launch again', async () => {
    const sandbox = await startSandbox();
    const dataDir = await testFolder();
    const start = (secret: string) => startApp(sandbox.url, { dataDir, env: { APP_SECRET: secret } });
    const before = await start(older);
    const { session } = await launchApp(sandbox, before);
    await before.close();

    const between = await start(`${newer},${older}`);
    const moved = { ...session, home: session.home.replace(before.url, between.url) };
    const page = await fetch(new URL('api/launch', moved.home), { headers: { cookie: session.cookie } });
    expect(page.status).toBe(200);
    const begun = await fetch(new URL('api/runs', moved.home), {
      method: 'POST',
      headers: { cookie: session.cookie, 'content-type': 'application/json' },
      body: JSON.stringify(smallRun),
    });
    const { id } = (await begun.json()) as { id: string };
    await expect
      .poll(
        async () =>
          (
            (await (
              await fetch(new URL(`api/runs/${id}`, moved.home), { headers: { cookie: session.cookie } })
            ).json()) as { state: string }
          ).state,
      )
      .toBe('AWAITING_APPROVAL');
    const { session: fresh } = await launchApp(sandbox, between);
    await between.close();

    const after = await start(newer);
    expect(
      (
        await fetch(new URL('api/launch', session.home.replace(before.url, after.url)), {
          headers: { cookie: session.cookie },
        })
      ).status,
    ).toBe(404);
    const kept = await fetch(new URL('api/launch', fresh.home.replace(between.url, after.url)), {
      headers: { cookie: fresh.cookie },
    });
    expect(kept.status).toBe(200);
    await after.close();
  });
});

test('the compose file gives the sandbox an admin key of its own', async () => {
  const compose = await readFile(new URL('../../docker-compose.yml', import.meta.url), 'utf8');
  expect(compose).toMatch(/SANDBOX_ADMIN_KEY: \$\{SANDBOX_ADMIN_KEY:\?/);
  expect(compose).not.toMatch(/SANDBOX_ADMIN_KEY:.*SANDBOX_API_KEY/);
});

test('a connection is kept longer than clients keep it, who so end it first', async () => {
  const sandbox = await startSandbox();
  const { headers } = await fetch(`${sandbox.url}/health`);
  expect(Number(/timeout=(\d+)/.exec(headers.get('keep-alive') ?? '')?.[1])).toBeGreaterThanOrEqual(60);
});
