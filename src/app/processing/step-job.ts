/** Runs in the child process: one step on one input. */
import { mkdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import gdal from 'gdal-async';
import { KitError } from '../../contract/kit-error.ts';
import { importDefault } from '../../files/index.ts';
import { fitBlockCache } from '../../raster/block-cache.ts';
import { readerOf, type ItemFacts } from '../../raster/band-reader.ts';
import { eachStrip, walkBands, walkStrips } from '../../raster/block-walk.ts';
import type { ChildContext, Job } from '../../child/in-child.ts';
import { createRaster, gridOf, nameBands, writeCog } from '../../raster/cog.ts';
import { openFeatures, type Features } from '../../raster/features.ts';
import { partOf } from '../../child/in-child.ts';
import { openRaster } from '../../raster/open-raster.ts';
import { openScene, requireSameGrid, type Scene } from '../../raster/scene.ts';
import { writeSyntheticScene, writeSyntheticZones } from '../../raster/synthetic-scene.ts';
import {
  inputsOf,
  mainInput,
  outputsOf,
  previewOf,
  type AnyStep,
  type InputDeclaration,
  type StepJob,
  type TileWork,
} from '../../steps/step.ts';
import { inContainer } from '../../steps/container.ts';
import { checkOutputs, requireClosed, type MadeOutput } from './check-outputs.ts';
import { classifyStepError } from './classify-step-error.ts';
import type { SceneBand } from '../../raster/scene.ts';
import { describeOutputs } from './describe-outputs.ts';
import type { OutputDescription } from './output-description.ts';
import type { OutputSummary, RunResult } from './output-summary.ts';
import { containerAnswer, type ContainerQuestion } from './container-messages.ts';
import { digestsAnswer, type DigestsQuestion } from './input-digests.ts';
import { tagsOfSources, timeTags } from './file-tags.ts';
import { declaredUnit } from './facts-of-inputs.ts';
import { beginStamp, noStamp, type StampKnown } from './stamp.ts';
import type { StepParameters } from './step-parameters.ts';

export interface StepJobInput {
  /** Module whose default export holds the steps. */
  readonly definition: string;
  readonly stepId: string;
  readonly parameters: StepParameters;
  /** Null for a trial, whose output nobody keeps. */
  readonly provenance: StampKnown | null;
  /** In the order of the files that the job is lent. */
  readonly inputs: readonly {
    readonly name: string;
    readonly kind: 'raster' | 'vector';
    /** Made by code; null where the input is files. */
    readonly synthetic: { readonly size: number } | null;
    readonly fileCount: number;
    /** Metadata of the files from their catalog items, one entry per file. Default: none. */
    readonly ofItems?: readonly ItemFacts[];
  }[];
  /** Rows that the job computes, or the parts of tiles, whose files are lent after those of the inputs. Default: all rows. */
  readonly tile?:
    | { readonly type: 'part'; readonly from: number; readonly to: number | null }
    | {
        readonly type: 'whole';
        readonly parts: readonly { readonly from: number; readonly fileNames: readonly string[] }[];
      };
}

/** Checked output that the step left in its work folder. */
export interface StepOutput {
  /** Names of the outputs that are there, in the order of the declaration. */
  readonly outputs: readonly string[];
  /** Facts of the outputs for catalogs, in their order. An output that cannot be described has none. */
  readonly descriptions: readonly OutputDescription[];
  /** Result of the first raster or features. Null if there is none, or if it could not be made, which is no fault of the output. */
  readonly result: RunResult | null;
}

/** Maximum number of bands in `readings`. */
const maxReadings = 16;

/** Addition to the name of a band in `readings`. */
const assumedSensor = ' (numbered as on Landsat 8, because no file name states the sensor)';

/** Pixels between the synthetic inputs of a step that has several. */
const shiftOfInput = 700;

/** Parts of the progress bar: making or opening the input, the step, checking the output. */
const parts = { input: 0.05, step: 0.95, check: 0.98 };

const job: Job<StepJobInput, StepOutput> = async (input, context) => {
  const { steps } = await importDefault<{ steps: readonly AnyStep[] }>(input.definition);
  const step = steps.find(({ id }) => id === input.stepId);
  if (!step) throw new KitError('unknown_step', `there is no step ${input.stepId}`);

  context.progress(0, 'opening the input');
  const paths = Object.fromEntries(
    outputsOf(step).map(([name, { fileName }]) => [name, join(context.workFolder, fileName)]),
  );
  const { inputs, scene, close } = await openInputs(input, step, context);
  fitBlockCache(Object.values(inputs).flatMap((opening) => ('bands' in opening ? opening.datasets : [])));
  try {
    const stamp = input.provenance ? beginStamp(input.provenance, step) : noStamp;
    const { metadata } = stamp;
    const without = [...tagsOfSources, ...(step.acquisition === 'none' ? timeTags : [])];
    context.progress(parts.input, step.title);
    const stepWork = join(context.workFolder, 'work');
    await mkdir(stepWork, { recursive: true });
    const readings = new Map<string, OutputSummary['readings'][number]>();
    const stepJob: StepJob<StepParameters> = {
      tile: tileOf(input, context.files),
      parameters: input.parameters,
      scene,
      inputs,
      outputPath: Object.values(paths)[0] ?? '',
      outputs: paths,
      workFolder: stepWork,
      gdal,
      metadata,
      raster: {
        createRaster,
        gridOf,
        nameBands,
        openRaster: (path) => openRaster(path),
        writeCog: (source, path, options, progress, more) => {
          const declared = outputsOf(step).find(([name]) => paths[name] === path)?.[1];
          const unit = declaredUnit(declared, input.parameters);
          writeCog(source, path, options, progress, { ...metadata, ...more }, { unit, without });
        },
        reader: (source, reading) => {
          const reader = readerOf(source, { ...reading, isExact: true });
          const known = bandName(source, inputs);
          if (known !== null && !readings.has(known) && readings.size < maxReadings)
            readings.set(known, {
              band: `${known.slice(0, 120)}${noteOfSensor(source)}`,
              ...reader.scale,
              origin: reader.scaleOrigin,
            });
          return reader;
        },
        eachStrip,
        walkBands,
        walkStrips,
        requireSameGrid,
      },
      container: containerOf(context),
      signal: context.signal,
      progress: partOf(context, parts.input, parts.step).progress,
      share: (from, to) => partOf(partOf(context, parts.input, parts.step), from, to),
    };
    try {
      // The host has checked the parameters; `AnyStep` does not know their type.
      await step.run(stepJob as StepJob<never, string, never>);
    } catch (error) {
      throw await classifyStepError(error, step, Object.values(inputs));
    }
    context.signal.throwIfAborted();

    // The host believes nothing of a part but its pixels, which the job of the whole reads.
    if (input.tile?.type === 'part') return { outputs: [], descriptions: [], result: null };

    context.progress(parts.step, 'checking the output');
    requireClosed(step, paths);
    const made = checkOutputs(step, paths, scene);
    await stamp.settle(made, async () =>
      digestsAnswer.parse(await context.ask({ type: 'input-digests' } satisfies DigestsQuestion)),
    );
    context.progress(parts.check, 'summing it up');
    const drawn = await makeResult(made, input.parameters, stepWork);
    const result = drawn && { ...drawn, summary: { ...drawn.summary, readings: [...readings.values()] } };
    return { outputs: made.map(({ name }) => name), descriptions: describeOutputs(made), result };
  } finally {
    close();
  }
};
export default job;

/** The tile of a job, with the paths of its parts. */
function tileOf({ tile, inputs }: StepJobInput, files: readonly string[]): TileWork | undefined {
  if (tile?.type !== 'whole') return tile;
  let next = inputs.reduce((sum, { fileCount }) => sum + fileCount, 0);
  const pathsOf = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, files[next++] ?? '']));
  return { type: 'whole', parts: tile.parts.map(({ from, fileNames }) => ({ from, paths: pathsOf(fileNames) })) };
}

