// @module-tag all
/** Pages whose server, platform or map is away for a while, or for good; and a form whose names are not its own. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import clobbering from '../support/clobbering.ts';
import { startApp } from '../support/app.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { visit } from '../support/browser.ts';
import { startSandbox } from '../support/sandbox.ts';
import { needing } from '../support/needs.ts';

type AppOptions = Parameters<typeof startApp>[1];

async function start(options: AppOptions = {}, webgl = false) {
  const sandbox = await startSandbox({ seed: 'demo' });
  const app = await startApp(sandbox.url, options);
  await sandbox.control('POST', 'apps', { id: 'tested', name: 'Tested', launchUrl: `${app.url}/launch` });
  const { page, complaints } = await visit([sandbox.url, app.url], { webgl });
  await page.goto((await sandbox.launch({ appId: 'tested' })).launchUrl);
  return { sandbox, app, page, complaints };
}

async function begin(page: Page, step: string): Promise<void> {
  await page.getByRole('link', { name: step }).click();
  await page.getByLabel('A synthetic scene').check();
  await page.getByRole('button', { name: 'Ask for approval' }).click();
  await page.locator('#run[data-state="AWAITING_APPROVAL"]').waitFor();
}

describe('in a browser', { timeout: 900_000, ...needing('chromium') }, () => {
  test('a page that was answered 502 says that it gets no news, and comes back by itself', async () => {
    const { sandbox, page } = await start();
    let refused = 0;
    let isDown = false;
    await page.route('**/events', (route) => {
      if (!isDown) return route.continue();
      refused += 1;
      return route.fulfill({ status: 502, body: 'Bad Gateway' });
    });
    isDown = true;
    await begin(page, 'Hillshade');
    await page.locator('#not-live').waitFor();
    await expect.poll(() => page.locator('#not-live').textContent()).toContain('The page keeps trying');
    await expect.poll(() => refused, { timeout: 600_000 }).toBeGreaterThan(2);
    isDown = false;
    await page.locator('#not-live').waitFor({ state: 'hidden' });
    const { operations } = await sandbox.control('GET', 'operations');
    await sandbox.control('POST', `operations/${operations[0]!.operationId}/approve`);
    await page.locator('#run[data-state="COMPLETED"]').waitFor();
  });

  test('a page whose server is gone says so, however often the browser reconnects', async () => {
    const { app, page } = await start();
    await begin(page, 'Hillshade');
    await app.close();
    await page.locator('#not-live').waitFor({ timeout: 60_000 });
    expect(await page.locator('#not-live').textContent()).toContain('The page keeps trying');
  });

  test('without WebGL, a run that ends on an open page shows its result as a picture', async () => {
    const { sandbox, page } = await start();
    await begin(page, 'Hillshade');
    const { operations } = await sandbox.control('GET', 'operations');
    await sandbox.control('POST', `operations/${operations[0]!.operationId}/approve`);
    await page.locator('#run[data-state="COMPLETED"]').waitFor();
    const picture = page.getByRole('img', { name: 'The result', exact: true });
    await picture.waitFor();
    await expect
      .poll(() => page.evaluate<number>("document.querySelector('.result-picture').naturalWidth"))
      .toBeGreaterThan(10);
    await page.reload();
    await page.locator('#map .map-picture').waitFor();
    expect(await picture.count()).toBe(0);
  });

  test('an item that the launch brings is the first of the list, on the map, and the button is in view', async () => {
    const { page } = await start({}, true);
    const home = new URL(page.url());
    for (const [width, height] of [
      [1440, 900],
      [380, 800],
    ] as const) {
      await page.setViewportSize({ width, height });
      await page.goto(new URL('new/ndvi?item=olinda-coast%2Folinda-landsat7', home).href);
      const first = page.locator('#items input').first();
      await first.waitFor();
      await expect.poll(() => first.isChecked()).toBe(true);
      expect(await page.locator('#chosen').textContent()).toBe('Normalized difference (NDVI) on Olinda, Landsat 7');
      const button = await page.getByRole('button', { name: 'Ask for approval' }).boundingBox();
      expect(button!.y + button!.height).toBeLessThanOrEqual(height);
    }
  });

  test('a map whose tiles do not come shows its picture, and no empty box', async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const { page } = await visit([sandbox.url], { webgl: true });
    await page.route('**/*.pmtiles', () => {});
    await page.goto(`${sandbox.url}/catalog/coastal-optical/coastal-optical-024`);
    await page.locator('.maplibregl-canvas').waitFor({ state: 'attached' });
    expect(await page.locator('.maplibregl-canvas').isVisible()).toBe(false);
    expect(await page.locator('#map .map-picture').isVisible()).toBe(true);
  });

  test('a page whose session has ended says so, and asks no more', async () => {
    const { page } = await start();
    await begin(page, 'Hillshade');
    let asked = 0;
    await page.route(/\/events$|\/runs\/[^/]+$/, (route) => {
      asked += 1;
      return route.fulfill({ status: 404, body: 'gone' });
    });
    await page.evaluate("document.dispatchEvent(new Event('refresh'))");
    await page.getByText('This page is no longer available').waitFor();
    const before = asked;
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await page.waitForTimeout(3_000);
    expect(asked).toBe(before);
  });

  test('a run is begun while tiles and catalog hang, and the search says that it failed', async () => {
    const hanging = createServer(() => {}).listen(0, '127.0.0.1');
    await once(hanging, 'listening');
    const tiles = `http://127.0.0.1:${(hanging.address() as AddressInfo).port}`;
    cleanUpLater(() => hanging.closeAllConnections());
    cleanUpLater(() => void hanging.close());
    const { page } = await start({ env: { MAP_TILES: `${tiles}/{z}/{x}/{y}.png` } }, true);
    await page.route('**/api/collections', () => {});
    await begin(page, 'Hillshade');
    await page.goBack();
    await page.clock.install();
    await page.reload();
    await page.getByRole('button', { name: 'Ask for approval' }).isEnabled();
    await page.clock.fastForward(31_000);
    await page.getByRole('button', { name: 'Search again' }).waitFor();
    await expect.poll(() => page.locator('#found').textContent()).toContain('the platform does not respond');
  });

  test('parameters may have the names of the form’s own fields', async () => {
    const { page, complaints } = await start({ definition: clobbering });
    await page.getByRole('link', { name: 'Clobbers' }).click();
    await page.getByLabel('A synthetic scene').check();
    await page.getByLabel('An input').fill('12');
    await page.getByRole('button', { name: 'Ask for approval' }).click();
    await page.locator('#problem-input').waitFor();
    await expect.poll(() => page.locator('#problem-input').textContent()).toMatch(/^An input must be at most 9/);
    await page.getByLabel('An input').fill('3');
    await page.getByRole('button', { name: 'Ask for approval' }).click();
    await page.locator('#run[data-state="AWAITING_APPROVAL"]').waitFor();
    // The browser complains of the 400, and no script fails.
    expect(complaints.filter((one) => one.startsWith('script'))).toEqual([]);
  });
});
