import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { didYouMean } from '../../contract/did-you-mean.ts';
import { KitError } from '../../contract/index.ts';
import {
  ChildJobError,
  defaultLimits,
  FairQueue,
  FileDigests,
  runInChild,
  type ChildLimits,
  type ChildUsage,
} from '../../child/index.ts';
import { folderBytes, removeFolder } from '../../files/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import { packOutputs } from './pack-outputs.ts';
import { CodeDigests } from './code-digest.ts';
import { sourceFetcher, type Source } from './fetch-sources.ts';
import { makeProvenance } from './make-provenance.ts';
import { hashedInputs, hashInputs, measureInputs } from './input-digests.ts';
import { createLocalExecutor } from './local-executor.ts';
import type { Provenance, ProvenanceKnown } from './provenance.ts';
import { readDescriptions } from './output-description.ts';
import { readResult, type RunResult } from './output-summary.ts';
import { runCheck, type CheckedStep, type RunCheckOptions } from './run-check.ts';
import { chosenInputs, type RunInput } from './run-input.ts';
import type { ExecutedStep, ExecutorOptions, ExecutorTask, StepExecutor, StepUsage } from './step-executor.ts';
import { canBeTiled, planTiles, requireDigest, runTiles, sumOfUsages, type RasterSize } from './tiles.ts';
import { checkParameters, type StepParameters } from './step-parameters.ts';
import { answered, takeOutputs, type RunOutput } from './take-outputs.ts';
import type { WorkSpace } from './work-space.ts';

export interface StepHost {
  readonly steps: readonly AnyStep[];
  /** Throws `KitError` with code `unknown_step`. */
  find(stepId: string): AnyStep;
  /**
   * Checks parameters and input, and returns what a run would get, with its estimate. Throws
   * `KitError` (400), so that no user is asked to approve what cannot run.
   */
  check(stepId: string, parameters: unknown, input: RunInput, signal?: AbortSignal): Promise<CheckedStep>;
  /** Steps that run now, and that wait for their turn. */
  load(): { running: number; waiting: number };
  /** False if the last child process could not start, for example for lack of memory. */
  canStartChildren(): boolean;
  /**
   * Fetches the input, runs a step on it in a child process and returns the path, size and sha256 of each output, and the summary and picture that people look at.
   * Removes a folder left by an earlier try first. Rejects with `ChildJobError`, with what fetching throws,
   * or the signal's reason.
   */
  run(task: StepTask, options: StepRunOptions): Promise<StepOutputs>;
}

export interface StepOutputs {
  /** At least one, in the order of the declaration. */
  readonly outputs: readonly RunOutput[];
  readonly result: RunResult | null;
  readonly provenance: Provenance;
  /** `stepSeconds`: time of the step, without the wait for its turn. `bytesIn`: size of the input files. */
  readonly usage: StepUsage & { readonly stepSeconds: number; readonly bytesIn: number };
}

export interface StepTask {
  /** Owner of the task. Owners take turns. */
  readonly owner: string;
  readonly stepId: string;
  /** The version that was approved: no other runs. */
  readonly stepVersion: string;
  readonly parameters: StepParameters;
  readonly input: RunInput;
  /** The run that the task belongs to. Default: none. */
  readonly run?: ExecutorTask['run'];
  /** Memory that the step is expected to use, in bytes. Default: its limit. */
  readonly expectedMemoryBytes?: number | null;
  /** Memory that the step may use, in bytes. Default: the limit of the host, or more if the step requires more. */
  readonly memoryLimitBytes?: number | null;
  /** Size of the raster. Null or absent: not known, so the run is not cut into tiles. */
  readonly grid?: RasterSize | null;
  /** The operation that was approved. Default: none. */
  readonly operationId?: string | null;
  /** The task's own folder, with `input`, `step` and `output` in it; made here, removed by the caller when the output is no longer needed. */
  readonly workFolder: string;
}

