// @module-tag all
/** PgBouncer in transaction mode between the processes and PostgreSQL: each transaction may have another session. */
import { spawn } from 'node:child_process';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { findProgram, needs } from '../../scripts/needs.mjs';
import { openDatabase } from '../../src/app/database.ts';
import { freePort } from '../../src/commands/free-port.ts';
import { launchApp, smallRun, startApp } from '../support/app.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testFolder } from '../support/folders.ts';
import { needing } from '../support/needs.ts';
import { query, startPostgres } from '../support/postgres.ts';
import { startSandbox } from '../support/sandbox.ts';

/** The same database by way of a pooler with few sessions. */
async function behindPooler(databaseUrl: string): Promise<string> {
  const folder = await testFolder();
  await chmod(folder, 0o755);
  const [to, port] = [new URL(databaseUrl), await freePort()];
  const settings = [
    ...['[databases]', `* = host=${to.hostname} port=${to.port} user=${to.username}`, '[pgbouncer]'],
    ...['listen_addr = 127.0.0.1', `listen_port = ${port}`, 'unix_socket_dir =', 'auth_type = any'],
    ...['pool_mode = transaction', 'default_pool_size = 4', 'max_client_conn = 100', ''],
  ];
  const file = join(folder, 'pgbouncer.ini');
  await writeFile(file, settings.join('\n'));
  const program = findProgram(needs.pgbouncer.programs[0]!)!;
  // It does not run as root.
  const asOther = process.getuid?.() === 0 ? ['-u', 'postgres'] : [];
  const child = spawn(program, ['-q', ...asOther, file], { stdio: 'ignore' });
  cleanUpLater(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null)
      await new Promise((resolve) => child.once('exit', resolve));
  });
  to.port = String(port);
  for (let tries = 0; ; tries++) {
    try {
      await query(to.href, 'select 1');
      return to.href;
    } catch (error) {
      if (tries > 100) throw error;
      await sleep(100);
    }
  }
}

const both = needing('postgresql', 'pgbouncer');

test('processes that start leave no lock behind, and run in turn', { timeout: 60_000, ...both }, async () => {
  const url = await (await startPostgres()).create();
  const databaseUrl = await behindPooler(url);
  const open = () => openDatabase({ dataDir: '', databaseUrl, connections: 2 });
  // All at once on an empty database, then while others are at work.
  const opened = await Promise.all(Array.from({ length: 4 }, open));
  for (let i = 0; i < 8; i++) opened.push(await open());
  for (const database of opened) await database.destroy();
  expect(await query(url, "select * from pg_locks where locktype = 'advisory'")).toEqual([]);
});

test('a run ends as without it', { timeout: 120_000, ...both }, async () => {
  const databaseUrl = await behindPooler(await (await startPostgres()).create());
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url, { env: { DATABASE_URL: databaseUrl } });
  const { session } = await launchApp(sandbox, app);
  const { id } = await session.start(smallRun);
  const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${operationId}/approve`);
  await session.waitFor(id, 'COMPLETED');
});
