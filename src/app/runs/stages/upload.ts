import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { uploadFile } from '../../upload/uploader.ts';
import type { RunOutput } from '../run.ts';
import { requireOperation } from './await-decision.ts';
import { patiently } from './patience.ts';
import type { Stage } from './stage.ts';

/**
 * UPLOADING to COMPLETED, from the first part that was not acknowledged; back to PROCESSING where the
 * output is gone or is not the one the upload began with.
 */
export const uploadOutput: Stage = async (run, context) => {
  const { output } = run;
  if (output === null || !(await isIntact(output, context.signal))) {
    context.log.warn({}, 'the output is gone or has changed, processing again');
    return context.store.transition(run, 'PROCESSING', { output: null, upload: null });
  }
  const step = context.steps.find(run.stepId);
  let current = run;
  const completed = await uploadFile(
    {
      operationId: requireOperation(run),
      path: output.path,
      sizeBytes: output.sizeBytes,
      fileName: basename(output.path),
      sourceType: step.output.sourceType,
      resume: run.upload,
    },
    {
      calls: context.calls,
      partSizeBytes: context.settings.uploadPartBytes,
      save: async (upload) => {
        current = await context.store.record(current, { upload });
      },
      onProgress: (sent) =>
        context.report({ fraction: sent / output.sizeBytes, note: 'uploading the output', bytes: { sent, total: output.sizeBytes } }),
      signal: context.signal,
      patiently: (call) => patiently(context, call),
    },
  );
  return context.store.transition(current, 'COMPLETED', {
    file: { fileId: completed.fileId ?? null, sizeBytes: completed.size ?? output.sizeBytes },
  });
};

async function isIntact(output: RunOutput, signal: AbortSignal): Promise<boolean> {
  const hash = createHash('sha256');
  let sizeBytes = 0;
  try {
    for await (const bytes of createReadStream(output.path, { highWaterMark: 1024 * 1024, signal })) {
      hash.update(bytes as Buffer);
      sizeBytes += (bytes as Buffer).length;
    }
  } catch (error) {
    signal.throwIfAborted();
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
  return sizeBytes === output.sizeBytes && hash.digest('hex') === output.sha256;
}
