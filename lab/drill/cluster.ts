import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { chownSync, mkdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { findProgram, installCommand, needs } from '../../scripts/needs.mjs';
import { freePort } from '../../src/commands/free-port.ts';

const initdb = findProgram(['initdb'], needs.postgresql.folders);
const bin = initdb === null ? undefined : dirname(initdb);

/** Times for which a slow database runs and stands still, in turn. */
const slowTurnMs = { runs: 60, stands: 240 };

/** A private PostgreSQL, on a free port, that can be stopped and started as a machine is. */
export interface Cluster {
  /** The address of a new database in it. */
  create(): Promise<string>;
  /** Ends it at once, as a power cut does; what it acknowledged is there when it starts again. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Slows every query: the processes of PostgreSQL stand still for most of this time. */
  slow(forMs: number): Promise<void>;
  query(database: string, sql: string): Promise<Record<string, unknown>[]>;
  remove(): Promise<void>;
}

/** Makes one in `folder`, which is removed with it. `isDurable`: it outlives `stop`; without, it is faster. */
export async function startCluster(folder: string, { isDurable = false } = {}): Promise<Cluster> {
  if (bin === undefined) throw new Error(`PostgreSQL is not installed: ${installCommand(['postgresql'])}`);
  const user = otherUser();
  mkdirSync(folder, { recursive: true });
  if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  const made = spawnSync(
    join(bin, 'initdb'),
    ['-D', data, '-U', 'kit', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
    { ...user, cwd: folder, encoding: 'utf8' },
  );
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`);
  const port = await freePort();
  const address = (database: string) => `postgres://kit@127.0.0.1:${port}/${database}`;
  let server: ChildProcess | null = null;
  let exited = Promise.resolve();

  async function start(): Promise<void> {
    const args = [
      '-D',
      data,
      '-p',
      String(port),
      '-h',
      '127.0.0.1',
      '-k',
      folder,
      '-c',
      `fsync=${isDurable ? 'on' : 'off'}`,
    ];
    const child = spawn(join(bin!, 'postgres'), args, { ...user, cwd: folder, stdio: 'ignore' });
    server = child;
    exited = new Promise((resolve) => child.once('exit', () => resolve()));
    for (let tries = 0; ; tries++) {
      try {
        await query(address('postgres'), 'select 1');
        return;
      } catch (error) {
        if (tries > 200) throw error;
        await sleep(100);
      }
    }
  }

  /** Sends a signal to all processes of PostgreSQL but the first. */
  function signalBackends(signal: 'SIGSTOP' | 'SIGCONT'): void {
    const pid = server!.pid!;
    for (const child of readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' '))
      try {
        process.kill(Number(child), signal);
      } catch (error) {
        // It has ended meanwhile.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
  }

  async function slow(forMs: number): Promise<void> {
    for (const end = performance.now() + forMs; performance.now() < end; await sleep(slowTurnMs.runs)) {
      signalBackends('SIGSTOP');
      await sleep(slowTurnMs.stands);
      signalBackends('SIGCONT');
    }
  }

  async function stop(): Promise<void> {
    server?.kill('SIGQUIT');
    await exited;
  }

  const quit = () => void server?.kill('SIGQUIT');
  process.once('exit', quit);
  await start();
  let databases = 0;
  return {
    start,
    stop,
    slow,
    query,
    async create() {
      const name = `test_${(databases += 1)}`;
      await query(address('postgres'), `create database ${name}`);
      return address(name);
    },
    async remove() {
      await stop();
      process.off('exit', quit);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** PostgreSQL will not run as root. */
function otherUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) =>
    Number(spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' }).stdout.trim() || '65534');
  return { uid: id('-u'), gid: id('-g') };
}

export async function query(connectionString: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

/** A connection for one who asks often. One that was cut is made anew. */
export function keptConnection(connectionString: string) {
  let kept: pg.Client | null = null;
  async function connect(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString });
    client.on('error', () => (kept = null));
    await client.connect();
    return (kept = client);
  }
  const ask = async (client: pg.Client, sql: string) => (await client.query<Record<string, unknown>>(sql)).rows;
  return {
    async query(sql: string): Promise<Record<string, unknown>[]> {
      const old = kept;
      if (old === null) return ask(await connect(), sql);
      return ask(old, sql).catch(async () => {
        await old.end().catch(() => {});
        return ask(await connect(), sql);
      });
    },
    end: async () => kept?.end(),
  };
}
