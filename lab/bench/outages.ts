/** `npm run lab -- lab/bench/outages.ts`: an app with many waiting runs while it restarts, while nothing happens, and while its database is away. */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startCluster } from '../drill/cluster.ts';
import { tell, type BenchRow } from './rows.ts';
import { startWaiting } from './waiting-runs.ts';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '10000' },
    'runs-on-postgresql': { type: 'string', default: '300' },
    folder: { type: 'string', default: 'data/bench/outages' },
  },
});
const folder = resolve(values.folder);
const secondsOfEach = 15;

tell([...(await restarted(Number(values.runs))), ...(await onPostgresql(Number(values['runs-on-postgresql'])))]);

/** SQLite: the app ends and starts again. From its first answer on, `/health` is asked again and again. */
async function restarted(runs: number): Promise<BenchRow[]> {
  const waiting = await startWaiting({ folder, runs, isHasty: true });
  try {
    await waiting.app.stop();
    const app = await waiting.restart();
    try {
      let longestMs = 0;
      for (const endMs = performance.now() + 30_000; performance.now() < endMs; await sleep(20)) {
        const began = performance.now();
        const response = await fetch(`${app.url}/health`);
        await response.arrayBuffer();
        longestMs = Math.max(longestMs, performance.now() - began);
      }
      const what = `a restart with ${runs} waiting runs, SQLite: the longest wait for /health in 30 s`;
      return [{ what, unit: 'ms', ours: [longestMs], peer: null, goal: { most: 500 } }];
    } finally {
      await app.kill();
    }
  } finally {
    await waiting.end();
  }
}

/** PostgreSQL: first nothing happens, then the database is away. */
async function onPostgresql(runs: number): Promise<BenchRow[]> {
  const place = await mkdtemp(join(tmpdir(), 'kit-bench-'));
  // PostgreSQL runs as another user.
  await chmod(place, 0o755);
  const cluster = await startCluster(join(place, 'postgresql'), { isDurable: true });
  let logged = '';
  try {
    const url = await cluster.create();
    const waiting = await startWaiting(
      { folder, runs, env: { DATABASE_URL: url, LOG_LEVEL: 'info' } },
      { onLog: (text) => (logged += text) },
    );
    try {
      const written = async () => {
        const [row] = await cluster.query(
          url,
          `select sum(n_tup_ins + n_tup_upd + n_tup_del)::int as rows from pg_stat_user_tables where relname in ('runs', 'run_states', 'run_stages', 'run_progress', 'launches', 'launch_changes', 'sessions')`,
        );
        return Number(row!['rows']);
      };
      const polls = async () =>
        (
          await Promise.all(
            waiting.launches.map(({ launchId }) =>
              waiting.control<{ calls: { endpoint: string }[] }>(`launches/${launchId}/trace`),
            ),
          )
        )
          .flatMap(({ calls }) => calls)
          .filter(({ endpoint }) => endpoint === 'operation.status').length;
      // The last runs begin to wait, and statistics arrive.
      await sleep(10_000);
      const [rowsBefore, pollsBefore] = [await written(), await polls()];
      await sleep(secondsOfEach * 1_000);
      const [rows, asked] = [(await written()) - rowsBefore, (await polls()) - pollsBefore];
      console.log(`${rows} rows written in ${secondsOfEach} s, in which the app polled ${asked} times`);
      logged = '';
      await cluster.stop();
      await sleep(secondsOfEach * 1_000);
      const lines = logged.trimEnd().split('\n');
      for (const [message, of] of Map.groupBy(lines, (line) => (JSON.parse(line) as { msg: string }).msg))
        console.log(`${of.length} x ${message}: ${of.join('').length} bytes`);
      console.log(`${lines.length} lines of log while the database was away, ${logged.length} bytes`);
      await cluster.start();
      return [
        {
          what: `${runs} waiting runs, PostgreSQL: rows of runs and launches written for each poll without news`,
          unit: 'rows',
          ours: [rows / asked],
          peer: null,
          goal: { most: 0 },
        },
        {
          what: `${runs} waiting runs, PostgreSQL away for ${secondsOfEach} s: log`,
          unit: 'kB',
          ours: [logged.length / 1_000],
          peer: null,
          goal: { most: 20 },
        },
      ];
    } finally {
      await waiting.app.kill().catch(() => {});
      await waiting.end();
    }
  } finally {
    await cluster.remove();
    await rm(place, { recursive: true, force: true });
  }
}
