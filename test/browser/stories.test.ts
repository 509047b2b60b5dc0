/** Three people, whole: one who builds an app, one who uses it, one who runs the platform. On the real scenes, in Chromium. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { startApp } from '../support/app.ts';
import { visit } from '../support/browser.ts';
import { projectRoot } from '../support/folders.ts';
import { startSandbox } from '../support/sandbox.ts';
import { needing } from '../support/needs.ts';
import { onlyInAll } from '../support/tags.ts';

const timeout = 900_000;

async function start(options: Parameters<typeof visit>[1] = {}) {
  const sandbox = await startSandbox({ seed: 'demo' });
  const app = await startApp(sandbox.url, { env: { EMBEDDED_IN: sandbox.url } });
  await sandbox.control('POST', 'apps', { id: 'reference-app', name: 'Reference app', launchUrl: `${app.url}/launch` });
  return { sandbox, app, ...(await visit([sandbox.url, app.url], options)) };
}

describe('a story', needing('chromium'), () => {
  test.each([
    ['a desk', 1440, 900],
    ['a phone', 390, 844],
  ] as const)(
    'from the address that dev prints to NDVI in colour, on %s: three clicks, one scroll',
    { tags: [onlyInAll], timeout },
    async (_, width, height) => {
      const { page, complaints, sandbox } = await start({ viewport: { width, height } });
      await page.goto(`${sandbox.url}/catalog/olinda-coast/olinda-landsat7`);
      const app = page.frameLocator('iframe[name="app"]');
      let clicks = 0;
      const click = async (button: Locator) => {
        clicks += 1;
        await button.click();
      };
      await click(page.getByRole('button', { name: 'Use in Reference app' }));
      await app.getByText('Normalized difference (NDVI) on Olinda, Landsat 7').waitFor();
      await click(app.getByRole('button', { name: 'Ask for approval' }));
      await click(page.getByRole('button', { name: /^Approve Normalized difference/ }));
      await app.locator('#run[data-state="COMPLETED"]').waitFor();
      await app.getByRole('img', { name: 'Colours from -0.2 to 0.9' }).waitFor();
      await app
        .getByRole('heading', { name: 'Normalized difference (NDVI) · Olinda, Landsat 7 · 1 Jul 2002' })
        .waitFor();
      expect(clicks).toBeLessThanOrEqual(4);
      // The page around the app does not scroll, so that nothing scrolls within something that scrolls.
      expect(await page.evaluate<boolean>('document.documentElement.scrollHeight <= innerHeight')).toBe(true);
      expect(complaints).toEqual([]);
    },
  );

  test(
    'the integrator: a real coast, an area drawn, NDVI approved beside it; then a cut connection, and its healing beside the request',
    { tags: [onlyInAll], timeout },
    async () => {
      const { page, context, complaints, sandbox } = await start();
      await page.goto(`${sandbox.url}/catalog`);
      await page.getByRole('link', { name: 'Olinda, Landsat 7' }).first().click();
      await page.locator('#map[data-ready]').waitFor();
      await page.getByRole('button', { name: 'Use in Reference app' }).click();
      const app = page.frameLocator('iframe[name="app"]');
      // Without the scene that the launch brought.
      await app.getByRole('link', { name: 'All runs' }).click();
      await app.getByRole('link', { name: 'Normalized difference' }).click();
      await app.locator('#new-run[data-ready]').waitFor();
      // Around the coast of Brazil, by the coordinates that the map tells of the pointer's place.
      await app.locator('#map[data-ready]').waitFor();
      const box = (await app.locator('#map canvas').boundingBox())!;
      const placeAt = async (x: number, y: number) => {
        await page.mouse.move(x, y, { steps: 3 });
        const [, lat = '', south = '', lon = '', west = ''] =
          /([\d.]+)° ([NS]) ([\d.]+)° ([EW])/.exec((await app.locator('#map .coordinates').textContent()) ?? '') ?? [];
        return { lat: Number(lat) * (south === 'S' ? -1 : 1), lon: Number(lon) * (west === 'W' ? -1 : 1) };
      };
      const mercator = (lat: number) => Math.log(Math.tan(Math.PI / 4 + (lat * Math.PI) / 360));
      const [x0, y0] = [box.x + box.width / 2, box.y + box.height / 2];
      const [a, b] = [await placeAt(x0 - 60, y0 - 60), await placeAt(x0 + 60, y0 + 60)];
      const at = (lon: number, lat: number) =>
        [
          x0 - 60 + ((lon - a.lon) / (b.lon - a.lon)) * 120,
          y0 - 60 + ((mercator(lat) - mercator(a.lat)) / (mercator(b.lat) - mercator(a.lat))) * 120,
        ] as const;
      await app.getByRole('button', { name: 'Draw a search area' }).click();
      const [from, to] = [at(-40, -2), at(-30, -12)];
      await page.mouse.move(...from);
      await page.mouse.down();
      await page.mouse.move(...to, { steps: 5 });
      await page.mouse.up();
      await app.getByText(/^1 compatible item,/).waitFor();
      await app.locator('#items input:not(:disabled)').first().check();
      await app.getByText('on Olinda, Landsat 7').waitFor();
      await app.getByRole('button', { name: 'Ask for approval' }).click();
      await page.getByRole('button', { name: 'Approve Normalized difference' }).click();
      await app.locator('#run[data-state="COMPLETED"]').waitFor({ timeout: 900_000 });
      await app.getByRole('img', { name: /^Histogram of normalized difference/ }).waitFor();
      await app.locator('#map[data-ready]').waitFor();
      await app.locator('#compare').fill('500');

      const [inspector] = await Promise.all([
        context.waitForEvent('page'),
        page.getByRole('link', { name: 'Inspect and inject faults' }).click(),
      ]);
      await inspector.getByText('Faults and clock').click();
      await inspector.getByRole('button', { name: 'Arm the fault' }).click();
      await inspector.getByText('fired 0 of 1').waitFor();
      await app.getByRole('link', { name: 'Edit and run again' }).click();
      await app.locator('#new-run[data-ready]').waitFor();
      await app.getByText('on Olinda, Landsat 7').waitFor();
      await app.getByRole('button', { name: 'Ask for approval' }).click();
      await page.getByRole('button', { name: 'Approve Normalized difference' }).click();
      // By itself: the wound, what caused it, and the chunk that came again.
      await inspector.getByText('fired 1 of 1').waitFor({ timeout: 900_000 });
      await inspector.locator('.timeline .lost').waitFor();
      await app.locator('#run[data-state="COMPLETED"]').waitFor({ timeout: 900_000 });
      const repeated = inspector.locator('.calls tr', { hasText: 'no answer (cut the connection), again after' });
      await repeated.getByRole('link', { name: 'attempt 1' }).click();
      await inspector.locator('#pane').getByText('An armed fault fired: cut the connection').waitFor();
      await inspector.locator('#verdict .pill').first().getByText('passed').waitFor();
      await inspector.getByRole('button', { name: 'Zoom in' }).click();
      await expect.poll(() => inspector.url()).toContain('from=');
      expect(complaints).toEqual([]);
    },
  );

  test(
    'the end user, on a phone: relief of a fault, told at each turn, found again at the next launch',
    { timeout },
    async () => {
      const { page, complaints, sandbox, context } = await start({
        viewport: { width: 390, height: 844 },
        colorScheme: 'dark',
      });
      await page.goto(sandbox.url);
      const [tab] = await Promise.all([
        context.waitForEvent('page'),
        page.getByRole('button', { name: 'Launch', exact: true }).click(),
      ]);
      await tab.getByRole('link', { name: 'Hillshade' }).click();
      await tab.locator('#new-run[data-ready]').waitFor();
      await tab.locator('#collection').selectOption({ label: 'Jacksboro fault' });
      const item = tab
        .locator('#items')
        .getByText(/jacksboro/i)
        .first();
      // The list is made anew by the search for the collection.
      await tab.getByText('searched 1 of 1').waitFor();
      await item.scrollIntoViewIfNeeded();
      const before = await tab.evaluate<number>('scrollY');
      await item.tap().catch(() => item.click());
      expect(Math.abs((await tab.evaluate<number>('scrollY')) - before)).toBeLessThan(844);
      await tab.getByText(/^Hillshade on .*jacksboro/i).waitFor();
      await tab.locator('input[name="azimuth"]').fill('999');
      await tab.getByRole('button', { name: 'Ask for approval' }).click();
      await expect.poll(() => tab.locator('#problem-azimuth').textContent()).toMatch(/^[A-Z].*must be.*\.$/);
      await tab.locator('input[name="azimuth"]').fill('315');
      await tab.getByRole('button', { name: 'Ask for approval' }).click();
      await tab.locator('#run[data-state="AWAITING_APPROVAL"]').waitFor();
      expect(await tab.title()).toMatch(/^awaiting approval · Hillshade · .*Jacksboro.* · 16 Feb 2000$/);
      const [approvals] = await Promise.all([
        context.waitForEvent('page'),
        tab.getByRole('link', { name: 'Review request' }).click(),
      ]);
      await approvals.getByRole('button', { name: 'Approve Hillshade' }).click();
      await tab.locator('#run[data-state="COMPLETED"]').waitFor({ timeout: 900_000 });
      await expect.poll(() => tab.title()).toMatch(/^completed · Hillshade · /);
      await tab.locator('#map[data-ready]').waitFor();
      await tab.getByText('hillshade_jacksboro-dem_2000-02-16.tif').waitFor();
      // Nothing is wider than the phone.
      expect(await tab.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth + 1')).toBe(true);

      const [again] = await Promise.all([
        context.waitForEvent('page'),
        page.getByRole('button', { name: 'Launch', exact: true }).click(),
      ]);
      await again.getByText('from another launch').waitFor();
      await again.getByRole('link', { name: 'Failed or cancelled' }).click();
      await again.getByText('No such run').waitFor();
      await again.getByRole('link', { name: 'Completed' }).click();
      await again.getByRole('link', { name: 'Hillshade' }).last().click();
      await again.locator('#map[data-ready]').waitFor();
      expect(complaints.filter((one) => !one.includes('400'))).toEqual([]);
    },
  );

  test(
    'the platform engineer: a key and a call, a scene sent in, many decisions at once, a session ended, and a reset that asks',
    { tags: [onlyInAll], timeout },
    async () => {
      const { page, complaints, sandbox } = await start();
      await page.goto(`${sandbox.url}/docs`);
      await page.getByRole('button', { name: 'Make a key' }).click();
      await page.getByText('A key with all permissions').waitFor();
      const call = page.locator('details.call', {
        has: page.locator('summary', { hasText: 'POST /public/stac/search' }),
      });
      await call.locator('summary').click();
      await call.getByRole('button', { name: 'Send' }).click();
      await call.locator('output', { hasText: '200' }).waitFor();
      await call.getByText('"olinda-landsat7"').waitFor();

      await page.goto(`${sandbox.url}/files`);
      await page.getByLabel('Source type').selectOption('MULTISPECTRAL');
      await page.locator('#file').setInputFiles({
        name: 'olinda.tif',
        mimeType: 'image/tiff',
        buffer: await readFile(join(projectRoot, 'src/sandbox/scenes/olinda-landsat7.tif')),
      });
      await page.locator('#files .pill.ok').first().waitFor({ timeout: 900_000 });
      await page.getByText('1 to 1 of').waitFor();

      const { token, launchId } = await sandbox.launch();
      for (const name of ['One', 'Two', 'Three']) await sandbox.app('POST', `/operation/${token}`, { body: { name } });
      await page.goto(`${sandbox.url}/approvals`);
      await page.getByLabel('All on this page').check();
      await page.getByLabel('Check Two').uncheck();
      // Checked boxes stay checked, even if other operations come meanwhile.
      await sandbox.app('POST', `/operation/${token}`, { body: { name: 'Four' } });
      await page.getByLabel('Check Four').waitFor();
      await expect.poll(() => page.getByLabel('Check One').isChecked()).toBe(true);
      await expect.poll(() => page.getByLabel('Check Two').isChecked()).toBe(false);
      await page.getByRole('button', { name: 'Approve the checked' }).click();
      await page.getByRole('link', { name: 'Two' }).click();
      await page.getByRole('button', { name: 'Reject Two' }).click();
      await page.getByRole('link', { name: 'Four' }).click();
      await page.getByRole('button', { name: 'Reject Four' }).click();
      await page.getByText('No pending approvals').waitFor();
      await expect.poll(() => page.locator('#history .pill.ok').count()).toBe(2);

      await page.goto(`${sandbox.url}/launches/${launchId}`);
      page.on('dialog', (dialog) => void dialog.accept());
      await page.getByText('Faults and clock').click();
      await page.getByRole('button', { name: 'Revoke the token' }).click();
      await page.getByText('This session has ended').waitFor();
      await page.goto(`${sandbox.url}/launches`);
      await page.getByRole('link', { name: 'Reset the sandbox' }).click();
      await page.getByText('Keep everything').waitFor();
      expect(await page.locator('main li').allTextContents()).toEqual(
        expect.arrayContaining([
          expect.stringMatching(/^1 launches/),
          expect.stringMatching(/^4 operations/),
          expect.stringMatching(/^1 uploaded files/),
        ]),
      );
      await page.getByRole('button', { name: 'Reset' }).click();
      await page.getByText('No launch yet').waitFor();
      expect(complaints).toEqual([]);
    },
  );
});

describe('without JavaScript', needing('chromium'), () => {
  test('the sandbox decides, and the app says what it needs', { tags: [onlyInAll] }, async () => {
    const { sandbox, app, context } = await start();
    const { token } = await sandbox.launch();
    await sandbox.app('POST', `/operation/${token}`, { body: { name: 'Plain' } });
    const plain = await context.browser()!.newContext({ javaScriptEnabled: false });
    const page = await plain.newPage();
    await page.goto(`${sandbox.url}/approvals`);
    await page.getByRole('button', { name: 'Approve Plain' }).click();
    await page.getByText('No pending approvals').waitFor();
    expect((await sandbox.control('GET', 'operations')).operations[0]?.status).toBe('APPROVED');
    const { launchUrl } = (await (
      await fetch(`${sandbox.url}/sandbox/launches`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      })
    ).json()) as { launchUrl: string };
    expect(launchUrl).toContain(app.url);
    await page.goto(launchUrl);
    await page.getByRole('link', { name: 'Hillshade' }).click();
    await page.locator('noscript p').waitFor();
    await expect.poll(() => page.locator('noscript p').textContent()).toContain('needs JavaScript');
    await plain.close();
  });
});
