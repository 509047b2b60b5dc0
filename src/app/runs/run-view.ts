import { basename } from 'node:path';
import type { StepHost } from '../processing/step-host.ts';
import type { RunEngine } from './run-engine.ts';
import { needsInWords } from './placement.ts';
import { noProgress, type RunProgress } from './run-progress.ts';
import { isFinal } from './run-state.ts';
import { stageOf } from './stages/stage-table.ts';
import type { Run, RunStateChange, RunStore, RunUsage } from './run.ts';

/** The name of the machine is for operators. */
const usageOf = ({ place: _machine, ...usage }: RunUsage) => usage;

const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());

/** A run as the app's own JSON API shows it. Times in ISO 8601 UTC; no path, no secret. */
export function viewRun(run: Run, history: readonly RunStateChange[], progress: RunProgress, steps: StepHost) {
  const step = steps.steps.find(({ id }) => id === run.stepId);
  const outputs = run.outputs.map(({ path, sizeBytes, sha256 }) => ({ fileName: basename(path), sizeBytes, sha256 }));
  return {
    id: run.id,
    state: run.state,
    isFinal: isFinal(run.state),
    name: run.operation?.name ?? step?.title ?? run.stepId,
    step: { id: run.stepId, version: run.stepVersion, title: step?.title ?? run.stepId },
    parameters: run.parameters,
    input: run.input,
    estimate: run.estimate,
    usage: run.usage && usageOf(run.usage),
    operationId: run.operationId,
    operationExpiresAt: iso(run.operationExpiresAtMs),
    progress,
    /** The first of `outputs`, and of `files`. */
    output: outputs[0] ?? null,
    outputs,
    provenance: run.provenance,
    upload: run.upload && { partSizeBytes: run.upload.partSizeBytes, acknowledgedParts: run.upload.acknowledgedParts },
    file: run.files[0] ?? null,
    files: run.files,
    failure: run.failure,
    history: history.map(({ state, atMs }) => ({ state, at: iso(atMs) })),
    createdAt: iso(run.createdAtMs),
    updatedAt: iso(run.updatedAtMs),
  };
}
/** A run as the app's HTTP API shows it. */
export type RunView = ReturnType<typeof viewRun>;
/** A run in a list. Its provenance names each input file, so only the single run has it. */
export type ListedRun = Omit<RunView, 'provenance'>;

/** The view of one run, or of many at once: their histories come in one query, and only what is under way has progress. */
export function runViewer({
  store,
  engine,
  steps,
}: {
  store: Pick<RunStore, 'histories'>;
  engine: Pick<RunEngine, 'progress' | 'canBeDone'>;
  steps: StepHost;
}) {
  /** Answers of one request, by step and needs: a list has many runs of one step. */
  type Abilities = Map<string, Promise<boolean>>;
  const progressOf = async (run: Run, abilities: Abilities): Promise<RunProgress> => {
    if (isFinal(run.state)) return noProgress;
    const progress = await engine.progress(run);
    if (progress.note !== null || stageOf(run.state)?.queueName !== 'process') return progress;
    const step = `the step ${run.stepId} ${run.stepVersion}`;
    const wanted = [step, needsInWords(run.needs)].filter((part) => part !== null).join(', ');
    const canBeDone = abilities.get(wanted) ?? engine.canBeDone(run);
    abilities.set(wanted, canBeDone);
    if (await canBeDone) return progress;
    return { ...progress, note: `no worker has ${wanted} at the moment; the run waits for one` };
  };
  const view = async (
    run: Run,
    histories: ReadonlyMap<string, readonly RunStateChange[]>,
    abilities: Abilities = new Map(),
  ): Promise<RunView> => viewRun(run, histories.get(run.id) ?? [], await progressOf(run, abilities), steps);
  return {
    one: async (run: Run): Promise<RunView> => view(run, await store.histories([run.id])),
    all: async (runs: readonly Run[]): Promise<ListedRun[]> => {
      const histories = await store.histories(runs.map(({ id }) => id));
      const abilities: Abilities = new Map();
      const views = await Promise.all(runs.map((run) => view(run, histories, abilities)));
      return views.map(({ provenance: _ofSingleRun, ...listed }) => listed);
    },
  };
}
