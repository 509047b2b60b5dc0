import { join } from 'node:path';
import { checkParameters } from '../../app/processing/step-parameters.ts';
import { isJobFailure, runInChild } from '../../child/index.ts';
import { messageOf, scratchFolder } from '../../files/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import type { BatteryAnswer, BatteryInput, BatteryRun } from './battery-job.ts';
import type { BatteryOptions, Variant } from './check.ts';

const batteryJob = new URL('./battery-job.ts', import.meta.url);

/** Number of variants that may time out. After that, no further variant runs. */
const maxEndless = 3;

/**
 * Runs all variants in one process, because a start costs more than most variants. The first variant runs twice. A variant that takes
 * longer than `limitMs`, or ends the process, fails alone. The other variants then run in a new process.
 */
export async function inOneChild(
  { definition, stepId, confinement }: Pick<BatteryOptions, 'definition' | 'stepId' | 'confinement'>,
  variants: readonly Variant[],
  step: AnyStep,
  limitMs: number,
): Promise<readonly BatteryAnswer[]> {
  const runs = variants.map(
    ({
      inputs,
      gap = null,
      stripPixels = null,
      cancelAt = null,
      readsOutputs = true,
      parameters = {},
    }): BatteryRun => ({
      parameters: checkParameters(step, parameters),
      inputs,
      gap,
      stripPixels,
      cancelAt,
      readsOutputs,
    }),
  );
  let endless = 0;

  async function answersTo(some: readonly BatteryRun[]): Promise<BatteryAnswer[]> {
    if (some.length === 0) return [];
    if (endless >= maxEndless)
      return some.map(() => failed('not_run', `not run, because ${maxEndless} earlier checks timed out`));
    /** Index of the variant that runs; -1 while the process starts. */
    let current = -1;
    const tooLong = new AbortController();
    const end = () => tooLong.abort(new Error('the check timed out'));
    let deadline = setTimeout(end, limitMs);
    const next = (_fraction: number, note: string | null) => {
      if (note === null || Number(note) === current) return;
      current = Number(note);
      clearTimeout(deadline);
      deadline = setTimeout(end, limitMs);
    };
    try {
      const input: BatteryInput = { definition: definition.module, stepId, runs: some };
      return await inFolder(async (workFolder) =>
        runInChild<BatteryAnswer[]>({
          module: batteryJob,
          input,
          imports: [new URL(definition.module)],
          workFolder,
          confinement: await confinement(),
          onProgress: next,
          signal: tooLong.signal,
          limits: { timeoutMs: limitMs * some.length },
        }),
      );
    } catch (error) {
      // Before the first variant, the error is not that of a variant.
      if (!tooLong.signal.aborted && (current < 0 || !isJobFailure(error))) throw error;
      if (tooLong.signal.aborted) endless += 1;
      const blamed = tooLong.signal.aborted
        ? failed('check_timeout', `it did not end within ${limitMs / 1_000} s`)
        : failed(error instanceof Error && 'code' in error ? String(error.code) : 'job_failed', messageOf(error));
      const at = Math.max(0, current);
      return [...(await answersTo(some.slice(0, at))), blamed, ...(await answersTo(some.slice(at + 1)))];
    } finally {
      clearTimeout(deadline);
    }
  }
  return answersTo(runs.length > 1 ? [...runs, runs[0]!] : runs);
}

const failed = (code: string, message: string): BatteryAnswer => ({
  outputs: null,
  failure: { kind: 'bug', code, message },
  isCancelled: false,
  readsAfterCancel: 0,
  largestJump: 0,
  largestRead: 0,
  isInputUntouched: true,
  inputCrs: null,
  tookMs: 0,
});

export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = scratchFolder('step-battery');
  try {
    return await work(join(folder.path, 'work'));
  } finally {
    await folder.remove();
  }
}
