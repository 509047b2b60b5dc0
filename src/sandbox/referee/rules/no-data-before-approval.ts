import { isOk } from '../traced-call.ts';
import type { Rule, Violation } from './rule.ts';

/** A warning: the interface forbids to process before the approval (4.8, rule 1), and an app that fetches what it will process has begun. */
export const noDataBeforeApproval: Rule = {
  id: 'no-data-before-approval',
  clause: '4.8, rule 1',
  holds: 'no data of an item is fetched while the operation that names it is REQUESTED',
  advice: 'Fetch the input when a status answer says APPROVED: who rejects has then shared nothing.',
  judge(calls) {
    const fetched = calls.filter(
      (call) => call.endpoint === 'stac.data' && isOk(call) && call.detail.operationId !== undefined,
    );
    const violations = fetched
      .filter(({ detail }) => detail.operationStatus === 'REQUESTED')
      .map((call): Violation => ({
        severity: 'warning',
        calls: [call],
        seen: `data of ${call.detail.itemId ?? 'an item'} while the operation was REQUESTED`,
        expected: 'the data after the approval',
      }));
    return { isExercised: fetched.length > 0, violations };
  },
};
