// @module-tag all
/** Each button of each page does something, and ends in no error. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { smallRun } from '../support/app.ts';
import { visit } from '../support/browser.ts';
import { projectRoot } from '../support/folders.ts';
import { needing } from '../support/needs.ts';
import { populated } from '../support/populated.ts';
import { adminKey, startSandbox } from '../support/sandbox.ts';

/** Records the effects of a click that send no request. */
const watch = `
  globalThis.seen = [];
  if (navigator.clipboard) navigator.clipboard.writeText = async (text) => void globalThis.seen.push('copied ' + text.length);
  addEventListener('DOMContentLoaded', () => new MutationObserver(() => globalThis.seen.push('changed'))
    .observe(document.documentElement, { subtree: true, childList: true, attributes: true, characterData: true }));
`;

/** Text of buttons that other tests cover, with the reason. */
const elsewhere: Readonly<Record<string, string>> = {
  'Notify me': 'asks for a permission that this browser denies: test/browser/flow.test.ts',
  'Open the app': 'the page presses it by itself: test/browser/flow.test.ts',
  'Look at older items': 'shown for long catalogs alone: test/browser/flow.test.ts',
};

/** Text of a button, the same for each row of a list. */
const nameOf = (text: string) => text.replaceAll(/\s+/g, ' ').trim();

const square = '{"type":"Polygon","coordinates":[[[14,47],[14.01,47],[14.01,47.01],[14,47.01],[14,47]]]}';
/** Values of required fields, by selector. */
const fields: Readonly<Record<string, string>> = {
  'input[name=adminKey]': adminKey,
  'form[action*="/apps"] input[name=id]': 'an-app',
  'form[action*="/apps"] input[name=name]': 'An app',
  'form[action*="/apps"] input[name=publisher]': 'Somebody',
  'form[action*="/apps"] input[name=version]': '1.0.0',
  'form[action*="/apps"] input[name=description]': 'An app of the test.',
  'form[action*="/apps"] input[name=launchUrl]': 'http://127.0.0.1:9/launch',
  'textarea[data-type=area]': square,
};

async function fill(page: Page, pressed: ReadonlySet<string>): Promise<void> {
  for (const radio of await page.locator('[data-source][value*=synthetic]').all()) await radio.check();
  for (const [selector, value] of Object.entries(fields))
    for (const field of await page.locator(selector).all()) await field.fill(value);
  // The drawing tools are shown once the map is there, which the catalog asks for first.
  const moveMap = page.getByRole('button', { name: 'Interact with map' });
  const draw = page.locator('#draw');
  if ((await moveMap.isVisible()) && pressed.has('Interact with map')) {
    await moveMap.dispatchEvent('click');
    await draw.waitFor();
  } else if ((await draw.count()) > 0 && !(await moveMap.isVisible())) await draw.waitFor();
  for (const box of (await page.locator('input[type=checkbox][form=bulk]').all()).slice(0, 1)) await box.check();
  const makeKey = page.getByRole('button', { name: 'Make a key' });
  if (pressed.has('Make a key for this page') && (await makeKey.isVisible())) await makeKey.click();
}

/** Presses the visible buttons of a page that were not pressed, each on the page as it is opened. */
async function pressAll(page: Page, address: string, pressed: Set<string>): Promise<string[]> {
  const problems: string[] = [];
  for (;;) {
    // The last click may still lead somewhere.
    await page.goto('about:blank').catch(() => page.waitForTimeout(1_000));
    await page.goto(address);
    await page.waitForTimeout(200);
    await fill(page, pressed);
    await page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))");
    const buttons = page.locator('button:visible:enabled:not(.maplibregl-map button)');
    const names = (await buttons.allTextContents()).map(nameOf);
    const index = names.findIndex((name) => !pressed.has(name));
    if (index < 0) return problems;
    const name = names[index]!;
    pressed.add(name);
    const place = `${new URL(address).pathname}: ${name}`;
    const did: string[] = [];
    const onRequest = () => did.push('asked');
    const onDownload = () => did.push('downloaded');
    const onPopup = () => did.push('opened');
    await page.waitForTimeout(300);
    await page.evaluate('globalThis.seen.length = 0');
    page.on('request', onRequest).on('download', onDownload).on('popup', onPopup);
    const statuses: number[] = [];
    const onResponse = (response: { status(): number; url(): string }) => {
      if (response.status() >= 400) statuses.push(response.status());
    };
    page.on('response', onResponse);
    await buttons.nth(index).click();
    const seen = async () =>
      did.length > 0 || (await page.evaluate<number>('globalThis.seen.length').catch(() => 1)) > 0;
    await expect.poll(seen, { timeout: 120_000, message: `${place} does nothing` }).toBe(true);
    await page.waitForTimeout(250);
    if (statuses.length > 0) problems.push(`${place} was answered ${statuses.join(', ')}`);
    page.off('request', onRequest).off('download', onDownload).off('popup', onPopup).off('response', onResponse);
  }
}

