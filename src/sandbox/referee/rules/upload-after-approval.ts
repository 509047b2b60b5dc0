import { cameAfter, decisionsIn, isRefused, isUpload, type TracedCall } from '../traced-call.ts';
import type { Rule, Violation } from './rule.ts';

export const uploadAfterApproval: Rule = {
  id: 'upload-after-approval',
  clause: '4.8, rules 1 and 3',
  holds: 'no upload call while the operation is REQUESTED, nor before a status answer APPROVED',
  advice: 'Poll GET /operation/{token}?operationId=... and call initiate only when an answer says APPROVED.',
  needsAllBefore: true,
  judge(calls) {
    /** The first delivered approval by operation, and of all operations under `undefined`. */
    const told = new Map<string | undefined, TracedCall>();
    for (const call of decisionsIn(calls))
      if (call.detail.operationStatus === 'APPROVED')
        for (const id of [undefined, call.detail.operationId]) {
          const known = told.get(id);
          if (!known || call.endedAt < known.endedAt) told.set(id, call);
        }
    // While an operation is refused another rule judges.
    const judged = calls.filter(
      (call) => isUpload(call) && call.detail.foreign === undefined && !isRefused(call.detail.operationStatus),
    );
    const wasTold = (call: TracedCall) => {
      const approval = told.get(call.detail.operationId);
      return approval !== undefined && cameAfter(call, approval);
    };
    const violations = judged
      .filter((call) => !wasTold(call))
      .map((call): Violation => ({
        severity: 'failed',
        calls: [call],
        seen: whatWasSeen(call),
        expected: 'a status answer APPROVED before the first upload call',
      }));
    return { isExercised: judged.length > 0, violations };
  },
};

function whatWasSeen({ endpoint, detail }: TracedCall): string {
  if (detail.operationStatus === undefined) return `${endpoint} before any operation was approved`;
  if (detail.operationStatus === 'REQUESTED') return `${endpoint} while the operation was REQUESTED`;
  return `${endpoint} while the operation was ${detail.operationStatus}, which no status answer had told the app yet`;
}
