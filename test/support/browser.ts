import { existsSync } from 'node:fs';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { cleanUpLater } from './cleanup.ts';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => existsSync(path));

/** Where there is none the tests skip; in CI that is a failure. */
export const hasChromium = executablePath !== undefined;
if (!hasChromium) console.warn('the tests in a browser are skipped: there is no Chromium (apt install chromium)');
if (!hasChromium && process.env['CI']) throw new Error('there is no Chromium: apt-get install chromium');

export interface Visit {
  readonly context: BrowserContext;
  readonly page: Page;
  /** What pages said on the console, requests to other hosts, and scripts that failed. */
  readonly complaints: string[];
}

/** A fresh browser context on a browser of the test's own. `own` are the origins that pages may load from. */
export async function visit(own: readonly string[], options: { colorScheme?: 'light' | 'dark'; viewport?: { width: number; height: number } } = {}): Promise<Visit> {
  const browser: Browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader'] });
  cleanUpLater(() => browser.close());
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  context.setDefaultTimeout(20_000);
  const complaints: string[] = [];
  context.on('page', (page) => {
    page.on('console', (message) => message.type() === 'error' && complaints.push(`console: ${message.text()}`));
    page.on('pageerror', (error) => complaints.push(`script: ${error.message}`));
    page.on('request', (request) => {
      const { protocol, origin } = new URL(request.url());
      if (protocol !== 'data:' && protocol !== 'blob:' && !own.includes(origin)) complaints.push(`request to ${origin}`);
    });
  });
  return { context, page: await context.newPage(), complaints };
}
