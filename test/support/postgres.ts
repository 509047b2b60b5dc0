import { spawn, spawnSync } from 'node:child_process';
import { chownSync, existsSync, readdirSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { cleanUpLater } from './cleanup.ts';
import { makeFolder } from './folders.ts';

const root = '/usr/lib/postgresql';
const bin = existsSync(root) ? readdirSync(root).map((version) => join(root, version, 'bin')).find((folder) => existsSync(join(folder, 'initdb'))) : undefined;

/** Debian's PostgreSQL is installed. In CI it must be: there its tests fail without it, elsewhere they are skipped. */
export const hasPostgres = bin !== undefined || process.env['CI'] === 'true';

/** PostgreSQL will not run as root. */
function otherUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) => Number(spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' }).stdout.trim() || '65534');
  return { uid: id('-u'), gid: id('-g') };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', () => resolve()));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A private cluster on a free port, stopped and removed when the file's tests end. `create` gives the address of a new database in it. */
export async function startPostgres(): Promise<{ create(): Promise<string> }> {
  if (bin === undefined) throw new Error('PostgreSQL is not installed: apt-get install postgresql');
  const folder = await makeFolder();
  const user = otherUser();
  if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  const made = spawnSync(join(bin, 'initdb'), ['-D', data, '-U', 'kit', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'], { ...user, cwd: folder, encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`);
  const port = await freePort();
  const server = spawn(join(bin, 'postgres'), ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', folder, '-c', 'fsync=off'], { ...user, cwd: folder, stdio: 'ignore' });
  const exited = new Promise((resolve) => server.once('exit', resolve));
  cleanUpLater(async () => {
    server.kill('SIGQUIT');
    await exited;
    await rm(folder, { recursive: true, force: true });
  });
  const admin = (sql: string) => query(`postgres://kit@127.0.0.1:${port}/postgres`, sql);
  for (let tries = 0; ; tries++) {
    try {
      await admin('select 1');
      break;
    } catch (error) {
      if (tries > 100) throw error;
      await sleep(100);
    }
  }
  let databases = 0;
  return {
    async create() {
      const name = `test_${(databases += 1)}`;
      await admin(`create database ${name}`);
      return `postgres://kit@127.0.0.1:${port}/${name}`;
    },
  };
}

export async function query(connectionString: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}
