import { basename } from 'node:path';
import { completeWithoutFile, uploadFile } from '../../upload/uploader.ts';
import { requireOperation } from './await-decision.ts';
import { commitMove, patiently } from './patience.ts';
import type { Stage } from './stage.ts';

/**
 * UPLOADING to COMPLETED, from the first part that was not acknowledged; back to PROCESSING where the
 * output is gone or is not the one the upload began with, and the platform has not all of it.
 */
export const uploadOutput: Stage = async (run, context) => {
  const { output, upload } = run;
  const { sourceType } = context.steps.find(run.stepId).output;
  const options = {
    calls: context.calls,
    signal: context.signal,
    patiently: <T>(call: () => Promise<T>) => patiently(context, call),
  };
  const isHere =
    output !== null &&
    (output.sha256 === context.madeHere.sha256 || (await context.folders.holds(output, context.signal)));
  let current = run;
  const completed = isHere
    ? await uploadFile(
        {
          operationId: requireOperation(run),
          path: output.path,
          sizeBytes: output.sizeBytes,
          fileName: basename(output.path),
          sourceType,
          resume: upload,
        },
        {
          ...options,
          partSizeBytes: context.settings.uploadPartBytes,
          limits: context.settings.limits,
          save: async (progress) => {
            current = await context.store.record(current, { upload: progress });
          },
          onProgress: (sent) =>
            context.report({
              fraction: sent / output.sizeBytes,
              note: 'uploading the output',
              bytes: { sent, total: output.sizeBytes },
            }),
        },
      )
    : output && (await completeWithoutFile({ sizeBytes: output.sizeBytes, sourceType, resume: upload }, options));
  if (!output || !completed) {
    context.madeHere.sha256 = null;
    context.log.warn({}, 'the output is missing or has changed, processing again');
    return context.store.transition(run, 'PROCESSING', { output: null, upload: null });
  }
  return commitMove(context, current, 'COMPLETED', {
    file: { fileId: completed.fileId ?? null, sizeBytes: completed.size ?? output.sizeBytes },
  });
};
