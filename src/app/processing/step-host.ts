import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { KitError } from '../../contract/index.ts';
import { runInChild, type ChildLimits } from '../../raster/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import { findRasters, type RunInput } from './run-input.ts';
import type { StepJobInput, StepOutput } from './step-job.ts';
import { checkParameters, type StepParameters } from './step-parameters.ts';

const stepJob = new URL('./step-job.ts', import.meta.url);

export interface StepHost {
  readonly steps: readonly AnyStep[];
  /** Throws `KitError` with code `unknown_step`. */
  find(stepId: string): AnyStep;
  /**
   * What a run of these would be given: checked parameters, and an input that is there. Throws
   * `KitError` (400), so that no user is asked to approve what cannot run.
   */
  check(stepId: string, parameters: unknown, input: RunInput): Promise<{ step: AnyStep; parameters: StepParameters }>;
  /** Steps that run now, and that wait for their turn. */
  load(): { running: number; waiting: number };
  /**
   * Runs a step in a child process and gives the output's path, size and sha256. A folder left by an
   * earlier try is removed first. Rejects with `ChildJobError`, or the signal's reason.
   */
  run(task: StepTask, options: { signal: AbortSignal; onProgress: (fraction: number, note: string | null) => void }): Promise<StepOutput & { path: string }>;
}

export interface StepTask {
  readonly stepId: string;
  readonly parameters: StepParameters;
  readonly input: RunInput;
  /** The task's own folder; made here, removed by the caller when the output is no longer needed. */
  readonly workFolder: string;
}

export interface StepHostOptions {
  /** Module that exports `steps: readonly AnyStep[]`. */
  readonly registry: URL;
  readonly inputDir: string;
  readonly limits?: ChildLimits;
  /** Steps that run at the same time; the others wait. */
  readonly concurrency: number;
  /** Resident set of a step's process, as sampled. */
  readonly onMemory?: (bytes: number) => void;
}

export async function createStepHost(options: StepHostOptions): Promise<StepHost> {
  const { steps } = (await import(options.registry.href)) as { steps: readonly AnyStep[] };
  const limit = pLimit(options.concurrency);

  function find(stepId: string): AnyStep {
    const step = steps.find(({ id }) => id === stepId);
    if (!step) {
      const known = steps.map(({ id }) => id).join(', ');
      throw new KitError('unknown_step', `there is no step ${JSON.stringify(stepId)}; there are ${known}`, { status: 400, data: { stepId } });
    }
    return step;
  }

  const sourceOf = async (input: RunInput): Promise<StepJobInput['source']> =>
    input.type === 'synthetic' ? input : { type: 'files', paths: await findRasters(options.inputDir, input.path) };

  async function check(stepId: string, parameters: unknown, input: RunInput) {
    const step = find(stepId);
    const checked = checkParameters(step, parameters);
    await sourceOf(input);
    return { step, parameters: checked };
  }

  return {
    steps,
    find,
    check,
    load: () => ({ running: limit.activeCount, waiting: limit.pendingCount }),
    run: (task, { signal, onProgress }) =>
      limit(async () => {
        signal.throwIfAborted();
        const { step, parameters } = await check(task.stepId, task.parameters, task.input);
        await rm(task.workFolder, { recursive: true, force: true });
        await mkdir(task.workFolder, { recursive: true });
        const outputPath = join(task.workFolder, step.output.fileName);
        const input: StepJobInput = {
          registry: options.registry.href,
          stepId: step.id,
          parameters,
          source: await sourceOf(task.input),
          outputPath,
          workFolder: task.workFolder,
        };
        const output = await runInChild<StepOutput>({ module: stepJob, input, workFolder: task.workFolder, limits: options.limits, signal, onProgress, onMemory: options.onMemory });
        return { ...output, path: outputPath };
      }),
  };
}
