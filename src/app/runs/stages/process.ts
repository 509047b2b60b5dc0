import { noProgress } from '../run-progress.ts';
import { commitMove, patiently } from './patience.ts';
import type { Stage } from './stage.ts';

/** How often a long step looks after the token, so that the upload finds it alive. */
const keepAliveEveryMs = 60_000;

/** APPROVED to PROCESSING: committed before the step starts (spec 4.8, rule 1). */
export const beginProcessing: Stage = (run, context) => context.store.transition(run, 'PROCESSING');

/** PROCESSING to UPLOADING, with the output's digest. After a crash the step runs again from the start. */
export const processInput: Stage = async (run, context) => {
  const keepAlive = setInterval(() => {
    context.calls
      .keepAlive(context)
      .catch((error: unknown) => context.log.warn({ err: error }, 'could not renew the token at the moment'));
  }, keepAliveEveryMs);
  try {
    const { result, ...output } = await context.steps.run(
      {
        owner: await context.ownerOf(run.launchId),
        stepId: run.stepId,
        parameters: run.parameters,
        input: run.input,
        workFolder: context.workFolder,
      },
      {
        signal: context.signal,
        onProgress: (fraction, note) => context.report({ ...noProgress, fraction, note }),
        patiently: (call) => patiently(context, call),
      },
    );
    context.madeHere.sha256 = output.sha256;
    return await commitMove(context, run, 'UPLOADING', { output, upload: null, result });
  } finally {
    clearInterval(keepAlive);
  }
};
