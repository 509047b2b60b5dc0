import { randomUUID } from 'node:crypto';
import { IllegalTransitionError } from '../../../src/app/runs/run-state.ts';
import type { Provenance } from '../../../src/app/processing/provenance.ts';
import { noNeeds } from '../../../src/app/runs/placement.ts';
import { initialRun, type Run, type RunStore } from '../../../src/app/runs/run.ts';
import type { SuiteTools } from './suite-tools.ts';

/** A store to be held to what `RunStore` promises. */
export interface RunStoreSubject {
  readonly store: RunStore;
  /** Makes it as if the worker had said nothing for an hour. */
  readonly silence: (worker: string) => Promise<unknown>;
}

/** A run that has just been asked for, of the user `u`. */
export function newRun(more: Partial<Run> = {}): Run {
  return {
    id: randomUUID(),
    launchId: 'launch',
    state: 'CREATED',
    stepId: 'cog',
    stepVersion: '1.0.0',
    parameters: { a: 1, b: 'ünïcödé "quoted"', c: true },
    input: { type: 'synthetic', size: 64 },
    idempotencyKey: randomUUID(),
    operation: { name: 'n', description: 'd', parameters: { a: 1 } },
    ...initialRun,
    estimate: { outputBytes: 1_000, seconds: 2.5, memoryBytes: 3_000_000 },
    owner: 'u',
    createdAtMs: 0,
    updatedAtMs: 0,
    ...more,
  };
}

/**
 * Tests of a store of runs, of any kind. `open` gives an empty one, whose times are `now`'s (epoch
 * milliseconds); the suite asks for two. Call it within a `describe` of your own.
 */
