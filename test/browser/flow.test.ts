// @module-tag all
/** Actions of a person in Chromium on real servers: from the marketplace to the result, and every other end. */
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { BrowserContext, Page } from 'playwright-core';
import type { AppDefinition } from '../../src/app/definition/app-definition.ts';
import { startApp } from '../support/app.ts';
import severalInputs from '../support/several-inputs.ts';
import { visit, type Visit } from '../support/browser.ts';
import { projectRoot } from '../support/folders.ts';
import { startSandbox } from '../support/sandbox.ts';
import { needing } from '../support/needs.ts';

async function start({ definition, webgl = false }: { definition?: AppDefinition; webgl?: boolean } = {}) {
  const sandbox = await startSandbox({ seed: 'demo' });
  const app = await startApp(sandbox.url, { env: { EMBEDDED_IN: sandbox.url }, ...(definition && { definition }) });
  await sandbox.control('POST', 'apps', { id: 'reference-app', name: 'Reference app', launchUrl: `${app.url}/launch` });
  return { sandbox, app, ...(await visit([sandbox.url, app.url], { webgl })) };
}

/** Launches from the marketplace; the app opens in a tab of its own. */
async function launch(page: Page, context: BrowserContext, sandboxUrl: string, user?: string): Promise<Page> {
  await page.goto(sandboxUrl);
  if (user) await page.getByLabel('As').selectOption({ label: user });
  const [tab] = await Promise.all([
    context.waitForEvent('page'),
    page.getByRole('button', { name: 'Launch', exact: true }).click(),
  ]);
  await tab.getByRole('heading', { name: 'Run an analysis' }).waitFor();
  return tab;
}

/** Starts a run in the app's tab, on the newest item of the catalog or on a synthetic scene. */
async function begin(tab: Page, step: string, input: 'item' | 'synthetic' = 'synthetic'): Promise<void> {
  await tab.getByRole('link', { name: step }).click();
  await tab.locator('#new-run[data-ready]').waitFor();
  if (input === 'item') await tab.locator('#items input').first().check();
  else await tab.getByLabel('A synthetic scene').check();
  await tab.getByRole('button', { name: 'Ask for approval' }).click();
  await tab.locator('#run[data-state="AWAITING_APPROVAL"]').waitFor();
}

/** Runs in the page: what a screen reader would say of the place. */
const focusedText = `((node) => [node?.getAttribute('aria-label'), node?.textContent, node?.closest('label')?.textContent].join(' '))(document.activeElement)`;

const reached = (tab: Page, state: string) => tab.locator(`#run[data-state="${state}"]`).waitFor({ timeout: 900_000 });
const clean = ({ complaints }: Pick<Visit, 'complaints'>) => expect(complaints).toEqual([]);

