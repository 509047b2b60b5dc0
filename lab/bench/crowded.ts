/** `npm run lab -- lab/bench/crowded.ts`: pages and calls of an app with 2,000 launches and 10,000 ended runs, and of a sandbox with 2,000 launches. */
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import Sqlite from 'better-sqlite3';
import { openLaunch } from '../../src/testing/app-session.ts';
import { loadMyApp } from '../../src/commands/my-app.ts';
import { trialRun } from '../../src/commands/trial-run.ts';
import { tell } from './rows.ts';
import { startServers } from './servers.ts';

const trial = trialRun(await loadMyApp(), 64);

const { values } = parseArgs({
  options: {
    launches: { type: 'string', default: '2000' },
    runs: { type: 'string', default: '10000' },
    folder: { type: 'string', default: 'data/bench/crowded' },
  },
});
const [launches, runs, folder] = [Number(values.launches), Number(values.runs), resolve(values.folder)];
const calls = 30;
const goalMs = 50;

const { app, sandbox, apiKey, control, end } = await startServers({ folder });
try {
  let last = { launchId: '', token: '', launchUrl: '' };
  for (let i = 0; i < launches; i++) {
    last = await control('launches', { appId: 'bench' });
    const created = await fetch(`${sandbox.url}/public/external-app/operation/${last.token}`, {
      method: 'POST',
      headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ name: `Operation ${i}` }),
    });
    await created.arrayBuffer();
  }
  const session = await openLaunch(last.launchUrl);
  await session.startRun(trial);
  fill(new URL(session.home).pathname.split('/')[2]!);
  console.log(`${launches} launches; ${runs} ended runs, half of them in one launch; ms of ${calls} calls each\n`);
  console.log(
    '| call                                | median |   most |\n|-------------------------------------|-------:|-------:|',
  );
  const ofApp = { headers: { cookie: session.cookie } };
  const own = new URL(session.home).pathname;
  let slowest = 0;
  for (const path of [
    own,
    `${own}api/runs`,
    `${own}api/runs?limit=25`,
    `${own}new/${trial.stepId}`,
    '/metrics',
    '/ready',
  ])
    slowest = Math.max(slowest, await time('app', app.url, path, ofApp));
  const ofSandbox = { headers: { 'x-api-key': apiKey } };
  for (const path of [
    '/',
    '/launches',
    `/launches/${last.launchId}`,
    '/approvals',
    '/sandbox/operations',
    `/sandbox/launches/${last.launchId}`,
    `/sandbox/launches/${last.launchId}/verdict`,
  ])
    slowest = Math.max(slowest, await time('sandbox', sandbox.url, path, ofSandbox));
  tell([
    {
      what: `the slowest page or call with ${launches} launches and ${runs} ended runs`,
      unit: 'ms',
      ours: [slowest],
      peer: null,
      goal: { most: goalMs },
    },
  ]);
} finally {
  await app.kill().catch(() => {});
  await end();
}

/** Copies of the one run that there is, as if they had ended: half of them in its own launch, the others in launches of one each. */
function fill(launchId: string): void {
  const database = new Sqlite(join(folder, 'app', 'app.db'));
  type Row = Record<string, unknown>;
  const first = (table: string, column: string) =>
    database.prepare<[string], Row>(`select * from ${table} where ${column} = ? limit 1`).get(launchId)!;
  // By their names: what a table has is the app's.
  const inserter = (table: string, like: Row) => {
    const names = Object.keys(like);
    const insert = database.prepare(
      `insert into ${table} (${names.map((name) => `"${name}"`).join(', ')}) values (${names.map((name) => `@${name}`).join(', ')})`,
    );
    return (changes: Row) => insert.run({ ...like, ...changes });
  };
  const [launch, run] = [first('launches', 'id'), first('runs', 'launch_id')];
  const [insertLaunch, insertRun] = [inserter('launches', launch), inserter('runs', run)];
  const insertState = database.prepare('insert into run_states (run_id, seq, state, at) values (?, 1, ?, ?)');
  database.transaction(() => {
    for (let i = 0; i < launches; i++)
      insertLaunch({ id: `copy-${i}`, first_token_hash: `hash-${i}`, sealed_token: '', token_expires_at: null });
    for (let i = 0; i < runs; i++) {
      insertRun({
        id: `run-${i}`,
        launch_id: i % 2 ? launchId : `copy-${i % launches}`,
        state: 'COMPLETED',
        worker: null,
        created_at: Number(run['created_at']) - i,
        updated_at: Number(run['updated_at']) - i,
      });
      for (const state of ['CREATED', 'AWAITING_APPROVAL', 'APPROVED', 'PROCESSING', 'UPLOADING', 'COMPLETED'])
        insertState.run(`run-${i}`, state, i);
    }
  })();
  database.close();
}

/** The median. */
async function time(name: string, url: string, path: string, options: RequestInit): Promise<number> {
  const took: number[] = [];
  for (let i = 0; i < calls; i++) {
    const from = performance.now();
    const answer = await fetch(url + path, { ...options, redirect: 'manual' });
    await answer.arrayBuffer();
    if (!answer.ok) throw new Error(`${name} answered ${answer.status} to ${path}`);
    took.push(performance.now() - from);
  }
  took.sort((a, b) => a - b);
  const median = took[calls >> 1] ?? 0;
  const shown = path.replace(/\/launches\/[\w-]{16,}/, '/launches/{id}');
  console.log(
    `| ${`${name} ${shown}`.padEnd(35)} | ${median.toFixed(1).padStart(6)} | ${(took.at(-1) ?? 0).toFixed(1).padStart(6)} |`,
  );
  return median;
}
