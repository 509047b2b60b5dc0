/** Health, readiness and metrics of the app. */
import { networkInterfaces } from 'node:os';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import supertest from 'supertest';
import { describe, expect, test } from 'vitest';
import { createMetrics } from '../../src/app/monitoring/metrics.ts';
import { checkReadiness, type ReadinessOptions } from '../../src/app/monitoring/readiness.ts';
import { launchApp, smallRun, startApp, type TestApp } from '../support/app.ts';
import { testConfinement } from '../support/confinement.ts';
import { testFolder } from '../support/folders.ts';
import { startSandbox } from '../support/sandbox.ts';

const metricsOf = async (app: TestApp) => (await supertest(app.handler).get('/metrics')).text;
const value = (metrics: string, line: string) =>
  Number(
    metrics
      .split('\n')
      .find((one) => one.startsWith(`${line} `))
      ?.split(' ')
      .at(-1),
  );

test('health and readiness: all is well', async () => {
  const app = await startApp((await startSandbox()).url);
  expect((await supertest(app.handler).get('/health')).body).toEqual({ status: 'ok' });
  const { summary: confinement } = await testConfinement();
  const answer = await supertest(app.handler).get('/ready');
  expect([answer.status, answer.body]).toEqual([
    200,
    {
      ...{ status: 'ready', confinement },
      checks: { worker: 'ok', children: 'ok', disk: 'ok' },
      dependencies: { database: 'ok', platform: 'ok' },
    },
  ]);
});

test('ready where the platform is away: that is nothing of this process, and its body and metrics tell', async () => {
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url);
  await sandbox.close();
  const answer = await supertest(app.handler).get('/ready').expect(200);
  expect(answer.body).toMatchObject({
    status: 'ready',
    dependencies: { database: 'ok', platform: 'failed: does not answer' },
  });
  const metrics = await metricsOf(app);
  expect(value(metrics, 'app_ready')).toBe(1);
  expect(value(metrics, 'app_workers{is="alive"}')).toBe(1);
  expect(value(metrics, 'app_workers{is="resting"}')).toBe(0);
  expect(metrics).toMatch(/^app_info\{role="all",version="[\d.]+",schema="\d{3}-[a-z-]+"\} 1$/m);
  expect(value(metrics, 'app_disk_free_bytes')).toBeGreaterThan(0);
  expect([value(metrics, 'app_work_bytes'), value(metrics, 'app_open_pages')]).toEqual([0, 0]);
  expect(value(metrics, 'app_dependency_up{dependency="platform"}')).toBe(0);
  expect(value(metrics, 'app_dependency_up{dependency="database"}')).toBe(1);
  await supertest(app.handler).get('/health').expect(200);
});