function noteOfSensor(source: object): string {
  const { isOfAssumedSensor = false }: Partial<SceneBand> = source;
  return isOfAssumedSensor ? assumedSensor : '';
}

/** The name of a band of an input, with the name of the input if there are several; null for a band that the step made itself. */
function bandName(source: object, inputs: Readonly<Record<string, Scene | Features>>): string | null {
  const { names, place, dataset }: Partial<SceneBand> = source;
  if (!names || place === undefined) return null;
  const all = Object.entries(inputs);
  const [input] = all.find(([, scene]) => 'bands' in scene && scene.datasets.some((of) => of === dataset)) ?? [];
  return all.length > 1 && input !== undefined ? `${names[0] ?? place} of ${input}` : (names[0] ?? place);
}

/** Runs a step's container. It reads files that the host lent and files that this process made. */
function containerOf({ files, ask }: Pick<ChildContext, 'files' | 'ask'>): StepJob<never>['container'] {
  const gives = new Set<string>();
  return {
    pathOf(path) {
      const i = files.indexOf(path);
      if (i >= 0) return inContainer.input(i, basename(path));
      gives.add(basename(path));
      return `${inContainer.inputs}/${inContainer.given}/${basename(path)}`;
    },
    run: async (argv, texts, upTo) =>
      containerAnswer.parse(
        await ask({
          type: 'run-container',
          argv: [...argv],
          files: { ...texts },
          gives: [...gives],
          upTo,
        } satisfies ContainerQuestion),
      ),
  };
}

