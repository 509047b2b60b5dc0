/**
 * `npm run lab -- lab/bench/pages.ts`: what the pages cost, in Chromium, from real servers: bytes over the wire and time until they can
 * be used; the same lists with 10 and with 10,000 rows; and what an open page fetches while files are processed.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { chromium, type Browser, type Page } from 'playwright-core';
import { median, tell, type BenchRow } from './rows.ts';
import { startService, type ServiceProcess } from '../../src/commands/service-process.ts';
import { sandboxCall } from '../../src/testing/sandbox-call.ts';

const apiKey = 'bench-key';
const goals = {
  firstPageKilobytes: 300,
  interactiveMs: 1_000,
  manyOverFew: 1.5,
  kilobytesPerSecond: 50,
  eventMs: 1_000,
};
const loads = 5;
const fewAndMany = [10, 10_000] as const;
const processedFiles = 150;

const folder = await mkdtemp(join(tmpdir(), 'pages-bench-'));
const startSandbox = (name: string) =>
  startService('sandbox', ['--port', '0', '--data', join(folder, name)], {
    SANDBOX_API_KEY: apiKey,
    LOG_LEVEL: 'error',
  });
const rows: BenchRow[] = [];
/** A figure with the most that it may be, or with a peer and the most of the ratio. */
const note = (what: string, unit: string, ours: readonly number[], most: number, peer: BenchRow['peer'] = null) =>
  rows.push({ what, unit, ours, peer, goal: { most } });

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader'],
});
try {
  await benchFirstPages(browser);
  await benchManyRows(browser);
  await benchProcessing(browser);
} finally {
  await browser.close();
  await rm(folder, { recursive: true, force: true });
}
tell(rows);

async function benchFirstPages(from: Browser): Promise<void> {
  const sandbox = await startSandbox('first');
  const app = await startService('app', [], {
    PLATFORM_URL: sandbox.url,
    PLATFORM_API_KEY: apiKey,
    APP_SECRET: 'x'.repeat(32),
    DATA_DIR: join(folder, 'app'),
    PORT: '0',
    HOST: '127.0.0.1',
    LOG_LEVEL: 'error',
  });
  try {
    await sandboxCall(sandbox, 'registerApp', {
      body: { id: 'reference-app', name: 'Reference app', launchUrl: `${app.url}/launch` },
    });
    const { launchUrl } = await sandboxCall(sandbox, 'launch', { body: {} });
    for (const path of ['/', '/approvals', '/catalog', '/files', '/inference', '/launches', '/docs'])
      await firstPage(from, `sandbox ${path}`, `${sandbox.url}${path}`);
    const page = await from.newPage();
    await page.goto(launchUrl);
    const { context, home } = { context: page.context(), home: page.url() };
    await firstPage(from, 'app, its first page', home, await context.storageState());
  } finally {
    await Promise.all([app.stop(), sandbox.stop()]);
  }
}

/** A browser that has seen nothing yet, each time. */
async function firstPage(
  from: Browser,
  what: string,
  address: string,
  storageState?: Awaited<ReturnType<ReturnType<Page['context']>['storageState']>>,
): Promise<void> {
  const seen: { bytes: number; ms: number }[] = [];
  for (let i = 0; i < loads; i++) {
    const context = await from.newContext({
      viewport: { width: 1280, height: 800 },
      ...(storageState && { storageState }),
    });
    const page = await context.newPage();
    const count = await wireBytes(page);
    await page.goto(address, { waitUntil: 'load' });
    const ms = await page.evaluate<number>("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd");
    await sleep(700);
    seen.push({ bytes: count(), ms });
    await context.close();
  }
  note(`${what}: over the wire`, 'kB', [Math.max(...seen.map(({ bytes }) => bytes)) / 1_000], goals.firstPageKilobytes); // oxfmt-ignore
  note(`${what}: until it can be used`, 'ms', seen.map(({ ms }) => ms), goals.interactiveMs); // oxfmt-ignore
}

async function wireBytes(page: Page): Promise<() => number> {
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  let bytes = 0;
  session.on('Network.loadingFinished', ({ encodedDataLength }) => void (bytes += encodedDataLength));
  return () => bytes;
}

/** Lists with few and with many rows, written into the sandbox's database: what the server takes for a page. */
async function benchManyRows(from: Browser): Promise<void> {
  const times = new Map<string, number[][]>();
  for (const count of fewAndMany) {
    const name = `rows-${count}`;
    await (await startSandbox(name)).stop();
    const launchId = fill(join(folder, name, 'sandbox.db'), count);
    const sandbox = await startSandbox(name);
    const page = await from.newPage();
    try {
      for (const path of ['/approvals', '/launches', '/files', `/launches/${launchId}`]) {
        const own: number[] = [];
        for (let i = 0; i < 15; i++) {
          const began = performance.now();
          await page.goto(sandbox.url + path, { waitUntil: 'commit' });
          await page.waitForLoadState('domcontentloaded');
          own.push(performance.now() - began);
        }
        const key = path.startsWith('/launches/') ? 'calls of a launch' : path.slice(1);
        times.set(key, [...(times.get(key) ?? []), own.slice(3)]);
      }
    } finally {
      await page.close();
      await sandbox.stop();
    }
  }
  for (const [what, [few = [], many = []]] of times)
    note(`${what}: 10,000 rows`, 'ms', [median(many)], goals.manyOverFew, { name: '10 rows', values: [median(few)] });
}

