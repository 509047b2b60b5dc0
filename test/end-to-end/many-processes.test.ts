// @module-tag all
/** One web process and two workers on one PostgreSQL: whichever is killed, the run ends right. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunView } from '../../src/app/runs/run-view.ts';
import { fetchedDigest, openSession, smallRun, type BrowserSession } from '../support/app.ts';
import { testFolder } from '../support/folders.ts';
import { query, startPostgres } from '../support/postgres.ts';
import { startCommand, startServer, type Server } from '../support/processes.ts';
import { apiKey, startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { isThere, needing } from '../support/needs.ts';

/** The lease and the next look, with some room. */
const replacedWithinMs = 15_000;

let postgres: Awaited<ReturnType<typeof startPostgres>>;
beforeAll(async () => {
  if (isThere('postgresql')) postgres = await startPostgres();
});

async function start(workerCount = 2) {
  const sandbox = await startSandbox();
  const databaseUrl = await postgres.create();
  const env = async (more: Record<string, string> = {}) => ({
    DATABASE_URL: databaseUrl,
    PLATFORM_URL: sandbox.url,
    PLATFORM_API_KEY: apiKey,
    APP_SECRET: 'x'.repeat(32),
    DATA_DIR: await testFolder(),
    POLL_INTERVAL_MS: '2000',
    UPLOAD_PART_BYTES: '10000',
    LOG_LEVEL: 'warn',
    PORT: '0',
    ...more,
  });
  const web = await startServer('app', ['--role', 'web'], await env());
  const workers: Server[] = [];
  for (let i = 0; i < workerCount; i++) workers.push(await startServer('app', ['--role', 'worker'], await env()));
  await sandbox.control('POST', 'apps', { id: 'tested', name: 'Tested', launchUrl: `${web.url}/launch` });
  const launch = await sandbox.launch({ appId: 'tested' });
  const session = await openSession(launch.launchUrl);
  /** The worker that has the run by now. */
  const workerOf = async (runId: string): Promise<Server> => {
    for (;;) {
      const [row] = (await query(databaseUrl, `select worker from runs where id = '${runId}'`)) as {
        worker: string | null;
      }[];
      const pid = Number(row?.worker?.split(':').at(1));
      const found = workers.find(({ child }) => child.pid === pid);
      if (found) return found;
      await sleep(100);
    }
  };
  return { sandbox, databaseUrl, env, web, workers, workerOf, session, ...launch };
}

async function until(session: BrowserSession, id: string, isThere: (run: RunView) => boolean): Promise<RunView> {
  for (;;) {
    const run = await session.run(id);
    if (isThere(run)) return run;
    if (run.isFinal) throw new Error(`the run is ${run.state}: ${JSON.stringify(run.failure)}`);
    await sleep(50);
  }
}

async function expectDelivered(
  sandbox: TestSandbox,
  launchId: string,
  session: BrowserSession,
  id: string,
): Promise<void> {
  const run = await until(session, id, ({ state }) => state === 'COMPLETED');
  expect(await fetchedDigest(sandbox, run.file?.fileId)).toBe(run.output?.sha256);
  const { operations, uploads } = await sandbox.control('GET', `launches/${launchId}`);
  expect([operations.length, uploads.filter(({ fileId }) => fileId !== null).length]).toEqual([1, 1]);
}