describe('in a browser', needing('chromium'), () => {
  test("a file of the app's own folder is chosen again for a run that is edited", async () => {
    const it = await start();
    const inputs = join(it.app.dataDir, 'inputs');
    await mkdir(inputs, { recursive: true });
    await copyFile(join(projectRoot, 'src/sandbox/scenes/olinda-landsat7.tif'), join(inputs, 'own.tif'));
    const tab = await launch(it.page, it.context, it.sandbox.url);
    await tab.getByRole('link', { name: 'Normalized difference' }).click();
    await tab.locator('#new-run[data-ready]').waitFor();
    await tab.getByLabel("own.tif, from the app's own folder").check();
    await tab.getByRole('button', { name: 'Ask for approval' }).click();
    await tab.locator('#run[data-state="AWAITING_APPROVAL"]').waitFor();
    await tab.getByRole('link', { name: 'Edit and run again' }).click();
    await tab.locator('#new-run[data-ready]').waitFor();
    await expect.poll(() => tab.getByLabel("own.tif, from the app's own folder").isChecked()).toBe(true);
    expect(await tab.locator('#chosen').textContent()).toBe('Normalized difference (NDVI) on own.tif');
    await tab.getByRole('button', { name: 'Ask for approval' }).click();
    await tab.locator('#run[data-state="AWAITING_APPROVAL"]').waitFor();
    clean(it);
  });

  test('features are on the map too, with the numbers of their fields', async () => {
    const it = await start({ webgl: true });
    const tab = await launch(it.page, it.context, it.sandbox.url);
    await begin(tab, 'Contours', 'synthetic');
    await it.page.goto(`${it.sandbox.url}/approvals`);
    await it.page.getByRole('button', { name: /^Approve/ }).click();
    await reached(tab, 'COMPLETED');
    await tab.locator('#map[data-ready]').waitFor({ timeout: 900_000 });
    await expect.poll(() => tab.getByText(/^all of [\d,]+ features$/).count()).toBe(2);
    await expect.poll(() => tab.getByRole('img', { name: /^Histogram of elevation/ }).count()).toBe(1);
    clean(it);
  });

  test('a real scene of a real coast: coloured NDVI on the map, with its legend and its numbers', async () => {
    const it = await start({ webgl: true });
    const tab = await launch(it.page, it.context, it.sandbox.url);
    await tab.getByRole('link', { name: 'Normalized difference' }).click();
    await tab.locator('#new-run[data-ready]').waitFor();
    await tab.locator('#collection').selectOption({ label: 'Olinda coast' });
    await tab.locator('#items input').first().check();
    await tab.getByRole('button', { name: 'Ask for approval' }).click();
    await tab.locator('#run[data-state="AWAITING_APPROVAL"]').waitFor();
    await it.page.goto(`${it.sandbox.url}/approvals`);
    await it.page.getByRole('button', { name: /^Approve/ }).click();
    await reached(tab, 'COMPLETED');
    await tab.locator('#map[data-ready]').waitFor({ timeout: 900_000 });
    // In the step's colours, with their numbers, and not in grey.
    await expect
      .poll(() => tab.getByRole('img', { name: /^Histogram of normalized difference, from -0.2 to 0.9$/ }).count())
      .toBe(1);
    expect(JSON.parse((await tab.locator('#result').textContent()) ?? '')).toMatchObject({
      href: expect.stringMatching(/picture\.png$/) as string,
    });
    const picture = await tab.evaluate<number[]>(
      "fetch(JSON.parse(document.querySelector('#result').textContent).href).then(async (response) => [response.status, (await createImageBitmap(await response.blob())).width])",
    );
    expect(picture).toEqual([200, expect.any(Number)]);
    const isColored = `(async () => {
      const image = await createImageBitmap(await (await fetch(JSON.parse(document.querySelector('#result').textContent).href)).blob());
      const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
      context.drawImage(image, 0, 0);
      const { data } = context.getImageData(0, 0, image.width, image.height);
      const colored = [...Array(data.length / 4).keys()].filter((i) => Math.abs(data[4 * i] - data[4 * i + 1]) > 40).length;
      return colored / (data.length / 4);
    })()`;
    expect(await tab.evaluate<number>(isColored)).toBeGreaterThan(0.5);
    clean(it);
  });

  test('a step with several inputs: each is chosen for itself, and kept while another is', async () => {
    const it = await start({ definition: severalInputs });
    const tab = await launch(it.page, it.context, it.sandbox.url);
    await tab.getByRole('link', { name: 'Compares' }).click();
    await tab.locator('#new-run[data-ready]').waitFor();
    await tab.locator('#collection').selectOption('coastal-optical');
    await tab.locator('#items input').nth(0).check();
    await tab.getByRole('button', { name: 'Ask for approval' }).click();
    await tab.getByText('Choose each input.').waitFor();
    await tab.getByRole('radio', { name: /^After/ }).check();
    await expect.poll(() => tab.locator('#chosen').textContent()).toBe('No input selected.');
    await tab.locator('#items input').nth(1).check();
    await tab.getByRole('radio', { name: /^Before/ }).check();
    await tab.locator('#chosen', { hasText: /^Compares on / }).waitFor();
    const names = await tab.locator('.slot-chosen').allTextContents();
    expect(new Set(names).size).toBe(3);
    expect(names[2]).toBe('nothing is chosen');
    await tab.getByRole('button', { name: 'Ask for approval' }).click();
    await tab.locator('#run[data-state="AWAITING_APPROVAL"]').waitFor();
    await tab.getByText(/before: coastal-optical\/.*; after: coastal-optical\//).waitFor();
    await tab.getByRole('link', { name: 'Edit and run again' }).click();
    await tab.locator('#new-run[data-ready]').waitFor();
    expect((await tab.locator('.slot-chosen').allTextContents()).slice(2)).toEqual(['nothing is chosen']);
    expect(await tab.locator('#slot-after').textContent()).not.toBe('nothing is chosen');
    clean(it);
  });

  test('an area that is drawn on the map cuts the scene, and is told in the approval', async () => {
    const it = await start({ webgl: true });
    const tab = await launch(it.page, it.context, it.sandbox.url);
    await tab.getByRole('link', { name: 'Clip to an area' }).click();
    await tab.locator('#new-run[data-ready]').waitFor();
    await tab.locator('#collection').selectOption({ label: 'Olinda coast' });
    await tab.locator('#items input').first().check();
    await tab.getByRole('button', { name: 'Ask for approval' }).click();
    await tab.getByText(/Area must be GeoJSON of one polygon/).waitFor();
    await tab.getByRole('button', { name: 'Draw it on the map' }).click();
    const map = (await tab.locator('#map canvas').boundingBox())!;
    const corners = [[0.48, 0.48], [0.52, 0.48], [0.52, 0.52]] as const; // oxfmt-ignore
    for (const [x, y] of corners) {
      await tab.mouse.click(map.x + map.width * x, map.y + map.height * y);
      await tab.waitForTimeout(400);
    }
    await tab.getByRole('button', { name: 'End the area' }).click();
    const drawn = JSON.parse(await tab.locator('textarea[name="area"]').inputValue()) as { coordinates: number[][][] };
    expect(drawn.coordinates[0]).toHaveLength(4);
    await tab.getByRole('button', { name: 'Ask for approval' }).click();
    await tab.locator('#run[data-state="AWAITING_APPROVAL"]').waitFor();
    await it.page.goto(`${it.sandbox.url}/approvals`);
    await it.page.getByText(/an area of [\d,.]+ square kilometres/).waitFor();
    await it.page.getByRole('button', { name: /^Approve/ }).click();
    await reached(tab, 'COMPLETED');
    await tab.getByText(/an area of [\d,.]+ square kilometres/).waitFor();
    await tab.getByRole('link', { name: 'Edit and run again' }).click();
    await tab.locator('#new-run[data-ready]').waitFor();
    expect(JSON.parse(await tab.locator('textarea[name="area"]').inputValue())).toEqual(drawn);
    // The refusals that the test asked for.
    expect(it.complaints.filter((one) => !one.includes('400 (Bad Request)'))).toEqual([]);
  });

  test('launch, choose an item, approve, watch it complete, see the result on the map and in the catalog', async () => {
    const it = await start({ webgl: true });
    const tab = await launch(it.page, it.context, it.sandbox.url);
    expect(tab.url()).not.toContain('token');
    await begin(tab, 'Cloud Optimized GeoTIFF', 'item');
    await it.page.goto(`${it.sandbox.url}/approvals`);
    await it.page.getByRole('button', { name: /^Approve/ }).click();
    await it.page.getByText('No pending approvals').waitFor();
    await reached(tab, 'COMPLETED');
    await tab.locator('#map[data-ready]').waitFor({ timeout: 900_000 });
    const [item] = await Promise.all([
      it.context.waitForEvent('page'),
      tab.getByRole('link', { name: "See it in the platform's catalog" }).click(),
    ]);
    await item.locator('#map[data-ready]').waitFor();
    await it.page.goto(`${it.sandbox.url}/launches`);
    await it.page.locator('#launches tbody a').first().click();
    await it.page.locator('#verdict .pill', { hasText: 'passed' }).first().waitFor();
    await it.page.getByText(/by \d of 7 rules/).waitFor();
    clean(it);
  });

  test('approvals appear by themselves; a rejection is told, and trying again makes a new operation', async () => {
    const it = await start();
    const tab = await launch(it.page, it.context, it.sandbox.url);
    await it.page.goto(`${it.sandbox.url}/approvals`);
    await it.page.getByText('No pending approvals').waitFor();
    await begin(tab, 'Hillshade');
    await it.page.getByRole('button', { name: 'Reject Hillshade' }).click();
    await reached(tab, 'REJECTED');
    await tab.getByText('You rejected it').waitFor();
    const before = tab.url();
    await tab.getByRole('button', { name: 'Try again' }).click();
    await reached(tab, 'AWAITING_APPROVAL');
    expect(tab.url()).not.toBe(before);
    const { operations } = await it.sandbox.control('GET', 'operations');
    expect(operations.map(({ status }) => status).sort()).toEqual(['REJECTED', 'REQUESTED']);
    clean(it);
  });

  test('expired by the clock of the inspector; reload and back work; two tabs agree; cancel', async () => {
    const it = await start();
    const tab = await launch(it.page, it.context, it.sandbox.url);
    await begin(tab, 'Hillshade');
    const second = await it.context.newPage();
    await second.goto(tab.url());
    await it.page.goto(`${it.sandbox.url}/launches`);
    await it.page.locator('#launches tbody a').first().click();
    await it.page.getByText('Faults and clock').click();
    await it.page.getByRole('button', { name: 'Move', exact: true }).click();
    await Promise.all([reached(tab, 'EXPIRED'), reached(second, 'EXPIRED')]);
    await tab.reload();
    await reached(tab, 'EXPIRED');
    await tab.getByRole('button', { name: 'Try again' }).click();
    await reached(tab, 'AWAITING_APPROVAL');
    await tab.getByRole('button', { name: 'Cancel' }).click();
    await reached(tab, 'CANCELLED');
    await tab.goBack();
    await reached(tab, 'EXPIRED');
    await tab.getByRole('link', { name: 'Edit and run again' }).click();
    await tab.locator('#new-run[data-ready]').waitFor();
    await expect.poll(() => tab.getByLabel('A synthetic scene').isChecked()).toBe(true);
    clean(it);
  });

  test('in a frame of the marketplace', async () => {
    const it = await start();
    await it.page.goto(it.sandbox.url);
    await it.page.getByRole('button', { name: 'Launch with approvals panel' }).click();
    const frame = it.page.frameLocator('iframe[name="app"]');
    await frame.getByRole('heading', { name: 'Run an analysis' }).waitFor();
    await frame.getByRole('link', { name: 'Hillshade' }).click();
    await frame.locator('#new-run[data-ready]').waitFor();
    await frame.getByLabel('A synthetic scene').check();
    await frame.getByRole('button', { name: 'Ask for approval' }).click();
    await frame.locator('#run[data-state="AWAITING_APPROVAL"]').waitFor();
    expect(it.page.url()).not.toContain('token');
    // In the panel beside it; the app stays where it is, and Back goes back in it.
    await it.page.getByRole('button', { name: 'Approve Hillshade' }).click();
    await frame.locator('#run[data-state="COMPLETED"]').waitFor({ timeout: 900_000 });
    await it.page.evaluate('history.back()');
    await frame.locator('#new-run[data-ready]').waitFor();
    await it.page.reload();
    await it.page.getByRole('button', { name: 'Launch it again' }).click();
    await frame.getByRole('heading', { name: 'Run an analysis' }).waitFor();
    await frame.getByText('from another launch').waitFor();
    clean(it);
  });

  test('two users in one browser do not mix', async () => {
    const it = await start();
    const amina = await launch(it.page, it.context, it.sandbox.url, 'Amina Okafor, Coastal Survey');
    const bruno = await launch(it.page, it.context, it.sandbox.url, 'Bruno Keller, Alpine Forestry');
    await amina.reload();
    await amina.getByText('Amina Okafor').first().waitFor();
    await bruno.reload();
    await bruno.getByText('Bruno Keller').first().waitFor();
    await begin(amina, 'Hillshade');
    await bruno.getByText('No run yet').waitFor();
    clean(it);
  });

  test('with the keyboard alone: launch, choose, ask, approve', async () => {
    const it = await start();
    await it.page.goto(it.sandbox.url);
    await it.page.getByRole('button', { name: 'Launch', exact: true }).focus();
    const [tab] = await Promise.all([it.context.waitForEvent('page'), it.page.keyboard.press('Enter')]);
    const press = async (page: Page, name: RegExp | string) => {
      for (let i = 0; i < 150; i++) {
        await page.keyboard.press('Tab');
        const text = await page.evaluate<string>(focusedText);
        if (typeof name === 'string' ? text.includes(name) : name.test(text)) return;
      }
      throw new Error(`the keyboard does not reach ${String(name)}`);
    };
    await tab.getByRole('heading', { name: 'Run an analysis' }).waitFor();
    await press(tab, 'Hillshade');
    await tab.keyboard.press('Enter');
    await tab.locator('#new-run[data-ready]').waitFor();
    await press(tab, /Input|SAR|MULTISPECTRAL|HEIGHTMAP|synthetic/);
    await tab.keyboard.press('Space');
    await press(tab, 'Ask for approval');
    await tab.keyboard.press('Enter');
    await reached(tab, 'AWAITING_APPROVAL');
    await it.page.goto(`${it.sandbox.url}/approvals`);
    await press(it.page, 'Approve Hillshade');
    await it.page.keyboard.press('Enter');
    await reached(tab, 'COMPLETED');
    clean(it);
  });

  test('the item that the platform shows is chosen in the app, and a reload beside the approvals keeps the session', async () => {
    const it = await start();
    await it.page.goto(`${it.sandbox.url}/catalog`);
    await it.page.getByRole('link', { name: 'Olinda, Landsat 7' }).first().click();
    await it.page.getByRole('button', { name: 'Use in Reference app' }).click();
    const app = it.page.frameLocator('iframe[name="app"]');
    // The first analysis that fits the item.
    await app.getByRole('heading', { name: 'Normalized difference' }).waitFor();
    await app.getByText('on Olinda, Landsat 7').waitFor();
    await expect
      .poll(() => app.locator('#analysis optgroup[label="Do not fit the item"] option').allTextContents())
      .toContainEqual(expect.stringMatching(/^Hillshade: is multispectral/));
    await app.getByRole('button', { name: 'Ask for approval' }).click();
    await app.locator('#run[data-state="AWAITING_APPROVAL"]').waitFor();
    await it.page.reload();
    // The same session and the same place: its run is there, and nobody launched again.
    await app.locator('#run[data-state="AWAITING_APPROVAL"]').waitFor();
    expect(await app.getByText('Begun in another launch').count()).toBe(0);
    clean(it);
  });

  test('a choice of a long list is found by typing, with its title; bands that are not there leave their choices out', async () => {
    const it = await start();
    const tab = await launch(it.page, it.context, it.sandbox.url);
    await tab.getByRole('link', { name: 'Spectral index' }).click();
    await tab.locator('#new-run[data-ready]').waitFor();
    const field = tab.locator('input[name="index"]');
    await field.fill('NDSI');
    await tab.locator('#choice-index').getByText('Snow (Hall et al. 1995)').waitFor();
    const offered = () =>
      tab.evaluate<string[]>(`[...document.querySelectorAll('#choices-index option')].map(({ value }) => value)`);
    const whole = (await offered()).length;
    // A scene of the demo that has no band swir22.
    await tab
      .getByRole('checkbox', { name: /coastal-optical|Coastal/ })
      .first()
      .check();
    expect(await offered()).toContain('NDVI');
    expect(await offered()).not.toContain('NBR');
    await tab.locator('#items input:checked').first().uncheck();
    expect(await offered()).toHaveLength(whole);
    await field.fill('NOPE');
    await tab.getByLabel('A synthetic scene').check();
    await tab.getByRole('button', { name: 'Ask for approval' }).click();
    await tab.locator('#problem-index').getByText('must be one of').waitFor();
  });

  test('a wrong parameter is told at its field, and nothing is lost', async () => {
    const it = await start();
    const tab = await launch(it.page, it.context, it.sandbox.url);
    await tab.getByRole('link', { name: 'Hillshade' }).click();
    await tab.locator('#new-run[data-ready]').waitFor();
    await tab.getByLabel('A synthetic scene').check();
    const field = tab.locator('input[name="azimuth"]');
    await field.fill('999');
    await tab.getByRole('button', { name: 'Ask for approval' }).click();
    await tab.locator('#problem-azimuth').waitFor();
    expect(await field.getAttribute('aria-invalid')).toBe('true');
    expect(await field.inputValue()).toBe('999');
    await field.fill('270');
    await tab.getByRole('button', { name: 'Ask for approval' }).click();
    await reached(tab, 'AWAITING_APPROVAL');
    // The 400 is on the browser's console, as every failed request.
    expect(it.complaints.filter((one) => !one.includes('400'))).toEqual([]);
  });

  test("a session that ended takes no values along: the same user's next launch has them, another user's has not", async () => {
    const it = await start();
    const lose = async () => {
      const tab = await launch(it.page, it.context, it.sandbox.url);
      await tab.getByRole('link', { name: 'Hillshade' }).click();
      await tab.locator('#new-run[data-ready]').waitFor();
      await tab.getByLabel('A synthetic scene').check();
      await tab.locator('input[name="azimuth"]').fill('123');
      await it.context.clearCookies();
      await tab.getByRole('button', { name: 'Ask for approval' }).click();
      await tab.locator('#problem-of-form').filter({ hasText: 'launch the app again' }).waitFor();
    };
    const after = async (user: string) => {
      const tab = await launch(it.page, it.context, it.sandbox.url, user);
      await tab.getByRole('link', { name: 'Hillshade' }).click();
      await tab.locator('#new-run[data-ready]').waitFor();
      const isChosen = await tab.getByLabel('A synthetic scene').isChecked();
      return [
        await tab.locator('input[name="azimuth"]').inputValue(),
        isChosen,
        await tab.locator('#kept').isVisible(),
      ];
    };
    await lose();
    const [first = '', second = ''] = await it.page.getByLabel('As').locator('option').allTextContents();
    expect(await after(first)).toEqual(['123', true, true]);
    expect(await after(first)).toEqual(['315', false, false]);
    await lose();
    expect(await after(second)).toEqual(['315', false, false]);
    expect(it.complaints.filter((one) => !one.includes('404'))).toEqual([]);
  });

  test('no session, a launch without a token, and a platform that is away: a page that says what to do', async () => {
    const it = await start();
    await it.page.goto(`${it.app.url}/launches/nobody/`);
    await it.page.getByText('launch the app again from the marketplace').waitFor();
    await it.page.goto(`${it.app.url}/launch`);
    await it.page.getByText(/token/).first().waitFor();
    const { launchUrl } = await it.sandbox.launch();
    await it.sandbox.close();
    await it.page.goto(launchUrl);
    await it.page.getByText('could not ask the platform').waitFor();
  });
});
