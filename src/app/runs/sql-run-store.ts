import type { Kysely, Updateable } from 'kysely';
import type { AppDatabase, AppTables, RunRow } from '../database.ts';
import { assertTransition, IllegalTransitionError, isFinal, runStates, type RunState } from './run-state.ts';
import type { Run, RunFacts, RunStateChange, RunStore } from './run.ts';

/** Runs in a SQL database, by the same queries whichever it is. */
export class SqlRunStore implements RunStore {
  #database: AppDatabase;
  #now: () => number;

  constructor(database: AppDatabase, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  async create(run: Run): Promise<void> {
    await this.#database.transaction().execute(async (trx) => {
      await trx.insertInto('runs').values(toRow(run)).execute();
      await addState(trx, run.id, run.state, run.createdAtMs);
    });
  }

  async find(id: string): Promise<Run | null> {
    const row = await this.#database.selectFrom('runs').selectAll().where('id', '=', id).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  async listByLaunch(launchId: string): Promise<Run[]> {
    const rows = await this.#database.selectFrom('runs').selectAll().where('launch_id', '=', launchId).orderBy('created_at', 'desc').execute();
    return rows.map(fromRow);
  }

  async listUnfinished(): Promise<Run[]> {
    const unfinished = runStates.filter((state) => !isFinal(state));
    const rows = await this.#database.selectFrom('runs').selectAll().where('state', 'in', unfinished).orderBy('created_at').execute();
    return rows.map(fromRow);
  }

  async history(id: string): Promise<RunStateChange[]> {
    const rows = await this.#database.selectFrom('run_states').selectAll().where('run_id', '=', id).orderBy('at').execute();
    return rows.map((row) => ({ state: row.state as RunState, atMs: Number(row.at) }));
  }

  async countByState(): Promise<Partial<Record<RunState, number>>> {
    const rows = await this.#database.selectFrom('runs').select(['state', (of) => of.fn.countAll().as('n')]).groupBy('state').execute();
    return Object.fromEntries(rows.map(({ state, n }) => [state, Number(n)]));
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
        .set({ ...factColumns(facts), state: to, updated_at: atMs })
        .where('id', '=', run.id)
        .where('state', '=', run.state)
        .executeTakeFirst();
      if (result.numUpdatedRows === 0n) {
        const now = await trx.selectFrom('runs').select('state').where('id', '=', run.id).executeTakeFirst();
        throw new IllegalTransitionError(run.id, (now?.state ?? run.state) as RunState, to);
      }
      if (to !== run.state) await addState(trx, run.id, to, atMs);
      return { ...run, ...facts, state: to, updatedAtMs: atMs };
    });
  }
}

async function addState(database: Kysely<AppTables>, runId: string, state: RunState, at: number): Promise<void> {
  await database.insertInto('run_states').values({ run_id: runId, state, at }).execute();
}

const json = (value: unknown) => (value === null ? null : JSON.stringify(value));
const parsed = <T>(text: string | null): T | null => (text === null ? null : (JSON.parse(text) as T));

function factColumns(facts: RunFacts): Updateable<RunRow> {
  const columns: Updateable<RunRow> = {};
  if (facts.operationId !== undefined) columns.operation_id = facts.operationId;
  if (facts.operationExpiresAtMs !== undefined) columns.operation_expires_at = facts.operationExpiresAtMs;
  if (facts.output !== undefined) columns.output = json(facts.output);
  if (facts.upload !== undefined) columns.upload = json(facts.upload);
  if (facts.file !== undefined) columns.file = json(facts.file);
  if (facts.failure !== undefined) columns.failure = json(facts.failure);
  return columns;
}

function toRow(run: Run): RunRow {
  return {
    id: run.id,
    launch_id: run.launchId,
    state: run.state,
    step_id: run.stepId,
    step_version: run.stepVersion,
    parameters: JSON.stringify(run.parameters),
    input: JSON.stringify(run.input),
    idempotency_key: run.idempotencyKey,
    operation_id: run.operationId,
    operation_expires_at: run.operationExpiresAtMs,
    output: json(run.output),
    upload: json(run.upload),
    file: json(run.file),
    failure: json(run.failure),
    created_at: run.createdAtMs,
    updated_at: run.updatedAtMs,
  };
}

function fromRow(row: RunRow): Run {
  return {
    id: row.id,
    launchId: row.launch_id,
    state: row.state as RunState,
    stepId: row.step_id,
    stepVersion: row.step_version,
    parameters: JSON.parse(row.parameters) as Run['parameters'],
    input: JSON.parse(row.input) as Run['input'],
    idempotencyKey: row.idempotency_key,
    operationId: row.operation_id,
    operationExpiresAtMs: row.operation_expires_at === null ? null : Number(row.operation_expires_at),
    output: parsed(row.output),
    upload: parsed(row.upload),
    file: parsed(row.file),
    failure: parsed(row.failure),
    createdAtMs: Number(row.created_at),
    updatedAtMs: Number(row.updated_at),
  };
}
