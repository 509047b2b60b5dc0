import { join } from 'node:path';
import {
  ChildJobError,
  defaultLimits,
  FairQueue,
  FileDigests,
  runInChild,
  type ChildLimits,
  type ChildUsage,
  type Confinement,
} from '../../child/index.ts';
import { folderBytes } from '../../files/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import { CodeDigests } from './code-digest.ts';
import type { Containers } from './containers.ts';
import type { Source } from './fetch-sources.ts';
import { hashedInputs, hashInputs, measureInputs } from './input-digests.ts';
import { createLocalExecutor } from './local-executor.ts';
import { KeptTiles, tilesFolder } from './kept-tiles.ts';
import { makeProvenance } from './make-provenance.ts';
import { readDescriptions } from './output-description.ts';
import { readResult, type RunResult } from './output-summary.ts';
import { packOutputs } from './pack-outputs.ts';
import type { Provenance } from './provenance.ts';
import type { RunInput } from './run-input.ts';
import type { ExecutedStep, ExecutorOptions, ExecutorTask, StepExecutor, StepUsage } from './step-executor.ts';
import type { StepParameters } from './step-parameters.ts';
import { answered, requireDigest, takeOutputs, type RunOutput } from './take-outputs.ts';
import { planTiles, type RasterSize, type Tile } from './plan-tiles.ts';
import { canBeTiled, runTiles, sumOfUsages } from './tiles.ts';
import type { WorkSpace } from './work-space.ts';

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

export interface StepRunnerOptions {
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
  readonly confinement: Confinement;
  /** Default: steps that run in an image are refused. */
  readonly containers?: Containers;
  /** Limits of a step. Default: `defaultLimits`. */
  readonly limits?: ChildLimits;
  /** Steps that run at the same time. */
  readonly concurrency: number;
}

/** One run of a step, with what its executors get. */
interface PreparedStep {
  readonly task: StepTask;
  readonly step: AnyStep;
  readonly executorTask: Omit<ExecutorTask, 'limits' | 'workFolder' | 'tile'>;
  readonly digests: FileDigests;
}

/** Runs steps on inputs that lie on this machine: in one piece or in tiles, each when there is a place for it. */
export class StepRunner {
  readonly #options: StepRunnerOptions;
  readonly #local: StepExecutor;
  readonly #executor: StepExecutor;
  readonly #queue: FairQueue;
  /** Wholes that this machine makes of tiles that were computed elsewhere. */
  readonly #assemblies = new FairQueue(assembliesAtOnce);
  readonly #code: CodeDigests;
  #lacksProcesses = false;

  constructor(options: StepRunnerOptions) {
    this.#options = options;
    this.#local = createLocalExecutor({ ...options, module: options.definition.module });
    this.#executor = options.executor ?? this.#local;
    this.#queue = new FairQueue(options.concurrency, options.memoryBytes);
    this.#code = new CodeDigests(options.definition.module);
  }

  get running(): number {
    return this.#queue.running;
  }

  get waiting(): number {
    return this.#queue.waiting;
  }

  /** False if the last child process of this machine could not start. */
  get canStartChildren(): boolean {
    return !this.#lacksProcesses;
  }

