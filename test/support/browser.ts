import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { chromium, type Browser, type BrowserContext, type HTTPCredentials, type Page } from 'playwright-core';
import { findProgram, needs } from '../../scripts/needs.mjs';
import { cleanUpAfterFile, cleanUpLater } from './cleanup.ts';

const executablePath = findProgram(needs.chromium.programs[0]!) ?? undefined;

export interface Visit {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Console errors of pages, requests to other hosts, and scripts that failed. */
  readonly complaints: string[];
}

let browser: Promise<Browser> | null = null;

/** One for the file. */
function theBrowser(): Promise<Browser> {
  if (browser) return browser;
  const launched = chromium.launch({
    ...(executablePath !== undefined && { executablePath }),
    // WebGL by the processor, and only WebGL: putting pages together by it as well takes twice the time.
    args: [
      '--no-sandbox',
      '--use-gl=angle',
      '--use-angle=swiftshader',
      '--enable-unsafe-swiftshader',
      '--disable-gpu-compositing',
    ],
  });
  // The next test file in this process launches another browser.
  cleanUpAfterFile(async () => {
    browser = null;
    await (await launched).close();
  });
  return (browser = launched);
}

const withoutWebgl = `HTMLCanvasElement.prototype.getContext = new Proxy(HTMLCanvasElement.prototype.getContext, {
  apply: (target, canvas, args) => (/webgl/.test(args[0]) ? null : Reflect.apply(target, canvas, args)),
});`;

/**
 * A fresh browser context, of somebody who has never been here. `own` are the origins that pages may load from.
 * `webgl: false`: maps stay pictures, which costs a third less time. Default: true.
 */
export async function visit(
  own: readonly string[],
  {
    webgl = true,
    ...options
  }: {
    colorScheme?: 'light' | 'dark';
    viewport?: { width: number; height: number };
    webgl?: boolean;
    httpCredentials?: HTTPCredentials;
  } = {},
): Promise<Visit> {
  const context = await (await theBrowser()).newContext({ viewport: { width: 1200, height: 900 }, ...options });
  cleanUpLater(() => context.close());
  // A busy machine draws a map by its processor alone.
  context.setDefaultTimeout(300_000);
  if (!webgl) await context.addInitScript(withoutWebgl);
  const complaints: string[] = [];
  context.on('page', (page) => {
    page.on('console', (message) => {
      // The text of an error object is its name alone.
      const { url, lineNumber } = message.location();
      if (message.type() === 'error') complaints.push(`console: ${message.text()} (${url}:${lineNumber})`);
    });
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

/** Violations that axe finds on a page, of any impact. */
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
