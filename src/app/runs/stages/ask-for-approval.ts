import type { CreatedOperation } from '../../../contract/index.ts';
import { operationOf } from '../operation-request.ts';
import { commitTransition } from './retry.ts';
import type { Run } from '../run.ts';
import type { Stage, StageContext } from './stage.ts';

/**
 * CREATED to AWAITING_APPROVAL. The idempotency key was committed with the run, so a repeat after a lost
 * answer or a crash gets the same operation, on a platform that honours it.
 */
export const askForApproval: Stage = async (run, context) => {
  const operation = run.operation ?? operationOf(context.steps.find(run.stepId), run);
  const created = await context.calls.createOperation({ idempotencyKey: run.idempotencyKey, operation }, context);
  const expiresAtMs = expiryOf(created, run, context);
  return commitTransition(context, run, 'AWAITING_APPROVAL', {
    operationId: created.operationId,
    operationExpiresAtMs: expiresAtMs,
  });
};

/** Clocks that differ by less than this count as equal. */
const sameClockMs = 60_000;

/**
 * The end of the operation's window by this machine's clock. If the platform's clock shows another time, only the length of the
 * window counts. The operation may be older than this response, if an earlier response was lost.
 */
export function expiryOf(
  { createdAt, expiresAt }: Pick<CreatedOperation, 'createdAt' | 'expiresAt'>,
  run: Pick<Run, 'createdAtMs'>,
  { now, settings }: Pick<StageContext, 'now' | 'settings'>,
): number {
  if (expiresAt === undefined) return now() + settings.limits.operationWindowMs;
  const [createdMs, expiresMs] = [Date.parse(createdAt ?? ''), Date.parse(expiresAt)];
  const isSameClock = createdMs >= run.createdAtMs - sameClockMs && createdMs <= now() + sameClockMs;
  return createdAt === undefined || isSameClock ? expiresMs : now() + Math.max(0, expiresMs - createdMs);
}
