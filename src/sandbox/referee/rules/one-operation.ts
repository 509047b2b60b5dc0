import { isCreate, isOk, type TracedCall } from '../traced-call.ts';
import type { Rule, Violation } from './rule.ts';

/** Status calls of a later operation after which an earlier one without any counts as left. */
const pollsOfLater = 2;

/** A warning: the interface allows several operations of a launch, but a user sees a request that nobody waits for. */
export const oneOperation: Rule = {
  id: 'one-operation',
  clause: '4.8, step 3',
  holds: 'no operation is left REQUESTED for another one of the same launch',
  advice:
    'Repeat a create call that failed with the same Idempotency-Key, which gives the same operation. The user sees each further operation as another request.',
  judge(calls) {
    const created = firstCreates(calls);
    const violations = created.flatMap((create, i): Violation[] => {
      const later = created.slice(i + 1).find((other) => isLeftFor(create, other, calls));
      if (later === undefined) return [];
      const isPolled = calls.some(
        ({ endpoint, detail }) => endpoint === 'operation.status' && detail.operationId === create.detail.operationId,
      );
      return [
        {
          severity: 'warning',
          calls: [create, later],
          seen: `another operation, and no further status call of the first, which was ${isPolled ? 'last seen REQUESTED' : 'never asked for'}`,
          expected: 'one operation for one piece of work',
        },
      ];
    });
    return { isExercised: created.length > 0, violations };
  },
};

/** The first call that created each operation, in their order. The answer of a create call may have been lost. */
function firstCreates(calls: readonly TracedCall[]): TracedCall[] {
  const first = new Map<string, TracedCall>();
  for (const call of calls) {
    const { operationId } = call.detail;
    if (isCreate(call) && operationId !== undefined && !first.has(operationId)) first.set(operationId, call);
  }
  return [...first.values()];
}

/** True if the app polls the later operation, and never again the earlier one, which nobody has decided. */
function isLeftFor(create: TracedCall, later: TracedCall, calls: readonly TracedCall[]): boolean {
  const polls = calls.filter((call) => call.endpoint === 'operation.status' && isOk(call));
  const ofEarlier = polls.filter(({ detail }) => detail.operationId === create.detail.operationId);
  const ofLater = polls.filter(({ detail }) => detail.operationId === later.detail.operationId);
  const isUndecided = ofEarlier.every(({ detail }) => detail.operationStatus === 'REQUESTED');
  const isPolledStill = ofEarlier.some(({ at }) => at > later.at);
  return isUndecided && !isPolledStill && ofLater.length >= pollsOfLater;
}
