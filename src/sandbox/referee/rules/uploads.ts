import type { TracedCall } from '../traced-call.ts';

/** An upload as initiate gave it, with the chunk and complete calls that name it, oldest first. */
export interface TracedUpload {
  readonly uploadId: string;
  readonly key: string;
  readonly calls: TracedCall[];
}

/** A chunk or complete call, and the upload it names by both, by one or by none of its two names. */
export interface NamedUpload {
  readonly call: TracedCall;
  readonly byId: TracedUpload | null;
  readonly byKey: TracedUpload | null;
  /** The upload that was under way when the call came in, where it names none. */
  readonly underWay: TracedUpload | null;
}

/** Follows the uploads of a launch through its calls; those that name another launch's are left out. */
export function followUploads(calls: readonly TracedCall[]): { uploads: TracedUpload[]; named: NamedUpload[] } {
  const uploads: TracedUpload[] = [];
  const named: NamedUpload[] = [];
  const completed = new Set<TracedUpload>();
  for (const call of calls) {
    const { endpoint, detail } = call;
    if (detail.foreign !== undefined) continue;
    if (endpoint === 'upload.initiate' && detail.uploadId !== undefined && detail.key !== undefined) uploads.push({ uploadId: detail.uploadId, key: detail.key, calls: [] });
    if ((endpoint !== 'upload.chunk' && endpoint !== 'upload.complete') || (detail.uploadId === undefined && detail.key === undefined)) continue;
    const byId = uploads.find(({ uploadId }) => uploadId === detail.uploadId) ?? null;
    const byKey = uploads.find(({ key }) => key === detail.key) ?? null;
    const underWay = byId ?? byKey ?? uploads.findLast((upload) => !completed.has(upload)) ?? null;
    named.push({ call, byId, byKey, underWay });
    underWay?.calls.push(call);
    if (underWay && detail.fileId !== undefined) completed.add(underWay);
  }
  return { uploads, named };
}