export interface StepRunOptions {
  readonly signal: AbortSignal;
  /** `tiles`: the states of the run's tiles, as `RunProgress` has them. */
  readonly onProgress: (fraction: number, note: string | null, tiles?: string | null) => void;
  /** Each line that the step prints. Default: nobody reads them. */
  readonly onPrinted?: ((line: string) => void) | undefined;
  /** Repeats a call to the platform while that is away. Default: calls once. */
  readonly repeat?: <T>(call: () => Promise<T>) => Promise<T>;
}

/** Maximum size of files that the server hashes on its main thread: some 3 ms. */
const hashedAtOnceBytes = 1024 * 1024;

/** Part of the progress bar in which tiles are computed. */
const tilesPart = 0.7;
const assembliesAtOnce = 2;

/** Part of the progress bar in which items are fetched. */
const fetchPart = 0.2;

export interface StepHostOptions extends RunCheckOptions {
  /** The steps, and the module whose default export holds them: child processes load them from there. */
  readonly definition: { readonly module: string; readonly steps: readonly AnyStep[] };
  /** Default: no limit to what the work folders hold together. */
  readonly workSpace?: WorkSpace;
  /** Runs a job in a child process of this machine. Default: `runInChild`, which starts a process for each job. */
  readonly inChild?: typeof runInChild;
  /** Gives the work of steps room. Default: confined child processes of this machine. */
  readonly executor?: StepExecutor;
  /** Memory for the steps that run at the same time, by their estimates. Default: unlimited. */
  readonly memoryBytes?: number | undefined;
  /** Pixels of a tile. A run with more than four times as many is cut into tiles, if its step and its size allow that. Default: no run is cut. */
  readonly tilePixels?: number | undefined;
  /** True if the platform wants one file per run: several outputs then become one zip. Default false. */
  readonly packsOutputs?: boolean;
  /** Port on which a step waits for a debugger. Default: none. */
  readonly inspectPort?: number | undefined;
  /** Use of a step's processes on this machine, as sampled. */
  readonly onUsage?: (usage: ChildUsage) => void;
}

