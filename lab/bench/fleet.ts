/**
 * `npm run lab -- lab/bench/fleet.ts`: a fleet on PostgreSQL: what 50, 500 and 3,000 runs that wait for approval cost 1, 2 and 4
 * workers and their database, and what 2,000 open pages cost one web process.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { loadMyApp } from '../../src/commands/my-app.ts';
import { trialRun } from '../../src/commands/trial-run.ts';
import { openLaunch, type AppSession } from '../../src/testing/app-session.ts';
import { missingOf, needs } from '../../scripts/needs.mjs';
import { startCluster } from '../drill/cluster.ts';
import type { BenchProcess } from './processes.ts';
import { skippedStatus, tell, type BenchRow } from './rows.ts';
import { startServers } from './servers.ts';

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '50,500,3000' },
    seconds: { type: 'string', default: '20' },
    pages: { type: 'string', default: '2000' },
    folder: { type: 'string', default: 'data/bench/fleet' },
  },
});
const [folder, seconds, pageCount] = [resolve(values.folder), Number(values.seconds), Number(values.pages)];
const sizes = values.sizes.split(',').map(Number);
const workerCounts = [4, 2, 1];
const pollIntervalMs = 5_000;
const launchCount = 100;
const pagesOfOne = 20;
const trial = trialRun(await loadMyApp(), 64);

if (missingOf(needs.postgresql) !== null) process.exit(skippedStatus);
const place = await mkdtemp(join(tmpdir(), 'kit-bench-'));
// PostgreSQL runs as another user.
await chmod(place, 0o755);
const cluster = await startCluster(join(place, 'postgresql'), { isDurable: true });
const rows: BenchRow[] = [];
const note = (what: string, unit: string, figure: number, most: number) => {
  console.log(`${what}: ${figure.toFixed(3)} ${unit}`);
  rows.push({ what, unit, ours: [figure], peer: null, goal: { most } });
};
const workers: BenchProcess[] = [];
const databaseUrl = await cluster.create();
const servers = await startServers({
  folder,
  role: 'web',
  env: {
    DATABASE_URL: databaseUrl,
    RUNS_PER_USER: '100000',
    STEP_QUEUE: '100000',
    POLL_INTERVAL_MS: String(pollIntervalMs),
  },
});
try {
  const sessions = await openLaunches();
  /** By number of workers. */
  const quietly = new Map<number, number>();
  let started = 0;
  for (const size of sizes) {
    while (workers.length < workerCounts[0]!) workers.push(await servers.startWorker());
    for (; started < size; started++) await sessions[started % launchCount]!.startRun(trial);
    for (const count of workerCounts) {
      while (workers.length > count) await workers.pop()!.stop();
      await untilAllHeld(size);
      const measured = await measure();
      const what = `${size} waiting runs, ${count} worker${count > 1 ? 's' : ''}`;
      note(
        `${what}: CPU of the workers, for 100 runs`,
        'ms a second',
        measured.cpuMs / (size / 100),
        size < 500 ? 60 : 8,
      );
      note(
        `${what}: polls late of those due`,
        '%',
        100 * Math.max(0, 1 - measured.polls / (size / (pollIntervalMs / 1_000))),
        15,
      );
      note(`${what}: memory of the largest worker`, 'MiB', measured.residentMiB, 320);
      const [few = 0] = sizes;
      if (size === few) quietly.set(count, measured.transactions);
      else {
        const more = Math.max(0, measured.transactions - (quietly.get(count) ?? 0));
        note(
          `${what}: transactions for each poll without news, beyond those of ${few} runs`,
          '',
          more / measured.polls,
          0.05,
        );
      }
    }
  }
  await measurePages(sessions);
} finally {
  for (const worker of workers) await worker.kill().catch(() => {});
  await servers.app.kill().catch(() => {});
  await servers.end();
  await cluster.remove();
  await rm(place, { recursive: true, force: true });
}
tell(rows);

