import type { Lane, QueuedRun } from '../run-queue.ts';
import type { RunState } from '../run-state.ts';
import type { UnfinishedRun } from '../run.ts';
import { awaitDecision } from './await-decision.ts';
import { createOperation } from './create-operation.ts';
import { beginProcessing, processInput } from './process.ts';
import type { Stage } from './stage.ts';
import { uploadOutputs } from './upload.ts';

/** The work of each state, and its lane in the queue. States that are missing here are final. */
export const stages: Partial<Record<RunState, { readonly work: Stage; readonly lane: Lane | null }>> = {
  CREATED: { work: createOperation, lane: 'wait' },
  AWAITING_APPROVAL: { work: awaitDecision, lane: 'wait' },
  APPROVED: { work: beginProcessing, lane: 'process' },
  PROCESSING: { work: processInput, lane: 'process' },
  // Stays with the worker that processed it, or with whoever finds it: an upload need not wait for a step to end.
  UPLOADING: { work: uploadOutputs, lane: null },
};

/** Each in the lane of its state; the runs of one user one behind the other. */
export function inTurns(runs: readonly UnfinishedRun[]): QueuedRun[] {
  const counts = new Map<string, number>();
  return runs.map(({ id, owner, state }) => {
    const lane = stages[state]?.lane ?? 'wait';
    const behind = lane === 'process' ? (counts.get(owner) ?? 0) : 0;
    counts.set(owner, behind + 1);
    return { runId: id, lane, behind };
  });
}
