import type { WireLimits } from '../../../contract/index.ts';
import { cameAfter, decisionsIn, firstOfEach, isOk, pollsByOperation, type TracedCall } from '../traced-call.ts';
import type { Rule, Violation } from './rule.ts';

const toleranceMs = 200;
/** The rule ignores the maximum if the sandbox was late or not running for this long. The app's machine may have been late too. */
const lateMachineMs = 200;
type Bounds = WireLimits['pollIntervalMs'];

/** Within the platform's bounds. */
export const pollInterval = ({ min, max }: Bounds): Rule => ({
  id: 'poll-interval',
  clause: '4.8, rule 2',
  holds: `between two status calls of one operation at least ${min} ms (and at most ${max} ms, as recommended)`,
  advice: `Wait ${min} to ${max} ms after each status call before the next one, whatever else the app does meanwhile.`,
  judge(calls) {
    const decisions = firstOfEach(decisionsIn(calls));
    const violations: Violation[] = [];
    let [judged, late] = [0, 0];
    for (const [operationId, polls] of pollsByOperation(calls)) {
      const decision = decisions.get(operationId);
      let before: TracedCall | null = null;
      for (const call of polls) {
        // Another rule, poll-stops, judges calls after the decision.
        if (decision && call !== decision && cameAfter(call, decision)) continue;
        if (before && isOk(before)) {
          judged += 1;
          if (ownTimeOf(call) >= lateMachineMs) late += 1;
          const violation = violationOf(before, call, { min, max });
          if (violation) violations.push(violation);
        }
        before = call;
      }
    }
    return {
      ...(late > 0 && {
        note: `${late} of ${judged} intervals are not judged against the maximum of ${max} ms, because the sandbox was late or not running`,
      }),
      isExercised: judged > 0,
      violations,
    };
  },
});

/** Time before a call in which the sandbox was late or not running, ms. */
const ownTimeOf = ({ detail: { lateMs = 0, awayMs = 0 } }: TracedCall) => lateMs + awayMs;

/**
 * From start to start or from answer to start, whichever is kinder: the longer for the minimum, the shorter for the maximum.
 * The sandbox may have handled the first call late, so its delay is added to the minimum's interval.
 */
function violationOf(before: TracedCall, call: TracedCall, { min, max }: Bounds): Violation | null {
  const fromStart = call.at - before.at + (before.detail.heldMs ?? 0);
  const fromAnswer = call.at - before.endedAt;
  if (fromStart < min - toleranceMs)
    return {
      severity: 'failed',
      calls: [before, call],
      seen: `the next status call after ${fromStart} ms`,
      expected: `at least ${min} ms`,
    };
  if (ownTimeOf(call) < lateMachineMs && fromAnswer > max + toleranceMs)
    return {
      severity: 'warning',
      calls: [before, call],
      seen: `the next status call after ${Math.round(fromAnswer)} ms`,
      expected: `at most ${max} ms`,
    };
  return null;
}
