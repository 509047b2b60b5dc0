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
  const expiresAtMs =
    created.expiresAt === undefined
      ? context.now() + context.settings.limits.operationWindowMs
      : Date.parse(created.expiresAt);
  return commitTransition(context, run, 'AWAITING_APPROVAL', {
    operationId: created.operationId,
    operationExpiresAtMs: expiresAtMs,
  });
};
