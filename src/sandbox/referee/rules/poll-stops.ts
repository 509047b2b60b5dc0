import {
  cameAfter,
  decisionsIn,
  firstOfEach,
  isSurelyTold,
  pollsByOperation,
  type TracedCall,
} from '../traced-call.ts';
import type { Rule, Violation } from './rule.ts';

/** An app that was restarted may ask again what it had not kept. */
const allowedAgain = 1;

export const pollStops: Rule = {
  id: 'poll-stops',
  clause: '4.8, rule 2',
  holds: 'after a status answer APPROVED, REJECTED or EXPIRED no more status calls, but for one re-read',
  advice: 'Stop polling at the first answer that is not REQUESTED, and keep it: it does not change any more.',
  judge(calls) {
    const polls = pollsByOperation(calls);
    const decisions = decisionsIn(calls);
    const decided = firstOfEach(decisions.filter(isSurelyTold));
    const violations = [...decided].flatMap(([operationId, decision]) => {
      const again = (polls.get(operationId) ?? []).filter(
        (call) => call !== decision && cameAfter(call, decision) && isAnswered(call),
      );
      return again.slice(allowedAgain).map((call): Violation => ({
        severity: 'failed',
        calls: [decision, call],
        seen: `a status call ${Math.round(call.at - decision.endedAt)} ms after the answer ${decision.detail.operationStatus}`,
        expected: 'no status call after a decision (one re-read is allowed)',
      }));
    });
    return { isExercised: decisions.length > 0, violations };
  },
};

/** A re-read that failed may be tried again. */
function isAnswered({ delivered, status, detail }: TracedCall): boolean {
  return delivered && status !== null && status < 500 && status !== 429 && detail.code !== 'token_expired';
}
