import { createHash } from 'node:crypto';

/** SHA-256 of what a provenance says, as JSON with its keys sorted. */
export function provenanceDigest(rest: object): string {
  return createHash('sha256').update(sortedJson(rest)).digest('hex');
}

function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
