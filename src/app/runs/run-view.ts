import { basename } from 'node:path';
import type { StepHost } from '../processing/step-host.ts';
import type { RunEngine } from './run-engine.ts';
import { noProgress, type RunProgress } from './run-progress.ts';
import { isFinal } from './run-state.ts';
import type { Run, RunStateChange, RunStore } from './run.ts';

const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());

/** A run as the app's own JSON API shows it. Times in ISO 8601 UTC; no path, no secret. */
export function viewRun(run: Run, history: readonly RunStateChange[], progress: RunProgress, steps: StepHost) {
  const step = steps.steps.find(({ id }) => id === run.stepId);
  const outputs = run.outputs.map(({ path, sizeBytes, sha256 }) => ({ fileName: basename(path), sizeBytes, sha256 }));
  return {
    id: run.id,
    state: run.state,
    isFinal: isFinal(run.state),
    step: { id: run.stepId, version: run.stepVersion, title: step?.title ?? run.stepId },
    parameters: run.parameters,
    input: run.input,
    estimate: run.estimate,
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
  engine: Pick<RunEngine, 'progress'>;
  steps: StepHost;
}) {
  const view = async (run: Run, histories: ReadonlyMap<string, readonly RunStateChange[]>): Promise<RunView> => {
    const progress = isFinal(run.state) ? noProgress : await engine.progress(run);
    return viewRun(run, histories.get(run.id) ?? [], progress, steps);
  };
  return {
    one: async (run: Run): Promise<RunView> => view(run, await store.histories([run.id])),
    all: async (runs: readonly Run[]): Promise<ListedRun[]> => {
      const histories = await store.histories(runs.map(({ id }) => id));
      const views = await Promise.all(runs.map((run) => view(run, histories)));
      return views.map(({ provenance: _ofSingleRun, ...listed }) => listed);
    },
  };
}
