import {
  sql,
  type ExpressionBuilder,
  type RawBuilder,
  type SelectQueryBuilder,
  type Transaction,
  type UpdateQueryBuilder,
  type UpdateResult,
} from 'kysely';
import type { AppDatabase, AppTables, RunRow } from '../database.ts';
import { outputSummary, type OutputSummary } from '../processing/output-summary.ts';
import { joinedReads } from '../joined-reads.ts';
import { assertTransition, IllegalTransitionError, isFinal, runStates, type RunState } from './run-state.ts';
import type {
  LaunchChanges,
  Run,
  RunFacts,
  RunFilter,
  RunPage,
  RunStage,
  RunStateChange,
  RunStore,
  RunToPlace,
  UnfinishedRun,
  WorkerRoom,
  WorkerView,
} from './run.ts';
import { unlimitedPlace, type WorkerPlace } from './placement.ts';
import { addState, beginStage, countChange, endStage, forgetChanges, putResult } from './run-journal.ts';
import { factColumns, fromRow, toRow, toUnfinished } from './run-rows.ts';
import { ownJson } from '../../files/index.ts';
import { leaseMs } from './worker-lease.ts';

/** Number of runs to remove at once. It is small, so that nobody waits long for the database meanwhile. */
const forgottenAtOnce = 200;
const dayMs = 86_400_000;
const unfinished = runStates.filter((state) => !isFinal(state));
/** States of the queue `process`. */
const waitingStates = ['APPROVED', 'PROCESSING'] as const satisfies readonly RunState[];

/** SQL for what a run asks of a worker: its step, as `id@version`, and its needs. */
interface Asked {
  readonly step: RawBuilder<unknown>;
  readonly label: RawBuilder<unknown>;
  readonly memory: RawBuilder<unknown>;
  readonly cores: RawBuilder<unknown>;
  readonly disk: RawBuilder<unknown>;
}

/** Condition: a row of `workers` has the step and what the run needs. A release that does not report its sizes counts as able, but has no labels. */
const canDo = ({ step, label, memory, cores, disk }: Asked) => sql<boolean>`
  (workers.can is null or workers.can like '%"' || ${step} || '"%')
  and (${label} is null or workers.labels like '%"' || ${label} || '"%')
  and (workers.memory is null or workers.memory >= ${memory})
  and (workers.cores is null or workers.cores >= ${cores})
  and (workers.disk is null or workers.disk >= ${disk})`;

const askedByRow: Asked = {
  step: sql`runs.step_id || '@' || runs.step_version`,
  label: sql`runs.needs_label`,
  memory: sql`runs.needs_memory`,
  cores: sql`runs.needs_cores`,
  disk: sql`runs.needs_disk`,
};

const unlimitedRoom: WorkerRoom = { ...unlimitedPlace, freeMemoryBytes: null };

/** Milliseconds since 1970 by PostgreSQL's clock. */
const postgresNow = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

