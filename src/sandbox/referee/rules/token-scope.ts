import { cameAfter, type TracedCall } from '../traced-call.ts';
import type { Rule, Violation } from './rule.ts';

export const tokenScope: Rule = {
  id: 'token-scope',
  clause: '4.8, rule 5',
  holds: "a token never with another launch's operation, upload or key, nor after its successor was first used",
  advice:
    'Keep token, operation, upload and key of each launch together. When a renewal answers another token, use that one from then on.',
  judge(calls) {
    const foreign = calls
      .filter(({ detail }) => detail.foreign !== undefined)
      .map((call): Violation => ({
        severity: 'failed',
        calls: [call],
        seen: `${call.endpoint} with the ${call.detail.foreign} of another launch`,
        expected: 'only what belongs to the launch of the token',
      }));
    return {
      isExercised: calls.some(
        ({ detail }) =>
          detail.operationId !== undefined || detail.uploadId !== undefined || detail.foreign !== undefined,
      ),
      violations: [...foreign, ...oldTokens(calls)],
    };
  },
};

/** Calls with a token whose successor had been used in an earlier call. */
function oldTokens(calls: readonly TracedCall[]): Violation[] {
  const firstUse = new Map<number, TracedCall>();
  for (const call of calls) {
    const number = call.detail.tokenNumber;
    // A call with a wrong API key does not use the token.
    if (number !== undefined && call.detail.code !== 'authentication_failed' && !firstUse.has(number))
      firstUse.set(number, call);
  }
  const numbers = [...firstUse.keys()].sort((a, b) => a - b);
  const successors = new Map(numbers.map((number, i) => [number, numbers[i + 1]]));
  return calls.flatMap((call): Violation[] => {
    const { tokenNumber } = call.detail;
    const successor = tokenNumber === undefined ? undefined : successors.get(tokenNumber);
    const used = successor === undefined ? undefined : firstUse.get(successor);
    if (!used || !cameAfter(call, used)) return [];
    return [
      {
        severity: 'failed',
        calls: [used, call],
        seen: `${call.endpoint} with a token whose successor was in use already`,
        expected: 'the newest token',
      },
    ];
  });
}
