/** Attacks of a step on the PostgreSQL server of its app: it must reach nothing of it, and its words must not stop the worker. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { openLaunch, type AppSession } from '../../src/testing/app-session.ts';
import { startApp, startSandbox, type RunningSandbox } from '../../src/testing/index.ts';
import type { RunView } from '../../src/app/runs/run-view.ts';
import { startCluster } from '../drill/cluster.ts';
import type { Attack } from './attack.ts';
import evilApp from './evil-app.ts';

const script = fileURLToPath(new URL('./deeds.py', import.meta.url));
/** A run that a worker lost ends within this time, and so does one that it repeats without an end. */
const patienceMs = 90_000;

interface Target {
  /** Address, port and folder of the server. */
  readonly address: string;
  readonly port: string;
  readonly folder: string;
  readonly run: (stepId: string, parameters: Readonly<Record<string, string>>) => Promise<RunView>;
}

/** A server, and an app with a worker on it. */
async function withDatabase<T>(work: (target: Target) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'attack-postgres-'));
  const cluster = await startCluster(folder);
  const platform = await startSandbox();
  try {
    const address = await cluster.create();
    // A server that was started with the address in its environment.
    const server = spawn('sleep', ['300'], { stdio: 'ignore', env: { DATABASE_URL: address } });
    const definition = { module: new URL('./evil-app.ts', import.meta.url).href, ...evilApp };
    const app = await startApp(definition, { platform, env: { DATABASE_URL: address, LOG_LEVEL: 'silent' } });
    try {
      const { launchId, launchUrl } = await platform.launch(app.launchUrl);
      const session = await openLaunch(launchUrl);
      const { port } = new URL(address);
      const run: Target['run'] = (stepId, parameters) => ended(platform, session, launchId, { stepId, parameters });
      return await work({ address, port, folder, run });
    } finally {
      server.kill();
      await app.close();
    }
  } finally {
    await platform.close();
    await cluster.remove();
  }
}

async function ended(
  platform: RunningSandbox,
  session: AppSession,
  launchId: string,
  requested: { readonly stepId: string; readonly parameters: object },
): Promise<RunView> {
  let run = await session.startRun({ ...requested, input: { type: 'synthetic', size: 64 } });
  await platform.approve({ launchId });
  for (const giveUpAt = performance.now() + patienceMs; !run.isFinal; run = await session.run(run.id)) {
    if (performance.now() > giveUpAt) throw new Error(`the run is ${run.state} after ${patienceMs} ms`);
    await sleep(200);
  }
  return run;
}

/** A deed that reaches the server if nothing confines it. */
const reaches = (name: string, deed: string, targetOf: (target: Target) => string): Attack => ({
  group: 'a database',
  name,
  isShort: false,
  control: () =>
    withDatabase((target) => {
      const { stdout, stderr } = spawnSync('python3', [script, deed, targetOf(target)], { encoding: 'utf8' });
      return Promise.resolve(stdout.trim() === 'done' ? null : `shows nothing here: ${stdout}${stderr}`);
    }),
  attack: () =>
    withDatabase(async (target) => {
      const { failure } = await target.run('deed', { deed, target: targetOf(target) });
      // The step repeats what the deed printed.
      if (failure?.message.includes('Error: ')) return null;
      return `the run says: ${failure?.message ?? 'nothing'}`;
    }),
});

/** A lie ends its own run as failed, and the next run is delivered. */
const outlives = (lie: string): Attack => ({
  group: 'a database',
  name: `a worker on it outlives the words: ${lie}`,
  isShort: false,
  control: () => withDatabase(async ({ run }) => wrongEnd(await run('evil', { lie: 'honest' }), 'COMPLETED')),
  attack: () =>
    withDatabase(
      async ({ run }) =>
        wrongEnd(await run('evil', { lie }), 'FAILED') ?? wrongEnd(await run('evil', { lie: 'honest' }), 'COMPLETED'),
    ),
});

const wrongEnd = ({ state, failure }: RunView, expected: RunView['state']): string | null =>
  state === expected ? null : `the run ended ${state}: ${failure?.message ?? ''}`;

export const onDatabase: readonly Attack[] = [
  reaches('connects to its port', 'database_port', ({ port }) => port),
  reaches('connects to its socket', 'database_socket', ({ folder, port }) => join(folder, `.s.PGSQL.${port}`)),
  reaches('reads its files', 'database_files', ({ folder }) => join(folder, 'data')),
  reaches('reads its address from an environment', 'environments', ({ address }) => address),
  outlives('the session has expired'),
  outlives('no process can be started'),
  outlives('a message of NUL and half a surrogate'),
];
