/** `npm run lab -- scripts/screenshots.ts`: the six main pages, of running servers with a run in them, into docs/screenshots. Needs Chromium (apt install chromium). */
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium, type Page } from 'playwright-core';
import sharp from 'sharp';
import { startService } from '../src/commands/service-process.ts';
import { sandboxCall } from '../src/testing/sandbox-call.ts';

const target = fileURLToPath(new URL('../docs/screenshots', import.meta.url));
const folder = await mkdtemp(join(tmpdir(), 'marketplace-app-kit-screenshots-'));
await mkdir(target, { recursive: true });
const apiKey = randomBytes(24).toString('base64url');
const sandbox = await startService('sandbox', ['--port', '0', '--data', join(folder, 'sandbox')], {
  SANDBOX_API_KEY: apiKey,
  LOG_LEVEL: 'error',
});
const app = await startService('app', [], {
  PLATFORM_URL: sandbox.url,
  PLATFORM_API_KEY: apiKey,
  APP_SECRET: randomBytes(24).toString('base64url'),
  DATA_DIR: join(folder, 'app'),
  PORT: '0',
  HOST: '127.0.0.1',
  LOG_LEVEL: 'error',
});
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader'],
});

async function take(page: Page, name: string): Promise<void> {
  await page.waitForTimeout(1_000);
  await sharp(await page.screenshot())
    .png({ palette: true, colours: 128 })
    .toFile(join(target, `${name}.png`));
  console.log(`docs/screenshots/${name}.png`);
}

try {
  await sandboxCall(sandbox, 'registerApp', {
    body: {
      id: 'reference-app',
      name: 'Reference app',
      description: 'Processes a raster after your approval and delivers the result.',
      launchUrl: `${app.url}/launch`,
    },
  });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.goto(sandbox.url);
  await take(page, 'marketplace');
  const [tab] = await Promise.all([
    context.waitForEvent('page'),
    page.getByRole('button', { name: 'Launch', exact: true }).click(),
  ]);
  await tab.getByRole('link', { name: 'Normalized difference' }).click();
  await tab.locator('#new-run[data-ready]').waitFor();
  await tab.locator('#collection').selectOption({ label: 'Olinda coast' });
  await tab.waitForTimeout(1_500);
  await tab.locator('#items input').first().check();
  await tab.waitForTimeout(4_000);
  await take(tab, 'new-run');
  await tab.getByRole('button', { name: 'Ask for approval' }).click();
  await tab.locator('#run[data-state="AWAITING_APPROVAL"]').waitFor();
  await page.goto(`${sandbox.url}/approvals`);
  await take(page, 'approvals');
  await page.getByRole('button', { name: /^Approve/ }).click();
  await tab.locator('#legend .legend-card').waitFor({ timeout: 60_000 });
  await tab.waitForTimeout(2_000);
  await tab.locator('#compare').fill('500');
  await take(tab, 'run');
  await page.goto(`${sandbox.url}/catalog?collection=jacksboro-fault`);
  await page.locator('#map').hover();
  await page.locator('#map[data-ready]').waitFor();
  await take(page, 'catalog');
  await page.goto(`${sandbox.url}/launches`);
  await page.locator('#launches tbody a').first().click();
  await page.locator('.calls a').first().click();
  await page.locator('#pane .card').waitFor();
  await take(page, 'inspector');
} finally {
  await browser.close();
  await Promise.all([app.stop(), sandbox.stop()]);
  await rm(folder, { recursive: true, force: true });
}