describe('not ready', () => {
  const look = async (change: Partial<ReadinessOptions>) => {
    const { url } = await startSandbox();
    return checkReadiness({
      askDatabase: () => Promise.resolve(),
      platformUrl: url,
      dataDir: await testFolder(),
      isWorking: () => true,
      standsAside: () => null,
      canStartChildren: () => true,
      confinement: 'bubblewrap',
      ...change,
    });
  };
  const well = { worker: 'ok', children: 'ok', disk: 'ok' };

  test.each<[string, Partial<ReadinessOptions>, object]>([
    ['before it takes runs', { isWorking: () => false }, { worker: 'failed: takes no runs yet' }],
    [
      'while it ends',
      { standsAside: () => 'the process is about to end' },
      { worker: 'failed: the process is about to end' },
    ],
    ['where no child can be started', { canStartChildren: () => false }, { children: 'failed: cannot be started' }],
    ['on a full disk', { freeBytes: () => Promise.resolve(1000) }, { disk: 'failed: is nearly full' }],
  ])('%s', async (_name, change, failed) => {
    const { ready, checks, dependencies } = await look(change);
    expect([ready, checks]).toEqual([false, { ...well, ...failed }]);
    expect(dependencies).toEqual({ database: 'ok', platform: 'ok' });
  });

  test('a database that hangs makes no probe late', async () => {
    const from = performance.now();
    const { ready, dependencies } = await look({ askDatabase: () => new Promise(() => {}) });
    expect([ready, dependencies.database]).toEqual([true, 'failed: does not answer']);
    expect(performance.now() - from).toBeLessThan(60_000);
    const metrics = createMetrics();
    const { text } = await metrics.render({
      countRuns: () => new Promise(() => {}),
      stepLoad: () => ({ running: 0, waiting: 0 }),
      readiness: { ready, dependencies },
    });
    expect(text).not.toMatch(/^app_runs\{/m);
  });

  test('a database that is away is told without details', async () => {
    const { ready, dependencies } = await look({ askDatabase: () => Promise.reject(new Error('secret detail')) });
    expect([ready, dependencies.database]).toEqual([true, 'failed: does not answer']);
  });
});

test('metrics without a database: all but the counts of runs', async () => {
  const metrics = createMetrics();
  const stepLoad = () => ({ running: 2, waiting: 1 });
  const readiness = { ready: true, dependencies: { database: 'failed: does not answer', platform: 'ok' } } as const;
  const before = await metrics.render({ countRuns: async () => ({ COMPLETED: 3 }), stepLoad, readiness });
  expect(before.text).toContain('app_runs{state="COMPLETED"} 3');
  metrics.observeStepMemory(5);
  const away = await metrics.render({ countRuns: () => Promise.reject(new Error('away')), stepLoad, readiness });
  expect(away.text).toContain('app_steps{is="running"} 2');
  expect(away.text).toContain('app_step_resident_memory_bytes 5');
  expect(away.text).not.toMatch(/^app_runs\{/m);
});

test('metrics count runs, stages, calls by result, and steps', async () => {
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url);
  const { launchId, session } = await launchApp(sandbox, app);
  await sandbox.control('POST', 'faults', { launchId, endpoint: 'operation.create', effect: { status: 503 } });
  const { id } = await session.start(smallRun);
  const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
  const waiting = await metricsOf(app);
  expect(value(waiting, 'app_runs{state="AWAITING_APPROVAL"}')).toBe(1);
  expect(value(waiting, 'app_oldest_run_seconds{state="AWAITING_APPROVAL"}')).toBeLessThan(60);
  expect(value(waiting, 'app_oldest_run_seconds{state="APPROVED"}')).toBe(0);
  await sandbox.control('POST', `operations/${operationId}/approve`);
  await session.waitFor(id, 'COMPLETED');
  const metrics = await metricsOf(app);
  expect(value(metrics, 'app_runs{state="COMPLETED"}')).toBe(1);
  expect(value(metrics, 'app_runs{state="AWAITING_APPROVAL"}')).toBe(0);
  expect(value(metrics, 'app_platform_calls_total{endpoint="operation.create",result="503"}')).toBe(1);
  expect(value(metrics, 'app_platform_calls_total{endpoint="operation.create",result="ok"}')).toBe(1);
  expect(value(metrics, 'app_platform_calls_total{endpoint="upload.complete",result="ok"}')).toBe(1);
  expect(value(metrics, 'app_stage_duration_seconds_count{state="PROCESSING"}')).toBe(1);
  expect(value(metrics, 'app_stage_duration_seconds_sum{state="AWAITING_APPROVAL"}')).toBeGreaterThan(1.5);
  expect(value(metrics, 'app_steps{is="running"}')).toBe(0);
  expect(value(metrics, 'app_step_resident_memory_bytes')).toBe(0);
  expect(metrics).not.toContain(launchId);
});

test('metrics count failed runs by their code', async () => {
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url);
  const { launchId, session } = await launchApp(sandbox, app);
  expect(value(await metricsOf(app), 'app_run_failures_total{code="token_revoked"}')).toBe(0);
  const { id } = await session.start(smallRun);
  await session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `launches/${launchId}/revoke`);
  await session.waitFor(id, 'FAILED');
  const after = await metricsOf(app);
  expect(value(after, 'app_run_failures_total{code="token_revoked"}')).toBe(1);
  expect([
    value(after, 'app_runs_ended_total{state="FAILED"}'),
    value(after, 'app_runs_ended_total{state="COMPLETED"}'),
  ]).toEqual([1, 0]);
  expect((await session.get('nothing')).status).toBe(404);
  expect(value(await metricsOf(app), 'app_refusals_total{status="404",code="not_found"}')).toBe(1);
});

test('a request that the app could not answer leaves one line of an error in the log', async () => {
  const lines: { level: number; msg: string }[] = [];
  const log = pino(
    { level: 'debug' },
    { write: (line) => void lines.push(JSON.parse(line) as (typeof lines)[number]) },
  );
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url, { log });
  const { launchUrl } = await sandbox.launch();
  const { search } = new URL(launchUrl);
  await sandbox.close();
  expect((await fetch(`${app.url}/launch${search}`, { redirect: 'manual' })).status).toBe(502);
  await app.close();
  expect(lines.filter(({ level }) => level >= 50).map(({ msg }) => msg)).toEqual(['request failed']);
});

test('metrics answer on loopback only, unless they are public', async () => {
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url, { env: { HOST: '0.0.0.0' } });
  const open = await startApp(sandbox.url, { env: { HOST: '0.0.0.0', METRICS_PUBLIC: 'true' } });
  const proxied = async (one: TestApp) =>
    (await supertest(one.handler).get('/metrics').set('x-forwarded-for', '203.0.113.7')).status;
  expect([await proxied(app), await proxied(open)]).toEqual([404, 404]);
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((one) => one && !one.internal && one.family === 'IPv4')?.address;
  if (outside === undefined) return;
  expect((await fetch(`http://${outside}:${new URL(app.url).port}/metrics`)).status).toBe(404);
  expect((await fetch(`http://${outside}:${new URL(open.url).port}/metrics`)).status).toBe(200);
});

test('metrics count open pages, and the bytes of work folders', async () => {
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url);
  const { session } = await launchApp(sandbox, app);
  await mkdir(join(app.dataDir, 'work', 'run'), { recursive: true });
  await writeFile(join(app.dataDir, 'work', 'run', 'part'), Buffer.alloc(5_000));
  const leaving = new AbortController();
  const page = await fetch(new URL('events', session.home), {
    headers: { cookie: session.cookie },
    signal: leaving.signal,
  });
  expect(page.status).toBe(200);
  const metrics = await metricsOf(app);
  expect(value(metrics, 'app_open_pages')).toBe(1);
  expect(value(metrics, 'app_work_bytes')).toBeGreaterThanOrEqual(5_000);
  leaving.abort();
  await expect.poll(async () => value(await metricsOf(app), 'app_open_pages'), { timeout: 30_000 }).toBe(0);
});
