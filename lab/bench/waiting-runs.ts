/** A sandbox, an app, and runs of the app that wait for approval: for benches of what waiting costs. */
import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadMyApp } from '../../src/commands/my-app.ts';
import { trialRun } from '../../src/commands/trial-run.ts';
import { openLaunch } from '../../src/testing/app-session.ts';
import { startProcess, type BenchProcess, type ProcessOptions } from './processes.ts';

const trial = trialRun(await loadMyApp(), 64);
const launchCount = 20;
export const intervalMs = 3_000;

export interface Launched {
  readonly launchId: string;
  readonly token: string;
  readonly launchUrl: string;
}
export interface Waiting {
  readonly sandbox: BenchProcess;
  readonly apiKey: string;
  readonly app: BenchProcess;
  readonly launches: readonly Launched[];
  readonly operations: readonly { readonly operationId: string; readonly launchId: string }[];
  /** A control call of the sandbox: GET, or POST with a body. */
  readonly control: <T>(path: string, body?: object) => Promise<T>;
  /** Starts the app again, on its port and its database. */
  readonly restart: (options?: ProcessOptions) => Promise<BenchProcess>;
  /** Ends the sandbox, and removes the folder. */
  readonly end: () => Promise<void>;
}

/** Starts `runs` runs and waits until their operations exist. `env` has further settings of the app. `isHasty` starts runs of all launches at once, which leaves the app a larger heap. */
export async function startWaiting(
  {
    folder,
    runs,
    env = {},
    isHasty = false,
  }: { folder: string; runs: number; env?: Record<string, string>; isHasty?: boolean },
  options: ProcessOptions = {},
): Promise<Waiting> {
  const apiKey = randomBytes(24).toString('base64url');
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const sandbox = await startProcess(
    new URL('../../src/commands/sandbox.ts', import.meta.url),
    'sandbox',
    ['--port', '0', '--seed', 'none', '--data', join(folder, 'sandbox')],
    { SANDBOX_API_KEY: apiKey, LOG_LEVEL: 'error' },
  );
  const settings = {
    PLATFORM_URL: sandbox.url,
    RUNS_PER_USER: String(runs),
    PLATFORM_API_KEY: apiKey,
    APP_SECRET: randomBytes(32).toString('base64url'),
    DATA_DIR: join(folder, 'app'),
    LAUNCHES_PER_MINUTE: '100000',
    POLL_INTERVAL_MS: String(intervalMs),
    LOG_LEVEL: 'error',
    ...env,
  };
  const start = (port: string, own: ProcessOptions) =>
    startProcess(
      new URL('../../src/commands/app.ts', import.meta.url),
      'app',
      [],
      { ...settings, PORT: port, ...own.env },
      own,
    );
  const app = await start('0', options);
  async function control<T>(path: string, body?: object): Promise<T> {
    const response = await fetch(`${sandbox.url}/sandbox/${path}`, {
      method: body ? 'POST' : 'GET',
      headers: body ? { 'content-type': 'application/json' } : {},
      body: body ? JSON.stringify(body) : null,
    });
    if (!response.ok) throw new Error(`the sandbox answered ${response.status} to ${path}`);
    return (await response.json()) as T;
  }
  await control('apps', { id: 'bench', name: 'Bench', launchUrl: `${app.url}/launch` });
  const launches = await Promise.all(
    Array.from({ length: launchCount }, () => control<Launched>('launches', { appId: 'bench' })),
  );
  async function startRuns({ launchUrl }: Launched): Promise<void> {
    const session = await openLaunch(launchUrl);
    for (let i = 0; i < runs / launchCount; i++) await session.startRun(trial);
  }
  if (isHasty) await Promise.all(launches.map(startRuns));
  else for (const launch of launches) await startRuns(launch);
  const waitingOf = async (launchId: string) =>
    (await control<{ operations: { operationId: string }[] }>(`launches/${launchId}`)).operations;
  const operations: { operationId: string; launchId: string }[] = [];
  for (const { launchId } of launches) {
    let found = await waitingOf(launchId);
    for (; found.length < runs / launchCount; found = await waitingOf(launchId)) await sleep(500);
    operations.push(...found.map(({ operationId }) => ({ operationId, launchId })));
  }
  return {
    sandbox,
    apiKey,
    app,
    launches,
    operations,
    control,
    restart: (own = {}) => start(new URL(app.url).port, own),
    async end() {
      await sandbox.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
