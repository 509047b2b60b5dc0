import type { QueueName, QueuedRun } from '../run-queue.ts';
import { isFinal, type FinalState, type RunState } from '../run-state.ts';
import type { UnfinishedRun } from '../run.ts';
import { awaitDecision } from './await-decision.ts';
import { askForApproval } from './ask-for-approval.ts';
import { beginProcessing, processInput } from './process.ts';
import type { Stage } from './stage.ts';
import { uploadOutputs } from './upload.ts';

interface StageEntry {
  readonly work: Stage;
  /** Null: the run stays with its worker, or with the worker that finds it. */
  readonly queueName: QueueName | null;
}

/**
 * The flow of spec 4.8 after the launch (`launch/begin-launch.ts`: steps 1 and 2), in its order: the work of each state that is not final, and its queue
 * in the queue. On REJECTED and EXPIRED nothing follows (rule 4).
 */
const stages: Readonly<Record<Exclude<RunState, FinalState>, StageEntry>> = {
  // Step 3: create the operation.
  CREATED: { work: askForApproval, queueName: 'wait' },
  // Step 4 and rule 2: poll every 2 to 5 s.
  AWAITING_APPROVAL: { work: awaitDecision, queueName: 'wait' },
  // Rule 1: processing starts only now.
  APPROVED: { work: beginProcessing, queueName: 'process' },
  PROCESSING: { work: processInput, queueName: 'process' },
  // Steps 5 to 7 and rule 3: initiate, chunks in order, complete. An upload need not wait for the step of another run.
  UPLOADING: { work: uploadOutputs, queueName: null },
};

/** The stage of a state; null if the state is final. */
export const stageOf = (state: RunState): StageEntry | null => (isFinal(state) ? null : stages[state]);

/** Converts a run to an entry of the queue, in the queue of its state. */
export const queuedRun = ({ id, state }: UnfinishedRun): QueuedRun => ({
  runId: id,
  queueName: stageOf(state)?.queueName ?? 'wait',
});
