import type { Updateable } from 'kysely';
import type { RunRow } from '../database.ts';
import type { RunState } from './run-state.ts';
import type { Run, RunFacts, UnfinishedRun } from './run.ts';

export const toUnfinished = (row: Pick<RunRow, 'id' | 'owner' | 'state'>): UnfinishedRun => ({
  id: row.id,
  owner: row.owner,
  state: row.state as RunState,
});

const json = (value: unknown) => (value === null ? null : JSON.stringify(value));
const parsed = <T>(text: string | null): T | null => (text === null ? null : (JSON.parse(text) as T));

export function factColumns(facts: RunFacts): Updateable<RunRow> {
  const columns: Updateable<RunRow> = {};
  if (facts.operationId !== undefined) columns.operation_id = facts.operationId;
  if (facts.operationExpiresAtMs !== undefined) columns.operation_expires_at = facts.operationExpiresAtMs;
  if (facts.output !== undefined) columns.output = json(facts.output);
  if (facts.upload !== undefined) columns.upload = json(facts.upload);
  if (facts.file !== undefined) columns.file = json(facts.file);
  if (facts.failure !== undefined) columns.failure = json(facts.failure);
  return columns;
}

export function toRow(run: Run): RunRow {
  return {
    id: run.id,
    owner: run.owner,
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
    estimate: json(run.estimate),
    claim: run.claim,
    worker: null,
    created_at: run.createdAtMs,
    updated_at: run.updatedAtMs,
  };
}

export function fromRow(row: RunRow): Run {
  return {
    id: row.id,
    owner: row.owner,
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
    estimate: parsed(row.estimate),
    claim: Number(row.claim),
    createdAtMs: Number(row.created_at),
    updatedAtMs: Number(row.updated_at),
  };
}
