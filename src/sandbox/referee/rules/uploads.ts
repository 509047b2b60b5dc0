import type { TracedCall } from '../traced-call.ts';

/** An upload as initiate gave it, with the chunk and complete calls that are meant for it, oldest first. */
export interface TracedUpload {
  readonly uploadId: string;
  readonly key: string;
  readonly operationId: string | undefined;
  readonly calls: TracedCall[];
}

/** A chunk or complete call, and the upload it names by both, by one or by none of its two names. */
export interface NamedUpload {
  readonly call: TracedCall;
  readonly byId: TracedUpload | null;
  readonly byKey: TracedUpload | null;
  /** The upload that it is meant for: that which it names, else the only one that was under way; null where nobody can tell. */
  readonly meant: TracedUpload | null;
}

/** Follows the uploads of a launch through its calls; those that name another launch's are left out. */
export function followUploads(calls: readonly TracedCall[]): { uploads: TracedUpload[]; named: NamedUpload[] } {
  const uploads: TracedUpload[] = [];
  const named: NamedUpload[] = [];
  const completed = new Set<TracedUpload>();
  /** Uploads that went on with the parts of another, and that other one. */
  const continued = new Map<TracedUpload, TracedUpload>();
  const lastParts = new Map<TracedUpload, number>();
  for (const call of calls) {
    const { endpoint, detail } = call;
    if (detail.foreign !== undefined) continue;
    if (endpoint === 'upload.initiate' && detail.uploadId !== undefined && detail.key !== undefined)
      uploads.push({ uploadId: detail.uploadId, key: detail.key, operationId: detail.operationId, calls: [] });
    if ((endpoint !== 'upload.chunk' && endpoint !== 'upload.complete') || !isRead(call)) continue;
    const byId = uploads.find(({ uploadId }) => uploadId === detail.uploadId) ?? null;
    const byKey = uploads.find(({ key }) => key === detail.key) ?? null;
    const fresh = byId !== null && byId === byKey && !lastParts.has(byId) && !continued.has(byId) ? byId : null;
    if (fresh && endpoint === 'upload.chunk' && (detail.partNumber ?? 0) > 1) {
      const before = uploads.findLast(
        (one) =>
          one !== fresh &&
          one.operationId === fresh.operationId &&
          !completed.has(one) &&
          lastParts.get(one) === detail.partNumber! - 1,
      );
      if (before) continued.set(fresh, before);
    }
    const underWay = uploads.filter((upload) => !completed.has(upload));
    const found = byId ?? byKey ?? (underWay.length === 1 ? underWay[0]! : null);
    const meant = found && (continued.get(found) ?? found);
    named.push({ call, byId, byKey, meant });
    meant?.calls.push(call);
    if (meant && detail.partNumber !== undefined)
      lastParts.set(meant, Math.max(lastParts.get(meant) ?? 0, detail.partNumber));
    if (meant && detail.fileId !== undefined) completed.add(meant);
  }
  return { uploads, named };
}

/** True where the call came so far that its names are known, or known to be missing. */
function isRead({ detail }: TracedCall): boolean {
  return detail.uploadId !== undefined || detail.key !== undefined || detail.code === 'validation_failed';
}
