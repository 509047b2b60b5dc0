import { setTimeout as sleep } from 'node:timers/promises';
import type { DrillPlan, Family, FaultState } from './plan.ts';
import { lostAnswer } from './plan.ts';
import { manyCalls, slowCalls } from './platform.ts';
import type { RunFacts, Service, World } from './world.ts';

/** Lengths of each kind of trouble, in turn, in milliseconds. */
const outagesMs = [2_000, 5_000, 20_000];
const platformTroubleMs = [1_000, 3_000, 6_000];
const frozenMs = [1_000, 4_000];
const diskFullMs = [2_000, 5_000, 9_000];
/** Shorter and longer than a worker's lease. */
const drainedMs = [2_000, 12_000];
/** Longer than a worker's lease. */
const stoppedMs = { shared: 14_000, alone: 4_000 };

/** Effect of a fault, for the table. */
export interface Effect {
  readonly what: 'calls' | 'connections' | 'seconds away' | 'times';
  readonly amount: number;
}

const seconds = (ms: number): Effect => ({ what: 'seconds away', amount: ms / 1000 });
const once: Effect = { what: 'times', amount: 1 };

/** Makes the fault happen, and end. */
export async function strike(
  world: World,
  family: Family,
  { count, run, silenceMs = 20_000 }: { count: number; run: RunFacts | undefined; silenceMs?: number | undefined },
): Promise<Effect> {
  const turn = (lengths: readonly number[]) => lengths[count % lengths.length] ?? 0;
  switch (family) {
    case 'app killed':
    case 'worker killed':
      return killed(workerOf(world, run));
    case 'web killed':
      return killed(world.web);
    case 'platform killed':
      return killed(world.sandbox);
    case 'app stopped':
      return stopped(world, world.web, stoppedMs.alone);
    case 'worker stopped':
      return stopped(world, workerOf(world, run), stoppedMs.shared);
    case 'database away':
      await world.cluster!.away(turn(outagesMs));
      return seconds(turn(outagesMs));
    case 'worker rolled':
      return rolled(workerOf(world, run));
    case 'web rolled':
      return rolled(world.web);
    case 'worker drained':
      return drained(world, run, turn(drainedMs));
    case 'run requeued':
      return requeued(world, run);
    case 'database slow':
      await world.cluster!.slow(turn(outagesMs));
      return seconds(turn(outagesMs));
    case 'connections cut':
      return { what: 'connections', amount: await world.cluster!.cutConnections() };
    case 'platform cut':
      return troubled(world, 'cut', turn(platformTroubleMs));
    case 'platform stalls':
      return troubled(world, 'stall', turn(platformTroubleMs));
    case 'platform truncates':
      return troubled(world, 'truncate', turn(platformTroubleMs));
    case 'platform garbage':
      return troubled(world, 'garbage', turn(platformTroubleMs));
    case 'platform silent':
      return troubled(world, 'silent', silenceMs);
    case 'executor killed':
      return signalled(world, 'SIGKILL');
    case 'executor ended':
      return signalled(world, 'SIGTERM');
    case 'executor frozen': {
      const pids = world.jobs!.pids();
      world.jobs!.signal(pids, 'SIGSTOP');
      await sleep(turn(frozenMs));
      world.jobs!.signal(pids, 'SIGCONT');
      return { what: 'times', amount: pids.length };
    }
    case 'app disk full':
      return filled(world.disks.app!, turn(diskFullMs));
    case 'platform disk full':
      return filled(world.disks.sandbox!, turn(diskFullMs));
  }
}

/** Arms calls that are slow enough for the fault to meet. Before a kill of the app, arms lost answers too. */
export async function prepare(
  world: World,
  family: Family,
  state: FaultState,
  plan: DrillPlan,
  random: () => number,
): Promise<void> {
  const lost =
    family === 'app killed' || family === 'worker killed' ? (plan.lose ?? lostAnswer(state, random)) : undefined;
  await world.platform.arm([
    ...(lost === undefined ? [] : [{ endpoint: lost, times: manyCalls, effect: { dropResponse: true } } as const]),
    ...slowCalls,
  ]);
}

/** Process that has the run by now, if there is one. Its pid is in its name. */
function workerOf(world: World, run: RunFacts | undefined): Service {
  const pid = Number(run?.worker?.split(':').at(1));
  return world.workers.find((one) => one.pid === pid) ?? world.workers[0]!;
}

/** Sends a signal to the jobs that do steps at the moment. */
function signalled({ jobs }: World, signal: NodeJS.Signals): Effect {
  const pids = jobs!.pids();
  jobs!.signal(pids, signal);
  return { ...once, amount: pids.length };
}

async function killed(service: Service): Promise<Effect> {
  await service.kill();
  await service.start();
  return once;
}

/** Ends a process by SIGTERM and starts its successor, as a roll-out does. */
async function rolled(service: Service): Promise<Effect> {
  await service.stop();
  await service.start();
  return once;
}

/** An operator drains the worker of the run, and wakes it. */
async function drained({ cluster }: World, run: RunFacts | undefined, forMs: number): Promise<Effect> {
  const { workers } = await cluster!.ops<{ workers: { name: string; isAlive: boolean }[] }>('status');
  const worker = workers.find(({ name }) => name === run?.worker) ?? workers.find(({ isAlive }) => isAlive);
  if (!worker) return { ...once, amount: 0 };
  await cluster!.ops('drain', worker.name);
  await sleep(forMs);
  await cluster!.ops('wake', worker.name);
  return seconds(forMs);
}

/** An operator takes the run from its worker. */
async function requeued({ cluster }: World, run: RunFacts | undefined): Promise<Effect> {
  if (!run) return { ...once, amount: 0 };
  // It ends with 1 if the run has ended meanwhile.
  const isDone = await cluster!.ops('requeue', run.id).then(
    () => true,
    () => false,
  );
  return { ...once, amount: Number(isDone) };
}

async function stopped({ stops }: World, service: Service, forMs: number): Promise<Effect> {
  const fromMs = Date.now();
  service.signal('SIGSTOP');
  await sleep(forMs);
  service.signal('SIGCONT');
  stops.push({ fromMs, toMs: Date.now() });
  return seconds(forMs);
}

async function troubled(
  { proxy }: World,
  mode: 'cut' | 'stall' | 'truncate' | 'garbage' | 'silent',
  forMs: number,
): Promise<Effect> {
  const before = proxy.hit;
  proxy.become(mode);
  await sleep(forMs);
  proxy.become('pass');
  return { what: 'calls', amount: proxy.hit - before };
}

async function filled(disk: { fill(): Promise<void>; empty(): Promise<void> }, forMs: number): Promise<Effect> {
  await disk.fill();
  await sleep(forMs);
  await disk.empty();
  return seconds(forMs);
}
