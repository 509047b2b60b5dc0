import { cameAfter, type TracedCall } from '../traced-call.ts';
import type { Rule, Violation } from './rule.ts';

const toleranceMs = 200;

/** A warning: the interface shows no rate limit (8), HTTP says what the header asks (RFC 9110, 10.2.3). */
export const retryAfter: Rule = {
  id: 'retry-after',
  clause: '8',
  holds: 'after an answer 429 or 503 with Retry-After the same call comes no sooner than it asks',
  advice: 'Read Retry-After of a 429 or 503, and wait that long before the same call.',
  judge(calls) {
    const asked = calls.filter(
      ({ delivered, status, detail }) =>
        delivered && (status === 429 || status === 503) && detail.retryAfterSeconds !== undefined,
    );
    const repeats = asked.flatMap((call): [TracedCall, TracedCall][] => {
      const next = calls.find((other) => other !== call && cameAfter(other, call) && isSame(call, other));
      return next ? [[call, next]] : [];
    });
    const violations = repeats.flatMap(([call, next]): Violation[] => {
      const waitedMs = next.at - call.at;
      const wantedMs = call.detail.retryAfterSeconds! * 1000;
      if (waitedMs >= wantedMs - toleranceMs) return [];
      return [
        {
          severity: 'warning',
          calls: [call, next],
          seen: `the next ${next.endpoint} after ${waitedMs} ms`,
          expected: `at least ${wantedMs} ms, as Retry-After asked`,
        },
      ];
    });
    return { isExercised: repeats.length > 0, violations };
  },
};

/** Of the same endpoint, and of the same operation, upload and item as far as both tell. */
function isSame(a: TracedCall, b: TracedCall): boolean {
  const isEqual = (name: 'operationId' | 'uploadId' | 'itemId') =>
    a.detail[name] === undefined || b.detail[name] === undefined || a.detail[name] === b.detail[name];
  return a.endpoint === b.endpoint && isEqual('operationId') && isEqual('uploadId') && isEqual('itemId');
}
