import { limits } from '../../../contract/index.ts';
import { cameAfter, isComplete, type TracedCall } from '../traced-call.ts';
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

function judgeUpload({ uploadId, key, calls }: TracedUpload): Violation[] {
  const violations: Violation[] = [];
  const received = new Received();
  /** The delivered chunk that was answered last. */
  let lastAnswered: TracedCall | null = null;
  let lastPart = limits.firstPartNumber - 1;
  /** The chunk call before this one. */
  let before: TracedCall | null = null;
  let completed: { readonly call: TracedCall; readonly lastPart: number } | null = null;
  const fail = (seen: string, expected: string, ...shown: TracedCall[]) =>
    violations.push({ severity: 'failed', calls: shown, seen, expected });

  for (const call of calls) {
    const { partNumber, size, code } = call.detail;
    if (isComplete(call)) {
      judgeComplete(call, lastAnswered, received, fail, (violation) => violations.push(violation));
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
    else if (before && partNumber > (before.detail.partNumber ?? 0) && before.delivered && !cameAfter(call, before))
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
    if (call.delivered && call.endedAt >= (lastAnswered?.endedAt ?? 0)) lastAnswered = call;
    // upload-identity judges chunks with other names.
    const isNamed = call.detail.uploadId === uploadId && call.detail.key === key;
    if (!isSent(call, isNamed)) continue;
    received.add(partNumber, size ?? null);
    lastPart = Math.max(lastPart, partNumber);
  }
  return violations;
}

/** False if the app must send the chunk again: the connection was cut, or the answer is an error. */
function isSent({ delivered, status, detail: { size, code } }: TracedCall, isNamed: boolean): boolean {
  if (!delivered && size === undefined) return false;
  return !isNamed || status === null || status < 400 || code === 'chunk_conflict' || code === 'upload_completed';
}

/** Received parts and their sizes. */
class Received {
  #sizes = new Map<number, number | null>();
  #firstMissing: number = limits.firstPartNumber;
  #bytes = 0;
  #unknown = 0;

  add(part: number, size: number | null): void {
    const before = this.#sizes.get(part);
    if (before === null) this.#unknown -= 1;
    const now = size ?? before ?? null;
    if (now === null) this.#unknown += 1;
    this.#bytes += (now ?? 0) - (before ?? 0);
    this.#sizes.set(part, now);
    while (this.#sizes.has(this.#firstMissing)) this.#firstMissing += 1;
  }

  get isEmpty(): boolean {
    return this.#sizes.size === 0;
  }

  /** The first missing part before a received part. Null if there is none. */
  get gap(): number | null {
    return this.#firstMissing < limits.firstPartNumber + this.#sizes.size ? this.#firstMissing : null;
  }

  /** Size of all parts in bytes. Null if the size of a part is unknown. */
  get bytes(): number | null {
    return this.#unknown > 0 ? null : this.#bytes;
  }
}

function judgeComplete(
  complete: TracedCall,
  lastAnswered: TracedCall | null,
  received: Received,
  fail: (seen: string, expected: string, ...shown: TracedCall[]) => void,
  add: (violation: Violation) => void,
): void {
  const expected = 'complete only after all chunks were uploaded';
  if (received.isEmpty) return fail('complete without a chunk', expected, complete);
  if (received.gap !== null) return fail(`complete without chunk ${received.gap}`, expected, complete);
  if (lastAnswered && lastAnswered.at < complete.at && !cameAfter(complete, lastAnswered))
    return fail(
      `complete while chunk ${lastAnswered.detail.partNumber} was still under way`,
      expected,
      lastAnswered,
      complete,
    );
  const { fileSize } = complete.detail;
  if (fileSize !== undefined && received.bytes !== null && received.bytes < fileSize)
    add({
      severity: 'failed',
      calls: [complete],
      seen: `complete of ${fileSize} bytes when ${received.bytes} had come`,
      expected: 'a fileSize that is the sum of all parts',
      advice: `Send the sum of the bytes of all parts as fileSize, which was ${received.bytes}, or send the parts that are missing.`,
    });
}
