/** The upload stage skips files that the platform already has, also if an earlier release wrote the record. */
import { expect, test } from 'vitest';
import { uploadOutputs } from '../../src/app/runs/stages/upload.ts';
import type { StageContext } from '../../src/app/runs/stages/stage.ts';
import type { Run } from '../../src/app/runs/run.ts';
import { newRun } from '../support/suites/run-store-suite.ts';

test.each([
  ['with the name of its output', { output: 'a.tif' }],
  ['of a release that wrote the name of the file alone', {}],
])('a record %s', async (_, output) => {
  const moves: string[] = [];
  const file = { fileId: 'f', fileName: 'a.tif', sizeBytes: 1, sha256: 'x', ...output };
  const run: Run = newRun({ state: 'UPLOADING', outputs: [{ path: '/w/a.tif', sizeBytes: 1, sha256: 'x' }] as never, files: [file] as never }); // oxfmt-ignore
  // It has no calls of the platform, so any call fails the test.
  const context = {
    isAway: () => false,
    steps: { steps: [{ id: run.stepId }] },
    store: { transition: async (_run: Run, to: string) => (moves.push(to), { ...run, state: to }) },
    log: { warn: () => {}, info: () => {} },
    patience: { progressed: () => {} },
    signal: new AbortController().signal,
  } as unknown as StageContext;
  await uploadOutputs(run, context);
  expect(moves).toEqual(['COMPLETED']);
});
