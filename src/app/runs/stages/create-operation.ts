import { valueInWords } from '../../processing/step-parameters.ts';
import { estimateInWords } from '../estimate-words.ts';
import { commitMove, patiently } from './patience.ts';
import type { Stage } from './stage.ts';

/**
 * CREATED to AWAITING_APPROVAL. The idempotency key was committed with the run, so a repeat after a lost
 * answer or a crash gets the same operation, on a platform that honours it.
 */
export const createOperation: Stage = async (run, context) => {
  const step = context.steps.find(run.stepId);
  const operation = {
    name: step.title,
    description: run.estimate ? `${step.description} ${estimateInWords(run.estimate)}` : step.description,
    parameters: {
      step: `${step.id}@${run.stepVersion}`,
      input: run.input,
      // The platform shows them to people.
      ...Object.fromEntries(
        Object.entries(run.parameters).map(([name, value]) => [
          name,
          typeof value === 'object' ? valueInWords(value) : value,
        ]),
      ),
    },
  };
  const created = await patiently(context, () =>
    context.calls.createOperation({ idempotencyKey: run.idempotencyKey, operation }, context),
  );
  const expiresAtMs =
    created.expiresAt === undefined
      ? context.now() + context.settings.limits.operationWindowMs
      : Date.parse(created.expiresAt);
  return commitMove(context, run, 'AWAITING_APPROVAL', {
    operationId: created.operationId,
    operationExpiresAtMs: expiresAtMs,
  });
};