/** Opens every input that the run has. */
async function openInputs(input: StepJobInput, step: AnyStep, { files, workFolder }: ChildContext) {
  const opened: [string, Scene | Features][] = [];
  const close = () => opened.forEach(([, dataset]) => dataset.close());
  let from = 0;
  try {
    for (const [i, { name, kind, synthetic, fileCount, ofItems }] of input.inputs.entries()) {
      const lent = files.slice(from, (from += fileCount));
      const declared = inputsOf(step).find(([known]) => known === name)?.[1];
      if (!declared) throw new KitError('internal_error', `step ${step.id} has no input ${name}`);
      const paths = synthetic ? [await makeInput(declared, synthetic.size, i, workFolder)] : lent;
      opened.push([name, kind === 'vector' ? openFeatures(paths) : openScene(paths, ofItems)]);
    }
  } catch (error) {
    close();
    throw error;
  }
  const main = opened.find(([name]) => name === mainInput(step)?.[0])?.[1];
  // The main input is one of rasters.
  return { inputs: Object.fromEntries(opened), scene: (main as Scene | undefined) ?? openScene([]), close };
}

/** Each input in a place of its own in the landscape, all on the same grid; features are the quarters of it. */
async function makeInput(declared: InputDeclaration, size: number, i: number, workFolder: string): Promise<string> {
  if (declared.kind === 'vector') return writeSyntheticZones(join(workFolder, `synthetic-${i}.geojson`), size);
  const kind = declared.synthetic ?? 'multispectral';
  const path = join(workFolder, `synthetic-${kind}${i === 0 ? '' : `-${i}`}.tif`);
  await writeSyntheticScene(path, { kind, size, ...(i > 0 && { shift: i * shiftOfInput }) });
  return path;
}

/** Logs the error. A missing summary does not invalidate the output. */
function withoutSummary(error: unknown): null {
  console.error(
    `the output has no summary: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  );
  return null;
}

/** Returns the result of the first output that has a place. */
async function makeResult(
  made: readonly MadeOutput[],
  parameters: StepParameters,
  workFolder: string,
): Promise<RunResult | null> {
  for (const { path, declared } of made) {
    // Only what has a picture loads what draws it.
    if (declared.kind === undefined || declared.kind === 'raster')
      return import('./summarize.ts')
        .then(({ summarize }) => summarize(path, previewOf(declared, parameters)))
        .catch(withoutSummary);
    if (declared.kind === 'vector' && declared.geometry !== 'None')
      return import('./summarize-features.ts')
        .then(({ summarizeFeatures }) => summarizeFeatures(path, declared, workFolder))
        .catch(withoutSummary);
  }
  return null;
}