describe('processes that share a database', needing('postgresql'), () => {
  test.concurrent.each<[string, (run: RunView) => boolean]>([
    ['while it waits for approval', ({ state }) => state === 'AWAITING_APPROVAL'],
    ['while it processes', ({ state, progress }) => state === 'PROCESSING' && progress.note !== null],
    ['while it uploads', (run) => run.state === 'UPLOADING' && (run.upload?.acknowledgedParts ?? 0) >= 2],
  ])(
    'a worker that is killed with -9 %s is replaced by the other within 15 s, and the run ends right',
    async (_when, isThere) => {
      const { sandbox, workerOf, session, launchId, databaseUrl } = await start();
      await sandbox.control('POST', 'faults', {
        launchId,
        endpoint: 'upload.chunk',
        after: 2,
        times: 3,
        effect: { delayMs: 800 },
      });
      const { id } = await session.start({ stepId: 'cog', input: { type: 'synthetic', size: 1024 } });
      const waiting = await until(session, id, ({ state }) => state === 'AWAITING_APPROVAL');
      const approve = () => sandbox.control('POST', `operations/${waiting.operationId}/approve`);
      if (!isThere(waiting)) await approve();
      await until(session, id, isThere);
      const first = await workerOf(id);
      await first.kill('SIGKILL');
      const killedAt = performance.now();
      const second = await (async () => {
        for (;;) {
          const now = await workerOf(id);
          if (now !== first) return now;
          await sleep(250);
        }
      })();
      expect(performance.now() - killedAt).toBeLessThan(replacedWithinMs);
      expect(second).not.toBe(first);
      if (isThere(waiting)) await approve();
      await expectDelivered(sandbox, launchId, session, id);
      const stages = await query(databaseUrl, `select outcome from run_stages where run_id = '${id}'`);
      expect(stages.map(({ outcome }) => outcome)).toContain('abandoned');
    },
    900_000,
  );

  test('SIGTERM to a worker: within 10 s it has handed over, and another goes on at once', async () => {
    const { sandbox, workerOf, session, launchId } = await start();
    const { id } = await session.start(smallRun);
    const { operationId } = await until(session, id, ({ state }) => state === 'AWAITING_APPROVAL');
    const first = await workerOf(id);
    const from = performance.now();
    await first.kill('SIGTERM');
    expect(performance.now() - from).toBeLessThan(10_000);
    expect(first.child.exitCode).toBe(0);
    while ((await workerOf(id)) === first) await sleep(20);
    await sandbox.control('POST', `operations/${operationId}/approve`);
    await expectDelivered(sandbox, launchId, session, id);
  });

  test('with DRAIN_SECONDS, a worker finishes its upload, and a web process is not ready before it closes', async () => {
    const { sandbox, session, launchId, databaseUrl, env } = await start(0);
    const worker = await startServer('app', ['--role', 'worker'], await env({ DRAIN_SECONDS: '60' }));
    await sandbox.control('POST', 'faults', {
      launchId,
      endpoint: 'upload.chunk',
      times: 3,
      effect: { delayMs: 1_500 },
    });
    const { id } = await session.start(smallRun);
    const { operationId } = await until(session, id, ({ state }) => state === 'AWAITING_APPROVAL');
    await sandbox.control('POST', `operations/${operationId}/approve`);
    await until(session, id, ({ state }) => state === 'UPLOADING');
    await worker.kill('SIGTERM');
    expect(worker.child.exitCode).toBe(0);
    await expectDelivered(sandbox, launchId, session, id);
    const stages = await query(databaseUrl, `select state, outcome from run_stages where run_id = '${id}'`);
    expect(stages.filter(({ state }) => state === 'UPLOADING')).toEqual([{ state: 'UPLOADING', outcome: 'COMPLETED' }]);

    const web = await startServer('app', ['--role', 'web'], await env({ DRAIN_SECONDS: '4' }));
    const status = async (path: string) => (await fetch(`${web.url}${path}`)).status;
    expect([await status('/ready'), await status('/')]).toEqual([200, 200]);
    const ended = web.kill('SIGTERM');
    const from = performance.now();
    // The response of /ready is cached for two seconds.
    while ((await status('/ready')) === 200) await sleep(100);
    expect([await status('/ready'), await status('/')]).toEqual([503, 200]);
    await ended;
    expect(performance.now() - from).toBeGreaterThan(3_500);
    expect(web.child.exitCode).toBe(0);
  });

  test('cancelled in the web process: the worker lets go of it', async () => {
    const { sandbox, launchId, session, workerOf, databaseUrl } = await start(1);
    const { id } = await session.start(smallRun);
    await until(session, id, ({ state }) => state === 'AWAITING_APPROVAL');
    await workerOf(id);
    expect(await (await session.post(`api/runs/${id}/cancel`)).json()).toMatchObject({ state: 'CANCELLED' });
    expect(await query(databaseUrl, `select worker, state from runs`)).toEqual([{ worker: null, state: 'CANCELLED' }]);
    const polls = async () =>
      (await sandbox.trace(launchId)).filter(({ endpoint }) => endpoint === 'operation.status').length;
    // One may be under way.
    await sleep(1_500);
    const before = await polls();
    await sleep(6_000);
    expect(await polls()).toBe(before);
  });

  test('many runs are shared out, and a session is good in every web process', async () => {
    const { sandbox, env, session, web, databaseUrl } = await start();
    const other = await startServer('app', ['--role', 'web'], await env());
    const runs = await Promise.all(Array.from({ length: 12 }, () => session.start(smallRun)));
    for (const { id } of runs) {
      const { operationId } = await until(session, id, ({ state }) => state === 'AWAITING_APPROVAL');
      await sandbox.control('POST', `operations/${operationId}/approve`);
    }
    for (const { id } of runs) await until(session, id, ({ state }) => state === 'COMPLETED');
    const workers = await query(databaseUrl, `select distinct worker from run_stages where state = 'PROCESSING'`);
    expect(workers).toHaveLength(2);
    const seen = await fetch(session.home.replace(web.url, other.url) + 'api/runs', {
      headers: { cookie: session.cookie },
    });
    expect(((await seen.json()) as { runs: unknown[] }).runs).toHaveLength(12);
  });
});

test('a start that fails after the database was opened ends, and says why', needing('postgresql'), async () => {
  const dataDir = await testFolder();
  await writeFile(join(dataDir, 'work'), 'a file in the place of a folder');
  const { output, exited } = startCommand('app', [], {
    PLATFORM_URL: 'http://127.0.0.1:1',
    PLATFORM_API_KEY: apiKey,
    DATA_DIR: dataDir,
    PORT: '0',
    DATABASE_URL: await postgres.create(),
    APP_SECRET: 'x'.repeat(32),
  });
  expect(await exited).toBe(1);
  expect(output()).toMatch(/work/);
});

test.each([
  [['--role', 'worker'], {}, /--role worker needs DATABASE_URL/],
  [['--role', 'boss'], {}, /--role boss must be one of all, web, worker/],
  [
    [],
    { DATABASE_URL: 'mysql://u:hidden-password@h/d', APP_SECRET: 'x'.repeat(32) },
    /DATABASE_URL must be an address such as postgres/,
  ],
  [[], { DATABASE_URL: 'postgres://u:hidden-password@127.0.0.1:1/d' }, /APP_SECRET .* is required with DATABASE_URL/],
  [
    [],
    { DATABASE_URL: 'postgres://u:hidden-password@127.0.0.1:1/d', APP_SECRET: 'x'.repeat(32) },
    /could not open the database/,
  ],
] as [string[], Record<string, string>, RegExp][])(
  '%j %j: the start is refused, and no password shown',
  async (args, env, message) => {
    const { output, exited } = startCommand('app', args, {
      PLATFORM_URL: 'http://127.0.0.1:1',
      PLATFORM_API_KEY: apiKey,
      DATA_DIR: await testFolder(),
      PORT: '0',
      DATABASE_WAIT_MS: '0',
      ...env,
    });
    expect(await exited).toBe(1);
    expect(output()).toMatch(message);
    expect(output()).not.toContain('hidden-password');
  },
);
