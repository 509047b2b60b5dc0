/** A sandbox and an app against it, in a folder, as processes: for benches of both. */
import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Role } from '../../src/app/config.ts';
import { startProcess, type BenchProcess, type ProcessOptions } from './processes.ts';

export interface Servers {
  readonly sandbox: BenchProcess;
  readonly app: BenchProcess;
  readonly apiKey: string;
  /** A control call of the sandbox: GET, or POST with a body. */
  readonly control: <T>(path: string, body?: object) => Promise<T>;
  /** Starts the app again, on its port and its database. */
  readonly restart: () => Promise<BenchProcess>;
  /** Starts a worker on the database of the app. */
  readonly startWorker: () => Promise<BenchProcess>;
  /** Ends the sandbox, and removes the folder. */
  readonly end: () => Promise<void>;
}

/** Starts both, and registers the app as `bench`. `env` has further settings of the app. Default of `role`: all. */
export async function startServers(
  { folder, env = {}, role = 'all' }: { folder: string; env?: Readonly<Record<string, string>>; role?: Role },
  options: ProcessOptions = {},
): Promise<Servers> {
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
    PLATFORM_API_KEY: apiKey,
    APP_SECRET: randomBytes(32).toString('base64url'),
    DATA_DIR: join(folder, 'app'),
    LAUNCHES_PER_MINUTE: '100000',
    LOG_LEVEL: 'error',
    ...env,
  };
  const start = (port: string, as: Role = role) =>
    startProcess(
      new URL('../../src/commands/app.ts', import.meta.url),
      'app',
      ['--role', as],
      { ...settings, PORT: port },
      options,
    );
  const app = await start('0');
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
  return {
    sandbox,
    app,
    apiKey,
    control,
    restart: () => start(new URL(app.url).port),
    startWorker: () => start('0', 'worker'),
    async end() {
      await sandbox.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
