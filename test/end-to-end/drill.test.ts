// @module-tag all
/** The drill in small, and that it can fail. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { drill, type DrillOptions } from '../../lab/drill/drill.ts';
import { families, total, type Family } from '../../lab/drill/plan.ts';
import { testFolder } from '../support/folders.ts';
import { mutant, type Mutation } from '../support/mutant.ts';
import { needing } from '../support/needs.ts';

const timeout = 900_000;

/** The kit's app with one mistake, in one place or more. */
const appOf = async (...mutations: Mutation[]) => pathToFileURL(join(await mutant(mutations), 'src/commands/app.ts'));

/** Each run costs some seconds of CPU, and a fault needs one to meet: with three, approved runs still wait for their turn. */
const runsAtOnce = 3;

async function drillIn(plan: Omit<DrillOptions, 'folder'>, appScript?: URL) {
  const folder = join(await testFolder(), 'drill');
  await mkdir(folder);
  return drill({ runsAtOnce, ...plan, folder, ...(appScript ? { appScript } : {}) });
}

const local: readonly Family[] = [
  'app killed',
  'app stopped',
  'platform killed',
  'platform cut',
  'platform stalls',
  'platform truncates',
  'platform garbage',
  'platform silent',
  'app disk full',
  'platform disk full',
];
const shared: readonly Family[] = [
  'worker killed',
  'worker stopped',
  'web killed',
  'database away',
  'connections cut',
  'platform killed',
  'platform cut',
  'platform silent',
  'app disk full',
  'platform disk full',
];

describe.concurrent('what the world does, in small: one operation and one file for each run, the right bytes, nothing FAILED', () => {
  const executor = ['executor killed', 'executor ended', 'executor frozen', 'app killed'] as const;
  const fleet = (Object.keys(families) as Family[]).filter((family) => families[family] === 'fleet');
  for (const [name, chosen, isShared, options] of [
    ['one process with SQLite', local, false, {}],
    ['steps that other processes do', executor, false, {}],
    ['a web process and two workers with PostgreSQL', shared, true, needing('postgresql')],
    ['a fleet and its operator', fleet, true, needing('postgresql')],
  ] as const)
    test(name, { timeout, ...options }, async () => {
      const result = await drillIn({ families: chosen, each: 2, leastInEach: 0, seed: 3, silenceMs: 4_000, isShared, usesExecutor: chosen === executor }); // oxfmt-ignore
      expect(result.faults).toEqual([]);
      // A disk cannot be mounted everywhere; the drill says so.
      for (const family of chosen.filter((one) => one in result.did))
        expect(total(result.counts[family]), family).toBeGreaterThanOrEqual(2);
      expect(Object.keys(result.did).length).toBeGreaterThanOrEqual(chosen.length - 2);
      expect(result.operations).toBe(result.runs);
      expect(result.files).toBe(result.states.COMPLETED);
      expect(result.bytesCompared).toBeGreaterThan(0);
    });
});

