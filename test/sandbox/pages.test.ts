/** The sandbox's pages as they are served, without a browser: lists with pages, decisions at once, what caused a call, folders of scenes. */
import { describe, expect, test, vi } from 'vitest';
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { landsatFolder, testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { adminKey, apiKey, startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { search } from '../support/stac.ts';
import { landsat, needing } from '../support/needs.ts';

const minute = 60_000;
const page = async (sandbox: TestSandbox, path: string) =>
  (await fetch(sandbox.url + path, { headers: { accept: 'text/html' } })).text();
const operation = async (sandbox: TestSandbox, name: string, parameters: object = {}) => {
  const { token, launchId } = await sandbox.launch();
  const { operationId } = (await sandbox.app('POST', `/operation/${token}`, { body: { name, parameters } })).body;
  return { token, launchId, operationId };
};
/** Sends a form as the page does. */
const submit = (sandbox: TestSandbox, path: string, fields: readonly (readonly [string, string])[] = []) =>
  fetch(sandbox.url + path, {
    method: 'POST',
    body: new URLSearchParams(fields.map(([name, value]): [string, string] => [name, value])),
    redirect: 'manual',
  });

describe('approvals', () => {
  test('all that wait, a page at a time; many are decided at once, and who decided stands there', async () => {
    const sandbox = await startSandbox();
    const ids: string[] = [];
    for (let i = 0; i < 23; i++) ids.push((await operation(sandbox, `Number ${i}`)).operationId);
    const [first, second] = [await page(sandbox, '/approvals'), await page(sandbox, '/approvals?waiting=2')];
    expect(first.match(/<li id="op-/g)).toHaveLength(20);
    expect(second.match(/<li id="op-/g)).toHaveLength(3);
    expect(first).toContain('of <strong>23</strong> that wait');
    const answer = await submit(
      sandbox,
      '/approvals/approve',
      [...ids.slice(0, 2), 'op_nobody'].map((id) => ['id', id]),
    );
    expect(answer.status).toBe(303);
    await submit(sandbox, '/approvals/reject', [['id', ids[2]!]]);
    const { operations } = await sandbox.control('GET', 'operations');
    const statusOf = (id: string | undefined) => operations.find(({ operationId }) => operationId === id)?.status;
    expect([statusOf(ids[0]), statusOf(ids[1]), statusOf(ids[2]), statusOf(ids[3])]).toEqual([
      'APPROVED',
      'APPROVED',
      'REJECTED',
      'REQUESTED',
    ]);
    expect(await page(sandbox, '/approvals')).toContain('by the approvals page');
  });

  test('parameters in words; the items that are named, with where they lie', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    await operation(sandbox, 'Index', {
      bandA: 'nir',
      input: { type: 'platform', items: [{ collectionId: 'olinda-coast', itemId: 'olinda-landsat7' }] },
    });
    const text = await page(sandbox, '/approvals');
    expect(text).toContain('<dt>Band A</dt><dd>nir</dd>');
    expect(text).toContain('/catalog/olinda-coast/olinda-landsat7/thumbnail.webp');
    expect(text).not.toContain('collectionId');
    expect(text).toMatch(/1 item, [\d.]+ kB of input/);
  });

  test('an operation whose app asks no more says so', async () => {
    let now = Date.now();
    const sandbox = await startSandbox({ machineNow: () => now });
    const first = await operation(sandbox, 'Cancelled');
    now += 60_000;
    // Another run of the same launch goes on: that says nothing of this one.
    const second = await sandbox.app('POST', `/operation/${first.token}`, { body: { name: 'Other' } });
    const [cancelled, other] = await Promise.all(
      [first.operationId, second.body['operationId']].map((id) => page(sandbox, `/approvals?op=${id}`)),
    );
    expect(cancelled).toContain('The app has not asked since');
    expect(other).not.toContain('The app has not asked since');
  });

  test('an app whose session was revoked says so', async () => {
    const sandbox = await startSandbox();
    const { launchId } = await operation(sandbox, 'Late');
    await sandbox.control('POST', `launches/${launchId}/revoke`);
    expect(await page(sandbox, '/approvals')).toContain('was revoked');
    expect(await page(sandbox, `/launches/${launchId}`)).toContain('This session has ended');
    expect(await page(sandbox, '/launches')).toContain('revoked');
  });
});

describe('the inspector', () => {
  /** Events besides calls, in order. */
  const causesOf = (text: string) =>
    [...text.matchAll(/<li><time[^>]*>[^<]*<\/time> <strong>([^<]+)<\/strong> ([^<]*)<\/li>/g)].map(
      ([, kind, what]) => `${kind} ${what}`,
    );

  test('tells what caused the calls: launch, faults, moves of the clock, expiry, the end of the token, revocation', async () => {
    const sandbox = await startSandbox();
    const { launchId } = await operation(sandbox, 'Index');
    await submit(sandbox, `/launches/${launchId}/faults`, [
      ['endpoint', 'upload.chunk'],
      ['effect', 'cut the connection'],
      ['after', '0'],
      ['times', '2'],
    ]);
    await submit(sandbox, `/launches/${launchId}/clock`, [['minutes', '31']]);
    await sandbox.control('POST', 'clock', { advanceMs: 40 * minute });
    const { faults } = await sandbox.control('GET', 'faults');
    await submit(sandbox, `/launches/${launchId}/faults/${faults[0]!.id}/disarm`);
    const text = await page(sandbox, `/launches/${launchId}`);
    expect(causesOf(text).sort()).toEqual([
      'clock moved by 31 min',
      'clock moved by 40 min, for every launch',
      'expired Index: nobody decided',
      'fault armed upload.chunk: cut the connection, 2 times',
      'faults disarmed upload.chunk: cut the connection',
      expect.stringMatching(/^launched Reference app, by /) as string,
      'token over the newest token has ended',
    ]);
    expect((await sandbox.control('GET', 'faults')).faults).toEqual([]);
    await submit(sandbox, `/launches/${launchId}/revoke`);
    expect(causesOf(await page(sandbox, `/launches/${launchId}`))).toContain(
      'revoked the session has ended; the sandbox refuses its tokens',
    );
  });

  test('many calls: a page at a time, filtered by endpoint, outcome and text; one beside them, with a curl that holds no secret', async () => {
    const sandbox = await startSandbox();
    const { token, launchId } = await operation(sandbox, 'Index');
    for (let i = 0; i < 150; i++) await sandbox.app('GET', `/user/${token}/detail`);
    await sandbox.app('GET', `/operation/${token}?operationId=op_unknown`);
    const all = await page(sandbox, `/launches/${launchId}`);
    expect(all).toContain('100 of 152');
    expect(all.match(/<tr id="call-/g)).toHaveLength(100);
    const refused = await page(sandbox, `/launches/${launchId}?outcome=refused`);
    expect(refused).toContain('1 of 1 that match, 152 in all');
    expect(await page(sandbox, `/launches/${launchId}?text=op_unknown`)).toContain('1 of 1 that match');
    expect(await page(sandbox, `/launches/${launchId}?endpoint=operation.create`)).toContain('1 of 1 that match');
    const [, id] = /<tr id="call-(\d+)"/.exec(refused)!;
    const chosen = await page(sandbox, `/launches/${launchId}?call=${id}`);
    expect(chosen).toContain(`Call ${id}`);
    expect(chosen).toMatch(/curl -X GET .*\$IDENTITY_TOKEN/);
    expect(chosen).not.toContain(token);
    // The listed end with the oldest.
    const [, oldest] = [...all.matchAll(/<tr id="call-(\d+)"/g)].at(-1)!;
    expect((await page(sandbox, `/launches/${launchId}?before=${oldest}`)).match(/<tr id="call-/g)).toHaveLength(52);
    expect((await fetch(`${sandbox.url}/launches/${launchId}?from=abc&call=x&outcome=nonsense`)).status).toBe(200);
  });

  test('a curl in which what the app sent stays a word to the shell', async () => {
    const sandbox = await startSandbox();
    const { token, launchId } = await sandbox.launch();
    await sandbox.app('POST', `/operation/${token}`, {
      body: { name: "it's $(id) `id`" },
      headers: { 'idempotency-key': "'$(touch${IFS}x)'" },
    });
    const text = await page(
      sandbox,
      `/launches/${launchId}?call=${/<tr id="call-(\d+)"/.exec(await page(sandbox, `/launches/${launchId}`))![1]}`,
    );
    const shown = /<pre id="curl">([^]*?)<\/pre>/
      .exec(text)![1]!
      .replaceAll('&#39;', "'")
      .replaceAll('&quot;', '"')
      .replaceAll('&amp;', '&');
    // Words that a shell makes of the command.
    const words = execFileSync('/bin/bash', ['-c', `curl() { printf '%s\\0' "$@"; }; ${shown}`], {
      env: { API_KEY: 'key', IDENTITY_TOKEN: 'token', PATH: '' },
    })
      .toString()
      .split('\0');
    expect(words).toContain("idempotency-key: '$(touch${IFS}x)'");
    expect(words).toContain('X-API-KEY: key');
    expect(words.find((word) => word.startsWith('http'))).toMatch(/\/operation\/token$/);
    expect(JSON.parse(words[words.indexOf('--data') + 1]!)).toEqual({ name: "it's $(id) `id`" });
  });

  test("a part of the time that is no launch's: as much of it as there is, at once", async () => {
    const sandbox = await startSandbox();
    const { launchId } = await operation(sandbox, 'Index');
    for (const [from, to] of [
      ['0', '1e16'],
      ['0', '1e300'],
      ['-1e300', '1e300'],
      ['5', '1'],
    ]) {
      const answer = await fetch(`${sandbox.url}/launches/${launchId}?from=${from}&to=${to}`);
      expect([from, to, answer.status]).toEqual([from, to, 200]);
      const text = await answer.text();
      expect(text.match(/class="tick"/g)!.length).toBeLessThan(15);
      expect(Number(/data-span="([\d.e+]+)"/.exec(text)![1])).toBeLessThan(10 * minute);
    }
  });

  test('operations that wait stand in the order in which they came, so that a new one moves none', async () => {
    const sandbox = await startSandbox();
    const { token } = await operation(sandbox, 'First');
    await sandbox.app('POST', `/operation/${token}`, { body: { name: 'Second' } });
    const text = await page(sandbox, '/approvals');
    expect([...text.matchAll(/aria-label="Check (\w+)"/g)].map(([, name]) => name)).toEqual(['First', 'Second']);
  });

  test('attempts at a call are one line, and polls without news are one', async () => {
    const sandbox = await startSandbox();
    const { token, launchId, operationId } = await operation(sandbox, 'Index');
    const fault = { launchId, endpoint: 'user.detail', effect: { status: 503, retryAfterSeconds: 2 } };
    await sandbox.control('POST', 'faults', fault);
    for (let i = 0; i < 2; i++) await sandbox.app('GET', `/user/${token}/detail`);
    await sandbox.app('GET', `/operation/${token}?operationId=${operationId}`);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    await sandbox.app('GET', `/operation/${token}?operationId=${operationId}`);
    const text = await page(sandbox, `/launches/${launchId}`);
    expect(text.match(/<tr id="call-/g)).toHaveLength(3);
    expect(text).toContain('5 of 5');
    expect(text).toMatch(/503 \(answer 503, Retry-After 2\), again after \d+\.\d s: 200/);
    expect(text).toMatch(/attempt 1<\/a>/);
    expect(text).toContain('2 polls without news since');
  });

  test('a launch runs again with the faults of another, which have not fired yet', async () => {
    const sandbox = await startSandbox();
    const { token, launchId } = await sandbox.launch();
    for (const [endpoint, effect] of [
      ['user.detail', 'answer 500'],
      ['upload.chunk', 'cut the connection'],
    ])
      await submit(sandbox, `/launches/${launchId}/faults`, [
        ...([['endpoint', endpoint], ['effect', effect], ['after', '0'], ['times', '2']] as [string, string][]), // oxfmt-ignore
      ]);
    await sandbox.app('GET', `/user/${token}/detail`);
    const text = await page(sandbox, `/launches/${launchId}`);
    const fields = [
      ...text.matchAll(/<input type="hidden" name="(appId|userId|renewPolicy|faultsOf)" value="([^"]+)">/g),
    ];
    await submit(
      sandbox,
      '/marketplace/launch',
      fields.map(([, name = '', value = '']) => [name, value]),
    );
    const [, newest] = /<tr id="(launch_[^"]+)"/.exec(await page(sandbox, '/launches'))!;
    expect(newest).not.toBe(launchId);
    const link = `<a href="/launches/${newest}">newest launch of this app</a>`;
    expect(await page(sandbox, `/launches/${launchId}`)).toContain(link);
    expect(await page(sandbox, `/launches/${newest}`)).not.toContain('newest launch of this app');
    const faults = [
      { endpoint: 'user.detail', effect: { status: 500 }, after: 0, times: 2, fired: 0, launchId: newest },
      { endpoint: 'upload.chunk', effect: { reset: true }, after: 0, times: 2, fired: 0, launchId: newest },
    ];
    expect((await sandbox.control('GET', 'faults')).faults.slice(2)).toMatchObject(faults);
  });

  test("a fault of the catalog's calls is for every launch", async () => {
    const sandbox = await startSandbox();
    const { launchId } = await sandbox.launch();
    const arm = (endpoint: string) =>
      submit(sandbox, `/launches/${launchId}/faults`, [
        ...([['endpoint', endpoint], ['effect', 'answer 500'], ['after', '0'], ['times', '1']] as [string, string][]), // oxfmt-ignore
      ]);
    await arm('stac.search');
    await arm('user.detail');
    expect((await sandbox.control('GET', 'faults')).faults).toMatchObject([
      { endpoint: 'stac.search', launchId: null },
      { endpoint: 'user.detail', launchId },
    ]);
    expect(await page(sandbox, `/launches/${launchId}`)).toContain('for every launch');
  });

  test('the list of launches names their newest operation, and shows those of one app', async () => {
    const sandbox = await startSandbox();
    await operation(sandbox, 'Index of a coast');
    const other = { id: 'other', name: 'Other app', launchUrl: 'http://127.0.0.1:9/launch' };
    await sandbox.control('POST', 'apps', other);
    const { launchId } = await sandbox.launch({ appId: 'other' });
    const rows = async (query = '') =>
      [...(await page(sandbox, `/launches${query}`)).matchAll(/<tr id="(launch_[^"]+)"/g)].map(([, id]) => id);
    expect(await page(sandbox, '/launches')).toContain('>Index of a coast</span>');
    expect(await rows()).toHaveLength(2);
    expect(await rows('?app=other')).toEqual([launchId]);
    expect(await rows('?app=')).toHaveLength(2);
    expect(await rows('?app=unknown')).toHaveLength(2);
  });

  test('a comparison of two launches marks the calls and verdicts that differ', async () => {
    const sandbox = await startSandbox();
    const first = await operation(sandbox, 'Index');
    const second = await sandbox.launch();
    await sandbox.app('GET', `/user/${second.token}/detail`);
    const text = await page(sandbox, `/launches/${first.launchId}/compare?with=${second.launchId}`);
    expect(text).toMatch(
      /class="differs"><td data-label="Call"><code>operation.create<\/code><\/td><td[^>]*>1 ?<\/td><td[^>]*>0/,
    );
    expect(text.match(/<svg class="timeline"/g)).toHaveLength(2);
    expect((await fetch(`${sandbox.url}/launches/${first.launchId}/compare`)).status).toBe(400);
    expect((await fetch(`${sandbox.url}/launches/${first.launchId}/compare?with=launch_none`)).status).toBe(404);
  });

  test('lanes by operation, and a part of the time alone', async () => {
    const sandbox = await startSandbox();
    const { token, launchId, operationId } = await operation(sandbox, 'First');
    await sandbox.app('POST', `/operation/${token}`, { body: { name: 'Second' } });
    await sandbox.app('GET', `/operation/${token}?operationId=${operationId}`);
    const text = await page(sandbox, `/launches/${launchId}`);
    expect([...text.matchAll(/class="head">([^<]+)</g)].map(([, name]) => name)).toEqual(['First (1)', 'Second (2)']);
    const [, from = ''] = /data-from="([\d.]+)"/.exec(text)!;
    expect(await page(sandbox, `/launches/${launchId}?from=${Number(from) - 10_000}&to=${Number(from) - 1}`)).toContain(
      '0 of 3 calls are in this part',
    );
  });
});

describe('the list of files', () => {
  test('is filtered by a part of the name, the source type and the status', async () => {
    const sandbox = await startSandbox();
    const upload = async (name: string, sourceType: string, bytes: Buffer) => {
      const body = new FormData();
      body.append('file', new Blob([new Uint8Array(bytes)]), name);
      await sandbox.request('POST', `/public/file/upload?sourceType=${sourceType}`, { body, headers: { 'x-api-key': apiKey } }); // oxfmt-ignore
    };
    const raster = geoTiff({ width: 8, height: 8, value: (x) => x });
    await upload('Heights of 100%.tif', 'HEIGHTMAP', raster);
    await upload('bands.tif', 'MULTISPECTRAL', raster);
    await upload('broken.tif', 'MULTISPECTRAL', Buffer.from('II*\0 and nothing more'));
    const names = async (query: string) =>
      [...(await page(sandbox, `/files?${query}`)).matchAll(/<span class="name" title="([^"]+)"/g)].map(
        ([, name]) => name,
      );
    await vi.waitFor(async () => expect(await names('status=COMPLETED')).toHaveLength(2), { timeout: 60_000 });
    await vi.waitFor(async () => expect(await names('status=FAILED')).toEqual(['broken.tif']), { timeout: 60_000 });
    expect(await names('')).toEqual(['broken.tif', 'bands.tif', 'Heights of 100%.tif']);
    expect(await names('text=HEIGHTS')).toEqual(['Heights of 100%.tif']);
    expect(await names('text=%25')).toEqual(['Heights of 100%.tif']);
    expect(await names('sourceType=MULTISPECTRAL&status=COMPLETED')).toEqual(['bands.tif']);
    expect(await names('text=&sourceType=&status=')).toHaveLength(3);
    expect(await names('status=nonsense')).toHaveLength(3);
    const none = await page(sandbox, '/files?text=nothing');
    expect(none).toContain('No files match.');
    expect(none).toContain('<a href="/files">Clear</a>');
  });
});

describe('the folder of a scene', () => {
  async function send(sandbox: TestSandbox, name: string, files: Readonly<Record<string, Uint8Array>>) {
    const { id } = (await (await submit(sandbox, '/files/scenes', [['name', name]])).json()) as { id: string };
    const statuses = await Promise.all(
      Object.entries(files).map(
        async ([file, bytes]) =>
          (await fetch(`${sandbox.url}/files/scenes/${id}/${encodeURIComponent(file)}`, { method: 'PUT', body: bytes }))
            .status,
      ),
    );
    const answer = await fetch(`${sandbox.url}/files/scenes/${id}/import`, { method: 'POST' });
    return { id, statuses, status: answer.status, body: (await answer.json()) as { imported: number; code?: string } };
  }
  const band = new Uint8Array(geoTiff({ width: 24, height: 16, value: (x, y) => 1_000 + 40 * x + 3 * y }));

  test('its bands are one item, whose preview can be drawn after a restart', async () => {
    const dataDir = await testFolder();
    const sandbox = await startSandbox({ dataDir });
    const sent = await send(sandbox, 'my scene', { 'l8_B4.tif': band, 'l8_B5.tif': band });
    expect(sent).toMatchObject({ statuses: [200, 200], status: 200, body: { imported: 1 } });
    await sandbox.close();
    const restarted = await startSandbox({ dataDir });
    const { features } = await search(restarted, { collections: ['my-scene'] });
    expect(features.map(({ id }) => id)).toEqual(['l8']);
    expect((await fetch(`${restarted.url}/catalog/my-scene/l8/thumbnail.webp`)).headers.get('content-type')).toBe(
      'image/webp',
    );
  });

  test('Landsat 8 of 2015', needing(landsat), async () => {
    const sandbox = await startSandbox();
    const names = ['l8_B4.tif', 'l8_B5.tif', 'l8_MTL.txt'];
    const files = Object.fromEntries(
      await Promise.all(
        names.map(async (name) => [name, new Uint8Array(await readFile(join(landsatFolder, name)))] as const),
      ),
    );
    expect((await send(sandbox, 'landsat8', files)).body.imported).toBe(1);
    expect((await search(sandbox, { collections: ['landsat8'] })).features[0]?.properties['datetime']).toMatch(
      /^2015-08-04/,
    );
  });

  test('names that climb, items that name other files, and folders of nobody are refused', async () => {
    const sandbox = await startSandbox();
    expect((await submit(sandbox, '/files/scenes', [['name', '../x']])).status).toBe(400);
    const { id, statuses, status } = await send(sandbox, 'x', { 'items.ndjson': band, '../evil.tif': band });
    expect([statuses, status]).toEqual([[400, 400], 400]);
    expect((await fetch(`${sandbox.url}/files/scenes/scene_nobody/a.tif`, { method: 'PUT', body: band })).status).toBe(
      404,
    );
    expect(
      (
        await fetch(`${sandbox.url}/files/scenes/${id}/a.tif`, {
          method: 'PUT',
          body: band,
          headers: { origin: 'http://evil.example' },
        })
      ).status,
    ).toBe(403);
    const guarded = await startSandbox({ env: { SANDBOX_ADMIN_KEY: adminKey } });
    expect((await submit(guarded, '/files/scenes', [['name', 'x']])).status).toBe(401);
  });
});

test('an address that nobody knows: a page for a browser, JSON for a program', async () => {
  const sandbox = await startSandbox();
  const asBrowser = await fetch(`${sandbox.url}/nowhere`, { headers: { accept: 'text/html,*/*;q=0.8' } });
  expect([asBrowser.status, asBrowser.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
  const asProgram = await fetch(`${sandbox.url}/nowhere`);
  expect([asProgram.status, ((await asProgram.json()) as { code: string }).code]).toEqual([404, 'path_not_found']);
  const api = await fetch(`${sandbox.url}/public/nowhere`, { headers: { accept: 'text/html' } });
  expect(api.headers.get('content-type')).toContain('application/json');
});

test('a key for the API page works, and is one that can be revoked', async () => {
  const sandbox = await startSandbox();
  const answer = await fetch(`${sandbox.url}/docs/key`, { method: 'POST' });
  const { apiKey } = (await answer.json()) as { apiKey: string };
  expect((await fetch(`${sandbox.url}/public/stac/`, { headers: { 'x-api-key': apiKey } })).status).toBe(200);
  expect(
    (await fetch(`${sandbox.url}/docs/key`, { method: 'POST', headers: { origin: 'http://evil.example' } })).status,
  ).toBe(403);
  const guarded = await startSandbox({ env: { SANDBOX_ADMIN_KEY: adminKey } });
  expect((await fetch(`${guarded.url}/docs/key`, { method: 'POST', redirect: 'manual' })).status).toBe(401);
});

test('the picture of an item page is small, has one address, and may be kept', async () => {
  const sandbox = await startSandbox({ seed: 'demo' });
  const path = '/catalog/olinda-coast/olinda-landsat7';
  const pictures = async () => [...(await page(sandbox, path)).matchAll(/<image href="([^"]*preview[^"]*)"/g)];
  for (const found of [await pictures(), await pictures()])
    expect(found.map(([, address]) => address)).toEqual([`${path}/preview.webp`]);
  const picture = await fetch(`${sandbox.url}${path}/preview.webp`);
  expect([picture.status, picture.headers.get('content-type'), picture.headers.get('cache-control')]).toEqual([
    200,
    'image/webp',
    'private, max-age=3600',
  ]);
  expect((await picture.arrayBuffer()).byteLength).toBeLessThan(150_000);
});
