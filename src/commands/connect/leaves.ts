/** Values of an answer by their place, and common names of fields. */

export interface Leaf {
  /** Dotted path. */
  readonly path: string;
  readonly value: unknown;
}

const mostLeaves = 60;
const deepest = 6;

/** Values of an object and of the objects in it, at most 60. Leaves out names that a profile cannot hold, such as those with a dot. */
export function leavesOf(value: unknown, prefix = '', depth = 0): Leaf[] {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return [];
  return Object.entries(value)
    .flatMap(([name, member]: [string, unknown]): Leaf[] => {
      if (!isFieldName(name)) return [];
      const path = prefix === '' ? name : `${prefix}.${name}`;
      if (member !== null && typeof member === 'object' && !Array.isArray(member) && depth < deepest)
        return leavesOf(member, path, depth + 1);
      return [{ path, value: member }];
    })
    .slice(0, mostLeaves);
}

/** True for a name that a profile can hold: no path, and no redacted one. */
export const isFieldName = (name: string): boolean =>
  /^[^\s/?#&=.\p{Cc}\p{Cf}]{1,200}$/u.test(name) && name !== '__proto__' && !name.includes('[redacted]');

const plain = (name: string) => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
const lastOf = (path: string) => path.split('.').at(-1) ?? path;

/** Other names of a field, as the interfaces of other platforms have them. */
const synonyms: Readonly<Record<string, readonly string[]>> = {
  id: ['uid', 'userId', 'sub', 'identifier'],
  email: ['mail', 'emailAddress'],
  name: ['title', 'displayName', 'fullName', 'label'],
  organization: ['org', 'organisation', 'company', 'tenant'],
  token: ['accessToken', 'sessionToken', 'jwt'],
  expiresAt: ['expires', 'expiresIn', 'expiry', 'expiration', 'validUntil'],
  operationId: ['id', 'jobId', 'job', 'ref', 'requestId', 'operation', 'taskId'],
  status: ['state', 'verdict', 'decision', 'phase'],
  createdAt: ['created', 'createTime', 'submittedAt'],
  updatedAt: ['updated', 'modified', 'modifiedAt'],
  description: ['summary', 'text', 'abstract'],
  parameters: ['params', 'inputs', 'arguments'],
  uploadId: ['id', 'upload', 'session', 'uploadSession', 'sessionId'],
  key: ['objectKey', 'path', 'objectName', 'handle'],
  partNumber: ['part', 'index', 'chunk', 'chunkIndex', 'chunkNumber', 'number'],
  partCount: ['parts', 'totalParts', 'totalChunks', 'chunks', 'count'],
  fileName: ['filename', 'name'],
  fileSize: ['size', 'bytes', 'length', 'totalSize'],
  fileId: ['id', 'file', 'assetId'],
  originalName: ['name', 'fileName'],
  size: ['bytes', 'fileSize', 'length'],
  error: ['message', 'detail', 'title', 'description', 'reason', 'errorMessage'],
  code: ['kind', 'type', 'errorCode', 'reason'],
  requestId: ['traceId', 'correlationId', 'request'],
  features: ['items', 'results'],
  numberMatched: ['total', 'count', 'matched'],
};

/** Rates how well a name of the platform fits a field of the contract: 2 if only the spelling differs, 1 for a common synonym, else 0. */
export function likeness(field: string, path: string): 0 | 1 | 2 {
  const name = plain(lastOf(path));
  if (name === plain(field)) return 2;
  return (Object.hasOwn(synonyms, field) ? (synonyms[field] ?? []) : []).some((other) => plain(other) === name) ? 1 : 0;
}

/** The paths that fit a field best. */
export function bestOf(
  field: string,
  paths: readonly string[],
): { readonly paths: string[]; readonly likeness: 0 | 1 | 2 } {
  const best = Math.max(0, ...paths.map((path) => likeness(field, path))) as 0 | 1 | 2;
  return { paths: best === 0 ? [] : paths.filter((path) => likeness(field, path) === best), likeness: best };
}
