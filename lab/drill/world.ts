import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import Sqlite from 'better-sqlite3';
import type { RunState } from '../../src/app/runs/run-state.ts';
import { keptConnection, startCluster, type Cluster } from './cluster.ts';
import { freePort } from '../../src/commands/free-port.ts';
import { drillPlatform, type DrillPlatform } from './platform.ts';
import { startProxy, type Proxy } from './proxy.ts';
import { mountSmallDisk, type SmallDisk } from './small-disk.ts';

export interface RunFacts {
  readonly id: string;
  readonly state: RunState;
  readonly operationId: string | null;
  readonly worker: string | null;
  readonly files: string | null;
  readonly outputs: string | null;
  readonly failure: string | null;
  readonly updatedAt: number;
}

export interface Stop {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A server that can be killed, stopped and started again where it was. */
export interface Service {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  signal(signal: NodeJS.Signals): void;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
  /** SIGTERM; resolves when it has ended. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Kills it for good. */
  end(): Promise<void>;
}

export interface World {
  readonly platform: DrillPlatform;
  readonly proxy: Proxy;
  readonly sandbox: Service;
  /** Serves pages: the app where it is one process. */
  readonly web: Service;
  /** Take runs: the app where it is one process. */
  readonly workers: readonly Service[];
  readonly cluster: {
    away(forMs: number): Promise<void>;
    slow(forMs: number): Promise<void>;
    cutConnections(): Promise<number>;
    /** Runs the command `ops`, and returns its answer. */
    ops<T>(...args: string[]): Promise<T>;
  } | null;
  /** Processes that do steps. Null if the app does them itself. */
  readonly jobs: {
    /** Process IDs of the jobs that are running. */
    pids(): number[];
    /** Signals them with all that they have started. */
    signal(pids: readonly number[], signal: NodeJS.Signals): void;
  } | null;
  readonly disks: { readonly app: SmallDisk | null; readonly sandbox: SmallDisk | null };
  runs(): Promise<RunFacts[]>;
  /** When a process was stopped and went on, in epoch milliseconds. What it was sending arrives afterwards, whoever has the run by then. */
  readonly stops: Stop[];
  /** Folder of what the processes say, one file for each. */
  readonly logs: string;
  /** Ends of processes that nobody asked for. */
  readonly unexpectedEnds: readonly string[];
  close(): Promise<void>;
}

export interface WorldOptions {
  /** Emptied first. What the processes say is kept there, in `logs`. */
  readonly folder: string;
  readonly isShared: boolean;
  /** Script of the app. Default: the kit's. */
  readonly appScript?: URL | undefined;
  readonly usesDisks: boolean;
  /** Steps are done by processes of `deploy/executors/processes.json`. Default false. */
  readonly usesExecutor?: boolean;
}

const partBytes = 40_000;
const workerCount = 2;
/** Beside what the servers keep free, room for some runs. */
const diskMegabytes = { app: 128, sandbox: 256 };
const logLevel = process.env['DRILL_LOG_LEVEL'] ?? 'warn';
const preload = new URL('../../scripts/preload.mjs', import.meta.url).href;
const runQuery =
  'select id, state, operation_id as "operationId", worker, files, outputs, failure, updated_at as "updatedAt" from runs';

/** Sandbox, proxy, database and app as processes of this machine, on ports that they keep when they start again. */
export async function startWorld({
  folder,
  isShared,
  appScript,
  usesDisks,
  usesExecutor = false,
}: WorldOptions): Promise<World> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const unexpectedEnds: string[] = [];
  const services: Service[] = [];
  const apiKey = randomBytes(24).toString('base64url');
  const folders = { app: join(folder, 'app'), sandbox: join(folder, 'sandbox'), logs: join(folder, 'logs') };
  await mkdir(folders.logs);
  const mount = (which: 'app' | 'sandbox') => (usesDisks ? mountSmallDisk(folders[which], diskMegabytes[which]) : null);
  const disks = { app: mount('app'), sandbox: mount('sandbox') };
  // Not below the folder: PostgreSQL runs as another user, who may not get there.
  const cluster = isShared
    ? await startCluster(await mkdtemp(join(tmpdir(), 'drill-postgres-')), { isDurable: true })
    : null;
  const databaseUrl = (await cluster?.create()) ?? '';

