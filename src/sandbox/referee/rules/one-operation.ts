import { isCreate, isOk, pollsByOperation, type TracedCall } from '../traced-call.ts';
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
    const polls = pollsByOperation(calls);
    const pollsOf = ({ detail }: TracedCall) => (polls.get(detail.operationId ?? '') ?? []).filter(isOk);
    // The last operation that the app polls is enough: an operation that was left for another one was also left for it.
    const later = created.findLast((create) => pollsOf(create).length >= pollsOfLater);
    if (later === undefined) return { isExercised: created.length > 0, violations: [] };
    const violations = created.slice(0, created.indexOf(later)).flatMap((create): Violation[] => {
      const own = pollsOf(create);
      const isLeft = own.every(({ at, detail }) => at <= later.at && detail.operationStatus === 'REQUESTED');
      if (!isLeft) return [];
      const last = own.length > 0 ? 'last seen REQUESTED' : 'never asked for';
      return [
        {
          severity: 'warning',
          calls: [create, later],
          seen: `another operation, and no further status call of the first, which was ${last}`,
          expected: 'one operation for one piece of work',
        },
      ];
    });
    return { isExercised: true, violations };
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
