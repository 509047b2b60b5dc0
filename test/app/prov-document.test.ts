/** A run's provenance as W3C PROV has one entity for each file. */
import { expect, test } from 'vitest';
import { provDocument } from '../../src/app/runs/prov-document.ts';
import type { Provenance } from '../../src/app/processing/provenance.ts';
import { newRun } from '../support/suites/run-store-suite.ts';

test('lists all files of one input and of two inputs', () => {
  const file = (fileName: string) => ({ fileName, sizeBytes: 1, sha256: fileName.repeat(8) });
  const provenance: Provenance = {
    step: { id: 'mosaic', version: '1.0.0', code: 'c' },
    ...{ parameters: {}, input: { type: 'synthetic', size: 64 }, operationId: 'op', software: {}, digest: 'd' },
    inputs: [
      { name: 'input', files: [file('a.tif'), file('b.tif')] },
      { name: 'grid', files: [file('a.tif')] },
    ],
  };
  const { entity } = provDocument(newRun({ provenance }), []) as { entity: Record<string, { 'prov:label'?: string }> };
  const labels = Object.values(entity).map((described) => described['prov:label']);
  expect(labels.filter((label) => label?.endsWith('.tif')).toSorted()).toEqual(['a.tif', 'a.tif', 'b.tif']);
});
