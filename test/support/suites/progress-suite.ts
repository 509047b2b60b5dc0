import { noProgress, type ProgressBoard } from '../../../src/app/runs/run-progress.ts';
import type { Run } from '../../../src/app/runs/run.ts';
import type { SuiteTools } from './suite-tools.ts';

/** A board to be held to what `ProgressBoard` promises. */
export interface ProgressSubject {
  /** Board on which a worker reports. */
  readonly writer: ProgressBoard;
  /** Board that a page reads: the same one, or another process's. */
  readonly reader: ProgressBoard;
  /** A run that the store of runs knows. */
  readonly run: Pick<Run, 'id' | 'launchId' | 'state'>;
  /** Number of changes of the launch, if others than the reader report them. Default: none. */
  readonly changes?: () => Promise<number>;
}

const withinMs = 5_000;

/** Tests the promises of a board on which workers report and pages read. Closes writer and reader. */
export function progressSuite({ test, expect }: SuiteTools, open: () => Promise<ProgressSubject>): void {
  test('what a worker reported last a page reads, and learns that it has changed, until the run is not under way', async () => {
    const { writer, reader, run, changes = async () => 0 } = await open();
    const seen = async () => (await changes()) + reader.changesOf(run.launchId);
    expect(await reader.get(run)).toEqual(noProgress);
    const before = await seen();
    const uploading = { fraction: 0.5, note: 'uploading', bytes: { sent: 5, total: 10 } };
    writer.report(run, { fraction: 0.1, note: null, bytes: null });
    writer.report(run, uploading);
    await expect.poll(() => reader.get(run), { timeout: withinMs }).toEqual(uploading);
    await expect.poll(seen, { timeout: withinMs }).not.toBe(before);
    // After a change of state, a page does not show the earlier progress.
    expect(await reader.get({ ...run, state: 'APPROVED' })).toEqual(noProgress);
    writer.clear(run);
    await expect.poll(() => reader.get(run), { timeout: withinMs }).toEqual(noProgress);
    // A report and the end may come between two writes.
    writer.report(run, uploading);
    await expect.poll(() => reader.get(run), { timeout: withinMs }).toEqual(uploading);
    writer.report(run, { fraction: 0.9, note: null, bytes: null });
    writer.clear(run);
    await expect.poll(() => reader.get(run), { timeout: withinMs }).toEqual(noProgress);
    await Promise.all([writer.close(), reader.close()]);
  });
}