/** Launches of so many users. */
async function openLaunches(): Promise<AppSession[]> {
  const opened: AppSession[] = [];
  for (let i = 0; i < launchCount; i++) {
    const userId = `user-${i}`;
    await servers.control('users', { id: userId, name: userId, email: `${userId}@example.org` });
    const { launchUrl } = await servers.control<{ launchUrl: string }>('launches', { appId: 'bench', userId });
    opened.push(await openLaunch(launchUrl));
  }
  return opened;
}

/** Resolves when a living worker polls each run. */
async function untilAllHeld(size: number): Promise<void> {
  for (;;) {
    const [row] = await cluster.query(
      databaseUrl,
      `select count(*)::int as held from runs where state = 'AWAITING_APPROVAL' and worker in
       (select name from workers where alive_at > (extract(epoch from now()) * 1000 - 5000))`,
    );
    if (row?.['held'] === size) break;
    await sleep(500);
  }
  await sleep(2 * pollIntervalMs);
}

/** Figures of the fleet for a second, and the memory of its largest worker. */
async function measure() {
  const transactions = async () => {
    const [row] = await cluster.query(
      databaseUrl,
      'select xact_commit::int as done from pg_stat_database where datname = current_database()',
    );
    return Number(row!['done']);
  };
  const cpuSeconds = () => workers.reduce((sum, worker) => sum + worker.cpuSeconds(), 0);
  const polls = async () => {
    const counts = await Promise.all(workers.map(({ url }) => pollsOf(url)));
    return counts.reduce((sum, count) => sum + count, 0);
  };
  const [cpuBefore, doneBefore, pollsBefore] = [cpuSeconds(), await transactions(), await polls()];
  await sleep(seconds * 1_000);
  const [cpu, done, polled] = [cpuSeconds(), await transactions(), await polls()];
  return {
    cpuMs: ((cpu - cpuBefore) * 1_000) / seconds,
    transactions: (done - doneBefore) / seconds,
    polls: (polled - pollsBefore) / seconds,
    residentMiB: Math.max(...workers.map((worker) => worker.residentMiB())),
  };
}

async function pollsOf(url: string): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return Number(/^app_platform_calls_total\{endpoint="operation.status",result="ok"\} (\d+)$/m.exec(metrics)?.[1] ?? 0);
}

/** Opens the streams of so many pages, and changes one run that some of them show. */
async function measurePages(sessions: readonly AppSession[]): Promise<void> {
  const { app } = servers;
  const agent = new Agent({ maxSockets: Infinity });
  const told = new Map<AppSession, () => void>();
  const open = (session: AppSession) =>
    new Promise<void>((opened, failed) => {
      get(new URL('events', session.home), { agent, headers: { cookie: session.cookie } }, (response) => {
        if (response.statusCode !== 200) return failed(new Error(`a stream was answered ${response.statusCode}`));
        response.setEncoding('utf8').on('data', (text: string) => {
          opened();
          if (text.includes('event: change')) told.get(session)?.();
        });
        response.on('error', () => {});
      }).on('error', failed);
    });
  const begun = performance.now();
  for (let i = 0; i < pageCount / pagesOfOne; i++)
    await Promise.all(Array.from({ length: pagesOfOne }, () => open(sessions[i % launchCount]!)));
  console.log(`${pageCount} pages were open after ${((performance.now() - begun) / 1_000).toFixed(1)} s`);
  await sleep(5_000);
  const before = app.cpuSeconds();
  await sleep(seconds * 1_000);
  const cpuMs = ((app.cpuSeconds() - before) * 1_000) / seconds;
  note(`${pageCount} open pages, 1 web process: CPU of it`, 'ms a second', cpuMs, 250);
  note(`${pageCount} open pages, 1 web process: memory of it`, 'MiB', app.residentMiB(), 250);
  const delays: number[] = [];
  for (const session of sessions.slice(0, 5)) {
    const change = new Promise<void>((resolve) => told.set(session, resolve));
    const startedAt = performance.now();
    await session.startRun(trial);
    await change;
    delays.push(performance.now() - startedAt);
  }
  note(
    `${pageCount} open pages, 1 web process: longest time until a page knows of a change`,
    'ms',
    Math.max(...delays),
    1_500,
  );
  agent.destroy();
}
