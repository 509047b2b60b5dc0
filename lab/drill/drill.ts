import { setTimeout as sleep } from 'node:timers/promises';
import { seeded } from '../models/seeded.ts';
import { isFinal, type RunState } from '../../src/app/runs/run-state.ts';
import { openLaunch, type AppSession } from '../../src/testing/app-session.ts';
import { loadMyApp } from '../../src/commands/my-app.ts';
import { trialRun } from '../../src/commands/trial-run.ts';
import { startBusyLoops } from './busy.ts';
import { compare, hasFault } from './compare.ts';
import type { DrillPlatform } from './platform.ts';
import {
  faultStates,
  nextFault,
  noCounts,
  total,
  type Counts,
  type DrillPlan,
  type Family,
  type FaultState,
  type PlannedFault,
} from './plan.ts';
import { prepare, strike } from './strike.ts';
import { startWorld, type RunFacts, type World } from './world.ts';

export interface DrillOptions extends DrillPlan {
  /** Emptied first. */
  readonly folder: string;
  /** With PostgreSQL, a web process and two workers; else one process with SQLite. */
  readonly isShared?: boolean;
  /** Other processes do the steps. Default false. */
  readonly usesExecutor?: boolean;
  /** Two loops burn both cores beside it. */
  readonly isBusy?: boolean;
  /** Time limit for a run to reach a state, and for all runs to end, in milliseconds. Default 180,000. */
  readonly patienceMs?: number;
  /** Share of the waiting operations that the user decides each quarter of a second. Default 0.5. */
  readonly decisionShare?: number;
  /** Runs that are kept under way. Default 5, and 8 with two workers. */
  readonly runsAtOnce?: number;
  /** Script of the app that is tried. Default: the kit's. */
  readonly appScript?: URL;
  /** Strikes no more once the app has done something wrong: what is done after it says nothing more. Default false. */
  readonly endsAtFault?: boolean;
  readonly onFault?: (done: number, fault: PlannedFault) => void;
}

export interface DrillResult {
  readonly counts: Counts;
  /** Effects of the faults of each family, in words. */
  readonly did: Readonly<Partial<Record<Family, string>>>;
  readonly runs: number;
  readonly states: Readonly<Partial<Record<RunState, number>>>;
  /** Things that were lost, done twice or ended wrongly; empty if there are none. */
  readonly faults: readonly string[];
  readonly operations: number;
  readonly files: number;
  readonly bytesCompared: number;
  /** Upload sessions that a fault left without a file: no harm, and swept by the platform. */
  readonly abandonedSessions: number;
}

const runsAtOnce = { alone: 5, shared: 8 };
const rejectShare = 0.15;
const scene = trialRun(await loadMyApp(), 256);
const topUpEveryMs = 1_000;
const lastCalls = 8;
/** Short beside the shortest state. */
const lookEveryMs = 10;
/** A run that ends meanwhile makes no call. */
const longestWaitForCallMs = 8_000;

/**
 * Does to the app what the world does, again and again, in every state of a run, and compares at the end what the
 * platform received with what it should have.
 */
export async function drill(options: DrillOptions): Promise<DrillResult> {
  const { patienceMs = 180_000, decisionShare = 0.5 } = options;
  const atOnce = options.runsAtOnce ?? (options.isShared ? runsAtOnce.shared : runsAtOnce.alone);
  const random = seeded(options.seed);
  const world = await startWorld({
    folder: options.folder,
    isShared: options.isShared ?? false,
    appScript: options.appScript,
    usesExecutor: options.usesExecutor ?? false,
    usesDisks: options.families.some((family) => family.endsWith('disk full')),
  });
  const stopBusyLoops = options.isBusy ? startBusyLoops() : () => {};
  try {
    const { launchId, launchUrl } = await world.platform.launch(world.web.url);
    const session = await openLaunch(launchUrl);
    const user = decideAsUser(world.platform, random, decisionShare);
    const families = options.families.filter((family) => canStrike(world, family));
    const counts = noCounts();
    const did = new Map<Family, Map<string, number>>();
    let done = 0;
    for (
      let fault = nextFault(counts, { ...options, families }, random);
      fault;
      fault = nextFault(counts, { ...options, families }, random)
    ) {
      const { family, state, delayMs } = fault;
      const lostBefore = await timesCalled(world, launchId, options.lose);
      await prepare(world, family, state, options, random);
      const found = await reach(state, world, session, launchId, atOnce, patienceMs);
      // If one call's answer is to be lost, the fault waits for that call, however long a busy machine takes to make it.
      const isLost = async () => (await timesCalled(world, launchId, options.lose)) > lostBefore;
      if (options.lose !== undefined) await within(longestWaitForCallMs, isLost);
      else if (delayMs > 0) await sleep(delayMs);
      const met = (await world.runs()).find(({ id }) => id === found.id);
      const effect = await strike(world, family, {
        count: total(counts[family]),
        run: met,
        silenceMs: options.silenceMs,
      });
      const effects = did.get(family) ?? new Map<string, number>();
      did.set(family, effects.set(effect.what, (effects.get(effect.what) ?? 0) + effect.amount));
      // It may have gone on meanwhile: what counts is the state that it was met in.
      const metIn = faultStates.find((one) => one === met?.state);
      if (metIn === undefined) continue;
      counts[family][metIn] += 1;
      options.onFault?.((done += 1), { ...fault, state: metIn });
      if (options.endsAtFault && (await hasFault(world, launchId))) break;
    }
    await world.platform.arm([]);
    const runs = await untilAllEnded(world, launchId, patienceMs);
    await user.stop();
    const compared = await compare(runs, world.platform, launchId, world.stops);
    const told = Object.fromEntries(
      [...did].map(([family, effects]) => [
        family,
        [...effects].map(([what, amount]) => `${Math.round(amount)} ${what}`).join(', '),
      ]),
    );
    return { counts, did: told, ...compared, faults: [...compared.faults, ...world.unexpectedEnds] };
  } finally {
    stopBusyLoops();
    await world.close();
  }
}