describe.concurrent('the drill can fail: it finds an app that', () => {
  // A fault can fall beside every call: so many are tried that one meets the mistake, and the first that does ends it.
  const kills = { families: ['app killed'], each: 20, leastInEach: 0, endsAtFault: true } as const;

  test('makes its idempotency key when it calls, and not before', { timeout }, async () => {
    const script = await appOf({
      file: 'src/app/runs/stages/ask-for-approval.ts',
      from: 'idempotencyKey: run.idempotencyKey',
      to: 'idempotencyKey: crypto.randomUUID()',
    });
    const { faults } = await drillIn({ ...kills, seed: 4, states: ['CREATED'], lose: 'operation.create' }, script);
    expect(faults.join('\n')).toMatch(/runs made \d+ operations/);
  });

  test('forgets an upload that it had begun, and completes it twice', { timeout }, async () => {
    const script = await appOf({
      file: 'src/app/runs/stages/upload.ts',
      from: 'facts, resume },\n    {',
      to: 'facts, resume: null },\n    {',
    });
    const { faults } = await drillIn({ ...kills, seed: 5, states: ['UPLOADING'], lose: 'upload.complete' }, script);
    expect(faults.join('\n')).toMatch(/made 2 files|names file/);
  });

  test("takes what the platform's network does for the end of a run", { timeout }, async () => {
    const script = await appOf({
      file: 'src/platform-client/platform-error.ts',
      from: " || this.code === 'broken_answer'",
      to: '',
    });
    const { faults } = await drillIn(
      {
        families: ['platform garbage'],
        each: 20,
        leastInEach: 0,
        endsAtFault: true,
        seed: 6,
        states: ['AWAITING_APPROVAL'],
      },
      script,
    );
    expect(faults.join('\n')).toMatch(/is FAILED/);
  });

  test.for([
    [
      'platform cut',
      'AWAITING_APPROVAL',
      "this.code === 'connection_failed' || ",
      'src/platform-client/platform-error.ts',
      '',
    ],
    [
      'platform disk full',
      'UPLOADING',
      'this.platformStatus >= 500',
      'src/platform-client/platform-error.ts',
      'this.platformStatus > 500',
    ],
  ] as const)('takes "%s" for the end of a run', { timeout }, async ([family, state, from, file, to]) => {
    const script = await appOf({ file, from, to });
    const { faults, did } = await drillIn(
      { families: [family], each: 20, leastInEach: 0, endsAtFault: true, seed: 7, states: [state] },
      script,
    );
    if (family in did) expect(faults.join('\n')).toMatch(/is FAILED/);
  });

  test('ends when its database ends a connection', { timeout, ...needing('postgresql') }, async () => {
    const script = await appOf({
      file: 'src/app/database-unavailable.ts',
      from: "this.on('error', () => {});",
      to: '',
    });
    // Seen when it is looked for, or by the runs that nobody ends then.
    const found = await drillIn(
      {
        families: ['connections cut'],
        each: 20,
        leastInEach: 0,
        endsAtFault: true,
        seed: 8,
        isShared: true,
        patienceMs: 60_000,
      },
      script,
    ).then(
      ({ faults }) => faults.join('\n'),
      (error: unknown) => String(error),
    );
    expect(found).toMatch(/ended by itself|did not end|no run reached/);
  });

  test('looks for no run whose worker is gone', { timeout, ...needing('postgresql') }, async () => {
    const script = await appOf({
      file: 'src/app/runs/run-engine.ts',
      from: 'if (!this.#lease.mayJudgeOthers) return 0;',
      to: 'return 0;',
    });
    const plan = {
      families: ['worker killed'],
      each: 3,
      leastInEach: 0,
      endsAtFault: true,
      seed: 9,
      states: ['PROCESSING', 'UPLOADING'],
      isShared: true,
      patienceMs: 30_000,
    } as const;
    await expect(drillIn(plan, script)).rejects.toThrow(/did not end|no run reached/);
  });

  test(
    'never lets go of a run that another has taken, calls the platform for it, and writes what it hears',
    { timeout, ...needing('postgresql') },
    async () => {
      const script = await appOf(
        {
          file: 'src/app/runs/sql-run-store.ts',
          from: "        .where('claim', '=', run.claim)\n        .returning('worker')",
          to: "        .returning('worker')",
        },
        { file: 'src/app/runs/worker-lease.ts', from: 'while (this.#clock() >= this.#endsAtMs)', to: 'while (false)' },
        // A worker that only calls and writes does so between waking and renewing its lease, a moment that a busy machine may
        // skip: test/app/simulated-mutants.test.ts finds that mistake. One that never lets go makes it until the run ends.
        {
          file: 'src/app/runs/run-engine.ts',
          from: 'entry.claim === claim && held.get(id) !== claim',
          to: 'entry.claim !== claim',
        },
      );
      // Decided late, so that runs still wait when the stopped worker wakes.
      const { faults } = await drillIn(
        {
          families: ['worker stopped'],
          // On a busy machine some of the stopped workers wake when nothing waits any more.
          each: 12,
          leastInEach: 0,
          endsAtFault: true,
          seed: 9,
          states: ['AWAITING_APPROVAL'],
          isShared: true,
          decisionShare: 0.01,
        },
        script,
      );
      // Two at one run poll too soon, trip over the state that the other wrote, or upload twice:
      // the drill ends at whichever it sees first.
      expect(faults.join('\n')).toMatch(/the referee: poll-interval|cannot go from \w+ to \w+|made 2 files/);
    },
  );
});
