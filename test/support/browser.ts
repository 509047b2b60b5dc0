import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { cleanUpAfterFile, cleanUpLater } from './cleanup.ts';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
);

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

let browser: Promise<Browser> | null = null;

/** One for the file. */
function theBrowser(): Promise<Browser> {
  if (browser) return browser;
  const launched = chromium.launch({
    executablePath,
    // WebGL by the processor, and only WebGL: putting pages together by it as well takes twice the time.
    args: [
      '--no-sandbox',
      '--use-gl=angle',
      '--use-angle=swiftshader',
      '--enable-unsafe-swiftshader',
      '--disable-gpu-compositing',
    ],
  });
  cleanUpAfterFile(async () => (await launched).close());
  return (browser = launched);
}

/** A fresh browser context, of somebody who has never been here. `own` are the origins that pages may load from. */
export async function visit(
  own: readonly string[],
  options: { colorScheme?: 'light' | 'dark'; viewport?: { width: number; height: number } } = {},
): Promise<Visit> {
  const context = await (await theBrowser()).newContext({ viewport: { width: 1200, height: 900 }, ...options });
  cleanUpLater(() => context.close());
  // A busy machine draws a map by its processor alone.
  context.setDefaultTimeout(60_000);
  const complaints: string[] = [];
  context.on('page', (page) => {
    page.on('console', (message) => message.type() === 'error' && complaints.push(`console: ${message.text()}`));
    page.on('pageerror', (error) => complaints.push(`script: ${error.message}`));
    page.on('request', (request) => {
      const { protocol, origin } = new URL(request.url());
      if (protocol !== 'data:' && protocol !== 'blob:' && !own.includes(origin))
        complaints.push(`request to ${origin}`);
    });
  });
  return { context, page: await context.newPage(), complaints };
}

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds on a page, of any impact. */
export async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const found = await page.evaluate<{ id: string; nodes: { html: string }[] }[]>(
    `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => ({ html })) })))`,
  );
  return found.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 150)}`);
}

/** The same of a page in a file, everything on it opened, as on a phone. */
export async function violationsOfFile(path: string): Promise<string[]> {
  const { page } = await visit([], { viewport: { width: 390, height: 844 } });
  await page.goto(pathToFileURL(path).href);
  await page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))");
  const isWide = await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth + 1');
  return [...(await violationsOf(page)), ...(isWide ? ['wider than the window'] : [])];
}