/** Number of calls of this endpoint that the platform has seen. */
async function timesCalled({ platform }: World, launchId: string, endpoint: string | undefined): Promise<number> {
  if (endpoint === undefined) return 0;
  return (await platform.calls(launchId)).filter((call) => call.endpoint === endpoint).length;
}

async function within(timeoutMs: number, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await isSo()) && performance.now() < deadline) await sleep(100);
}

/** A disk that can be filled is mounted, which not every machine lets us do: the family then stands with nothing in the table. */
function canStrike({ disks }: World, family: Family): boolean {
  return family === 'app disk full'
    ? disks.app !== null
    : family === 'platform disk full'
      ? disks.sandbox !== null
      : true;
}

const left = (runs: readonly RunFacts[]) => runs.filter(({ state }) => !isFinal(state));

/** Sees to it that runs are under way, and waits until one is in the state. */
async function reach(
  state: FaultState,
  world: World,
  session: AppSession,
  launchId: string,
  atOnce: number,
  patienceMs: number,
): Promise<RunFacts> {
  const deadline = performance.now() + patienceMs;
  for (let topUpAtMs = 0; ;) {
    const runs = await world.runs();
    const found = runs.filter((run) => run.state === state).toSorted((a, b) => b.updatedAt - a.updatedAt)[0];
    if (found) return found;
    if (performance.now() > deadline)
      throw new Error(`no run reached ${state} within ${patienceMs} ms\n${await standing(world, launchId, runs)}`);
    if (performance.now() >= topUpAtMs) {
      const underWay = left(runs).length;
      // Those under way were created long ago.
      const wanted = state === 'CREATED' ? Math.max(atOnce, underWay + 1) : atOnce;
      for (let n = underWay; n < wanted; n++) await session.startRun(scene).catch(() => sleep(200));
      topUpAtMs = performance.now() + topUpEveryMs;
    }
    // The proxy lives in this process: it has to get its turns.
    await sleep(lookEveryMs);
  }
}

/** Decides every operation that waits, some of them with no. */
function decideAsUser(platform: DrillPlatform, random: () => number, share: number): { stop(): Promise<void> } {
  let stopping = false;
  const deciding = (async () => {
    // oxlint-disable-next-line typescript/no-unnecessary-condition -- `stop` sets it
    while (!stopping) {
      for (const { operationId, status } of await platform.operations()) {
        if (status === 'REQUESTED' && random() < share)
          await platform.decide(operationId, random() < rejectShare ? 'reject' : 'approve');
      }
      await sleep(250);
    }
  })();
  // Told when it is waited for.
  deciding.catch(() => {});
  return {
    async stop() {
      stopping = true;
      await deciding;
    },
  };
}

async function untilAllEnded(world: World, launchId: string, patienceMs: number): Promise<RunFacts[]> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const runs = await world.runs();
    if (left(runs).length === 0) return runs;
    if (performance.now() > deadline)
      throw new Error(`runs did not end within ${patienceMs} ms\n${await standing(world, launchId, runs)}`);
    await sleep(100);
  }
}

/** Describes each run that did not end, with the latest calls that the platform saw, and names the logs. */
async function standing(world: World, launchId: string, runs: readonly RunFacts[]): Promise<string> {
  const [calls, uploads] = await Promise.all([world.platform.calls(launchId), world.platform.uploads(launchId)]);
  const ofRun = (run: RunFacts) => [
    JSON.stringify(run),
    ...uploads
      .filter(({ operationId }) => operationId === run.operationId)
      .map((upload) => `  upload ${JSON.stringify(upload)}`),
    ...calls
      .filter(({ detail }) => run.operationId !== null && detail['operationId'] === run.operationId)
      .slice(-lastCalls)
      .map((call) => `  call ${JSON.stringify(call)}`),
  ];
  return [
    ...left(runs).flatMap(ofRun),
    `it is ${new Date().toISOString()} (${Date.now()}); what the processes said is in ${world.logs}`,
  ].join('\n');
}
