import { noProgress } from '../run-progress.ts';
import { commitTransition, retryWhileDown } from './retry.ts';
import type { Run } from '../run.ts';
import type { Stage, StageContext, StageLog } from './stage.ts';

/** Interval at which a long step keeps the token alive, so that the upload can still use it. */
const keepAliveEveryMs = 60_000;

/** APPROVED to PROCESSING: committed before the step starts (spec 4.8, rule 1). */
export const beginProcessing: Stage = (run, context) => context.store.transition(run, 'PROCESSING');

const maxLines = 200;

/** Writes the lines that a step prints to its run's log, up to the log's limit. */
function printedTo(log: StageLog): (line: string) => void {
  let lines = 0;
  return (text) => {
    lines += 1;
    if (lines <= maxLines) log.info({ text }, 'the step printed');
    else if (lines === maxLines + 1) log.warn({ maxLines }, 'the step prints more, which is left out');
  };
}

/** Seconds between the approval and the start of the step, other attempts included. */
async function waitOf(
  { id }: Run,
  stepEndedAtMs: number,
  stepSeconds: number,
  { store }: StageContext,
): Promise<number> {
  const approved = (await store.history(id)).find(({ state }) => state === 'APPROVED');
  return approved ? Math.max(0, (stepEndedAtMs - approved.atMs) / 1_000 - stepSeconds) : 0;
}

/** PROCESSING to UPLOADING, with the outputs' digests. After a crash the step runs again from the start. */
export const processInput: Stage = async (run, context) => {
  const keepAlive = setInterval(() => {
    context.calls
      .keepAlive(context)
      .catch((error: unknown) => context.log.warn({ err: error }, 'could not renew the token at the moment'));
  }, keepAliveEveryMs);
  try {
    const { result, outputs, provenance, usage } = await context.steps.run(
      {
        run: { id: run.id, claim: run.claim },
        owner: await context.ownerOf(run.launchId),
        stepId: run.stepId,
        stepVersion: run.stepVersion,
        parameters: run.parameters,
        input: run.input,
        operationId: run.operationId,
        memoryLimitBytes: run.memoryLimitBytes,
        grid: run.grid,
        expectedMemoryBytes: run.memoryLimitBytes ?? (run.needs.memoryBytes || null),
        workFolder: context.workFolder,
      },
      {
        signal: context.signal,
        onProgress: (fraction, note, tiles = null) => context.report({ ...noProgress, fraction, note, tiles }),
        onPrinted: printedTo(context.log),
        repeat: (call) => retryWhileDown(context, call),
      },
    );
    context.madeHere.identities = new Map(
      await Promise.all(outputs.map(async (output) => [output.path, await context.folders.identify(output)] as const)),
    );
    const used = {
      ...usage,
      bytesOut: outputs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      waitSeconds: await waitOf(run, context.now(), usage.stepSeconds, context),
    };
    context.onUsage(used);
    return await commitTransition(context, run, 'UPLOADING', {
      ...{ outputs, provenance, upload: null, result, usage: used },
    });
  } finally {
    clearInterval(keepAlive);
  }
};
