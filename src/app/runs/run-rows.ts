import { basename } from 'node:path';
import type { Updateable } from 'kysely';
import type { RunRow } from '../database.ts';
import type { RunNeeds } from './placement.ts';
import type { Run, RunFacts, RunFile, RunOutput, UnfinishedRun } from './run.ts';
import { ownJson } from '../../files/index.ts';

export const toUnfinished = (row: Pick<RunRow, 'id' | 'owner' | 'state'>): UnfinishedRun => ({
  id: row.id,
  owner: row.owner,
  state: row.state,
});

const json = (value: unknown) => (value === null ? null : JSON.stringify(value));
const parsed = <T>(text: string | null): T | null => (text === null ? null : ownJson<T>(text));

/** Files of runs that had one output had no name of their own. */
const asFile = (
  { fileId = null, sizeBytes = 0, fileName, sha256, output: name }: Partial<RunFile>,
  output?: RunOutput,
): RunFile => ({
  fileId,
  ...(name !== undefined && { output: name }),
  fileName: fileName ?? basename(output?.path ?? ''),
  sizeBytes,
  sha256: sha256 ?? output?.sha256 ?? '',
});

const needColumns = ({ label, memoryBytes, cores, diskBytes }: RunNeeds) => ({
  ...{ needs_label: label, needs_memory: memoryBytes, needs_cores: cores, needs_disk: diskBytes },
});

export function factColumns(facts: RunFacts): Updateable<RunRow> {
  const columns: Updateable<RunRow> = {};
  if (facts.operationId !== undefined) columns.operation_id = facts.operationId;
  if (facts.operationExpiresAtMs !== undefined) columns.operation_expires_at = facts.operationExpiresAtMs;
  if (facts.outputs !== undefined) columns.outputs = json(facts.outputs);
  if (facts.provenance !== undefined) columns.provenance = json(facts.provenance);
  if (facts.upload !== undefined) columns.upload = json(facts.upload);
  if (facts.files !== undefined) columns.files = json(facts.files);
  if (facts.failure !== undefined) columns.failure = json(facts.failure);
  if (facts.needs !== undefined) Object.assign(columns, needColumns(facts.needs));
  if (facts.memoryLimitBytes !== undefined) columns.memory_limit = facts.memoryLimitBytes;
  if (facts.usage !== undefined) columns.usage = json(facts.usage);
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
    operation_request: json(run.operation),
    operation_id: run.operationId,
    operation_expires_at: run.operationExpiresAtMs,
    outputs: json(run.outputs),
    provenance: json(run.provenance),
    upload: json(run.upload),
    files: json(run.files),
    failure: json(run.failure),
    estimate: json(run.estimate),
    ...needColumns(run.needs),
    memory_limit: run.memoryLimitBytes,
    grid: json(run.grid),
    usage: json(run.usage),
    claim: run.claim,
    worker: null,
    turn: 0,
    created_at: run.createdAtMs,
    updated_at: run.updatedAtMs,
  };
}

export function fromRow(row: RunRow): Run {
  const outputs = parsed<Run['outputs']>(row.outputs) ?? [];
  return {
    id: row.id,
    owner: row.owner,
    launchId: row.launch_id,
    state: row.state,
    stepId: row.step_id,
    stepVersion: row.step_version,
    parameters: ownJson<Run['parameters']>(row.parameters),
    input: ownJson<Run['input']>(row.input),
    idempotencyKey: row.idempotency_key,
    operation: parsed(row.operation_request),
    operationId: row.operation_id,
    operationExpiresAtMs: row.operation_expires_at,
    outputs,
    provenance: parsed(row.provenance),
    upload: parsed(row.upload),
    files: (parsed<Partial<RunFile>[]>(row.files) ?? []).map((file, i) => asFile(file, outputs[i])),
    failure: parsed(row.failure),
    estimate: parsed(row.estimate),
    needs: {
      label: row.needs_label,
      memoryBytes: row.needs_memory,
      cores: row.needs_cores,
      diskBytes: row.needs_disk,
    },
    memoryLimitBytes: row.memory_limit,
    grid: parsed(row.grid),
    usage: parsed(row.usage),
    claim: row.claim,
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
  };
}
