import type { CreatedOperation } from '../../../contract/index.ts';
import { operationOf } from '../operation-request.ts';
import { commitTransition } from './retry.ts';
import type { Stage } from './stage.ts';

/**
 * CREATED to AWAITING_APPROVAL. The idempotency key was committed with the run, so a repeat after a lost
 * answer or a crash gets the same operation, on a platform that honours it.
 */
export const askForApproval: Stage = async (run, context) => {
  const operation = run.operation ?? operationOf(context.steps.find(run.stepId), run);
  const created = await context.calls.createOperation({ idempotencyKey: run.idempotencyKey, operation }, context);
  const expiresAtMs = expiryOf(created, context.now(), context.settings.limits.operationWindowMs);
  return commitTransition(context, run, 'AWAITING_APPROVAL', {
    operationId: created.operationId,
    operationExpiresAtMs: expiresAtMs,
  });
};

/** The end of the operation's window by this machine's clock. The platform's clock may show another time, so only the length of the window counts. */
function expiryOf({ createdAt, expiresAt }: CreatedOperation, nowMs: number, assumedWindowMs: number): number {
  if (expiresAt === undefined) return nowMs + assumedWindowMs;
  return createdAt === undefined
    ? Date.parse(expiresAt)
    : nowMs + Math.max(0, Date.parse(expiresAt) - Date.parse(createdAt));
}