describe('every button of every page', needing('chromium'), () => {
  test('does something, and ends in no error', { timeout: 1_800_000 }, async () => {
    const { sandbox, app, session, launchId, runIds } = await populated({ name: 'Somebody' });
    const failing = await session.start({ ...smallRun, input: { type: 'local', path: 'none.tif' } }).catch(() => null);
    expect(failing).toBeNull();
    const rejected = await session.start(smallRun);
    const { operationId } = await session.waitFor(rejected.id, 'AWAITING_APPROVAL');
    await sandbox.control('POST', `operations/${operationId}/reject`);
    await session.waitFor(rejected.id, 'REJECTED');
    // The page of approvals decides four, the oldest first; the last one waits until its own page cancels it.
    const waiting = [];
    for (let i = 0; i < 3; i++) {
      const { id } = await session.start(smallRun);
      await session.waitFor(id, 'AWAITING_APPROVAL');
      waiting.push(id);
    }
    await sandbox.control('POST', 'faults', { launchId, endpoint: 'user.detail', effect: { status: 500 } });
    const locked = await startSandbox({ env: { SANDBOX_ADMIN_KEY: adminKey } });
    const [name = '', value = ''] = session.cookie.split('=');
    const open = async (webgl: boolean) => {
      const visited = await visit([sandbox.url, app.url, locked.url], {
        webgl,
        httpCredentials: { username: 'admin', password: adminKey, origin: app.url },
      });
      await visited.context.addCookies([{ name, value, url: session.home }]);
      await visited.context.addInitScript(watch);
      visited.page.on('dialog', (dialog) => void dialog.accept());
      return visited;
    };
    // Only pages on whose map somebody draws need it drawn.
    const [plain, withMap] = [await open(false), await open(true)];
    const complaints = () => [...plain.complaints, ...withMap.complaints];
    const problems: string[] = [];
    const all = new Set<string>();
    for (const address of [
      `${sandbox.url}/approvals`,
      `${app.url}/ops`,
      ...['ndvi', 'clip'].map((step) => new URL(`new/${step}`, session.home).href),
      ...[runIds[0], rejected.id, waiting[2]!].map((id) => new URL(`runs/${id}`, session.home).href),
      ...[
        '/catalog',
        '/catalog/coastal-optical/coastal-optical-024',
        '/files',
        '/inference',
        `/launches/${launchId}?call=1`,
        `/launches/${launchId}/frame`,
        '/docs',
        '/',
        // After that, another app is the first one of the marketplace.
        '/marketplace/apps',
        '/reset',
      ].map((path) => sandbox.url + path),
    ]) {
      // The same name may do another thing on another page.
      const pressed = new Set(Object.keys(elsewhere));
      const { page } = /\/(catalog|new\/\w+)$/.test(address) ? withMap : plain;
      problems.push(...(await pressAll(page, address, pressed)));
      pressed.forEach((one) => all.add(one));
    }
    problems.push(...(await pressAll(plain.page, `${locked.url}/sign-in`, all)));
    expect(problems).toEqual([]);
    expect(complaints().filter((one) => !/status of 40[014]/.test(one))).toEqual([]);
    // A button that is added to a page is pressed, or stands among those of other tests.
    const shown = await namesInTemplates();
    expect(shown.length).toBeGreaterThan(25);
    expect(shown.filter((one) => !all.has(one))).toEqual([]);
  });
});

/** Texts of buttons in templates, where the text is fixed. */
async function namesInTemplates(): Promise<string[]> {
  const folder = join(projectRoot, 'templates');
  const files = (await readdir(folder, { recursive: true })).filter((file) => /^(app|sandbox)\/.*\.eta$/.test(file));
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  const found = texts.flatMap((text) => [...text.matchAll(/<button\b(?:<%[^]*?%>|[^>%])*>([^<]*)<\/button>/g)]);
  return [...new Set(found.map(([, text = '']) => nameOf(text)).filter((text) => text !== ''))];
}
