import { KitError } from '../../contract/index.ts';

/** The states of a run, in the order in which a run that goes well passes them; then the ends. */
export const runStates = [
  'CREATED',
  'AWAITING_APPROVAL',
  'APPROVED',
  'PROCESSING',
  'UPLOADING',
  'COMPLETED',
  'REJECTED',
  'EXPIRED',
  'CANCELLED',
  'FAILED',
] as const;
/** The state of a run. */
export type RunState = (typeof runStates)[number];

const transitions = {
  CREATED: ['AWAITING_APPROVAL', 'CANCELLED', 'FAILED'],
  AWAITING_APPROVAL: ['APPROVED', 'REJECTED', 'EXPIRED', 'CANCELLED', 'FAILED'],
  APPROVED: ['PROCESSING', 'CANCELLED', 'FAILED'],
  PROCESSING: ['UPLOADING', 'CANCELLED', 'FAILED'],
  UPLOADING: ['COMPLETED', 'PROCESSING', 'CANCELLED', 'FAILED'],
  COMPLETED: [],
  REJECTED: [],
  EXPIRED: [],
  CANCELLED: [],
  FAILED: [],
} as const satisfies Readonly<Record<RunState, readonly RunState[]>>;

/** Lists the states that may follow each state. Only APPROVED, PROCESSING itself (a repeat) and a lost output lead to PROCESSING. */
export const runTransitions: Readonly<Record<RunState, readonly RunState[]>> = transitions;

/** A state that no other follows. */
export type FinalState = {
  [State in RunState]: (typeof transitions)[State] extends readonly [] ? State : never;
}[RunState];

export function isFinal(state: RunState): state is FinalState {
  return runTransitions[state].length === 0;
}

/** The table does not allow the move, or the run has left its state meanwhile. */
export class IllegalTransitionError extends KitError {
  constructor(runId: string, from: RunState, to: RunState) {
    super('illegal_transition', `run ${runId} cannot go from ${from} to ${to}`, {
      status: 409,
      data: { runId, from, to },
    });
  }
}

/** Throws `IllegalTransitionError` where the table does not allow the move. */
export function assertTransition(runId: string, from: RunState, to: RunState): void {
  if (!runTransitions[from].includes(to)) throw new IllegalTransitionError(runId, from, to);
}