export function createStepHost(options: StepHostOptions): StepHost {
  const { steps } = options.definition;
  const { inChild = runInChild } = options;
  const local = createLocalExecutor({ ...options, module: options.definition.module });
  const executor = options.executor ?? local;
  const localAtOnce = options.executor ? Math.min(options.concurrency, availableParallelism()) : options.concurrency;
  const queue = new FairQueue(options.concurrency, options.memoryBytes);
  /** Wholes that this machine makes of tiles that were computed elsewhere. */
  const assemblies = new FairQueue(assembliesAtOnce);
  /** Runs that hold an input of the platform: so many wait for their step, beside those that run. The others hold nothing yet. */
  const withInput = new FairQueue(options.concurrency + localAtOnce);
  const code = new CodeDigests(options.definition.module);
  const find = (stepId: string) => findStep(steps, stepId);
  // These use this machine, whatever an engine has.
  const fetchSources = sourceFetcher({ ...options, concurrency: localAtOnce });
  const check = runCheck({ ...options, concurrency: localAtOnce }, find, inChild);

  let lacksProcesses = false;

  /** A larger limit of the run wins over the step's own, and that over the host's. */
  const memoryLimitOf = ({ memoryLimitBytes }: StepTask, { requires }: AnyStep): number =>
    memoryLimitBytes ?? Math.max(requires?.memoryBytes ?? 0, options.limits?.memoryBytes ?? defaultLimits.memoryBytes);

  async function runStep(
    task: StepTask & Pick<ExecutorTask, 'parameters'>,
    step: AnyStep,
    sources: readonly Source[],
    { signal, onProgress, onPrinted }: StepRunOptions,
  ): Promise<StepOutputs> {
    const { workFolder } = task;
    let beganMs = performance.now();
    const known: ProvenanceKnown = {
      step: { id: step.id, version: step.version, code: await code.of(step) },
      parameters: task.parameters,
      input: task.input,
      operationId: task.operationId ?? null,
      software: await code.software(),
    };
    const unhashed = await measureInputs(sources);
    const digests = new FileDigests({ smallBytes: hashedAtOnceBytes });
    // Children read the files meanwhile, and can change none of them.
    const inputDigests = hashInputs(sources, digests);
    inputDigests.catch(() => {});
    const executorTask = {
      ...{ run: task.run ?? null, step, parameters: task.parameters },
      ...{ provenance: { known, inputs: unhashed }, sources, inputDigests },
    };
    const memoryBytes = memoryLimitOf(task, step);
    /** Runs the step, or a part of it, when there is a place for it. */
    const execute = (
      by: StepExecutor,
      more: Pick<ExecutorTask, 'workFolder' | 'tile'>,
      running: ExecutorOptions,
    ): Promise<ExecutedStep> =>
      (by === executor ? queue : assemblies).run(
        task.owner,
        async () => {
          // The parts of other tiles count, too.
          const heldBytes = more.tile ? await folderBytes(join(workFolder, 'tiles')) : 0;
          const diskBytes = Math.max(1, (options.limits?.diskBytes ?? defaultLimits.diskBytes) - heldBytes);
          const own = { ...options, limits: { ...options.limits, memoryBytes, diskBytes } };
          const { limits, isCut } = await limitsNow(own, more.workFolder);
          try {
            const executed = await by.run({ ...executorTask, limits, ...more }, running);
            if (by === local) lacksProcesses = false;
            return executed;
          } catch (error) {
            // Another machine says nothing of this one.
            if (by === local) lacksProcesses = error instanceof ChildJobError && error.code === 'job_not_started';
            throw isCut ? becauseOfOthers(error) : error;
          }
        },
        running.signal,
        Math.min(task.expectedMemoryBytes ?? Infinity, memoryBytes),
      );
    const tiles = task.grid && canBeTiled(step) ? planTiles(task.grid, options.tilePixels ?? Infinity) : [];
    try {
      const executed =
        tiles.length === 0
          ? await execute(
              executor,
              { workFolder },
              { signal, onProgress, onPrinted, onBegun: () => (beganMs = performance.now()) },
            )
          : await executeTiles();
      const stepSeconds = (performance.now() - beganMs) / 1000;
      const folders = { stepFolder: join(workFolder, 'step'), outputFolder: join(workFolder, 'output') };
      const { result, descriptions } = answered.parse(executed.answer);
      const outputs = await takeOutputs(step, folders, digests, readDescriptions(descriptions));
      for (const { path, sha256 } of outputs) requireDigest(path, sha256, executed.sent);
      const made = makeProvenance(known, hashedInputs(unhashed, await inputDigests), executed.gdalVersion);
      const isPacked = options.packsOutputs === true && outputs.length > 1;
      const archive = join(folders.outputFolder, `${step.id}.zip`);
      const delivered = isPacked ? [await packOutputs(step, outputs, made, archive, signal)] : outputs;
      const bytesIn = unhashed.flatMap(({ files }) => files).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      const usage = { ...executed.usage, stepSeconds, bytesIn };
      return { outputs: delivered, provenance: made, result: readResult(result), usage };
    } finally {
      await digests.close();
    }

    /** Computes the tiles, then makes the outputs of their pixels on this machine. */
    async function executeTiles(): Promise<ExecutedStep> {
      beganMs = performance.now();
      const { parts, usages } = await runTiles(tiles, {
        ...{ step, folder: join(workFolder, 'tiles'), digests, signal },
        onProgress: (fraction, note, states) => onProgress(fraction * tilesPart, note, states),
        run: (tile, folder, either, onBegun) =>
          execute(
            executor,
            { workFolder: folder, tile: { type: 'part', ...tile } },
            { signal: either, onProgress: () => {}, onPrinted, onBegun },
          ),
      });
      const all = 'd'.repeat(tiles.length);
      const whole = await execute(
        local,
        { workFolder, tile: { type: 'whole', parts } },
        {
          ...{ signal, onPrinted },
          onProgress: (fraction, note) => onProgress(tilesPart + fraction * (1 - tilesPart), note, all),
        },
      );
      return { ...whole, usage: sumOfUsages([...usages, whole.usage]) };
    }
  }

  return {
    steps,
    find,
    check,
    load: () => ({ running: queue.running, waiting: queue.waiting + withInput.waiting }),
    canStartChildren: () => !lacksProcesses,
    async run(task, { signal, onProgress, onPrinted, repeat = (call) => call() }) {
      signal.throwIfAborted();
      const step = find(task.stepId);
      if (step.version !== task.stepVersion) throw new StepVersionGoneError(step, task.stepVersion);
      const parameters = checkParameters(step, task.parameters);
      const inputFolder = join(task.workFolder, 'input');
      await removeFolder(task.workFolder);
      const isFetched = chosenInputs(step, task.input).some(({ source }) => source.type === 'platform');
      const work = async () => {
        await options.workSpace?.waitForRoom(signal, () => onProgress(0, 'waiting for space in the work folders'));
        try {
          const onFetched = (fraction: number) =>
            onProgress(fraction * fetchPart, 'fetching the input from the platform');
          const sources = await fetchSources(task, step, inputFolder, {
            signal,
            repeat,
            onProgress: onFetched,
          });
          const onStep = (fraction: number, note: string | null, tiles?: string | null) =>
            onProgress(isFetched ? fetchPart + fraction * (1 - fetchPart) : fraction, note, tiles);
          return await runStep({ ...task, parameters }, step, sources, {
            signal,
            onProgress: onStep,
            onPrinted,
            repeat,
          });
        } finally {
          const used = ['input', 'step', 'services', 'tiles'].map((name) => join(task.workFolder, name));
          await Promise.all(used.map((folder) => removeFolder(folder)));
        }
      };
      return isFetched ? withInput.run(task.owner, work, signal) : work();
    },
  };
}