export function runStoreSuite(
  { test, expect }: SuiteTools,
  open: (now: () => number) => Promise<RunStoreSubject>,
): void {
  let clock = 1_700_000_000_000;
  let opened: Promise<RunStoreSubject> | null = null;
  const subjectOf = () => (opened ??= open(() => (clock += 1)));
  let subject: RunStoreSubject;
  let store: RunStore;
  const added = async (more?: Partial<Run>) => {
    const run = newRun({ createdAtMs: clock, updatedAtMs: clock, ...more });
    await store.create(run);
    return run;
  };
  const check = (name: string, run: () => Promise<void>) =>
    test(name, async () => {
      subject = await subjectOf();
      store = subject.store;
      await run();
    });

  check('gives back what was kept, to the letter', async () => {
    const run = await added();
    expect(await store.find(run.id)).toEqual(run);
    expect(await store.find('nothing')).toBeNull();
    expect((await store.listByLaunch('launch', { limit: 1_000 })).map(({ id }) => id)).toContain(run.id);
    expect(await store.listByLaunch('other', { limit: 10 })).toEqual([]);
  });

  check('counts failures by code, the most frequent first', async () => {
    const since = clock;
    const failed = (code: string) =>
      added({ state: 'FAILED', failure: { code, message: 'it says "code":"other"', advice: 'a', requestId: null } });
    for (const code of ['disk_full', 'no_grid', 'disk_full']) await failed(code);
    await added({ state: 'COMPLETED' });
    expect(await store.failureCodes(since)).toEqual([
      { code: 'disk_full', number: 2 },
      { code: 'no_grid', number: 1 },
    ]);
    expect(await store.failureCodes(clock + 1)).toEqual([]);
  });

  check('moves with its facts in one commit, and tells the history', async () => {
    const run = await added();
    const waiting = await store.transition(run, 'AWAITING_APPROVAL', {
      operationId: 'op',
      operationExpiresAtMs: clock + 5,
    });
    const approved = await store.transition(waiting, 'APPROVED');
    expect(await store.find(run.id)).toEqual(approved);
    expect(approved).toMatchObject({ state: 'APPROVED', operationId: 'op', provenance: null });
    const provenance: Provenance = {
      step: { id: run.stepId, version: run.stepVersion, code: 'a'.repeat(64) },
      parameters: run.parameters,
      input: run.input,
      inputs: [],
      operationId: 'op',
      software: { GDAL: '3.12.3' },
      digest: 'b'.repeat(64),
    };
    expect((await store.record(approved, { provenance })).provenance).toEqual(provenance);
    expect((await store.find(run.id))?.provenance).toEqual(provenance);
    const history = await store.history(run.id);
    expect(history.map(({ state }) => state)).toEqual(['CREATED', 'AWAITING_APPROVAL', 'APPROVED']);
    expect(history.map(({ atMs }) => atMs)).toEqual(history.map(({ atMs }) => atMs).toSorted((a, b) => a - b));
  });

  check('a worker cannot write to a run that an operator has requeued', async () => {
    const run = await added({ state: 'APPROVED' });
    const claimed = (await store.claim(run.id, 'slow'))!;
    expect(await store.requeue(run.id)).toBe(true);
    await expect(store.transition(claimed, 'PROCESSING')).rejects.toThrow(IllegalTransitionError);
    await expect(store.record(claimed, { operationId: 'another' })).rejects.toThrow(IllegalTransitionError);
    const next = (await store.claim(run.id, 'other'))!;
    expect([next.claim, next.state, next.operationId]).toEqual([claimed.claim + 2, 'APPROVED', run.operationId]);
    expect((await store.transition(next, 'PROCESSING')).state).toBe('PROCESSING');
  });

  check("keeps a result beside the run: the last attempt's, under its claim alone", async () => {
    const result = (width: number) => ({
      summary: { width, height: 1, features: null, corners: null, values: null, bands: [], readings: [] },
      picture: Uint8Array.from([0, 255, 137, width]),
    });
    const run = await added({ state: 'PROCESSING' });
    expect([await store.summary(run.id), await store.picture(run.id)]).toEqual([null, null]);
    const first = await store.record(run, { result: result(1) });
    expect(Object.keys(first)).not.toContain('result');
    const claimed = (await store.claim(run.id, 'worker'))!;
    await expect(store.transition(run, 'UPLOADING', { result: result(2) })).rejects.toThrow(IllegalTransitionError);
    expect((await store.summary(run.id))!.width).toBe(1);
    await store.transition(claimed, 'UPLOADING', { result: result(3) });
    expect([await store.summary(run.id), [...(await store.picture(run.id))!]]).toEqual([
      result(3).summary,
      [0, 255, 137, 3],
    ]);
  });

  check('refuses a move that the table does not have, one from a state that was left, and facts for it', async () => {
    const run = await added();
    expect(() => store.transition(run, 'PROCESSING')).toThrow(IllegalTransitionError);
    await store.transition(run, 'CANCELLED');
    await expect(store.transition(run, 'AWAITING_APPROVAL')).rejects.toMatchObject({
      code: 'illegal_transition',
      data: { from: 'CANCELLED', to: 'AWAITING_APPROVAL', runId: run.id },
    });
    await expect(store.record(run, { upload: null })).rejects.toThrow(IllegalTransitionError);
  });

  check('of two that move at the same time one does', async () => {
    const run = await added();
    const results = await Promise.allSettled([
      store.transition(run, 'AWAITING_APPROVAL', { operationId: 'a' }),
      store.transition(run, 'CANCELLED'),
    ]);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect((await store.history(run.id)).length).toBe(2);
  });

  check('a run belongs to who claimed it last: an earlier worker can write nothing any more', async () => {
    const run = await added();
    const first = (await store.claim(run.id, 'one'))!;
    const second = (await store.claim(run.id, 'two'))!;
    expect([first.claim, second.claim]).toEqual([1, 2]);
    await expect(store.transition(first, 'AWAITING_APPROVAL')).rejects.toThrow(IllegalTransitionError);
    await expect(store.record(first, { upload: null })).rejects.toThrow(IllegalTransitionError);
    expect([(await store.heldBy('one')).has(run.id), (await store.heldBy('two')).get(run.id)]).toEqual([false, 2]);
    await store.giveBack(first);
    const moved = await store.transition(second, 'AWAITING_APPROVAL', { operationId: 'op' });
    expect((await store.heldBy('two')).get(run.id)).toBe(2);
    await store.transition(moved, 'REJECTED');
    expect((await store.heldBy('two')).has(run.id)).toBe(false);
    expect(await store.claim(run.id, 'three')).toBeNull();
    expect(
      (await store.stages(run.id)).map(({ state, attempt, worker, outcome }) => [state, attempt, worker, outcome]),
    ).toEqual([
      ['CREATED', 1, 'one', 'abandoned'],
      ['CREATED', 2, 'two', 'AWAITING_APPROVAL'],
      ['AWAITING_APPROVAL', 2, 'two', 'REJECTED'],
    ]);
    for (const { begunAtMs, endedAtMs } of await store.stages(run.id))
      expect(endedAtMs).toBeGreaterThanOrEqual(begunAtMs);
  });

  check('what happens in one millisecond has its order', async () => {
    const { store: still } = await open(() => clock);
    const run = newRun();
    await still.create(run);
    let moved = (await still.claim(run.id, 'one'))!;
    const states = [
      'AWAITING_APPROVAL',
      'APPROVED',
      'PROCESSING',
      'UPLOADING',
      'PROCESSING',
      'UPLOADING',
      'COMPLETED',
    ] as const;
    for (const state of states) moved = await still.transition(moved, state);
    expect((await still.history(run.id)).map(({ state }) => state)).toEqual(['CREATED', ...states]);
    expect((await still.stages(run.id)).map(({ outcome }) => outcome)).toEqual(states);
  });

  check('of many that claim at the same time each has another claim', async () => {
    const run = await added();
    const claims = await Promise.all(Array.from({ length: 8 }, (_, i) => store.claim(run.id, `w${i}`)));
    expect(claims.map((claimed) => claimed?.claim).sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  check('what a living worker has nobody else can claim: when its lease is over one of many can', async () => {
    const run = await added();
    const workers = Array.from({ length: 8 }, (_, i) => `living-${i}`);
    for (const worker of ['owner', ...workers]) await store.renewLease(worker);
    expect((await store.claim(run.id, 'owner'))?.claim).toBe(1);
    expect(await store.claim(run.id, 'living-0')).toBeNull();
    expect((await store.claim(run.id, 'owner'))?.claim).toBe(2);
    await subject.silence('owner');
    const claims = await Promise.all(workers.map((worker) => store.claim(run.id, worker)));
    expect(claims.filter((claimed) => claimed !== null).map(({ claim }) => claim)).toEqual([3]);
    await store.renewLease('owner');
    expect(await store.claim(run.id, 'owner')).toBeNull();
    for (const worker of workers) await subject.silence(worker);
    // Other workers find the runs of a dead worker by its row.
    await store.forgetWorkers(0);
    expect((await store.listOrphans('owner')).map(({ id }) => id)).toContain(run.id);
    expect((await store.claim(run.id, 'owner'))?.claim).toBe(4);
    await store.forgetWorkers(0);
    expect((await store.listWorkers()).map(({ name }) => name)).not.toContain('living-1');
  });

  check('lists what no living worker has', async () => {
    const [ended, mine, living, dead, free] = [
      await added(),
      await added(),
      await added(),
      await added(),
      await added(),
    ];
    for (const worker of ['me', 'other', 'dead']) await store.renewLease(worker);
    await store.transition(ended, 'FAILED', { failure: { code: 'c', message: 'm', advice: 'a', requestId: null } });
    await store.claim(mine.id, 'me');
    const claimed = (await store.claim(living.id, 'other'))!;
    await store.claim(dead.id, 'dead');
    const all = [ended, mine, living, dead, free].map(({ id }) => id);
    const orphans = async (forMs?: number) =>
      (await store.listOrphans('me', forMs))
        .map(({ id }) => id)
        .filter((id) => all.includes(id))
        .toSorted();
    expect(await orphans()).toEqual([free.id]);
    await subject.silence('dead');
    expect(await orphans()).toEqual([dead.id, free.id].toSorted());
    expect(await orphans(10_000)).toEqual([dead.id]);
    await store.giveBack(claimed);
    expect(await orphans()).toEqual([living.id, dead.id, free.id].toSorted());
    expect((await store.countByState())['FAILED']).toBeGreaterThanOrEqual(1);
  });

  check('tells the launches whose approved runs nobody has, for their tokens', async () => {
    const run = (await store.claim((await added({ launchId: 'waits' })).id, 'me'))!;
    const waiting = async () => (await store.listWaitingLaunches()).includes('waits');
    const approved = await store.transition(
      await store.transition(run, 'AWAITING_APPROVAL', { operationId: 'o' }),
      'APPROVED',
    );
    expect(await waiting()).toBe(false);
    await store.giveBack(approved);
    expect(await waiting()).toBe(true);
    await store.transition(approved, 'CANCELLED');
    expect(await waiting()).toBe(false);
  });

  check('a worker that stops gives back all that it has, in one go', async () => {
    const runs = [await added({ owner: 'v' }), await added({ owner: 'v' }), await added({ owner: 'v' })];
    await store.renewLease('stopping');
    for (const { id } of runs) await store.claim(id, 'stopping');
    const approved = await store.transition(
      await store.transition((await store.find(runs[0]!.id))!, 'AWAITING_APPROVAL', { operationId: 'o' }),
      'APPROVED',
    );
    expect((await store.release('stopping')).map(({ id, state, owner }) => [id, state, owner]).toSorted()).toEqual(
      runs.map(({ id }) => [id, id === approved.id ? 'APPROVED' : 'CREATED', 'v']).toSorted(),
    );
    expect((await store.heldBy('stopping')).size).toBe(0);
    for (const { id } of runs) expect((await store.stages(id)).at(-1)?.outcome).toBe('given back');
  });

  check('owners take turns, and a run that waits keeps its turn', async () => {
    const approved = async (owner: string) => {
      const run = await store.claim((await added({ owner, stepId: 'in-turn' })).id, 'turns');
      const waiting = await store.transition(run!, 'AWAITING_APPROVAL', { operationId: 'o' });
      return store.transition(waiting, 'APPROVED');
    };
    const turnOf = (run: Run) => store.handOver(run);
    const many = [await approved('many'), await approved('many'), await approved('many')];
    const first = await turnOf(many[0]!);
    expect([await turnOf(many[1]!), await turnOf(many[2]!)]).toEqual([first + 1, first + 2]);
    // One that comes now is not behind what `many` has waiting, and not before what waits already.
    const one = await approved('one');
    expect(await turnOf(one)).toBe(first);
    const can = [`${one.stepId}@${one.stepVersion}`];
    for (const { id } of [many[0]!, one]) {
      const next = await store.claimNext('turns', can);
      expect(next?.id).toBe(id);
      await store.transition(next!, 'PROCESSING');
    }
    const another = await approved('one');
    expect(await turnOf(another)).toBe(first + 1);
    for (const { id } of [many[1]!, another, many[2]!]) expect((await store.claimNext('turns', can))?.id).toBe(id);
    expect(await store.claimNext('turns', can)).toBeNull();
    await endAllOf('turns');
  });

  check('an owner that comes when all that wait have high turns begins with the first of them', async () => {
    const approved = async (owner: string) => {
      const run = await store.claim((await added({ owner, stepId: 'late' })).id, 'late');
      return store.transition(await store.transition(run!, 'AWAITING_APPROVAL', { operationId: 'o' }), 'APPROVED');
    };
    const can = ['late@1.0.0'];
    const early = [await approved('early'), await approved('early'), await approved('early')];
    const turns = [];
    for (const run of early) turns.push(await store.handOver(run));
    for (const { id } of early.slice(0, 2)) {
      const next = await store.claimNext('late', can);
      expect(next?.id).toBe(id);
      await store.transition(next!, 'PROCESSING');
    }
    expect(await store.handOver(await approved('comes late'))).toBe(turns[2]);
    await endAllOf('late');
  });

  /** Cancels the runs of a worker, so that later tests do not see them. */
  async function endAllOf(worker: string): Promise<void> {
    for (const id of (await store.heldBy(worker)).keys()) await store.transition((await store.find(id))!, 'CANCELLED');
  }

  /** A run that waits for its turn. */
  async function waitingRun(owner: string, facts: Partial<Run> = {}): Promise<Run> {
    const claimed = (await store.claim((await added({ owner, ...facts })).id, 'fleet'))!;
    const asked = await store.transition(claimed, 'AWAITING_APPROVAL', { operationId: 'o' });
    const run = await store.transition(asked, 'APPROVED');
    await store.handOver(run);
    return run;
  }

  check('a user with many runs gets a turn in every round, even if new users keep coming', async () => {
    const step = { stepId: 'turns', stepVersion: '1' };
    for (let i = 0; i < 12; i++) await waitingRun('heavy', step);
    const served: string[] = [];
    for (let i = 0; i < 24; i++) {
      await waitingRun(`light-${i}`, step);
      const next = (await store.claimNext('turns', ['turns@1']))!;
      served.push(next.owner);
      await store.transition(next, 'CANCELLED');
    }
    // Round robin: an owner who was served goes to the end of the line.
    const rounds: string[] = [];
    for (let i = 0, waiting = ['heavy']; i < 24; i++) {
      const [first = '', ...others] = [...waiting, `light-${i}`];
      rounds.push(first);
      waiting = first === 'heavy' ? [...others, first] : others;
    }
    const turnsOf = (order: readonly string[]) => order.filter((owner) => owner === 'heavy').length;
    expect(Math.abs(turnsOf(served) - turnsOf(rounds)) <= 1).toBe(true);
    expect(turnsOf(rounds)).toBe(6);
    while (await store.claimNext('turns', ['turns@1']));
    await endAllOf('turns');
  });

  check('runs that are handed over at the same time get different turns', async () => {
    const step = { stepId: 'bulk', stepVersion: '1' };
    const runs = await Promise.all(Array.from({ length: 20 }, () => added({ owner: 'bulk', ...step })));
    const claimed: Run[] = [];
    for (const { id } of runs) {
      const run = await store.transition((await store.claim(id, 'fleet'))!, 'AWAITING_APPROVAL', { operationId: 'o' });
      claimed.push(await store.transition(run, 'APPROVED'));
    }
    const turns = await Promise.all(claimed.map((run) => store.handOver(run)));
    expect(new Set(turns).size).toBe(20);
    while (await store.claimNext('bulk', ['bulk@1']));
    await endAllOf('bulk');
  });

  check('a worker claims only runs of its steps, and runs without an able worker are found', async () => {
    // Without the workers of other tests.
    subject = await open(() => (clock += 1));
    store = subject.store;
    const run = await waitingRun('user', { stepId: 'new', stepVersion: '2.0.0' });
    expect(await store.claimNext('old', ['new@1.0.0', 'old@1.0.0'])).toBeNull();
    expect(await store.hasWaiting()).toBe(true);
    await store.renewLease('old', ['new@1.0.0']);
    clock += 60_000;
    expect(await store.listStranded(30_000)).toContain(run.id);
    expect(await store.listStranded(90_000)).toEqual([]);
    expect(await store.canBeDone(run)).toBe(false);
    await store.renewLease('able', ['new@2.0.0', 'old@1.0.0']);
    expect(await store.listStranded(30_000)).toEqual([]);
    // A window of zero still covers the lease.
    expect(await store.listStranded(0)).toEqual([]);
    expect([await store.canBeDone(run), await store.canBeDone(run, { besides: 'able' })]).toEqual([true, false]);
    const claimed = await store.claimNext('able', ['new@2.0.0', 'old@1.0.0']);
    expect(claimed).toMatchObject({ id: run.id, claim: 2 });
    // A living worker has it.
    expect(await store.claimNext('other', ['new@2.0.0'])).toBeNull();
    expect(await store.claimNext('able', ['new@2.0.0'])).toBeNull();
    // The lease of its worker is over.
    await subject.silence('able');
    expect(await store.claimNext('other', ['new@2.0.0'])).toMatchObject({ id: run.id, claim: 3 });
    await endAllOf('other');
    await Promise.all(['old', 'able'].map((worker) => store.release(worker)));
  });

  check('a worker claims only runs that fit in what it has, in their turn', async () => {
    subject = await open(() => (clock += 1));
    store = subject.store;
    const can = ['needy@1'];
    const wanting = (needs: Partial<Run['needs']>) =>
      waitingRun('user', { stepId: 'needy', stepVersion: '1', needs: { ...noNeeds, ...needs } });
    const gpu = await wanting({ label: 'gpu' });
    const large = await wanting({ memoryBytes: 8_000 });
    const cores = await wanting({ cores: 4 });
    const disk = await wanting({ diskBytes: 900 });
    const any = await wanting({});
    const room = { labels: ['ssd'], memoryBytes: 4_000, cores: 2, diskBytes: 500, freeMemoryBytes: null };
    await store.renewLease('small', can, room);
    const ableIn = async () => Promise.all([gpu, large, cores, disk, any].map((run) => store.canBeDone(run)));
    expect(await ableIn()).toEqual([false, false, false, false, true]);
    clock += 60_000;
    await store.renewLease('small', can, room);
    expect((await store.listStranded(30_000)).toSorted()).toEqual(
      [gpu, large, cores, disk].map(({ id }) => id).toSorted(),
    );
    expect((await store.listWorkers()).find(({ name }) => name === 'small')?.place).toEqual({
      ...{ labels: ['ssd'], memoryBytes: 4_000, cores: 2, diskBytes: 500 },
    });
    expect((await store.claimNext('small', can, room))?.id).toBe(any.id);
    expect(await store.claimNext('small', can, room)).toBeNull();
    // One that has more does the others in their turn; a label that begins alike is another one.
    const more = { labels: ['gpu-old'], memoryBytes: 8_000, cores: 4, diskBytes: 900 };
    await store.renewLease('more', can, more);
    expect(await ableIn()).toEqual([false, true, true, true, true]);
    // The large run is next, and does not fit yet: nobody overtakes it here.
    expect(await store.claimNext('more', can, { ...more, freeMemoryBytes: 7_999 })).toBeNull();
    expect((await store.claimNext('more', can, { ...more, freeMemoryBytes: 8_000 }))?.id).toBe(large.id);
    for (const run of [cores, disk])
      expect((await store.claimNext('more', can, { ...more, freeMemoryBytes: 0 }))?.id).toBe(run.id);
    await store.renewLease('with-gpu', can, { ...more, labels: ['gpu'] });
    expect(await store.canBeDone(gpu)).toBe(true);
    expect(
      (await store.claimNext('with-gpu', can, { ...more, labels: ['ssd', 'gpu'], freeMemoryBytes: null }))?.id,
    ).toBe(gpu.id);
    // A worker of an earlier release says nothing of sizes, and has no labels.
    await Promise.all(['small', 'more', 'with-gpu'].map((worker) => store.release(worker)));
    await store.renewLease('earlier', can);
    expect(await ableIn()).toEqual([false, true, true, true, true]);
    await store.release('earlier');
  });

  check('keeps the needs, the memory limit and the use of a run', async () => {
    const run = await added({ needs: { label: 'gpu', memoryBytes: 5, cores: 2, diskBytes: 7 } });
    expect(await store.find(run.id)).toEqual(run);
    const usage = {
      ...{ cpuSeconds: 1.5, peakMemoryBytes: 3, bytesIn: 4, bytesOut: 5 },
      ...{ waitSeconds: 0.5, stepSeconds: 2, place: 'machine' },
    };
    const more = { memoryLimitBytes: 2 ** 33, needs: { ...noNeeds, memoryBytes: 2 ** 33 }, usage };
    await store.record(run, more);
    expect(await store.find(run.id)).toMatchObject(more);
  });

  check('lists a launch in pages, newest first, though runs are added meanwhile', async () => {
    const atMs = (clock += 10);
    const make = (i: number) =>
      added({ id: `paged-${i}`, launchId: 'paged', createdAtMs: atMs + Math.floor(i / 3), updatedAtMs: atMs });
    for (let i = 0; i < 7; i++) await make(i);
    const page = async (before?: string) =>
      (await store.listByLaunch('paged', { limit: 3, before })).map(({ id }) => id);
    expect(await page()).toEqual(['paged-6', 'paged-5', 'paged-4']);
    await make(9);
    expect([await page('paged-4'), await page('paged-1'), await page('paged-0')]).toEqual([
      ['paged-3', 'paged-2', 'paged-1'],
      ['paged-0'],
      [],
    ]);
    expect(await page('nothing')).toEqual([]);
    expect([...(await store.histories(['paged-1', 'nothing'])).values()].map((states) => states.length)).toEqual([
      1, 0,
    ]);
  });

  check('a fact that becomes null is forgotten, and one that is not named stays', async () => {
    const run = await added();
    const upload = { uploadId: 'u', key: 'k', partSizeBytes: 1, acknowledgedParts: 1 };
    const begun = await store.record(run, { upload });
    expect((await store.find(run.id))?.upload).toEqual(upload);
    const moved = await store.transition(begun, 'AWAITING_APPROVAL', { operationId: 'op' });
    expect((await store.find(run.id))?.upload).toEqual(upload);
    await store.record(moved, { upload: null });
    expect(await store.find(run.id)).toMatchObject({ upload: null, operationId: 'op' });
  });

  check('one number says whether anything of a launch has changed', async () => {
    const numbers: number[] = [];
    const look = async () => {
      const { number, ...rest } = await store.changesOf('watched');
      numbers.push(number);
      return rest;
    };
    expect(await look()).toEqual({ lastAtMs: 0, isUnderWay: false });
    const run = await added({ launchId: 'watched' });
    expect(await look()).toEqual({ lastAtMs: run.createdAtMs, isUnderWay: true });
    const recorded = await store.record(run, {
      upload: { uploadId: 'u', key: 'k', partSizeBytes: 1, acknowledgedParts: 1 },
    });
    await look();
    const ended = await store.transition(recorded, 'CANCELLED');
    expect(await look()).toEqual({ lastAtMs: ended.updatedAtMs, isUnderWay: false });
    await added();
    await look();
    expect(numbers).toEqual([0, 1, 2, 3, 3]);
  });

  check('forgets what ended long ago, with all that there is of it, and tells which launches are used', async () => {
    const long = { createdAtMs: 1_000, updatedAtMs: 2_000 };
    const [gone, open, recent] = [
      await added({ launchId: 'old', state: 'REJECTED', ...long }),
      await added({ launchId: 'used', ...long }),
      await added({ launchId: 'new', state: 'REJECTED' }),
    ];
    const ids = ['old', 'used', 'new', 'nothing'];
    expect([...(await store.launchesWithRuns(ids))].toSorted()).toEqual(['new', 'old', 'used']);
    expect([...(await store.launchesWithRuns(ids, { unfinished: true }))]).toEqual(['used']);
    expect(await store.forget(10_000)).toBe(1);
    expect(await Promise.all([gone, open, recent].map(async ({ id }) => (await store.find(id)) !== null))).toEqual([
      false,
      true,
      true,
    ]);
    expect([await store.history(gone.id), await store.stages(gone.id), await store.summary(gone.id)]).toEqual([
      [],
      [],
      null,
    ]);
    expect([...(await store.launchesWithRuns(ids))].toSorted()).toEqual(['new', 'used']);
    await store.check();
  });
}