  async function service(
    name: string,
    kind: 'app' | 'sandbox',
    script: URL,
    args: readonly string[],
    env: Record<string, string>,
  ): Promise<Service> {
    const logFile = join(folders.logs, `${name}.log`);
    const started = await startService({
      name,
      kind,
      script,
      args,
      env: { LOG_LEVEL: logLevel, ...env },
      logFile,
      unexpectedEnds,
    });
    services.push(started);
    return started;
  }

  const sandboxPort = String(await freePort());
  const sandbox = await service(
    'sandbox',
    'sandbox',
    new URL('../../src/commands/sandbox.ts', import.meta.url),
    ['--port', sandboxPort, '--seed', 'none', '--data', folders.sandbox],
    { SANDBOX_API_KEY: apiKey },
  );
  const proxy = await startProxy(sandbox.url);
  const jobsFolder = join(folder, 'jobs');
  const webPort = String(await freePort());
  const app = async (name: string, role: 'all' | 'web' | 'worker') => {
    const port = role === 'worker' ? String(await freePort()) : webPort;
    const dataDir = isShared ? join(folders.app, name) : folders.app;
    mkdirSync(dataDir, { recursive: true });
    return service(name, 'app', appScript ?? new URL('../../src/commands/app.ts', import.meta.url), ['--role', role], {
      PLATFORM_URL: proxy.url,
      PLATFORM_API_KEY: apiKey,
      APP_SECRET: 'drill'.repeat(8),
      DATA_DIR: dataDir,
      DATABASE_URL: databaseUrl,
      PORT: port,
      ...(usesExecutor && {
        STEP_EXECUTOR: fileURLToPath(new URL('../../deploy/executors/processes.json', import.meta.url)),
        JOBS_FOLDER: jobsFolder,
        JOBS_URL: `http://127.0.0.1:${port},http://127.0.0.1:${webPort}`,
      }),
      POLL_INTERVAL_MS: '2000',
      // So that approved runs wait for their turn, and can be met.
      STEP_CONCURRENCY: '1',
      UPLOAD_PART_BYTES: String(partBytes),
      DRAIN_SECONDS: isShared ? '3' : '',
    });
  };
  const web = await app(isShared ? 'web' : 'app', isShared ? 'web' : 'all');
  const workers = isShared
    ? await Promise.all(Array.from({ length: workerCount }, (_, i) => app(`worker-${i + 1}`, 'worker')))
    : [web];
  const local = isShared ? null : new Sqlite(join(folders.app, 'app.db'), { readonly: true });
  const localRuns = local?.prepare<[], RunFacts>(runQuery);
  const shared = cluster && keptConnection(databaseUrl);

  return {
    platform: drillPlatform(sandbox.url, apiKey, (bytes) => createHash('sha256').update(bytes).digest('hex')),
    proxy,
    sandbox,
    web,
    workers,
    disks,
    jobs: usesExecutor ? jobsIn(jobsFolder) : null,
    stops: [],
    logs: folders.logs,
    unexpectedEnds,
    cluster: cluster && {
      away: (forMs) => away(cluster, forMs),
      slow: (forMs) => cluster.slow(forMs),
      ops: (...args) => ops(databaseUrl, args),
      cutConnections: () => cutConnections(cluster, databaseUrl),
    },
    runs: async () => localRuns?.all() ?? ((await shared!.query(runQuery)) as unknown as RunFacts[]),
    async close() {
      local?.close();
      await shared?.end();
      for (const one of services.toReversed()) {
        await one.end();
      }
      const jobs = jobsIn(jobsFolder);
      jobs.signal(jobs.pids(), 'SIGKILL');
      await proxy.close();
      await cluster?.remove();
      disks.app?.remove();
      disks.sandbox?.remove();
    },
  };
}

