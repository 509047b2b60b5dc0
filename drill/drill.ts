import { createHash, randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { startProcess, type BenchProcess } from '../bench/processes.ts';
import { seeded } from '../models/seeded.ts';
import { isFinal, type RunState } from '../src/app/runs/run-state.ts';
import { openLaunch, type AppSession } from '../src/commands/demo/app-session.ts';
import { drillPlatform, type DrillPlatform } from './platform.ts';
import { killStates, nextKill, type DrillPlan, type Kill, type KillState } from './plan.ts';

export interface DrillOptions extends DrillPlan {
  /** Emptied first. */
  readonly folder: string;
  /** Script of the app that is killed. Default: the kit's. */
  readonly appScript?: URL;
  readonly onKill?: (done: number, state: KillState) => void;
}

export interface DrillResult {
  readonly kills: Readonly<Record<KillState, number>>;
  readonly runs: number;
  readonly states: Readonly<Partial<Record<RunState, number>>>;
  /** What was lost or done twice; empty where nothing. */
  readonly faults: readonly string[];
  readonly operations: number;
  readonly files: number;
  readonly bytesCompared: number;
  /** Upload sessions that a kill left without a file: no harm, and swept by the platform. */
  readonly abandonedSessions: number;
}

const runsAtOnce = 5;
const rejectShare = 0.15;
const sceneSize = 256;
const partBytes = 40_000;
const waitMs = 120_000;

interface RunFacts {
  readonly id: string;
  readonly state: RunState;
  readonly operationId: string | null;
  readonly file: string | null;
  readonly output: string | null;
}

/**
 * Kills the app from outside with -9, again and again, in every state of a run, starts it anew each time,
 * and compares at the end what the platform received with what it should have.
 */
export async function drill(options: DrillOptions): Promise<DrillResult> {
  const { folder } = options;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const random = seeded(options.seed);
  const apiKey = randomBytes(24).toString('base64url');
  const sandbox = await startProcess(new URL('../src/commands/sandbox.ts', import.meta.url), 'sandbox', ['--port', '0', '--seed', 'none', '--data', join(folder, 'sandbox')], { SANDBOX_API_KEY: apiKey, LOG_LEVEL: 'error' });
  const platform = drillPlatform(sandbox.url, apiKey, (bytes) => createHash('sha256').update(bytes).digest('hex'));
  const env = {
    PLATFORM_URL: sandbox.url,
    PLATFORM_API_KEY: apiKey,
    APP_SECRET: 'drill'.repeat(8),
    DATA_DIR: join(folder, 'app'),
    PORT: String(await freePort()),
    POLL_INTERVAL_MS: '2000',
    UPLOAD_PART_BYTES: String(partBytes),
    LOG_LEVEL: 'silent',
  };
  const startApp = () => startProcess(options.appScript ?? new URL('../src/commands/app.ts', import.meta.url), 'app', [], env);
  let app = await startApp();
  const store = new Sqlite(join(env.DATA_DIR, 'app.db'), { readonly: true });
  try {
    const { launchId, launchUrl } = await platform.launch(app.url);
    const session = await openLaunch(launchUrl);
    const user = decideAsUser(platform, random);
    const kills = Object.fromEntries(killStates.map((state) => [state, 0])) as Record<KillState, number>;
    for (let kill = nextKill(kills, options, random); kill; kill = nextKill(kills, options, random)) {
      await platform.arm(kill.faults);
      const killed = await killIn(kill, { app, session, store });
      app = await startApp();
      if (killed === null) continue;
      kills[killed] += 1;
      options.onKill?.(Object.values(kills).reduce((a, b) => a + b), killed);
    }
    await platform.arm([]);
    const runs = await untilAllEnded(store);
    await user.stop();
    return { kills, ...(await compare(runs, platform, launchId)) };
  } finally {
    store.close();
    await app.kill();
    await sandbox.stop();
  }
}

function readRuns(store: Sqlite.Database): RunFacts[] {
  return store.prepare<[], RunFacts>('select id, state, operation_id as operationId, file, output from runs').all();
}

/** Waits until a run is in the wanted state, and a little more, and kills. The state that a run was then in, as committed. */
async function killIn({ state, delayMs }: Kill, { app, session, store }: { app: BenchProcess; session: AppSession; store: Sqlite.Database }): Promise<KillState | null> {
  const inState = store.prepare<[string], { id: string }>('select id from runs where state = ? order by updated_at desc limit 1');
  const unfinished = () => readRuns(store).filter((run) => !isFinal(run.state)).length;
  for (let n = unfinished(); n < runsAtOnce; n++) await session.startRun({ stepId: 'cog', input: { type: 'synthetic', size: sceneSize } });
  const deadline = performance.now() + waitMs;
  let found = inState.get(state);
  for (let looks = 0; !found; found = inState.get(state)) {
    if (performance.now() > deadline) throw new Error(`no run reached ${state} within ${waitMs} ms: ${JSON.stringify(readRuns(store))}`);
    // APPROVED lasts a millisecond: it is only caught by looking all the time.
    if (state !== 'APPROVED' || ++looks % 2_000 === 0) await sleep(1);
    // Where every run has ended or none can reach the state any more, another is begun.
    if (state === 'CREATED' || unfinished() === 0) await session.startRun({ stepId: 'cog', input: { type: 'synthetic', size: sceneSize } });
  }
  if (delayMs > 0) await sleep(delayMs);
  await app.kill();
  const left = store.prepare<[string], { state: string }>('select state from runs where id = ?').get(found.id)?.state;
  return killStates.find((one) => one === left) ?? null;
}

/** Decides every operation that waits, some of them with no. */
function decideAsUser(platform: DrillPlatform, random: () => number): { stop(): Promise<void> } {
  let stopping = false;
  const deciding = (async () => {
    while (!stopping) {
      for (const { operationId, status } of await platform.operations()) {
        if (status === 'REQUESTED' && random() < 0.5) await platform.decide(operationId, random() < rejectShare ? 'reject' : 'approve');
      }
      await sleep(250);
    }
  })();
  return {
    async stop() {
      stopping = true;
      await deciding;
    },
  };
}

async function untilAllEnded(store: Sqlite.Database): Promise<RunFacts[]> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const runs = readRuns(store);
    if (runs.every(({ state }) => isFinal(state))) return runs;
    if (performance.now() > deadline) throw new Error(`runs did not end: ${JSON.stringify(runs.filter(({ state }) => !isFinal(state)))}`);
    await sleep(100);
  }
}

