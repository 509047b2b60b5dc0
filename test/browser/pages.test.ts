// @module-tag all
/** The pages themselves: usable by everybody, in both color schemes, with hostile data in them, and closed to other origins. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import yauzl from 'yauzl';
import { launchApp, startApp } from '../support/app.ts';
import { violationsOf, visit } from '../support/browser.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { routesOf } from '../support/routes.ts';
import { geoTiff } from '../support/geotiff.ts';
import { adminKey, apiKey, startSandbox } from '../support/sandbox.ts';
import { needing } from '../support/needs.ts';
import { populated } from '../support/populated.ts';

describe('every page', needing('chromium'), () => {
  test('no violation of accessibility, of any impact, no complaint, no foreign request; hostile names do nothing; light, dark, and on a phone', async () => {
    const it = await populated();
    const [name = '', value = ''] = it.session.cookie.split('=');
    const sandboxPages = [
      '/',
      '/approvals',
      '/catalog',
      '/catalog/coastal-optical/coastal-optical-024',
      '/files',
      '/inference',
      '/launches',
      '/reset',
      '/docs',
      `/launches/${it.launchId}`,
      `/launches/${it.launchId}?call=1`,
      `/launches/${it.launchId}/compare?with=${it.launchId}`,
      `/launches/${it.launchId}/frame`,
      '/nowhere',
      '/catalog?bbox=nonsense',
      '/launches/none',
    ];
    // By the routers' own lists: a page that is added is tested.
    const patterns = routesOf(it.sandbox.handler!).filter(
      ({ method, path }) =>
        method === 'GET' &&
        /^\/($|(approvals|catalog|files|inference|launches)(\/|$))/.test(path) &&
        !/\.(png|webp)$|^\/inference\/scenes\//.test(path),
    );
    const untested = patterns.filter(
      ({ path }) =>
        !sandboxPages.some((page) => new RegExp(`^${path.replace(/:[A-Za-z]+/g, '[^/]+')}$`).test(page.split('?')[0]!)),
    );
    expect(untested.map(({ path }) => path)).toEqual(['/inference/:jobId']); // it has a test of its own
    expect(patterns.length).toBeGreaterThan(6);
    const appPages = routesOf(it.app.handler)
      .filter(
        ({ method, path }) =>
          method === 'GET' &&
          path.startsWith('/launches/') &&
          !path.includes('/api/') &&
          // Documents that a browser saves are no pages.
          !/\/events$|\.(png|json)$|\/prov$|\/items\//.test(path),
      )
      .flatMap(({ path }) =>
        it.runIds.map((runId) =>
          path
            .replace(/^\/launches\/:launchId\/?/, '')
            .replace(':runId', runId)
            .replace(':stepId', 'ndvi'),
        ),
      );
    expect(appPages.length).toBeGreaterThanOrEqual(6);
    const addresses = [
      ...sandboxPages.map((path) => it.sandbox.url + path),
      ...new Set(appPages.map((path) => new URL(path, it.session.home).href)),
      `${it.app.url}/`,
      `${it.app.url}/nowhere`,
      ...['', '?where=stat%3DFAILED', ...it.runIds.map((runId) => `/runs/${runId}`)].map(
        (path) => `${it.app.url}/ops${path}`,
      ),
    ];
    const problems: string[] = [];
    for (const options of [
      { colorScheme: 'light' },
      { colorScheme: 'dark', viewport: { width: 380, height: 800 }, webgl: false },
    ] as const) {
      const httpCredentials = { username: 'admin', password: adminKey, origin: it.app.url };
      const { page, context, complaints } = await visit([it.sandbox.url, it.app.url], { ...options, httpCredentials });
      await context.addCookies([{ name, value, url: it.session.home }]);
      for (const address of addresses) {
        await page.goto(address);
        await page.waitForTimeout(300);
        const place = `${options.colorScheme} ${new URL(address).pathname}`;
        problems.push(...(await violationsOf(page)).map((one) => `${place}: ${one}`));
        if ((await page.title()) === 'hacked') problems.push(`${place}: hacked`);
        if (await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth + 1'))
          problems.push(`${place}: wider than the window`);
        if (options.colorScheme === 'dark') continue;
        // This viewport is equivalent to a zoom of 200 %.
        await page.setViewportSize({ width: 600, height: 450 });
        if (await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth + 1'))
          problems.push(`${place}: wider than the window at 200 %`);
        await page.setViewportSize({ width: 1200, height: 900 });
      }
      problems.push(...complaints.filter((one) => !/status of 40[014]/.test(one)));
    }
    expect(problems).toEqual([]);
  }, 900_000);

  test('each first page is under 300 kB over the wire, thumbnails and all, and its policy has no unsafe script', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const app = await startApp(sandbox.url);
    const { session } = await launchApp(sandbox, app);
    const { page, context } = await visit([sandbox.url, app.url]);
    const [name = '', value = ''] = session.cookie.split('=');
    await context.addCookies([{ name, value, url: session.home }]);
    const network = await context.newCDPSession(page);
    await network.send('Network.enable');
    await network.send('Network.setCacheDisabled', { cacheDisabled: true });
    let bytes = 0;
    network.on('Network.loadingFinished', ({ encodedDataLength }) => void (bytes += encodedDataLength));
    for (const address of [
      ...['/', '/approvals', '/catalog', '/files', '/inference', '/launches', '/docs'].map(
        (path) => sandbox.url + path,
      ),
      session.home,
    ]) {
      bytes = 0;
      const response = await page.goto(address);
      await page.waitForTimeout(700);
      expect(bytes, address).toBeGreaterThan(1_000);
      expect(bytes, address).toBeLessThan(300_000);
      const policy = response?.headers()['content-security-policy'] ?? '';
      expect(policy).not.toContain('unsafe');
      expect(policy).toContain('frame-ancestors');
    }
  });

  test('an open page fetches what concerns it, and nothing else', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const { page } = await visit([sandbox.url]);
    await page.goto(`${sandbox.url}/files`);
    const fetched: string[] = [];
    page.on('request', (request) => fetched.push(new URL(request.url()).pathname));
    await page.waitForTimeout(1_500);
    fetched.length = 0;
    const { token } = await sandbox.launch();
    for (let i = 0; i < 20; i++) await sandbox.app('GET', `/user/${token}/detail`);
    await page.waitForTimeout(1_500);
    // At most what time itself brings, each 5 s.
    expect(fetched.length).toBeLessThanOrEqual(1);
    const form = new FormData();
    form.append('file', new Blob(['x']), 'x.bin');
    await sandbox.request('POST', '/public/file/upload?sourceType=UNKNOWN', {
      body: form,
      headers: { 'x-api-key': apiKey },
    });
    await page.locator('#files .pill').first().waitFor();
  });

  test('dragging over the timeline draws that part of the time', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const { page } = await visit([sandbox.url], { webgl: false });
    const { token, launchId } = await sandbox.launch();
    await sandbox.app('GET', `/user/${token}/detail`);
    // The drawing spans a second at least.
    await page.waitForTimeout(4_000);
    await sandbox.app('GET', `/user/${token}/detail`);
    await page.goto(`${sandbox.url}/launches/${launchId}`);
    const drawing = page.locator('svg.timeline');
    const span = async () => Number(await drawing.getAttribute('data-span'));
    const whole = await span();
    const box = (await drawing.boundingBox())!;
    const at = (share: number) => [box.x + box.width * share, box.y + box.height - 30] as const;
    await page.mouse.move(...at(0.5));
    await page.mouse.down();
    await page.mouse.move(...at(0.8), { steps: 5 });
    await page.mouse.up();
    await expect.poll(span, { timeout: 300_000 }).toBeLessThan(whole / 2);
  });

  test('without WebGL a still of the same map stands there', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const { page } = await visit([sandbox.url], { webgl: false });
    for (const path of ['/catalog/olinda-coast/olinda-landsat7', '/catalog']) {
      await page.goto(sandbox.url + path);
      await page.locator('#map').hover();
      await page.waitForTimeout(1_500);
      await expect.poll(() => page.locator('#map .map-picture').isVisible()).toBe(true);
      expect(await page.locator('#map').getAttribute('data-ready')).toBeNull();
    }
    // The land, and the items upon it.
    await expect.poll(() => page.locator('.map-picture rect').count()).toBeGreaterThan(10);
    expect((await fetch(`${sandbox.url}/assets/shared/map/world.svg`)).headers.get('content-type')).toContain('svg');
  });

  test('targets are at least 24 pixels, on a phone too', async () => {
    const it = await populated();
    const [name = '', value = ''] = it.session.cookie.split('=');
    const { page, context } = await visit([it.sandbox.url, it.app.url], { viewport: { width: 390, height: 844 } });
    await context.addCookies([{ name, value, url: it.session.home }]);
    // Links within a sentence are excepted (WCAG 2.2, 2.5.8), and what is drawn: each call is in the list, too.
    const small = `[...document.querySelectorAll('button, select, input, summary, nav a, .crumbs a, .calls a')].filter((one) => one.checkVisibility() && !one.closest('.maplibregl-ctrl-attrib')).map((one) => [one.outerHTML.slice(0, 80), one.getBoundingClientRect()]).filter(([, { width, height }]) => width > 0 && (width < 24 || height < 23.5)).map(([html]) => html)`;
    for (const address of [
      ...['/', '/approvals', '/catalog', '/files', '/launches', `/launches/${it.launchId}?call=1`, '/docs'].map(
        (path) => it.sandbox.url + path,
      ),
      it.session.home,
      new URL('new/ndvi', it.session.home).href,
      new URL(`runs/${it.runIds[0]}`, it.session.home).href,
    ]) {
      await page.goto(address);
      await page.waitForTimeout(300);
      expect(await page.evaluate<string[]>(small), address).toEqual([]);
    }
  });
});

describe('the sandbox', needing('chromium'), () => {
  test('registers an app by its manifest; mistakes are told at the field', async () => {
    const sandbox = await startSandbox();
    const { page } = await visit([sandbox.url]);
    await page.goto(sandbox.url);
    await page.getByRole('link', { name: 'Register an app' }).click();
    await page.getByLabel('Id').fill('my app');
    await page.getByLabel('Name', { exact: true }).fill('Mine');
    await page.getByLabel('Launch address').fill('ftp://nowhere');
    await page.getByRole('button', { name: 'Register' }).click();
    await page.locator('#problem-launchUrl').waitFor();
    await expect.poll(() => page.locator('#problem-id').textContent()).toContain('must be 1 to 64');
    await expect.poll(() => page.getByLabel('Name', { exact: true }).inputValue()).toBe('Mine');
    await page.getByLabel('Id').fill('mine');
    await page.getByLabel('Launch address').fill('http://127.0.0.1:9/launch');
    await page.getByRole('button', { name: 'Register' }).click();
    await page.getByRole('heading', { name: 'Mine' }).waitFor();
    expect((await sandbox.control('GET', 'apps')).apps.map(({ id }) => id)).toContain('mine');
  });

  test('uploads a file, in chunks above 16 MB; its status comes by itself, and it goes on after an interruption', async () => {
    const sandbox = await startSandbox();
    const { page, context, complaints } = await visit([sandbox.url]);
    await page.goto(`${sandbox.url}/files`);
    await page.getByLabel('Source type').selectOption('PANCHROMATIC');
    await page.locator('#file').setInputFiles({
      name: 'small.tif',
      mimeType: 'image/tiff',
      buffer: Buffer.from(geoTiff({ width: 32, height: 32, value: (x) => x })),
    });
    await page.locator('#files .pill.ok').first().waitFor();
    const large = { name: 'large.bin', mimeType: 'application/octet-stream', buffer: Buffer.alloc(20_000_000, 7) };
    await page.getByLabel('Source type').selectOption('UNKNOWN');
    let chunks = 0;
    await context.route('**/uploadChunk', (route) => (++chunks === 2 ? route.abort() : route.continue()));
    await page.locator('#file').setInputFiles(large);
    await page.getByText('the connection was lost').waitFor();
    await page.locator('#file').setInputFiles(large);
    await page.getByText('large.bin: uploaded').waitFor();
    await page.locator('#files .pill.bad').first().waitFor();
    expect(chunks).toBeGreaterThanOrEqual(4);
    expect(complaints.filter((one) => !one.includes('ERR_FAILED'))).toEqual([]);
  });

  test("searches by the map's box, by dates and by collection", async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const { page, complaints } = await visit([sandbox.url]);
    await page.goto(`${sandbox.url}/catalog`);
    const all = Number(await page.locator('main strong').first().textContent());
    await page.getByLabel('Collection').selectOption({ index: 1 });
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    expect(Number(await page.locator('main strong').first().textContent())).toBeLessThan(all);
    await page.goto(`${sandbox.url}/catalog?bbox=-10,-60,10,-50`);
    await page.locator('#map').hover();
    await page.locator('#map[data-ready]').waitFor();
    await expect.poll(() => page.locator('main strong').first().textContent()).toBe('0');
    await page.getByRole('button', { name: 'Zoom out' }).click();
    await page.waitForTimeout(800);
    await page.getByRole('button', { name: 'Search this area' }).click();
    await page.waitForURL(/bbox=(?!-10%2C)/);
    await expect.poll(() => page.getByLabel('Box', { exact: true }).inputValue()).toMatch(/^-?\d+\.\d{4},/);
    expect(complaints).toEqual([]);
  });

  test('runs a model on a file, and shows the result on the map', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const { page, complaints } = await visit([sandbox.url]);
    const data = await sandbox.request('GET', '/public/stac/collections/coastal-optical/items/coastal-optical-024', {
      headers: { 'x-api-key': apiKey },
    });
    expect(data.status).toBe(200);
    // The item's pixels as a file of the user's own.
    const { assets } = data.body as unknown as { assets: { data: { href: string } } };
    await page.goto(`${sandbox.url}/files`);
    const zip = Buffer.from(await (await fetch(assets.data.href)).arrayBuffer());
    await page.getByLabel('Source type').selectOption('MULTISPECTRAL');
    await page.locator('#file').setInputFiles({ name: 'scene.tif', mimeType: 'image/tiff', buffer: await tiffOf(zip) });
    await page.locator('#files .pill.ok').first().waitFor();
    await page.getByRole('link', { name: 'Run a model' }).click();
    await page.getByRole('button', { name: 'Run' }).click();
    await page.locator('#jobs .pill.ok').first().waitFor({ timeout: 900_000 });
    await page.getByRole('link', { name: 'On the map' }).click();
    await page.locator('#map[data-ready]').waitFor();
    const picture = `fetch(JSON.parse(document.querySelector('#item').textContent).previewHref).then(async (response) => (await createImageBitmap(await response.blob())).width)`;
    expect(await page.evaluate<number>(picture)).toBeGreaterThan(10);
    await expect.poll(() => page.locator('.classes li').count()).toBeGreaterThan(1);
    expect(complaints).toEqual([]);
  });

  test('keys decide on the request that is shown, and on no other one', async () => {
    const sandbox = await startSandbox();
    const { page } = await visit([sandbox.url]);
    const { token } = await sandbox.launch();
    for (const name of ['First', 'Second', 'Third'])
      await sandbox.app('POST', `/operation/${token}`, { body: { name } });
    const statuses = async () =>
      Object.fromEntries(
        (await sandbox.control('GET', 'operations')).operations.map(({ name, status }) => [name, status]),
      );
    await page.goto(`${sandbox.url}/approvals`);
    await page.waitForTimeout(1_000);
    await page.keyboard.press('a');
    await page.getByText('Approved: First').waitFor();
    // At once, and held: the next request is not the one that was meant.
    await page.keyboard.press('a');
    await page.keyboard.down('r');
    await page.waitForTimeout(1_000);
    await page.keyboard.up('r');
    expect(await statuses()).toEqual({ First: 'APPROVED', Second: 'REQUESTED', Third: 'REQUESTED' });
    // Somebody else decides: the page does not go on to another request.
    const { operations } = await sandbox.control('GET', 'operations');
    const second = operations.find(({ name }) => name === 'Second')!;
    await sandbox.control('POST', `operations/${second.operationId}/reject`);
    await page.getByText('This request waits no more').waitFor();
    expect(await page.getByRole('button', { name: /^Approve Third/ }).count()).toBe(0);
  });

  test('a page of another origin can neither approve nor read', async () => {
    const sandbox = await startSandbox();
    const { token, launchId } = await sandbox.launch();
    const { operationId } = (await sandbox.app('POST', `/operation/${token}`, { body: { name: 'x' } })).body;
    const evil = createServer((_req, res) =>
      res
        .setHeader('content-type', 'text/html')
        .end(
          `<form method="post" action="${sandbox.url}/approvals/${operationId}/approve"><button>Win</button></form>`,
        ),
    );
    await new Promise<void>((resolve) => evil.listen(0, '127.0.0.1', resolve));
    cleanUpLater(
      () =>
        new Promise<void>((resolve) => {
          evil.closeAllConnections();
          evil.close(() => resolve());
        }),
    );
    const address = `http://localhost:${(evil.address() as AddressInfo).port}`;
    const { page } = await visit([sandbox.url, address]);
    await page.goto(address);
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.url().includes('/approve')),
      page.getByRole('button').click(),
    ]);
    expect(answer.status()).toBe(403);
    await page.goto(address);
    const read = await page.evaluate<string>(
      `fetch('${sandbox.url}/approvals').then((response) => response.text(), (error) => 'refused')`,
    );
    expect(read).toBe('refused');
    const { operations } = await sandbox.control('GET', `launches/${launchId}`);
    expect(operations[0]?.status).toBe('REQUESTED');
  });

  test('with an admin key: a sign-in, and nothing before it', async () => {
    const sandbox = await startSandbox({ env: { SANDBOX_ADMIN_KEY: adminKey } });
    const { page, context } = await visit([sandbox.url]);
    for (const path of ['/', '/events', '/launches', '/browser/public/file/download/url?id=x']) {
      const answer = await fetch(sandbox.url + path, { redirect: 'manual' });
      expect([path, answer.status]).toEqual([path, 303]);
    }
    expect((await fetch(`${sandbox.url}/reset`, { method: 'POST', redirect: 'manual' })).status).toBe(401);
    await page.goto(`${sandbox.url}/approvals`);
    await page.getByLabel('Admin key').fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('That is not the key').waitFor();
    await page.getByLabel('Admin key').fill(adminKey);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Approvals' }).waitFor();
    const [cookie] = (await context.cookies()).filter(({ name }) => name === 'sandbox.admin');
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
  });
});

/** The first raster of a zip archive. */
async function tiffOf(zip: Buffer): Promise<Buffer> {
  const archive = await yauzl.fromBufferPromise(zip, { lazyEntries: true });
  for await (const entry of archive.eachEntry()) {
    if (!entry.fileName.endsWith('.tif')) continue;
    const parts: Buffer[] = [];
    for await (const part of await archive.openReadStreamPromise(entry)) parts.push(part as Buffer);
    return Buffer.concat(parts);
  }
  throw new Error('the archive holds no raster');
}
