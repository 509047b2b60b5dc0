/** `npm run lab -- lab/bench/waiting.ts`: what it costs the app to wait for many approvals, beside a bare loop of the same calls in the same run. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { limits } from '../../src/contract/index.ts';
import { openLaunch } from '../../src/testing/app-session.ts';
import { loadMyApp } from '../../src/commands/my-app.ts';
import { trialRun } from '../../src/commands/trial-run.ts';
import { startProcess, type BenchProcess } from './processes.ts';
import { tell, type BenchRow } from './rows.ts';

const trial = trialRun(await loadMyApp(), 64);

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '2000' },
    seconds: { type: 'string', default: '60' },
    folder: { type: 'string', default: 'data/bench/waiting' },
  },
});
const [runs, seconds, folder] = [Number(values.runs), Number(values.seconds), resolve(values.folder)];
const launches = 20;
const intervalMs = 3_000;
const apiKey = randomBytes(24).toString('base64url');

interface Call {
  readonly at: string;
  readonly endpoint: string;
  readonly detail: { readonly operationId?: string };
}

await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });
const sandbox = await startProcess(
  new URL('../../src/commands/sandbox.ts', import.meta.url),
  'sandbox',
  ['--port', '0', '--seed', 'none', '--data', join(folder, 'sandbox')],
  { SANDBOX_API_KEY: apiKey, LOG_LEVEL: 'error' },
);
const app = await startProcess(new URL('../../src/commands/app.ts', import.meta.url), 'app', [], {
  PLATFORM_URL: sandbox.url,
  RUNS_PER_USER: String(runs),
  PLATFORM_API_KEY: apiKey,
  APP_SECRET: randomBytes(32).toString('base64url'),
  DATA_DIR: join(folder, 'app'),
  LAUNCHES_PER_MINUTE: '100000',
  POLL_INTERVAL_MS: String(intervalMs),
  PORT: '0',
  LOG_LEVEL: 'error',
});
let operations: { operationId: string; launchId: string }[] = [];
let tokens = new Map<string, string>();
try {
  await control('apps', { id: 'bench', name: 'Bench', launchUrl: `${app.url}/launch` });
  const opened = await Promise.all(
    Array.from({ length: launches }, async () =>
      control<{ launchId: string; token: string; launchUrl: string }>('launches', { appId: 'bench' }),
    ),
  );
  for (const { launchUrl } of opened) {
    const session = await openLaunch(launchUrl);
    for (let i = 0; i < runs / launches; i++) await session.startRun(trial);
  }
  const list = async () => (await control<{ operations: typeof operations }>('operations')).operations;
  for (operations = await list(); operations.length < runs; operations = await list()) await sleep(500);
  tokens = new Map(opened.map(({ launchId, token }) => [launchId, token]));
  console.log(`${operations.length} runs wait for approval, asked for every ${intervalMs} ms; ${seconds} s of each\n`);
  await sleep(2 * intervalMs);

  const from = Date.now();
  const ours = await measure(app, seconds);
  const until = Date.now();
  const gaps = await gapsBetween(
    opened.map(({ launchId }) => launchId),
    from,
    until,
  );
  await app.stop();

  const rows: BenchRow[] = [];
  for (const client of ['fetch', 'axios'] as const) {
    const theirs = await measureBare(client);
    const [what, name] = [`${runs} runs that wait for approval`, `a bare loop, ${client}`];
    rows.push(
      {
        what: `${what}: CPU`,
        unit: 'ms a second',
        ours: [ours.cpuMs],
        peer: { name, values: [theirs.cpuMs] },
        goal: { most: 1.5 },
      },
      {
        what: `${what}: resident memory`,
        unit: 'MiB',
        ours: [ours.residentMiB],
        peer: { name, values: [theirs.residentMiB] },
        goal: { most: 1.2 },
      },
    );
  }
  tell(rows);
  const { min, max } = limits.pollIntervalMs;
  const [shortest, longest] = [Math.min(...gaps), Math.max(...gaps)];
  const early = gaps.filter((gap) => gap < min - 200).length;
  console.log(
    `\n${gaps.length} intervals between two calls for one operation: ${shortest} to ${longest} ms; ${early} under ${min}, ${gaps.filter((gap) => gap > max + 200).length} over ${max}`,
  );
} finally {
  await app.kill().catch(() => {});
  await sandbox.stop();
  await rm(folder, { recursive: true, force: true });
}

async function measureBare(client: 'fetch' | 'axios') {
  const config = join(folder, `bare-poll-${client}.json`);
  const asked = operations.map(({ operationId, launchId }) => ({ operationId, token: tokens.get(launchId) }));
  await writeFile(config, JSON.stringify({ url: sandbox.url, apiKey, intervalMs, client, operations: asked }), {
    mode: 0o600,
  });
  const bare = await startProcess(new URL('./bare-poll.ts', import.meta.url), 'bare-poll', [config], {});
  try {
    await sleep(2 * intervalMs);
    return await measure(bare, seconds);
  } finally {
    await bare.kill();
  }
}

async function control<T>(path: string, body?: object): Promise<T> {
  const response = await fetch(`${sandbox.url}/sandbox/${path}`, {
    method: body ? 'POST' : 'GET',
    headers: body ? { 'content-type': 'application/json' } : {},
    body: body ? JSON.stringify(body) : null,
  });
  if (!response.ok) throw new Error(`the sandbox answered ${response.status} to ${path}`);
  return (await response.json()) as T;
}

/** CPU of a process, in ms per second, and the mean of its resident set. */
async function measure(process: BenchProcess, forSeconds: number): Promise<{ cpuMs: number; residentMiB: number }> {
  if (!existsSync(`/proc/${process.pid}`))
    throw new Error('the process that is measured has ended: what it said stands above');
  const before = await cpuTicks(process.pid);
  let resident = 0;
  for (let i = 0; i < forSeconds; i++) {
    await sleep(1_000);
    resident += Number(/^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${process.pid}/status`, 'utf8'))?.[1]) / 1024;
  }
  const ticksPerSecond = 100;
  return {
    cpuMs: (((await cpuTicks(process.pid)) - before) * (1_000 / ticksPerSecond)) / forSeconds,
    residentMiB: resident / forSeconds,
  };
}

async function cpuTicks(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /s, '').split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

/** Milliseconds from the start of a status call to the start of the next for the same operation. */
async function gapsBetween(launchIds: readonly string[], from: number, to: number): Promise<number[]> {
  const gaps: number[] = [];
  for (const launchId of launchIds) {
    const last = new Map<string, number>();
    for (const { at, endpoint, detail } of (await control<{ calls: Call[] }>(`launches/${launchId}/trace`)).calls) {
      const time = Date.parse(at);
      if (endpoint !== 'operation.status' || detail.operationId === undefined || time < from || time > to) continue;
      const before = last.get(detail.operationId);
      if (before !== undefined) gaps.push(time - before);
      last.set(detail.operationId, time);
    }
  }
  return gaps;
}
