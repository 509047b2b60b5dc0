/** Notes in a list of runs. Runs of one step may have other needs. */
import { expect, test } from 'vitest';
import { noProgress } from '../../src/app/runs/run-progress.ts';
import { noNeeds } from '../../src/app/runs/placement.ts';
import { runViewer } from '../../src/app/runs/run-view.ts';
import type { StepHost } from '../../src/app/processing/step-host.ts';
import type { Run } from '../../src/app/runs/run.ts';
import { newRun } from '../support/suites/run-store-suite.ts';

test('two runs of one step with different needs wait for different workers', async () => {
  const viewer = runViewer({
    store: { histories: async () => new Map() },
    engine: { progress: async () => noProgress, canBeDone: async ({ needs }) => needs.label === 'cpu' },
    steps: { steps: [] } as unknown as StepHost,
  });
  const run = (label: string): Run => newRun({ state: 'APPROVED', needs: { ...noNeeds, label } });
  const notes = (await viewer.all([run('cpu'), run('gpu'), run('cpu')])).map(({ progress }) => progress.note);
  expect(notes).toEqual([null, expect.stringContaining('the label gpu'), null]);
});