/** Runs in a SQL database, by the same queries whichever it is. */
export class SqlRunStore implements RunStore {
  #database: AppDatabase;
  #now: () => number;
  #leaseNow: () => RawBuilder<number>;
  #isShared: boolean;
  #changes = joinedReads((launchIds) => this.#readChanges(launchIds), {
    missing: () => ({ number: 0, lastAtMs: 0, isUnderWay: false }),
  });
  // Each of them is a part of the query.
  #lastChanges = joinedReads((owners) => this.#readLastChanges(owners), { missing: () => 0, atOnce: 100 });

  /** `isShared`: many processes use the database, and leases are measured by its clock, not by theirs. */
  constructor(database: AppDatabase, now: () => number, { isShared = false } = {}) {
    this.#database = database;
    this.#now = now;
    this.#isShared = isShared;
    this.#leaseNow = () => (isShared ? postgresNow : sql<number>`cast(${now()} as bigint)`);
  }

  async create(run: Run): Promise<void> {
    await this.#database.transaction().execute(async (trx) => {
      await trx.insertInto('runs').values(toRow(run)).execute();
      await addState(trx, run.id, run.state, run.createdAtMs);
      await countChange(trx, run.launchId, run.createdAtMs);
    });
  }

  async find(id: string): Promise<Run | null> {
    const row = await this.#database.selectFrom('runs').selectAll().where('id', '=', id).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  async listByLaunch(launchId: string, { limit, before }: RunPage): Promise<Run[]> {
    const rows = await this.#page({ limit, before }).where('launch_id', '=', launchId).execute();
    return rows.map(fromRow);
  }

  async listByOwner(
    owner: string,
    { limit, before, states }: RunPage & { readonly states?: readonly RunState[] | undefined },
  ): Promise<Run[]> {
    const query = this.#page({ limit, before }).where('owner', '=', owner);
    const rows = await (states ? query.where('state', 'in', states) : query).execute();
    return rows.map(fromRow);
  }

  async countByOwner(owner: string, states?: readonly RunState[]): Promise<number> {
    const query = this.#database
      .selectFrom('runs')
      .select((of) => of.fn.countAll<number>().as('count'))
      .where('owner', '=', owner);
    const { count } = await (states ? query.where('state', 'in', states) : query).executeTakeFirstOrThrow();
    return count;
  }

  lastChangeOf(owner: string): Promise<number> {
    return this.#lastChanges(owner);
  }

  async beganBefore({ id, owner, createdAtMs }: Pick<Run, 'id' | 'owner' | 'createdAtMs'>) {
    const rows = await this.#database
      .selectFrom('runs')
      .select(['step_id', 'input'])
      .where('owner', '=', owner)
      .where('created_at', '>=', createdAtMs - (createdAtMs % dayMs))
      .where((of) => of(of.refTuple('created_at', 'id'), '<', of.tuple(createdAtMs, id)))
      .execute();
    return rows.map(({ step_id: stepId, input }) => ({ stepId, input: ownJson<Run['input']>(input) }));
  }

  /** Newest first: a number of rows at a time, from where the last page ended, whatever has been added since. */
  #page({ limit, before }: RunPage) {
    const query = this.#database
      .selectFrom('runs')
      .selectAll()
      .orderBy('created_at', 'desc')
      .orderBy('id', 'desc')
      .limit(limit);
    if (before === undefined) return query;
    const from = this.#database.selectFrom('runs').select(['created_at', 'id']).where('id', '=', before);
    return query.where((of) => of(of.refTuple('created_at', 'id'), '<', from.$asTuple('created_at', 'id')));
  }

  changesOf(launchId: string): Promise<LaunchChanges> {
    return this.#changes(launchId);
  }

  /** Newest change of each owner's runs. A query for each owner reads one row of an index, and a group would read all of the owner's. */
  async #readLastChanges(owners: readonly string[]): Promise<Map<string, number>> {
    const newest = owners.map(
      (owner) => sql`select ${owner} as owner, (select max(updated_at) from runs where owner = ${owner}) as at`,
    );
    const { rows } = await sql<{ owner: string; at: number | null }>`${sql.join(newest, sql` union all `)}`.execute(
      this.#database,
    );
    return new Map(rows.map(({ owner, at }) => [owner, at ?? 0]));
  }

  async #readChanges(launchIds: readonly string[]): Promise<Map<string, LaunchChanges>> {
    const rows = await this.#database
      .selectFrom('launch_changes')
      .select((of) => [
        'launch_id',
        'changes',
        'changed_at',
        of
          .exists(
            of
              .selectFrom('runs')
              .select('runs.id')
              .whereRef('runs.launch_id', '=', 'launch_changes.launch_id')
              .where('state', 'in', unfinished),
          )
          .as('is_under_way'),
      ])
      .where('launch_id', 'in', launchIds)
      .execute();
    return new Map(
      rows.map((row) => [
        row.launch_id,
        { number: row.changes, lastAtMs: row.changed_at, isUnderWay: Boolean(row.is_under_way) },
      ]),
    );
  }

  async listOrphans(worker: string, forMs = 0): Promise<UnfinishedRun[]> {
    const columns = ['id', 'owner', 'state', 'created_at'] as const;
    const open = this.#database.selectFrom('runs').select(columns).where('state', 'in', unfinished);
    const free = await open
      .where('worker', 'is', null)
      // A time in the future comes from a wrong clock, so the run counts as old.
      .where((of) => of.or([of('updated_at', '<=', this.#now() - forMs), of('updated_at', '>', this.#now())]))
      .execute();
    const left = await this.#runsOfDead(worker, open);
    return [...free, ...left].toSorted((first, second) => first.created_at - second.created_at).map(toUnfinished);
  }

  /** Unfinished runs of workers whose lease is over. Reads the few dead workers first, because most runs have a living worker. */
  async #runsOfDead(
    worker: string,
    open: SelectQueryBuilder<AppTables, 'runs', Pick<RunRow, 'id' | 'owner' | 'state' | 'created_at'>>,
  ) {
    const others = open.where('worker', 'is not', null).where('worker', '!=', worker);
    // With SQLite, workers have no rows.
    if (!this.#isShared) return others.where((of) => of.not(this.#isHeld(of))).execute();
    const dead = await this.#database
      .selectFrom('workers')
      .select('name')
      .where(sql<boolean>`alive_at <= ${this.#leaseNow()} - ${leaseMs}`)
      .execute();
    if (dead.length === 0) return [];
    const names = dead.map(({ name }) => name);
    return others.where('worker', 'in', names).execute();
  }

  async listWaitingLaunches(): Promise<string[]> {
    const rows = await this.#database
      .selectFrom('runs')
      .select('launch_id')
      .distinct()
      .where('state', 'in', ['APPROVED', 'PROCESSING', 'UPLOADING'])
      .where('worker', 'is', null)
      .execute();
    return rows.map((row) => row.launch_id);
  }

  handOver({ id, owner, claim }: Pick<Run, 'id' | 'owner' | 'claim'>): Promise<number> {
    return this.#database.transaction().execute(async (trx) => {
      // This row is a lock. Without it, concurrent hand-overs would read the same last turn.
      const { served } = await trx
        .updateTable('turns')
        .set((of) => ({ served: of.ref('served') }))
        .returning('served')
        .executeTakeFirstOrThrow();
      const { last } = await trx
        .selectFrom('runs')
        .select((of) => of.fn.max<number | null>('turn').as('last'))
        .where('state', 'in', waitingStates)
        .where('id', '!=', id)
        .where('owner', '=', owner)
        // Other approved runs have no turn yet, because their workers have not handed them over.
        .where((of) => of.or([of('worker', 'is', null), of('state', '=', 'PROCESSING')]))
        .executeTakeFirstOrThrow();
      const turn = Math.max(last ?? 0, served) + 1;
      const { numUpdatedRows } = await trx
        .updateTable('runs')
        .set({ turn, worker: null })
        .where('id', '=', id)
        .where('claim', '=', claim)
        .executeTakeFirst();
      if (numUpdatedRows > 0n) await endStage(trx, id, 'given back', this.#now());
      return turn;
    });
  }

  claimNext(worker: string, can: readonly string[], room = unlimitedRoom): Promise<Run | null> {
    return this.#database.transaction().execute(async (trx) => {
      const next = trx
        .selectFrom('runs')
        .select(['id', 'needs_memory'])
        .where('state', 'in', waitingStates)
        .where(sql<string>`step_id || '@' || step_version`, 'in', can)
        .where((of) =>
          of.or([
            of('needs_label', 'is', null),
            ...(room.labels.length > 0 ? [of('needs_label', 'in', room.labels)] : []),
          ]),
        )
        .$if(room.memoryBytes !== null, (of) => of.where('needs_memory', '<=', room.memoryBytes))
        .$if(room.cores !== null, (of) => of.where('needs_cores', '<=', room.cores))
        .$if(room.diskBytes !== null, (of) => of.where('needs_disk', '<=', room.diskBytes))
        .orderBy('turn')
        .orderBy('updated_at')
        .limit(1);
      const first = (of: typeof next) => (this.#isShared ? of.forUpdate().skipLocked() : of).executeTakeFirst();
      // Two queries, because the index covers only runs without a worker.
      const found =
        (await first(next.where('worker', 'is', null))) ??
        (await first(next.where('worker', '!=', worker).where((of) => of.not(this.#isHeld(of)))));
      if (!found || found.needs_memory > (room.freeMemoryBytes ?? Infinity)) return null;
      const taken = await this.#take(trx, worker, trx.updateTable('runs').where('id', '=', found.id));
      if (!taken) return null;
      await trx.updateTable('turns').set({ served: taken.turn }).where('served', '<', taken.turn).execute();
      return taken.run;
    });
  }

  async hasWaiting(): Promise<boolean> {
    const row = await this.#database
      .selectFrom('runs')
      .select('id')
      .where('state', 'in', waitingStates)
      .where('worker', 'is', null)
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  }

  async listStranded(forMs: number): Promise<string[]> {
    const rows = await this.#database
      .selectFrom('runs')
      .select('id')
      .where('state', 'in', waitingStates)
      .where('worker', 'is', null)
      .where('updated_at', '<=', this.#now() - forMs)
      .where((of) => of.not(this.#isAbleWorker(of, Math.max(forMs, leaseMs))))
      .execute();
    return rows.map(({ id }) => id);
  }

  async canBeDone(
    { stepId, stepVersion, needs }: RunToPlace,
    { besides }: { readonly besides?: string } = {},
  ): Promise<boolean> {
    const workers = this.#database.selectFrom('workers').select('name');
    const row = await (besides === undefined ? workers : workers.where('name', '!=', besides))
      .where(sql<boolean>`alive_at > ${this.#leaseNow()} - ${leaseMs}`)
      .where(
        canDo({
          step: sql`${`${stepId}@${stepVersion}`}`,
          // PostgreSQL cannot tell the type of a parameter that is null.
          label: sql`cast(${needs.label} as text)`,
          memory: sql`cast(${needs.memoryBytes} as bigint)`,
          cores: sql`cast(${needs.cores} as bigint)`,
          disk: sql`cast(${needs.diskBytes} as bigint)`,
        }),
      )
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  }

  async countUnfinishedOf(owner: string): Promise<number> {
    const { count } = await this.#database
      .selectFrom('runs')
      .select((of) => of.fn.countAll<number>().as('count'))
      .where('owner', '=', owner)
      .where('state', 'in', unfinished)
      .executeTakeFirstOrThrow();
    return count;
  }

  async history(id: string): Promise<RunStateChange[]> {
    return (await this.histories([id])).get(id) ?? [];
  }

  async histories(ids: readonly string[]): Promise<Map<string, RunStateChange[]>> {
    const histories = new Map(ids.map((id): [string, RunStateChange[]] => [id, []]));
    if (ids.length === 0) return histories;
    const rows = await this.#database
      .selectFrom('run_states')
      .selectAll()
      .where('run_id', 'in', ids)
      .orderBy('seq')
      .orderBy('at')
      .execute();
    for (const row of rows) histories.get(row.run_id)?.push({ state: row.state, atMs: row.at });
    return histories;
  }

  async stages(id: string): Promise<RunStage[]> {
    const rows = await this.#database
      .selectFrom('run_stages')
      .selectAll()
      .where('run_id', '=', id)
      .orderBy('seq')
      .orderBy('begun_at')
      .orderBy('attempt')
      .execute();
    return rows.map((row) => ({
      state: row.state,
      attempt: row.attempt,
      worker: row.worker,
      begunAtMs: row.begun_at,
      endedAtMs: row.ended_at,
      outcome: row.outcome,
    }));
  }

  claim(id: string, worker: string): Promise<Run | null> {
    return this.#database.transaction().execute(async (trx) => {
      const claimable = trx
        .updateTable('runs')
        .where('id', '=', id)
        .where('state', 'in', unfinished)
        .where((of) => of.or([of('worker', 'is', null), of('worker', '=', worker), of.not(this.#isHeld(of))]));
      return (await this.#take(trx, worker, claimable))?.run ?? null;
    });
  }

  /** Runs an update that claims one run, and records the start of its stage. */
  async #take(
    trx: Transaction<AppTables>,
    worker: string,
    claimable: UpdateQueryBuilder<AppTables, 'runs', 'runs', UpdateResult>,
  ): Promise<{ run: Run; turn: number } | null> {
    const row = await claimable
      .set((of) => ({ claim: of('claim', '+', 1), worker }))
      .returningAll()
      .executeTakeFirst();
    if (!row) return null;
    const run = fromRow(row);
    await endStage(trx, run.id, 'abandoned', this.#now());
    await beginStage(trx, run, worker, this.#now());
    return { run, turn: row.turn };
  }

  async giveBack(run: Pick<Run, 'id' | 'claim'>): Promise<void> {
    await this.#database.transaction().execute(async (trx) => {
      const { numUpdatedRows } = await trx
        .updateTable('runs')
        .set({ worker: null })
        .where('id', '=', run.id)
        .where('claim', '=', run.claim)
        .executeTakeFirst();
      if (numUpdatedRows > 0n) await endStage(trx, run.id, 'given back', this.#now());
    });
  }

  async renewLease(worker: string, steps?: readonly string[], place?: WorkerPlace): Promise<{ rests: boolean }> {
    const alive_at = this.#leaseNow();
    const columns = {
      alive_at,
      can: steps ? JSON.stringify(steps) : null,
      labels: place ? JSON.stringify(place.labels) : null,
      memory: place?.memoryBytes ?? null,
      cores: place?.cores ?? null,
      disk: place?.diskBytes ?? null,
    };
    const { rests } = await this.#database
      .insertInto('workers')
      .values({ name: worker, rests: 0, ...columns })
      .onConflict((conflict) => conflict.column('name').doUpdateSet(columns))
      .returning('rests')
      .executeTakeFirstOrThrow();
    return { rests: rests === 1 };
  }

  async search({
    state,
    code,
    stepId,
    owner,
    worker,
    sinceMs,
    limit,
  }: RunFilter & { readonly limit: number }): Promise<Run[]> {
    const rows = await this.#database
      .selectFrom('runs')
      .selectAll()
      .where((of) =>
        of.and([
          ...(state === undefined ? [] : [of('state', '=', state)]),
          ...(stepId === undefined ? [] : [of('step_id', '=', stepId)]),
          ...(owner === undefined ? [] : [of('owner', '=', owner)]),
          ...(worker === undefined ? [] : [of('worker', '=', worker)]),
          ...(sinceMs === undefined ? [] : [of('updated_at', '>=', sinceMs)]),
          // The column holds JSON that this store has written.
          ...(code === undefined ? [] : [sql<boolean>`failure like ${`%"code":${JSON.stringify(code)}%`}`]),
        ]),
      )
      .orderBy('updated_at', 'desc')
      .limit(limit)
      .execute();
    return rows.map(fromRow);
  }

  requeue(id: string): Promise<boolean> {
    return this.#database.transaction().execute(async (trx) => {
      const { numUpdatedRows } = await trx
        .updateTable('runs')
        .set((of) => ({ claim: of('claim', '+', 1), worker: null }))
        .where('id', '=', id)
        .where('state', 'in', unfinished)
        .executeTakeFirst();
      if (numUpdatedRows > 0n) await endStage(trx, id, 'abandoned', this.#now());
      return numUpdatedRows > 0n;
    });
  }

  async countWorkers(): Promise<{ alive: number; resting: number }> {
    const rows = await this.#database
      .selectFrom('workers')
      .select('rests')
      .where(sql<boolean>`alive_at > ${this.#leaseNow()} - ${leaseMs}`)
      .execute();
    return { alive: rows.length, resting: rows.filter(({ rests }) => rests === 1).length };
  }

  async listWorkers(): Promise<WorkerView[]> {
    const rows = await this.#database
      .selectFrom('workers')
      .select((of) => [
        ...(['name', 'alive_at', 'can', 'rests', 'labels', 'memory', 'cores', 'disk'] as const),
        sql<number | boolean>`alive_at > ${this.#leaseNow()} - ${leaseMs}`.as('is_alive'),
        of
          .selectFrom('runs')
          .select((runs) => runs.fn.countAll<number>().as('count'))
          .whereRef('runs.worker', '=', 'workers.name')
          .where('runs.state', 'in', unfinished)
          .as('runs'),
      ])
      .orderBy('alive_at', 'desc')
      .execute();
    return rows.map(({ name, alive_at, can, rests, is_alive, runs, labels, memory, cores, disk }) => ({
      name,
      aliveAtMs: alive_at,
      isAlive: Boolean(is_alive),
      can: can === null ? null : ownJson<string[]>(can),
      place:
        labels === null ? null : { labels: ownJson<string[]>(labels), memoryBytes: memory, cores, diskBytes: disk },
      rests: rests === 1,
      runs: runs ?? 0,
    }));
  }

  async setRest(worker: string, rests: boolean): Promise<boolean> {
    const { numUpdatedRows } = await this.#database
      .updateTable('workers')
      .set({ rests: rests ? 1 : 0 })
      .where('name', '=', worker)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  async oldestByState(): Promise<Partial<Record<RunState, number>>> {
    const rows = await this.#database
      .selectFrom('runs')
      .select((of) => ['state', of.fn.min<number>('updated_at').as('at')])
      .where('state', 'in', unfinished)
      .groupBy('state')
      .execute();
    return Object.fromEntries(rows.map(({ state, at }) => [state, at]));
  }

  async failureCodes(sinceMs: number): Promise<{ code: string; number: number }[]> {
    const code = this.#isShared ? sql<string>`failure::json ->> 'code'` : sql<string>`failure ->> 'code'`;
    const rows = await this.#database
      .selectFrom('runs')
      .select((of) => [code.as('code'), of.fn.countAll<number | string>().as('number')])
      .where('state', '=', 'FAILED')
      .where('updated_at', '>=', sinceMs)
      .groupBy('code')
      .orderBy('number', 'desc')
      .execute();
    return rows.map((row) => ({ code: row.code, number: Number(row.number) }));
  }

  async heldBy(worker: string): Promise<Map<string, number>> {
    const rows = await this.#database
      .selectFrom('runs')
      .select(['id', 'claim'])
      .where('worker', '=', worker)
      .where('state', 'in', unfinished)
      .execute();
    return new Map(rows.map(({ id, claim }) => [id, claim]));
  }

  release(worker: string): Promise<UnfinishedRun[]> {
    return this.#database.transaction().execute(async (trx) => {
      // The row stays, so that runs of its steps still wait for such a worker.
      await trx
        .updateTable('workers')
        .set({ alive_at: sql<number>`${this.#leaseNow()} - ${leaseMs}` })
        .where('name', '=', worker)
        .execute();
      const rows = await trx
        .updateTable('runs')
        .set({ worker: null })
        .where('worker', '=', worker)
        .where('state', 'in', unfinished)
        .returning(['id', 'owner', 'state'])
        .execute();
      // By the stages' own worker: a list of ids would be too long for a statement.
      await trx
        .updateTable('run_stages')
        .set({ ended_at: this.#now(), outcome: 'given back' })
        .where('worker', '=', worker)
        .where('ended_at', 'is', null)
        .execute();
      return rows.map(toUnfinished);
    });
  }

  async forgetWorkers(deadForMs: number): Promise<void> {
    await this.#database
      .deleteFrom('workers')
      .where('alive_at', '<', sql<number>`${this.#leaseNow()} - ${deadForMs}`)
      // Other workers find its runs by this row.
      .where((of) =>
        of.not(
          of.exists(
            of
              .selectFrom('runs')
              .select('runs.id')
              .whereRef('runs.worker', '=', 'workers.name')
              .where('runs.state', 'in', unfinished),
          ),
        ),
      )
      .execute();
  }

  /** The run's worker has said lately that it lives. */
  #isHeld(of: ExpressionBuilder<AppTables, 'runs'>) {
    const isLiving = sql<boolean>`workers.alive_at > ${this.#leaseNow()} - ${leaseMs}`;
    return of.exists(
      of.selectFrom('workers').select('workers.name').whereRef('workers.name', '=', 'runs.worker').where(isLiving),
    );
  }

  /** Condition: a worker that was alive during the last `forMs` has the run's step. */
  #isAbleWorker(of: ExpressionBuilder<AppTables, 'runs'>, forMs: number) {
    return of.exists(
      of
        .selectFrom('workers')
        .select('workers.name')
        .where(sql<boolean>`workers.alive_at > ${this.#leaseNow()} - ${forMs}`)
        .where(canDo(askedByRow)),
    );
  }

  async summary(id: string): Promise<OutputSummary | null> {
    const row = await this.#database
      .selectFrom('run_results')
      .select('summary')
      .where('run_id', '=', id)
      .executeTakeFirst();
    // A summary from an earlier version lacks newer fields. If a summary is not readable, the run appears without it.
    return row ? (outputSummary.safeParse(JSON.parse(row.summary)).data ?? null) : null;
  }

  async picture(id: string): Promise<Uint8Array | null> {
    const row = await this.#database
      .selectFrom('run_results')
      .select('picture')
      .where('run_id', '=', id)
      .executeTakeFirst();
    return row ? Buffer.from(row.picture, 'base64') : null;
  }

  async forget(endedBeforeMs: number): Promise<number> {
    const ended = runStates.filter(isFinal);
    let forgotten = 0;
    for (;;) {
      const rows = await this.#database
        .selectFrom('runs')
        .select('id')
        .where('updated_at', '<', endedBeforeMs)
        .where('state', 'in', ended)
        .limit(forgottenAtOnce)
        .execute();
      if (rows.length === 0) break;
      const ids = rows.map(({ id }) => id);
      await this.#database.transaction().execute(async (trx) => {
        for (const table of ['run_states', 'run_stages', 'run_progress', 'run_results', 'step_jobs'] as const)
          await trx.deleteFrom(table).where('run_id', 'in', ids).execute();
        await trx.deleteFrom('runs').where('id', 'in', ids).execute();
      });
      forgotten += ids.length;
      // SQLite is asked without a pause: requests come in between.
      await new Promise((resolve) => setImmediate(resolve));
    }
    await forgetChanges(this.#database, endedBeforeMs);
    return forgotten;
  }

  async launchesWithRuns(
    launchIds: readonly string[],
    { unfinished: open = false }: { readonly unfinished?: boolean } = {},
  ): Promise<ReadonlySet<string>> {
    if (launchIds.length === 0) return new Set();
    const query = this.#database.selectFrom('runs').select('launch_id').distinct().where('launch_id', 'in', launchIds);
    const rows = await (open ? query.where('state', 'in', unfinished) : query).execute();
    return new Set(rows.map((row) => row.launch_id));
  }

  async isNewerThan(migration: string): Promise<boolean> {
    const floor = await this.#database.selectFrom('schema_floor').select('oldest').executeTakeFirst();
    return floor !== undefined && floor.oldest > migration;
  }

  async check(): Promise<void> {
    await sql`select 1`.execute(this.#database);
  }

  async countByState(states?: readonly RunState[]): Promise<Partial<Record<RunState, number>>> {
    const query = this.#database.selectFrom('runs').select(['state', (of) => of.fn.countAll<number>().as('n')]);
    const rows = await (states ? query.where('state', 'in', states) : query).groupBy('state').execute();
    return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
  }

  transition(run: Run, to: RunState, facts: RunFacts = {}): Promise<Run> {
    assertTransition(run.id, run.state, to);
    return this.#update(run, to, facts);
  }

  record(run: Run, facts: RunFacts): Promise<Run> {
    return this.#update(run, run.state, facts);
  }

  #update(run: Run, to: RunState, facts: RunFacts): Promise<Run> {
    const atMs = this.#now();
    return this.#database.transaction().execute(async (trx) => {
      const result = await trx
        .updateTable('runs')
        .set({ ...factColumns(facts), state: to, updated_at: atMs, ...(isFinal(to) ? { worker: null } : {}) })
        .where('id', '=', run.id)
        .where('state', '=', run.state)
        .where('claim', '=', run.claim)
        .returning('worker')
        .executeTakeFirst();
      if (!result) {
        const now = await trx.selectFrom('runs').select('state').where('id', '=', run.id).executeTakeFirst();
        throw new IllegalTransitionError(run.id, now?.state ?? run.state, to);
      }
      if (to !== run.state) {
        await addState(trx, run.id, to, atMs);
        await endStage(trx, run.id, to, atMs);
        if (!isFinal(to) && result.worker !== null) await beginStage(trx, { ...run, state: to }, result.worker, atMs);
      }
      const { result: made, ...kept } = facts;
      if (made) await putResult(trx, run.id, made);
      await countChange(trx, run.launchId, atMs);
      return { ...run, ...kept, state: to, updatedAtMs: atMs };
    });
  }
}