  async run(
    task: StepTask & Pick<ExecutorTask, 'parameters'>,
    step: AnyStep,
    sources: readonly Source[],
    options: StepRunOptions,
  ): Promise<StepOutputs> {
    const { packsOutputs = false, tilePixels = Infinity } = this.#options;
    const { workFolder } = task;
    const known = {
      step: { id: step.id, version: step.version, code: await this.#code.of(step) },
      parameters: task.parameters,
      input: task.input,
      operationId: task.operationId ?? null,
      software: await this.#code.software(),
    };
    const unhashed = await measureInputs(sources);
    const digests = new FileDigests({ smallBytes: hashedAtOnceBytes });
    // Children read the files meanwhile, and can change none of them.
    const inputDigests = hashInputs(sources, digests);
    inputDigests.catch(() => {});
    const provenance = { known, inputs: unhashed };
    const executorTask = {
      run: task.run ?? null,
      step,
      parameters: task.parameters,
      provenance,
      sources,
      inputDigests,
    };
    const prepared: PreparedStep = { task, step, executorTask, digests };
    const tiles = task.grid && canBeTiled(step) ? planTiles(task.grid, tilePixels) : [];
    let beganMs = performance.now();
    try {
      const executed =
        tiles.length > 0
          ? await this.#inTiles(prepared, tiles, options)
          : await this.#execute(prepared, this.#executor, { workFolder }, { ...options, onBegun: () => (beganMs = performance.now()) }); // oxfmt-ignore
      const stepSeconds = (performance.now() - beganMs) / 1000;
      const folders = { stepFolder: join(workFolder, 'step'), outputFolder: join(workFolder, 'output') };
      const { result, descriptions } = answered.parse(executed.answer);
      const outputs = await takeOutputs(step, folders, digests, readDescriptions(descriptions));
      for (const { path, sha256 } of outputs) requireDigest(path, sha256, executed.sent);
      const made = makeProvenance(known, hashedInputs(unhashed, await inputDigests), executed.gdalVersion);
      const archive = join(folders.outputFolder, `${step.id}.zip`);
      const isPacked = packsOutputs && outputs.length > 1;
      const delivered = isPacked ? [await packOutputs(step, outputs, made, archive, options.signal)] : outputs;
      const bytesIn = unhashed.flatMap(({ files }) => files).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      const usage = { ...executed.usage, stepSeconds, bytesIn };
      return { outputs: delivered, provenance: made, result: readResult(result), usage };
    } finally {
      await digests.close();
    }
  }

  /** Runs the step, or a part of it, when there is a place for it. */
  #execute(
    { task, step, executorTask }: PreparedStep,
    executor: StepExecutor,
    more: Pick<ExecutorTask, 'workFolder' | 'tile'>,
    running: ExecutorOptions,
  ): Promise<ExecutedStep> {
    const memoryBytes = this.#memoryLimitOf(task, step);
    const execute = async () => {
      const { limits, isCut } = await this.#limitsNow(task, memoryBytes, more);
      try {
        const executed = await executor.run({ ...executorTask, limits, ...more }, running);
        if (executor === this.#local) this.#lacksProcesses = false;
        return executed;
      } catch (error) {
        // Another machine says nothing of this one.
        if (executor === this.#local)
          this.#lacksProcesses = error instanceof ChildJobError && error.code === 'job_not_started';
        throw isCut ? becauseOfOthers(error) : error;
      }
    };
    const queue = executor === this.#executor ? this.#queue : this.#assemblies;
    return queue.run(task.owner, execute, running.signal, Math.min(task.expectedMemoryBytes ?? Infinity, memoryBytes));
  }

  /** Computes the tiles, then makes the outputs of their pixels on this machine. */
  async #inTiles(
    prepared: PreparedStep,
    tiles: readonly Tile[],
    { signal, onProgress, onPrinted }: StepRunOptions,
  ): Promise<ExecutedStep> {
    const { workFolder } = prepared.task;
    const { provenance, inputDigests } = prepared.executorTask;
    const kept = new KeptTiles({
      ...{ workFolder, digests: prepared.digests },
      dependsOn: async () => [provenance, this.#options.confinement.gdalVersion, await inputDigests],
    });
    const { parts, usages } = await runTiles(tiles, {
      ...{ step: prepared.step, kept, signal },
      onProgress: (fraction, note, states) => onProgress(fraction * tilesPart, note, states),
      run: (tile, folder, either, onBegun) =>
        this.#execute(
          prepared,
          this.#executor,
          { workFolder: folder, tile: { type: 'part', ...tile } },
          { signal: either, onProgress: () => {}, onPrinted, onBegun },
        ),
    });
    const all = 'd'.repeat(tiles.length);
    const whole = await this.#execute(
      prepared,
      this.#local,
      { workFolder, tile: { type: 'whole', parts } },
      {
        ...{ signal, onPrinted },
        onProgress: (fraction) => onProgress(tilesPart + fraction * (1 - tilesPart), 'putting the tiles together', all),
      },
    );
    return { ...whole, usage: sumOfUsages([...usages, whole.usage]) };
  }

  /** A larger limit of the run wins over the step's own, and that over the host's. */
  #memoryLimitOf({ memoryLimitBytes }: StepTask, { requires }: AnyStep): number {
    const own = this.#options.limits?.memoryBytes ?? defaultLimits.memoryBytes;
    return memoryLimitBytes ?? Math.max(requires?.memoryBytes ?? 0, own);
  }

  /** The limits of a step, with its disk limit cut to the free space of the work folders. `isCut` is true if other runs use space that the step may use. */
  async #limitsNow(
    { workFolder }: StepTask,
    memoryBytes: number,
    { workFolder: ownFolder, tile }: Pick<ExecutorTask, 'workFolder' | 'tile'>,
  ): Promise<{ limits: ChildLimits; isCut: boolean }> {
    const { limits, workSpace } = this.#options;
    // The parts of other tiles count, too.
    const heldBytes = tile ? await folderBytes(join(workFolder, tilesFolder)) : 0;
    const own = Math.max(1, (limits?.diskBytes ?? defaultLimits.diskBytes) - heldBytes);
    if (!workSpace) return { limits: { ...limits, memoryBytes, diskBytes: own }, isCut: false };
    const left = Math.max(1, await workSpace.left());
    const alone = workSpace.quotaBytes - (await folderBytes(ownFolder));
    return {
      limits: { ...limits, memoryBytes, diskBytes: Math.min(own, left) },
      isCut: left < Math.min(own, alone),
    };
  }
}

/** The error of a step that other runs have left too little disk space. The app tries the step again, because these runs free their space when they end. */
function becauseOfOthers(error: unknown): unknown {
  if (!(error instanceof ChildJobError) || error.code !== 'job_disk_exceeded') return error;
  return new ChildJobError('work_disk_full', 'the work folders of other runs leave this step too little room', {
    kind: 'transient',
    data: error.data,
  });
}
