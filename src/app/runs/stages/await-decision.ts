import { KitError } from '../../../contract/index.ts';
import { pollOperation } from '../operation-poller.ts';
import { noProgress } from '../run-progress.ts';
import type { Run } from '../run.ts';
import { commitTransition, saidBy } from './retry.ts';
import type { Stage } from './stage.ts';

/** The app polls a platform that does not answer for at least this long after the operation's window. */
const patiencePastWindowMs = 5 * 60_000;
const waiting = { ...noProgress, note: 'waiting for the decision in the platform' };

/** AWAITING_APPROVAL to APPROVED, REJECTED or EXPIRED, whichever the platform says; the app's own clock decides nothing. */
export const awaitDecision: Stage = async (run, context) => {
  const operationId = requireOperation(run);
  const windowEndsMs = run.operationExpiresAtMs ?? run.updatedAtMs + context.settings.limits.operationWindowMs;
  context.report(waiting);
  let polledAtMs: number | null = null;
  const status = await pollOperation({
    async getStatus() {
      const nowMs = performance.now();
      if (polledAtMs !== null) context.onPollInterval((nowMs - polledAtMs) / 1000);
      polledAtMs = nowMs;
      const view = await context.calls.getOperation({ operationId }, context);
      context.patience.answered();
      return view;
    },
    intervalMs: context.settings.pollIntervalMs,
    bounds: context.settings.limits.pollIntervalMs,
    signal: context.signal,
    onUnanswered: (error) => {
      const giveUpAtMs = Math.max(windowEndsMs + patiencePastWindowMs, context.patience.unanswered());
      if (context.now() >= giveUpAtMs) throw error;
      context.log.warn(
        { code: error.code, requestId: error.requestId },
        'the platform does not answer, the app keeps polling',
      );
      context.report({
        ...noProgress,
        note: `${saidBy(error)}; asking again every ${context.settings.pollIntervalMs / 1_000} s`,
      });
    },
    onAnswered: () => context.report(waiting),
  });
  return commitTransition(context, run, status);
};

/** Every state after CREATED has an operation. */
export function requireOperation(run: Run): string {
  if (run.operationId === null)
    throw new KitError('internal_error', `run ${run.id} is ${run.state} without an operation`);
  return run.operationId;
}
