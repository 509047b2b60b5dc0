import { decisionsIn, isRefused, isUpload } from '../traced-call.ts';
import type { Rule, Violation } from './rule.ts';

export const noWorkAfterRefusal: Rule = {
  id: 'no-work-after-refusal',
  clause: '4.8, rule 4',
  holds: 'no upload call while the operation is REJECTED or EXPIRED',
  advice: 'End the run at REJECTED and EXPIRED. To try again, create a new operation and wait for its approval.',
  judge(calls) {
    const wasTold = decisionsIn(calls).some(({ detail }) => isRefused(detail.operationStatus));
    const violations = calls
      .filter((call) => isUpload(call) && call.detail.foreign === undefined && isRefused(call.detail.operationStatus))
      .map((call): Violation => ({
        severity: 'failed',
        calls: [call],
        seen: `${call.endpoint} while the operation was ${call.detail.operationStatus}`,
        expected: 'no initiate, chunk or complete after a refusal',
      }));
    return { isExercised: wasTold || violations.length > 0, violations };
  },
};