/** The jobs whose process IDs are in a folder. Each job leads its own process group. */
function jobsIn(folder: string): NonNullable<World['jobs']> {
  const isAlive = (pid: number) => existsSync(`/proc/${pid}`);
  return {
    pids: () =>
      (existsSync(folder) ? readdirSync(folder) : [])
        .filter((name) => name.endsWith('.pid'))
        .map((name) => Number(readFileSync(join(folder, name), 'utf8')))
        .filter((pid) => pid > 1 && isAlive(pid)),
    signal(pids, signal) {
      for (const pid of pids)
        try {
          process.kill(-pid, signal);
        } catch {
          // It has ended.
        }
    },
  };
}

async function away(cluster: Cluster, forMs: number): Promise<void> {
  await cluster.stop();
  await sleep(forMs);
  await cluster.start();
}

async function ops<T>(databaseUrl: string, args: readonly string[]): Promise<T> {
  const script = fileURLToPath(new URL('../../src/commands/ops.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', preload, script, ...args, '--json'], {
    env: { PATH: process.env['PATH'], DATABASE_URL: databaseUrl },
  });
  return JSON.parse(stdout) as T;
}

/** Returns the number of connections that it cut. */
async function cutConnections(cluster: Cluster, url: string): Promise<number> {
  const rows = await cluster.query(
    url,
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  );
  return rows.length;
}

interface ServiceOptions {
  readonly name: string;
  readonly kind: 'app' | 'sandbox';
  readonly script: URL;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Added to at every start. */
  readonly logFile: string;
  readonly unexpectedEnds: string[];
}

const atExit = new Set<() => void>();
process.once('exit', () => atExit.forEach((kill) => kill()));

async function startService({
  name,
  kind,
  script,
  args,
  env,
  logFile,
  unexpectedEnds,
}: ServiceOptions): Promise<Service> {
  let child: ChildProcess;
  let exited = Promise.resolve();
  let [url, port, isWanted] = ['', env['PORT'], false];
  const killWithParent = () => void child.kill('SIGKILL');
  atExit.add(killWithParent);

  async function start(): Promise<void> {
    isWanted = true;
    // Listens on the same port as before, so that addresses stay valid.
    const given = port === undefined ? env : { ...env, PORT: port };
    const log = openSync(logFile, 'a');
    child = spawn(process.execPath, ['--import', preload, fileURLToPath(script), ...args], {
      env: { PATH: process.env['PATH'], ...given },
      stdio: ['ignore', 'pipe', log],
    });
    closeSync(log);
    const mine = child;
    exited = new Promise((resolve) => {
      mine.once('exit', (code, signal) => {
        if (isWanted && mine === child)
          unexpectedEnds.push(`${name} ended by itself (${signal ?? `exit code ${code}`})`);
        resolve();
      });
    });
    url = await new Promise<string>((resolve, reject) => {
      createInterface({ input: mine.stdout! }).on('line', (line) => {
        const ready = new RegExp(`^${kind} ready (\\S+)$`).exec(line)?.[1];
        if (ready) resolve(ready);
      });
      void exited.then(() => reject(new Error(`${name} did not start: see ${logFile}`)));
    });
    if (port !== undefined) port = new URL(url).port;
  }

  async function kill(): Promise<void> {
    isWanted = false;
    // One that is stopped dies of it all the same.
    child.kill('SIGKILL');
    await exited;
  }

  async function stop(): Promise<void> {
    isWanted = false;
    child.kill('SIGTERM');
    await exited;
  }

  await start();
  return {
    name,
    get url() {
      return url;
    },
    get pid() {
      return child.pid!;
    },
    signal: (signal) => void child.kill(signal),
    kill,
    stop,
    start,
    async end() {
      await kill();
      atExit.delete(killWithParent);
    },
  };
}