/** Every run against the platform: one operation, no upload unless approved, one file, its bytes. */
async function compare(runs: readonly RunFacts[], platform: DrillPlatform, launchId: string): Promise<Omit<DrillResult, 'kills'>> {
  const faults: string[] = [];
  const [operations, uploads, calls] = [await platform.operations(), await platform.uploads(launchId), await platform.calls(launchId)];
  if (operations.length !== runs.length) faults.push(`${runs.length} runs made ${operations.length} operations`);
  let bytesCompared = 0;
  for (const run of runs) {
    const operation = operations.find(({ operationId }) => operationId === run.operationId);
    const own = uploads.filter(({ operationId }) => operationId === run.operationId);
    const files = own.flatMap(({ fileId }) => fileId ?? []);
    const wanted = operation?.status === 'APPROVED' ? 'COMPLETED' : operation?.status;
    if (run.state !== wanted) faults.push(`run ${run.id} is ${run.state}, its operation ${operation?.status ?? 'not there'}`);
    if (run.state !== 'COMPLETED') {
      const uploadCalls = calls.filter(({ endpoint, detail }) => endpoint.startsWith('upload.') && detail['operationId'] === run.operationId);
      if (run.operationId !== null && uploadCalls.length > 0) faults.push(`run ${run.id} is ${run.state}, and ${uploadCalls.length} upload calls were made`);
      continue;
    }
    if (files.length !== 1) faults.push(`run ${run.id} made ${files.length} files`);
    const [output, file] = [run.output, run.file].map((json) => JSON.parse(json ?? 'null') as { sha256?: string; sizeBytes?: number; fileId?: string } | null);
    if (file?.fileId !== files[0]) faults.push(`run ${run.id} names file ${file?.fileId}, the platform has ${files[0]}`);
    if (files[0] !== undefined && (await platform.sha256(files[0])) !== output?.sha256) faults.push(`run ${run.id}: the platform's file has other bytes`);
    bytesCompared += output?.sizeBytes ?? 0;
  }
  const states: Partial<Record<RunState, number>> = {};
  for (const { state } of runs) states[state] = (states[state] ?? 0) + 1;
  const files = uploads.filter(({ fileId }) => fileId !== null).length;
  return { runs: runs.length, states, faults, operations: operations.length, files, bytesCompared, abandonedSessions: uploads.length - files };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
