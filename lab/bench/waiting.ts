/** `npm run lab -- lab/bench/waiting.ts`: what it costs the app to wait for many approvals, beside a bare loop of the same calls in the same run. */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { limits } from '../../src/contract/index.ts';
import { startProcess, type BenchProcess } from './processes.ts';
import { tell, type BenchRow } from './rows.ts';
import { intervalMs, startWaiting } from './waiting-runs.ts';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '2000' },
    seconds: { type: 'string', default: '60' },
    folder: { type: 'string', default: 'data/bench/waiting' },
  },
});
const [runs, seconds, folder] = [Number(values.runs), Number(values.seconds), resolve(values.folder)];

interface Call {
  readonly at: string;
  readonly endpoint: string;
  readonly detail: { readonly operationId?: string };
}

const { app, sandbox, apiKey, launches, operations, control, end } = await startWaiting({ folder, runs });
try {
  console.log(`${operations.length} runs wait for approval, asked for every ${intervalMs} ms; ${seconds} s of each\n`);
  await sleep(2 * intervalMs);

  const from = Date.now();
  const ours = await measure(app, seconds);
  const until = Date.now();
  const gaps = await gapsBetween(
    launches.map(({ launchId }) => launchId),
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
  await end();
}

async function measureBare(client: 'fetch' | 'axios') {
  const tokens = new Map(launches.map(({ launchId, token }) => [launchId, token]));
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

/** CPU of a process, in ms per second, and the mean of its resident set. */
async function measure(process: BenchProcess, forSeconds: number): Promise<{ cpuMs: number; residentMiB: number }> {
  if (!existsSync(`/proc/${process.pid}`))
    throw new Error('the process that is measured has ended: what it said stands above');
  const before = process.cpuSeconds();
  let resident = 0;
  for (let i = 0; i < forSeconds; i++) {
    await sleep(1_000);
    resident += process.residentMiB();
  }
  return { cpuMs: ((process.cpuSeconds() - before) * 1_000) / forSeconds, residentMiB: resident / forSeconds };
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
