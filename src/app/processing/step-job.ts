/** Runs in the child process: one step on one input. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import gdal from 'gdal-async';
import { KitError } from '../../contract/kit-error.ts';
import { walkStrips } from '../../raster/block-walk.ts';
import type { ChildContext, Job, JobContext } from '../../raster/child/protocol.ts';
import { createRaster, gridOf, writeCog } from '../../raster/cog.ts';
import { openRaster } from '../../raster/open-raster.ts';
import { openScene, requireSameGrid, type Scene } from '../../raster/scene.ts';
import { writeSyntheticScene } from '../../raster/synthetic-scene.ts';
import type { AnyStep, BandDeclaration, StepJob } from '../../steps/step.ts';
import { toldApart } from './own-error.ts';
import type { RunResult } from './output-summary.ts';
import type { StepParameters } from './step-parameters.ts';
import { summarize } from './summarize.ts';

export interface StepJobInput {
  /** Module whose default export holds the steps. */
  readonly definition: string;
  readonly stepId: string;
  readonly parameters: StepParameters;
  /** Makes the input by code; null where the input is the files that the job is lent. */
  readonly synthetic: { readonly size: number } | null;
}

export interface StepOutput {
  readonly sizeBytes: number;
  readonly sha256: string;
  /** Null where it could not be made, which is no fault of the output. */
  readonly result: RunResult | null;
}

/** The step did not do what its declaration says. */
class BrokenStepError extends KitError {
  constructor(stepId: string, what: string) {
    super('step_broke_its_declaration', `step ${stepId} ${what}`, { status: 500 });
  }
}

/** Parts of the progress bar: making or opening the input, the step, checking and hashing the output. */
const parts = { input: 0.05, step: 0.95, digest: 0.98 };

const job: Job<StepJobInput, StepOutput> = async (input, context) => {
  const {
    default: { steps },
  } = (await import(input.definition)) as { default: { steps: readonly AnyStep[] } };
  const step = steps.find(({ id }) => id === input.stepId);
  if (!step) throw new KitError('unknown_step', `there is no step ${input.stepId}`);

  context.progress(0, 'opening the input');
  const outputPath = join(context.workFolder, step.output.fileName);
  const scene = openScene(await inputFiles(input, step, context));
  try {
    context.progress(parts.input, step.title);
    const stepWork = join(context.workFolder, 'work');
    await mkdir(stepWork, { recursive: true });
    const stepJob: StepJob<StepParameters> = {
      parameters: input.parameters,
      scene,
      outputPath,
      workFolder: stepWork,
      gdal,
      raster: { createRaster, gridOf, writeCog, walkStrips, requireSameGrid },
      signal: context.signal,
      progress: share(context, parts.input, parts.step).progress,
      share: (from, to) => share(share(context, parts.input, parts.step), from, to),
    };
    try {
      await step.run(stepJob as StepJob<never>);
    } catch (error) {
      throw toldApart(error);
    }
    context.signal.throwIfAborted();

    context.progress(parts.step, 'checking the output');
    checkOutput(step, outputPath, scene);
    const output = await digest(outputPath);
    context.progress(parts.digest, 'summing it up');
    return { ...output, result: await summarize(outputPath, step.output.preview).catch(() => null) };
  } finally {
    scene.close();
  }
};
export default job;

async function inputFiles(
  { synthetic }: StepJobInput,
  step: AnyStep,
  { files, workFolder }: ChildContext,
): Promise<readonly string[]> {
  if (synthetic === null) return files;
  const path = join(workFolder, `synthetic-${step.input.synthetic}.tif`);
  await writeSyntheticScene(path, { kind: step.input.synthetic, size: synthetic.size });
  return [path];
}

function share(context: JobContext, from: number, to: number): JobContext {
  return {
    signal: context.signal,
    progress: (fraction, note) => context.progress(from + fraction * (to - from), note),
  };
}

/** The output must be a raster with the bands that the declaration promises. */
function checkOutput(step: AnyStep, path: string, scene: Scene): void {
  let output: gdal.Dataset;
  try {
    output = openRaster(path);
  } catch (cause) {
    throw new BrokenStepError(
      step.id,
      `left no readable raster: ${cause instanceof Error ? cause.message : String(cause)}`,
    );
  }
  try {
    const describe = (dataset: gdal.Dataset): BandDeclaration[] =>
      dataset.bands.map((band) => ({
        description: band.description,
        dataType: band.dataType ?? '',
        nodata: band.noDataValue ?? undefined,
      }));
    const actual = describe(output);
    const declared = step.output.bands === 'as-input' ? describe(scene.onlyRaster()) : step.output.bands;
    if (actual.length !== declared.length)
      throw new BrokenStepError(step.id, `wrote ${actual.length} bands, but declares ${declared.length}`);
    declared.forEach((band, i) => {
      const got = actual[i];
      if (got?.dataType !== band.dataType)
        throw new BrokenStepError(step.id, `wrote band ${i + 1} as ${got?.dataType}, but declares ${band.dataType}`);
      if (!Object.is(got.nodata, band.nodata))
        throw new BrokenStepError(step.id, `wrote nodata ${got.nodata} in band ${i + 1}, but declares ${band.nodata}`);
    });
  } finally {
    output.close();
  }
}

async function digest(path: string): Promise<Omit<StepOutput, 'result'>> {
  const hash = createHash('sha256');
  for await (const bytes of createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(bytes as Buffer);
  return { sizeBytes: (await stat(path)).size, sha256: hash.digest('hex') };
}
