import { createHash } from 'node:crypto';
import type { Provenance, ProvenanceKnown, ReadInputs } from './provenance.ts';

/** The name under which a file's metadata hold it as JSON. */
export const provenanceTag = 'PROVENANCE';

export function makeProvenance(known: ProvenanceKnown, inputs: ReadInputs, gdalVersion: string): Provenance {
  const rest = { ...known, software: { ...known.software, GDAL: gdalVersion }, inputs };
  const { step, parameters, input, operationId, software } = rest;
  const ordered = { step, parameters, input, inputs, operationId, software };
  return { ...ordered, digest: provenanceDigest(ordered) };
}

/** SHA-256 of what a provenance says, as JSON with its keys sorted. */
function provenanceDigest(rest: object): string {
  return createHash('sha256').update(sortedJson(rest)).digest('hex');
}

function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
