import type { Provenance, ProvenanceKnown, ReadInputs } from './provenance.ts';
import { provenanceDigest } from './provenance-digest.ts';

/** The name under which a file's metadata hold it as JSON. */
export const provenanceTag = 'PROVENANCE';

export function makeProvenance(known: ProvenanceKnown, inputs: ReadInputs, gdalVersion: string): Provenance {
  const rest = { ...known, software: { ...known.software, GDAL: gdalVersion }, inputs };
  const { step, parameters, input, operationId, software } = rest;
  const ordered = { step, parameters, input, inputs, operationId, software };
  return { ...ordered, digest: provenanceDigest(ordered) };
}
