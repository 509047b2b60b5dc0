import { isComplete, isInitiate, type TracedCall } from '../traced-call.ts';

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

/** An upload while its calls are read. */
interface OpenUpload extends TracedUpload {
  isUnderWay: boolean;
  /** The largest part so far. 0 if there is none. */
  lastPart: number;
  /** The upload whose parts this one continues. */
  continues: OpenUpload | null;
}

interface Reached {
  readonly upload: OpenUpload;
  readonly before: Reached | undefined;
}

interface FollowedUploads {
  readonly uploads: readonly TracedUpload[];
  readonly named: readonly NamedUpload[];
}

/** Two rules judge the uploads of the same calls. */
const followed = new WeakMap<readonly TracedCall[], FollowedUploads>();

/** Follows the uploads of a launch through its calls, in one pass; those that name another launch's are left out. */
export function followUploads(calls: readonly TracedCall[]): FollowedUploads {
  const known = followed.get(calls) ?? follow(calls);
  followed.set(calls, known);
  return known;
}

function follow(calls: readonly TracedCall[]): FollowedUploads {
  const uploads: OpenUpload[] = [];
  const named: NamedUpload[] = [];
  const [byIds, byKeys] = [new Map<string, OpenUpload>(), new Map<string, OpenUpload>()];
  const underWay = new Set<OpenUpload>();
  /** Uploads that have reached a part, by operation and part, each linked to the one before it. */
  const reached = new Map<string | undefined, Map<number, Reached>>();
  const newestAt = ({ operationId }: OpenUpload, part: number): OpenUpload | null => {
    const parts = reached.get(operationId);
    let attempts = parts?.get(part);
    // Those that went on or ended are unlinked, so that none is passed twice.
    while (attempts && !(attempts.upload.isUnderWay && attempts.upload.lastPart === part)) attempts = attempts.before;
    if (attempts) parts?.set(part, attempts);
    else parts?.delete(part);
    return attempts?.upload ?? null;
  };
  for (const call of calls) {
    const { endpoint, detail } = call;
    const { uploadId, key, operationId, partNumber } = detail;
    if (detail.foreign !== undefined) continue;
    if (isInitiate(call) && uploadId !== undefined && key !== undefined) {
      const upload = { uploadId, key, operationId, calls: [], isUnderWay: true, lastPart: 0, continues: null };
      uploads.push(upload);
      byIds.set(uploadId, upload);
      byKeys.set(key, upload);
      underWay.add(upload);
    }
    if ((endpoint !== 'upload.chunk' && !isComplete(call)) || !isRead(call)) continue;
    const byId = byIds.get(uploadId ?? '') ?? null;
    const byKey = byKeys.get(key ?? '') ?? null;
    const isFresh = byId !== null && byId === byKey && byId.lastPart === 0 && !byId.continues;
    if (isFresh && endpoint === 'upload.chunk' && partNumber !== undefined && partNumber > 1)
      byId.continues = newestAt(byId, partNumber - 1);
    const found = byId ?? byKey ?? (underWay.size === 1 ? ([...underWay][0] ?? null) : null);
    const meant = found && (found.continues ?? found);
    named.push({ call, byId, byKey, meant });
    if (!meant) continue;
    meant.calls.push(call);
    if (partNumber !== undefined && partNumber > meant.lastPart && meant.isUnderWay) {
      const parts = reached.get(meant.operationId) ?? new Map<number, Reached>();
      reached.set(meant.operationId, parts);
      meant.lastPart = partNumber;
      parts.set(partNumber, { upload: meant, before: parts.get(partNumber) });
    }
    if (detail.fileId !== undefined) {
      meant.isUnderWay = false;
      underWay.delete(meant);
    }
  }
  return { uploads, named };
}

/** True where the call came so far that its names are known, or known to be missing. */
function isRead({ detail }: TracedCall): boolean {
  return detail.uploadId !== undefined || detail.key !== undefined || detail.code === 'validation_failed';
}
