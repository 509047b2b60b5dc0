import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import { uploadFile } from '../../upload/uploader.ts';
import type { RunOutput } from '../run.ts';
import { requireOperation } from './await-decision.ts';
import { patiently } from './patience.ts';
import type { Stage } from './stage.ts';

const verifyBytes = 1024 * 1024;

/**
 * UPLOADING to COMPLETED, from the first part that was not acknowledged; back to PROCESSING where the
 * output is gone or is not the one the upload began with.
 */
export const uploadOutput: Stage = async (run, context) => {
  const { output } = run;
  if (output === null || (output.sha256 !== context.madeHere.sha256 && !(await isIntact(output, context.signal)))) {
    context.madeHere.sha256 = null;
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

/** Reads the output of an earlier process once more, into one buffer: is it what was committed? */
async function isIntact(output: RunOutput, signal: AbortSignal): Promise<boolean> {
  const file = await open(output.path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (!file) return false;
  try {
    const hash = createHash('sha256');
    const buffer = Buffer.allocUnsafe(verifyBytes);
    let sizeBytes = 0;
    for (;;) {
      signal.throwIfAborted();
      const { bytesRead } = await file.read(buffer, 0, buffer.length, sizeBytes);
      if (bytesRead === 0) return sizeBytes === output.sizeBytes && hash.digest('hex') === output.sha256;
      hash.update(buffer.subarray(0, bytesRead));
      sizeBytes += bytesRead;
    }
  } finally {
    await file.close();
  }
}
