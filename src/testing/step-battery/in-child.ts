import { join } from 'node:path';
import { checkParameters } from '../../app/processing/step-parameters.ts';
import { runInChild } from '../../child/index.ts';
import { scratchFolder } from '../../files/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import type { BatteryAnswer, BatteryInput, BatteryRun } from './battery-job.ts';
import { childTimeoutMs, type BatteryOptions, type Variant } from './check.ts';

const batteryJob = new URL('./battery-job.ts', import.meta.url);

/** Runs every variant in one process: a start costs more than most of them. The first comes twice. */
export async function inOneChild(
  { definition, stepId, confinement }: BatteryOptions,
  variants: readonly Variant[],
  step: AnyStep,
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
  const input: BatteryInput = {
    definition: definition.module,
    stepId,
    runs: runs.length > 1 ? [...runs, runs[0]!] : runs,
  };
  return inFolder(async (workFolder) =>
    runInChild<BatteryAnswer[]>({
      module: batteryJob,
      input,
      imports: [new URL(definition.module)],
      workFolder,
      confinement: await confinement(),
      limits: { timeoutMs: childTimeoutMs },
    }),
  );
}

export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = scratchFolder('step-battery');
  try {
    return await work(join(folder.path, 'work'));
  } finally {
    await folder.remove();
  }
}
