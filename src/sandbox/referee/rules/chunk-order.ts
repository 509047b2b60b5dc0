import { limits } from '../../../contract/index.ts';
import { cameAfter, type TracedCall } from '../traced-call.ts';
import type { Rule, Violation } from './rule.ts';
import { followUploads, type TracedUpload } from './uploads.ts';

export const chunkOrder: Rule = {
  id: 'chunk-order',
  clause: '4.8, rule 3',
  holds: 'chunks from 1 on, in order, and complete only after all of them',
  advice:
    'Send one chunk after the other, each when the one before it was answered, and complete when the last one was. The same bytes of a part may be sent again.',
  needsAllBefore: true,
  judge(calls) {
    const { uploads } = followUploads(calls);
    return { isExercised: uploads.some((upload) => upload.calls.length > 0), violations: uploads.flatMap(judgeUpload) };
  },
};

function judgeUpload({ calls }: TracedUpload): Violation[] {
  const violations: Violation[] = [];
  /** Parts that came in, with their sizes where they were read whole. */
  const parts = new Map<number, number | null>();
  let lastPart = limits.firstPartNumber - 1;
  /** The chunk call before this one. */
  let before: TracedCall | null = null;
  let completed: { readonly call: TracedCall; readonly lastPart: number } | null = null;
  const fail = (seen: string, expected: string, ...shown: TracedCall[]) =>
    violations.push({ severity: 'failed', calls: shown, seen, expected });

  for (const call of calls) {
    const { partNumber, size, code } = call.detail;
    if (call.endpoint === 'upload.complete') {
      judgeComplete(call, calls, parts, fail);
      completed ??= { call, lastPart };
      continue;
    }
    if (partNumber === undefined) continue;
    if (partNumber < limits.firstPartNumber) {
      fail(`chunk ${partNumber}`, `chunks count from ${limits.firstPartNumber}`, call);
      continue;
    }
    if (partNumber > lastPart + 1)
      fail(`chunk ${partNumber} when ${lastPart + 1} was next`, `chunk ${lastPart + 1}`, call);
    else if (before && partNumber > before.detail.partNumber! && before.delivered && !cameAfter(call, before))
      fail(
        `chunk ${partNumber} while chunk ${before.detail.partNumber} was still under way`,
        'each chunk when the one before it was answered',
        before,
        call,
      );
    if (code === 'chunk_conflict' || (code === 'upload_completed' && completed && partNumber <= completed.lastPart))
      fail(
        `other bytes for chunk ${partNumber} than those that were sent before`,
        'the same bytes, where a part is sent again',
        call,
      );
    if (completed && partNumber > completed.lastPart)
      fail(`chunk ${partNumber} after complete`, 'complete after the last chunk', completed.call, call);
    before = call;
    // Cut on its way: it never came whole.
    if (!call.delivered && size === undefined) continue;
    parts.set(partNumber, size ?? parts.get(partNumber) ?? null);
    lastPart = Math.max(lastPart, partNumber);
  }
  return violations;
}

function judgeComplete(
  complete: TracedCall,
  calls: readonly TracedCall[],
  parts: ReadonlyMap<number, number | null>,
  fail: (seen: string, expected: string, ...shown: TracedCall[]) => void,
): void {
  const expected = 'complete only after all chunks were uploaded';
  if (parts.size === 0) return fail('complete without a chunk', expected, complete);
  const missing = firstMissing(parts);
  if (missing !== null) return fail(`complete without chunk ${missing}`, expected, complete);
  const inFlight = calls.find(
    (call) => call.endpoint === 'upload.chunk' && call.delivered && call.at < complete.at && !cameAfter(complete, call),
  );
  if (inFlight)
    return fail(`complete while chunk ${inFlight.detail.partNumber} was still under way`, expected, inFlight, complete);
  const sizes = [...parts.values()];
  const received = sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  const { fileSize } = complete.detail;
  if (fileSize !== undefined && !sizes.includes(null) && received < fileSize)
    fail(`complete of ${fileSize} bytes when ${received} had come`, expected, complete);
}

function firstMissing(parts: ReadonlyMap<number, unknown>): number | null {
  for (let n = limits.firstPartNumber; n < limits.firstPartNumber + parts.size; n++) if (!parts.has(n)) return n;
  return null;
}
