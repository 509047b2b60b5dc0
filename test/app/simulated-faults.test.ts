// @module-tag all
/** The engine in a world of its own: thousands of interleavings of faults, at every await, in seconds. */
import { env } from 'node:process';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { simCalls, simulate, type SimFault, type SimPlan, type SimRun } from '../support/simulation/world.ts';

vi.mock('node:timers/promises', async () => (await import('../support/simulation/virtual-clock.ts')).timersPromises);
vi.mock('node:fs/promises', async (original) => {
  const { fsPromises } = await import('../support/simulation/virtual-disk.ts');
  return fsPromises(await original<typeof import('node:fs/promises')>());
});

/** An interrupted simulation would go on beside the next one, which has the same clock: only a hang reaches this limit. */
const timeout = 900_000 * Math.max(1, Number(env['SIMULATIONS'] ?? 0) / 1_000);
const run: fc.Arbitrary<SimRun> = fc.record({
  atMs: fc.nat(8_000),
  decision: fc.constantFrom('APPROVED', 'APPROVED', 'APPROVED', 'REJECTED'),
  decideAfterMs: fc.oneof(fc.nat(8_000), fc.nat(40_000)),
  stepMs: fc.oneof(fc.nat(3_000), fc.nat(30_000)),
  cancelAtMs: fc.option(fc.nat(25_000), { freq: 4 }),
  outputs: fc.constantFrom(1, 1, 2, 3),
});
const process = fc.nat(3);
const atMs = fc.nat(40_000);
const fault: fc.Arbitrary<SimFault> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('call'),
      name: fc.constantFrom(...simCalls),
      nth: fc.nat(6),
      what: fc.constantFrom(
        'not done',
        'refused',
        'done, answer lost',
        'killed before',
        'killed after',
        'stopped',
        'slow',
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('kill'), atMs, process }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('terminate'), atMs, process }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('pause'), atMs, process, forMs: fc.integer({ min: 500, max: 25_000 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom('database away', 'database refuses'),
      atMs,
      forMs: fc.integer({ min: 200, max: 20_000 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('platform away'), atMs, forMs: fc.integer({ min: 200, max: 60_000 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('deployment'), atMs }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('clock jump'), atMs, byMs: fc.integer({ min: -60_000, max: 60_000 }) }),
  },
);
const plans = (workers: fc.Arbitrary<number>): fc.Arbitrary<SimPlan> =>
  fc.record({
    seed: fc.nat(),
    workers,
    sharesDisk: fc.boolean(),
    isInexact: fc.boolean(),
    runs: fc.array(run, { minLength: 1, maxLength: 3 }),
    faults: fc.array(fault, { maxLength: 6 }),
  });

/** Number of plans whose simulation has ended. */
let ended = 0;

async function isWell(plan: SimPlan): Promise<void> {
  const { faults, history } = await simulate(plan);
  if (faults.length > 0) throw new Error(`${faults.join('\n')}\n\n${history.slice(-150).join('\n')}`);
  ended += 1;
}

/** `SIMULATIONS=5000` looks for more; each takes some 100 ms, and stands for hundreds of awaits. */
const numRuns = Number(env['SIMULATIONS'] ?? 100);
/** Without, the first that is found is told as it is, and not made smaller. */
const endOnFailure = env['SIMULATIONS_SHRINK'] === 'no';
/** The same plans each time, unless `SIMULATIONS` asks for a search: a rare fault must not fail an unrelated change. */
const searches = env['SIMULATIONS'] !== undefined && env['SIMULATIONS_SEED'] === undefined;
const seed = searches ? {} : { seed: Number(env['SIMULATIONS_SEED'] ?? 1) };
/** Identifiers in a history, which differ in each simulation. */
const runIds = /[\w-]{22}/g;

const oneRun: SimRun = {
  atMs: 0,
  decision: 'APPROVED',
  decideAfterMs: 0,
  stepMs: 5_000,
  cancelAtMs: null,
  outputs: 1,
};

/** Known ways to go wrong, before chance looks for others. `processes`: those that may have the run. */
function worlds(workers: number, processes: readonly number[]): SimPlan[] {
  const world = (faults: readonly SimFault[], run: Partial<SimRun> = {}, isInexact = false, seed = 1): SimPlan => ({
    seed,
    workers,
    sharesDisk: false,
    isInexact,
    runs: [{ ...oneRun, ...run }],
    faults,
  });
  return [
    world([{ kind: 'call', name: 'operation.create', nth: 0, what: 'killed after' }]),
    world([{ kind: 'call', name: 'upload.complete', nth: 0, what: 'killed after' }]),
    world([{ kind: 'call', name: 'store.record', nth: 0, what: 'not done' }]),
    world([], { cancelAtMs: 4_500 }),
    // The run is cancelled while the worker waits for the database's answer.
    world([{ kind: 'call', name: 'store.claim', nth: 0, what: 'slow' }], { cancelAtMs: 1_000 }),
    world([{ kind: 'call', name: 'store.record', nth: 0, what: 'slow' }], { stepMs: 0, cancelAtMs: 3_500 }),
    // The cancel is committed, and its answer is lost; and so is the answer to who asks what became of it.
    ...[[], [{ kind: 'call', name: 'store.find', nth: 0, what: 'not done' } as const]].map((more) =>
      world([{ kind: 'call', name: 'store.transition', nth: 1, what: 'done, answer lost' }, ...more], {
        decideAfterMs: 40_000,
        cancelAtMs: 5_200,
      }),
    ),
    // The first of its files is in the platform, and the second is not: it is made again, and goes there once.
    world([{ kind: 'call', name: 'upload.chunk', nth: 4, what: 'killed before' }], { outputs: 2 }),
    world([{ kind: 'call', name: 'upload.complete', nth: 0, what: 'killed after' }], { outputs: 2 }),
    world([{ kind: 'call', name: 'upload.complete', nth: 1, what: 'done, answer lost' }], { outputs: 2 }),
    // Its output waits for the platform under a later claim than it was made with, while folders are tidied.
    world([
      { kind: 'call', name: 'upload.chunk', nth: 0, what: 'killed before' },
      { kind: 'platform away', atMs: 7_500, forMs: 80_000 },
    ]),
    // The output is gone after its first part, and is made again with other bytes.
    world([{ kind: 'call', name: 'upload.chunk', nth: 1, what: 'killed before' }], { outputs: 2 }, true),
    // Chance decides whether a worker with another disk takes the run.
    ...[4, 5].flatMap((nth) =>
      [1, 2, 3].map((seed) =>
        world([{ kind: 'call', name: 'upload.chunk', nth, what: 'killed before' }], { outputs: 2 }, true, seed),
      ),
    ),
    // The answer to the request is lost, and the next version repeats it.
    world([
      { kind: 'call', name: 'operation.create', nth: 0, what: 'done, answer lost' },
      { kind: 'deployment', atMs: 700 },
    ]),
    // The password of the database was changed: some connections work, and some are refused.
    ...(['store.transition', 'store.record', 'store.claim', 'tokens.read'] as const).map((name) =>
      world([{ kind: 'call', name, nth: 1, what: 'refused' }]),
    ),
    world([{ kind: 'database refuses', atMs: 7_000, forMs: 8_000 }]),
    // The platform refuses the token, and its renewal has no answer, or is not written down.
    ...(['token.renew', 'tokens.write'] as const).flatMap((name) =>
      (['done, answer lost', 'not done'] as const).map((what) =>
        world([{ kind: 'call', name, nth: 0, what }], { decideAfterMs: 40_000 }),
      ),
    ),
    // It is stopped when it has asked which runs it has, and wakes with an answer that is long out of date.
    ...[8, 9].flatMap((nth) => {
      const stopped: SimFault = { kind: 'call', name: 'store.heldBy', nth, what: 'stopped' };
      // The clocks may also jump back meanwhile.
      const jump: SimFault = { kind: 'clock jump', atMs: 20_000, byMs: -60_000 };
      return [[stopped], [stopped, jump]].map((faults) => world(faults, { decideAfterMs: 60_000 }));
    }),
    ...processes.flatMap((process) => [
      world([{ kind: 'kill', atMs: 3_000, process }]),
      // It is stopped while it processes, another begins, and it wakes with a result in its hands.
      world([{ kind: 'pause', atMs: 6_000, process, forMs: 18_000 }], { stepMs: 10_000 }),
      // The clocks jump back while it is stopped, and another takes the run.
      world(
        [
          { kind: 'pause', atMs: 12_000, process, forMs: 18_000 },
          { kind: 'clock jump', atMs: 25_000, byMs: -60_000 },
        ],
        { decideAfterMs: 60_000 },
      ),
      // It is stopped while it waits for the decision, another asks, and it wakes to ask too.
      world([{ kind: 'pause', atMs: 6_000, process, forMs: 18_000 }], { decideAfterMs: 40_000 }),
    ]),
  ];
}

describe('whatever comes between: nothing lost, nothing twice, nothing FAILED, every rule of the platform kept', () => {
  async function holds(plan: fc.Arbitrary<SimPlan>, examples: readonly SimPlan[]) {
    ended = 0;
    await fc.assert(fc.asyncProperty(plan, isWell), {
      numRuns,
      endOnFailure,
      ...seed,
      examples: examples.map((one): [SimPlan] => [one]),
    });
    console.log(`${ended} plans were simulated`);
    // No time limit cut the property short. `numRuns` includes the examples.
    expect(ended).toBe(numRuns);
  }
  test('one process', { timeout }, () => holds(plans(fc.constant(0)), worlds(0, [0])));
  test('several workers and a web process', { timeout }, () =>
    holds(plans(fc.integer({ min: 1, max: 3 })), worlds(2, [1, 2])),
  );
});

test('a plan passes the same way each time', async () => {
  const histories: string[] = [];
  for (const plan of [...worlds(0, [0]), ...worlds(2, [1, 2])])
    for (let time = 0; time < 2; time++)
      histories.push((await simulate(plan)).history.join('\n').replaceAll(runIds, 'run'));
  const [first, second] = [0, 1].map((odd) => histories.filter((_history, i) => i % 2 === odd));
  expect(second).toEqual(first);
});

test('without faults every run ends as its user wants', async () => {
  const runs: SimRun[] = [
    { ...oneRun, decideAfterMs: 3_000, stepMs: 2_000, outputs: 2 },
    { ...oneRun, atMs: 500, decision: 'REJECTED', decideAfterMs: 100, stepMs: 2_000 },
  ];
  const { faults, attempts } = await simulate({ seed: 1, workers: 2, sharesDisk: true, runs, faults: [] });
  expect([faults, attempts]).toEqual([[], [1]]);
});

describe('a database that is away while a step runs costs no second attempt', () => {
  const long: SimRun = { ...oneRun, stepMs: 60_000 };
  const outages = Array.from({ length: 5 }, (_, i): SimFault => ({
    kind: 'database away',
    atMs: 10_000 + i * 10_000 + 137 * i,
    forMs: 7_500,
  }));
  test.each([0, 1, 2])('for 7.5 s, again and again; %i workers', async (workers) => {
    for (let seed = 1; seed <= 10; seed++) {
      const { faults, attempts } = await simulate({ seed, workers, sharesDisk: true, runs: [long], faults: outages });
      expect([faults, attempts], `seed ${seed}`).toEqual([[], [1]]);
    }
  });
  test.each([
    [9_000, 1],
    [12_000, 1],
    [20_000, 2],
    [35_000, 3],
  ])('for %i ms; %i workers', async (forMs, workers) => {
    const { faults, attempts } = await simulate({
      seed: forMs,
      workers,
      sharesDisk: true,
      runs: [long],
      faults: [{ kind: 'database away', atMs: 20_000, forMs }],
    });
    expect([faults, attempts]).toEqual([[], [1]]);
  });
});
