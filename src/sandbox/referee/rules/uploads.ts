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

/** Follows the uploads of a launch through its calls, in one pass; those that name another launch's are left out. */
export function followUploads(calls: readonly TracedCall[]): { uploads: TracedUpload[]; named: NamedUpload[] } {
  const uploads: TracedUpload[] = [];
  const named: NamedUpload[] = [];
  const [byIds, byKeys] = [new Map<string, TracedUpload>(), new Map<string, TracedUpload>()];
  const underWay = new Set<TracedUpload>();
  /** Uploads that went on with the parts of another, and that other one. */
  const continued = new Map<TracedUpload, TracedUpload>();
  const lastParts = new Map<TracedUpload, number>();
  /** Uploads that have reached a part, by operation and part. Those that went on or ended leave the list when it is read. */
  const reached = new Map<string, TracedUpload[]>();
  const placeOf = ({ operationId }: TracedUpload, part: number) => `${part} ${operationId ?? ''}`;
  const newestAt = (one: TracedUpload, part: number): TracedUpload | undefined => {
    const list = reached.get(placeOf(one, part)) ?? [];
    const isThere = (upload: TracedUpload) => underWay.has(upload) && lastParts.get(upload) === part;
    while (list.length > 0 && !isThere(list.at(-1)!)) list.pop();
    return list.at(-1);
  };
  for (const call of calls) {
    const { endpoint, detail } = call;
    if (detail.foreign !== undefined) continue;
    if (endpoint === 'upload.initiate' && detail.uploadId !== undefined && detail.key !== undefined) {
      const upload = { uploadId: detail.uploadId, key: detail.key, operationId: detail.operationId, calls: [] };
      uploads.push(upload);
      byIds.set(upload.uploadId, upload);
      byKeys.set(upload.key, upload);
      underWay.add(upload);
    }
    if ((endpoint !== 'upload.chunk' && endpoint !== 'upload.complete') || !isRead(call)) continue;
    const byId = byIds.get(detail.uploadId ?? '') ?? null;
    const byKey = byKeys.get(detail.key ?? '') ?? null;
    const { partNumber } = detail;
    const fresh = byId !== null && byId === byKey && !lastParts.has(byId) && !continued.has(byId) ? byId : null;
    if (fresh && endpoint === 'upload.chunk' && partNumber !== undefined && partNumber > 1) {
      const before = newestAt(fresh, partNumber - 1);
      if (before) continued.set(fresh, before);
    }
    const found = byId ?? byKey ?? (underWay.size === 1 ? [...underWay][0]! : null);
    const meant = found && (continued.get(found) ?? found);
    named.push({ call, byId, byKey, meant });
    if (!meant) continue;
    meant.calls.push(call);
    if (partNumber !== undefined && partNumber > (lastParts.get(meant) ?? 0) && underWay.has(meant)) {
      lastParts.set(meant, partNumber);
      const list = reached.get(placeOf(meant, partNumber)) ?? [];
      list.push(meant);
      reached.set(placeOf(meant, partNumber), list);
    }
    if (detail.fileId !== undefined) underWay.delete(meant);
  }
  return { uploads, named };
}

/** True where the call came so far that its names are known, or known to be missing. */
function isRead({ detail }: TracedCall): boolean {
  return detail.uploadId !== undefined || detail.key !== undefined || detail.code === 'validation_failed';
}