function fill(path: string, count: number): string {
  const database = new Sqlite(path);
  const now = Date.now();
  const launchOf = (i: number) => `launch_bench${i}`;
  database.transaction(() => {
    const insert = {
      launch: database.prepare(
        "insert into launches (id, app_id, user_id, renew_policy, created_at) values (?, 'reference-app', (select id from users limit 1), 'extend', ?)",
      ),
      operation: database.prepare(
        "insert into operations (id, launch_id, name, parameters, status, created_at, updated_at, expires_at, body_hash) values (?, ?, 'Bench', '{}', ?, ?, ?, ?, '')",
      ),
      file: database.prepare(
        "insert into files (id, user_id, original_name, size, source_type, properties, blob, status, reason, created_at) values (?, (select id from users limit 1), 'bench.tif', 1, 'UNKNOWN', '{}', 'bench', 'FAILED', 'made for the bench', ?)",
      ),
      call: database.prepare(
        "insert into calls (launch_id, at, launch_at, endpoint, method, status, duration_ms, delivered, request_bytes, response_bytes, detail, path, request, response) values (?, ?, ?, 'operation.status', 'GET', 200, 1, 1, 0, 100, ?, '/x', '{\"headers\":{},\"body\":null}', '{\"headers\":{},\"body\":null}')",
      ),
    };
    for (let i = 0; i < count; i++) {
      const at = now - i * 3_000;
      insert.launch.run(launchOf(i), at);
      insert.operation.run(
        `op_bench${i}`,
        launchOf(i),
        i % 2 === 0 ? 'REQUESTED' : 'APPROVED',
        at,
        at,
        now + 3_600_000,
      );
      insert.file.run(`file_bench${i}`, at);
      insert.call.run(
        launchOf(0),
        at,
        at,
        JSON.stringify({ operationId: 'op_bench0', operationStatus: 'REQUESTED', tokenNumber: 1 }),
      );
    }
  })();
  database.close();
  return launchOf(0);
}

/** A page of files stays open while many are processed. */
async function benchProcessing(from: Browser): Promise<void> {
  const sandbox: ServiceProcess = await startSandbox('processing');
  try {
    const page = await from.newPage();
    const count = await wireBytes(page);
    await page.goto(`${sandbox.url}/files`);
    await sleep(2_000);
    const [before, began] = [count(), performance.now()];
    const sent = Array.from({ length: processedFiles }, async (_, i) => {
      const form = new FormData();
      form.append('file', new Blob([`no raster ${i}`]), `bench-${i}.bin`);
      await fetch(`${sandbox.url}/public/file/upload?sourceType=UNKNOWN`, {
        method: 'POST',
        headers: { 'x-api-key': apiKey },
        body: form,
      });
    });
    await Promise.all(sent);
    const giveUpAt = performance.now() + 300_000;
    // By strings: the page's policy lets nothing be evaluated that comes later.
    const isDone = () =>
      page.evaluate<boolean>(
        `document.querySelector('#files').textContent.includes('of ${processedFiles} files') && !/queued|in progress/.test(document.querySelector('#files').textContent)`,
      );
    while (!(await isDone()) && performance.now() < giveUpAt) await sleep(500);
    const perSecond = (count() - before) / ((performance.now() - began) / 1000);
    note(
      `an open page while ${processedFiles} files are processed, over the wire`,
      'kB a second',
      [perSecond / 1_000],
      goals.kilobytesPerSecond,
    );
    await page.goto(`${sandbox.url}/approvals`);
    await sleep(1_500);
    const waits: number[] = [];
    for (let i = 0; i < loads; i++) {
      const { token } = await sandboxCall(sandbox, 'launch', { body: {} });
      const at = performance.now();
      const { operationId } = (await (
        await fetch(`${sandbox.url}/public/external-app/operation/${token}`, {
          method: 'POST',
          headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
          body: JSON.stringify({ name: `Bench ${i}` }),
        })
      ).json()) as { operationId: string };
      await page.locator(`#op-${operationId}`).waitFor();
      waits.push(performance.now() - at);
      await sleep(1_000);
    }
    note('an operation is on the page of approvals', 'ms', waits, goals.eventMs);
  } finally {
    await sandbox.stop();
  }
}