/** Finds a step of the app. Throws `KitError` (`unknown_step`), with the step that was meant if a name is close. */
function findStep(steps: readonly AnyStep[], stepId: string): AnyStep {
  const step = steps.find(({ id }) => id === stepId);
  if (!step) {
    const known = steps.map(({ id }) => id);
    const message = `there is no step ${JSON.stringify(stepId)}; there are ${known.join(', ')}${didYouMean(stepId, known)}`;
    throw new KitError('unknown_step', message, {
      status: 400,
      data: { stepId },
    });
  }
  return step;
}

/** The step's own limits, with its disk limit cut to the free space of the work folders. `isCut` is true if other runs use space that the step may use. */
async function limitsNow(
  { limits, workSpace }: Pick<StepHostOptions, 'limits' | 'workSpace'>,
  workFolder: string,
): Promise<{ limits: ChildLimits | undefined; isCut: boolean }> {
  if (!workSpace) return { limits, isCut: false };
  const left = Math.max(1, await workSpace.left());
  const own = limits?.diskBytes ?? Infinity;
  const alone = workSpace.quotaBytes - (await folderBytes(workFolder));
  return { limits: { ...limits, diskBytes: Math.min(own, left) }, isCut: left < Math.min(own, alone) };
}

/** The error of a step that other runs have left too little disk space. The app tries the step again, because these runs free their space when they end. */
function becauseOfOthers(error: unknown): unknown {
  if (!(error instanceof ChildJobError) || error.code !== 'job_disk_exceeded') return error;
  return new ChildJobError('work_disk_full', 'the work folders of other runs leave this step too little room', {
    kind: 'transient',
    data: error.data,
  });
}

/** The step's version is not the one that the user approved. */
export class StepVersionGoneError extends KitError {
  constructor({ id, version }: AnyStep, approved: string) {
    super(
      'step_version_gone',
      `${id} ${approved} was approved, and the app has ${id} ${version} by now: nothing was processed`,
      { status: 409, data: { approved, version } },
    );
  }
}
