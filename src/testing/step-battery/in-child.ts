import { join } from 'node:path';
import { checkParameters } from '../../app/processing/step-parameters.ts';
import { isJobFailure, runInChild } from '../../child/index.ts';
import { messageOf, scratchFolder } from '../../files/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import type { BatteryAnswer, BatteryInput, BatteryRun } from './battery-job.ts';
import type { BatteryOptions, Variant } from './check.ts';

const batteryJob = new URL('./battery-job.ts', import.meta.url);

/** Variants that may use up their time. The others are then not run. */
const maxEndless = 3;

/**
 * Runs every variant in one process: a start costs more than most of them. The first comes twice. A variant that takes longer than
 * `limitMs`, or that ends the process, fails alone: the others run in a new process.
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
      return some.map(() => failed('not_run', `not run, because ${maxEndless} checks before it used up their time`));
    let current = 0;
    const tooLong = new AbortController();
    const end = () => tooLong.abort(new Error('the check used up its time'));
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
      if (!tooLong.signal.aborted && !isJobFailure(error)) throw error;
      if (tooLong.signal.aborted) endless += 1;
      const blamed = tooLong.signal.aborted
        ? failed('check_timeout', `it did not end within ${limitMs / 1_000} s`)
        : failed(error instanceof Error && 'code' in error ? String(error.code) : 'job_failed', messageOf(error));
      return [...(await answersTo(some.slice(0, current))), blamed, ...(await answersTo(some.slice(current + 1)))];
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
