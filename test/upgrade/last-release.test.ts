// @module-tag all
/** The last release and this one work side by side on one database, so a release can roll. */
import { spawn } from 'node:child_process';
import { copyFile } from 'node:fs/promises';
import { createServer, request, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { openDatabase } from '../../src/app/database.ts';
import { openSession, type BrowserSession } from '../support/app.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { lastRelease, lastReleaseFolder } from '../support/last-release.ts';
import { needing } from '../support/needs.ts';
import { query, startPostgres } from '../support/postgres.ts';
import { startServer, type Server } from '../support/processes.ts';
import { apiKey, startSandbox } from '../support/sandbox.ts';

describe('the last release', needing('postgresql', lastRelease), () => {
  let folder: string;
  beforeAll(async () => {
    folder = await lastReleaseFolder();
  });

  test('its stores keep their promises on the schema of this release', async () => {
    // Its tests migrate the databases that they open.
    const own = await lastReleaseFolder();
    await copyFile(join(projectRoot, 'src/app/migrations.ts'), join(own, 'src/app/migrations.ts'));
    const args = ['--import', './scripts/preload.mjs', 'node_modules/vitest/vitest.mjs', 'run'];
    const child = spawn(process.execPath, [...args, 'test/contracts/run-store.test.ts'], {
      cwd: own,
      env: { ...process.env, NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    cleanUpLater(() => void child.kill('SIGKILL'));
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (output += String(bytes)));
    const [code] = (await once(child, 'close')) as [number];
    expect(code, output).toBe(0);
    expect(output).toMatch(/PostgreSQL \(22\)/);
  });

  test('its workers leave runs to workers of this release that have the step', async () => {
    const address = await (await startPostgres()).create();
    await (await openDatabase({ dataDir: '', databaseUrl: address })).destroy();
    const now = '(extract(epoch from clock_timestamp()) * 1000)::bigint';
    await query(
      address,
      `insert into workers (name, alive_at, can) values
         ('last', ${now}, null), ('new', ${now}, '["cog@2.0.0"]'), ('dead', ${now} - 60000, '["ndvi@2.0.0"]');
       insert into runs (id, launch_id, state, step_id, step_version, parameters, input, idempotency_key, created_at, updated_at)
         select id, 'l', state, step, '2.0.0', '{}', '{}', id, 1, 1 from (values
           ('approved', 'APPROVED', 'cog'), ('waiting', 'AWAITING_APPROVAL', 'cog'), ('of-dead', 'APPROVED', 'ndvi')
         ) as v (id, state, step)`,
    );
    const claim = async (worker: string) => {
      const rows = await query(address, `update runs set worker = '${worker}' returning id`);
      return rows.map(({ id }) => String(id)).toSorted();
    };
    expect(await claim('last')).toEqual(['of-dead', 'waiting']);
    expect(await claim('new')).toEqual(['approved', 'of-dead', 'waiting']);
  });

  test('rolls to this one under load: no run fails, no user gets an error', async () => {
    const { sandbox, env, balancer, failures, users, addUser, finish } = await startLoad();
    const old = async (role: string) => startServer('app', ['--role', role], await env(), folder);
    const [oldWebs, oldWorkers] = [
      [await old('web'), await old('web')],
      [await old('worker'), await old('worker')],
    ];
    oldWebs.forEach((web) => balancer.add(web));
    for (let i = 0; i < 4; i++) await addUser();

    const added = async (role: string) => startServer('app', ['--role', role], await env({ DRAIN_SECONDS: '5' }));
    const workers = [await added('worker'), await added('worker')];
    await addUser();
    const webs = [await added('web'), await added('web')];
    for (const [i, web] of webs.entries()) {
      balancer.add(web);
      // The last release has no drain: it leaves the balancer before it stops.
      balancer.remove(oldWebs[i]!);
      await oldWebs[i]!.kill('SIGTERM');
      await addUser();
    }
    await addUser();
    // A run keeps the version that its user approved.
    await finish();
    for (const worker of oldWorkers) await worker.kill('SIGTERM');

    // From this release to itself, with the balancer's own checks alone.
    const running = [...webs];
    for (let i = 0; i < 2; i++) {
      await addUser();
      balancer.add(await added('web'));
      await running[i]!.kill('SIGTERM');
    }
    const next = await added('worker');
    await workers[0]!.kill('SIGTERM');
    await addUser();
    await finish();
    expect(failures).toEqual([]);
    expect(users.length).toBe(11);
    for (const { launchId } of users) {
      const { operations, uploads } = await sandbox.control('GET', `launches/${launchId}`);
      expect([operations.length, uploads.filter(({ fileId }) => fileId !== null).length]).toEqual([2, 2]);
    }
    expect(next.child.exitCode).toBeNull();
  });
});

/** A platform, a database, a balancer and users who each begin two runs and look at them all the time. */
async function startLoad() {
  const sandbox = await startSandbox();
  const databaseUrl = await (await startPostgres()).create();
  const failures: string[] = [];
  const balancer = await startBalancer(failures);
  await sandbox.control('POST', 'apps', { id: 'tested', name: 'Tested', launchUrl: `${balancer.url}/launch` });
  const users: { launchId: string; session: BrowserSession; runs: string[] }[] = [];

  async function addUser(): Promise<void> {
    const launch = await sandbox.launch({ appId: 'tested', userId: users.length % 2 === 0 ? 'amina' : 'bruno' });
    const session = await openSession(launch.launchUrl);
    const runs = [];
    // The versions of these steps differ between the releases, and do not.
    for (const stepId of ['hillshade', 'color-relief'])
      runs.push((await session.start({ stepId, input: { type: 'synthetic', size: 128 } })).id);
    users.push({ launchId: launch.launchId, session, runs });
  }

  const all = () => users.flatMap(({ session, runs }) => runs.map((id) => ({ session, id })));
  const stopping = new AbortController();
  const look = async () => {
    while (!stopping.signal.aborted) {
      for (const { session, id } of all()) {
        const run = await session.run(id).catch((error: unknown) => void failures.push(String(error)));
        if (run?.state === 'FAILED') failures.push(JSON.stringify(run.failure));
        if (run?.state === 'AWAITING_APPROVAL' && run.operationId)
          await sandbox.control('POST', `operations/${run.operationId}/approve`).catch(() => {});
      }
      await sleep(200);
    }
  };
  const looking = look();
  cleanUpLater(async () => {
    stopping.abort();
    await looking;
  });

  return {
    ...{ sandbox, balancer, failures, users, addUser },
    env: async (more: Record<string, string> = {}) => ({
      ...{ DATABASE_URL: databaseUrl, PLATFORM_URL: sandbox.url, PLATFORM_API_KEY: apiKey, APP_SECRET: 'x'.repeat(32) },
      ...{ DATA_DIR: await testFolder(), POLL_INTERVAL_MS: '2000', LOG_LEVEL: 'warn', PORT: '0', ...more },
    }),
    /** Resolves when all runs have ended. */
    finish: async () => {
      for (;;) {
        const open = await query(databaseUrl, `select state from runs where state not in ('COMPLETED', 'FAILED')`);
        if (open.length === 0 || failures.length > 0) return;
        await sleep(200);
      }
    },
  };
}

/** A load balancer as platforms have it: it asks `/ready`, takes turns, and repeats nothing. */
async function startBalancer(failures: string[]) {
  const servers = new Map<Server, boolean>();
  let turn = 0;
  const balancer = createServer((req, res) => {
    const ready = [...servers].filter(([, isReady]) => isReady).map(([server]) => server);
    const to = ready[turn++ % ready.length];
    if (!to) return void res.writeHead(503).end();
    const passed = request(new URL(req.url ?? '/', to.url), { method: req.method!, headers: req.headers });
    passed.once('error', (error) => {
      failures.push(`${req.method} ${req.url}: ${error.message}`);
      res.destroy();
    });
    passed.once('response', (answer: IncomingMessage) => {
      if ((answer.statusCode ?? 500) >= 500) failures.push(`${req.method} ${req.url}: ${answer.statusCode}`);
      res.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(res);
    });
    req.pipe(passed);
  });
  const check = async () => {
    for (const server of servers.keys()) {
      const isReady = await fetch(`${server.url}/ready`, { signal: AbortSignal.timeout(5_000) }).then(
        ({ status }) => status === 200,
        () => false,
      );
      if (servers.has(server)) servers.set(server, isReady);
    }
  };
  let checking = Promise.resolve();
  const timer = setInterval(() => (checking = checking.then(check)), 300);
  balancer.listen(0, '127.0.0.1');
  await once(balancer, 'listening');
  cleanUpLater(async () => {
    clearInterval(timer);
    await checking;
    balancer.closeAllConnections();
    balancer.close();
  });
  return {
    url: `http://127.0.0.1:${(balancer.address() as AddressInfo).port}`,
    add: (server: Server) => void servers.set(server, true),
    remove: (server: Server) => void servers.delete(server),
  };
}
