import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { readAppConfig } from '../../src/app/config.ts';
import { createApp, type AppOptions } from '../../src/app/create-app.ts';
import type { WireProfile } from '../../src/contract/index.ts';
import myApp from '../../src/my-app/app.ts';
import type { RunView } from '../../src/app/runs/run-view.ts';
import { serve } from '../../src/server/index.ts';
import { makeFolder } from './folders.ts';
import { apiKey, type TestSandbox } from './sandbox.ts';
import { testConfinement } from './confinement.ts';
import { cleanUpLater } from './cleanup.ts';

export interface TestApp {
  readonly url: string;
  readonly dataDir: string;
  readonly handler: RequestListener;
  close(): Promise<void>;
}

export type StartAppOptions = Partial<Omit<AppOptions, 'config'>> & {
  dataDir?: string;
  env?: Record<string, string>;
  /** In place of the definition's. */
  profile?: WireProfile;
};

/** Fast retries, so that faults pass in a moment; polling as fast as the platform allows. */
const quickRetry = { minDelayMs: 20, maxDelayMs: 100 };

/** The app on a free port against `platformUrl`, closed and its folder removed when the test ends. */
export async function startApp(platformUrl: string, options: StartAppOptions = {}): Promise<TestApp> {
  const { dataDir = await makeFolder(), env = {}, profile, definition = myApp, ...rest } = options;
  const config = readAppConfig(
    {
      PLATFORM_URL: platformUrl,
      PLATFORM_API_KEY: apiKey,
      APP_SECRET: 'x'.repeat(32),
      DATA_DIR: dataDir,
      PORT: '0',
      POLL_INTERVAL_MS: '2000',
      LOG_LEVEL: 'silent',
      ...env,
    },
    () => {},
    { limits: profile?.limits },
  );
  const app = await createApp({
    config,
    definition: profile ? { ...definition, profile } : definition,
    log: pino({ level: config.logLevel }),
    retry: quickRetry,
    confinement: await testConfinement(),
    ...rest,
  });
  const served = await serve(app.handler, { host: config.host, port: config.port, portSetting: 'PORT' });
  await app.work();
  let closed = false;
  const close = async () => {
    if (closed) return;
    closed = true;
    await served.close(0);
    await app.close();
    if (!options.dataDir) await rm(dataDir, { recursive: true, force: true });
  };
  cleanUpLater(close);
  return { url: served.url, dataDir, handler: app.handler, close };
}

/** One launch of the app as its user's browser has it. */
export interface BrowserSession {
  readonly home: string;
  readonly cookie: string;
  get(path: string): Promise<Response>;
  post(path: string, body?: object): Promise<Response>;
  start(run: object): Promise<RunView>;
  run(id: string): Promise<RunView>;
  /** Waits for a state; fails at another final one. */
  waitFor(id: string, ...states: RunView['state'][]): Promise<RunView>;
}

export async function openSession(launchUrl: string): Promise<BrowserSession> {
  const launched = await fetch(launchUrl, { redirect: 'manual' });
  if (launched.status !== 303) throw new Error(`the launch was answered ${launched.status}: ${await launched.text()}`);
  return sessionOf(launched, launchUrl);
}

export function sessionOf(launched: Response, launchUrl: string): BrowserSession {
  const home = new URL(launched.headers.get('location') ?? '', launchUrl).href;
  const cookie = launched.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  const get = (path: string) => fetch(new URL(path, home), { headers: { cookie }, redirect: 'manual' });
  const post = (path: string, body: object = {}) =>
    fetch(new URL(path, home), {
      method: 'POST',
      headers: { cookie, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const read = async (response: Response) => {
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return (await response.json()) as RunView;
  };
  const run = async (id: string) => read(await get(`api/runs/${id}`));
  return {
    home,
    cookie,
    get,
    post,
    start: async (wanted) => read(await post('api/runs', wanted)),
    run,
    async waitFor(id, ...states) {
      for (;;) {
        const view = await run(id);
        if (states.includes(view.state)) return view;
        if (view.isFinal) throw new Error(`the run is ${view.state}: ${JSON.stringify(view.failure)}`);
        await sleep(100);
      }
    },
  };
}

/** A launch of `app` by the sandbox's marketplace, opened as a browser does. */
export async function launchApp(
  sandbox: TestSandbox,
  app: { url: string },
  options: { renewPolicy?: 'extend' | 'rotate' | undefined; userId?: string } = {},
) {
  await sandbox.control('POST', 'apps', { id: 'tested', name: 'Tested', launchUrl: `${app.url}/launch` });
  const launch = await sandbox.launch({ appId: 'tested', ...options });
  return { ...launch, session: await openSession(launch.launchUrl) };
}

/** A small run: what it processes does not matter. */
export const smallRun = { stepId: 'cog', input: { type: 'synthetic', size: 128 } };

/** Number of upload calls of a launch that the platform saw. */
export async function uploadCalls(sandbox: TestSandbox, launchId: string): Promise<number> {
  return (await sandbox.trace(launchId)).filter(({ endpoint }) => endpoint.startsWith('upload.')).length;
}

/** Bytes that the platform returns for a file. */
export async function fetchedBytes(sandbox: TestSandbox, fileId: string | null | undefined): Promise<Buffer> {
  const { text } = await sandbox.request('GET', `/public/file/download/url?fileId=${fileId}`, {
    headers: { 'x-api-key': apiKey },
  });
  return Buffer.from(await (await fetch(text)).arrayBuffer());
}

/** Its sha256. */
export async function fetchedDigest(sandbox: TestSandbox, fileId: string | null | undefined): Promise<string> {
  return createHash('sha256')
    .update(await fetchedBytes(sandbox, fileId))
    .digest('hex');
}

export function workFolders(dataDir: string): string {
  return join(dataDir, 'work');
}
