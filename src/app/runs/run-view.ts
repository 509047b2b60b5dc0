import type { StepHost } from '../processing/step-host.ts';
import type { RunProgress } from './run-progress.ts';
import { isFinal } from './run-state.ts';
import type { Run, RunStateChange } from './run.ts';

const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());

/** A run as the app's own JSON API shows it. Times in ISO 8601 UTC; no path, no secret. */
export function viewRun(run: Run, history: readonly RunStateChange[], progress: RunProgress, steps: StepHost) {
  const step = steps.steps.find(({ id }) => id === run.stepId);
  return {
    id: run.id,
    state: run.state,
    isFinal: isFinal(run.state),
    step: { id: run.stepId, version: run.stepVersion, title: step?.title ?? run.stepId },
    parameters: run.parameters,
    input: run.input,
    operationId: run.operationId,
    operationExpiresAt: iso(run.operationExpiresAtMs),
    progress,
    output: run.output && { sizeBytes: run.output.sizeBytes, sha256: run.output.sha256 },
    upload: run.upload && { partSizeBytes: run.upload.partSizeBytes, acknowledgedParts: run.upload.acknowledgedParts },
    file: run.file,
    failure: run.failure,
    history: history.map(({ state, atMs }) => ({ state, at: iso(atMs) })),
    createdAt: iso(run.createdAtMs),
    updatedAt: iso(run.updatedAtMs),
  };
}
export type RunView = ReturnType<typeof viewRun>;
