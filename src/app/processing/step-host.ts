import { didYouMean } from '../../contract/did-you-mean.ts';
import { basename, join } from 'node:path';
import { KitError } from '../../contract/index.ts';
import {
  ChildJobError,
  defaultLimits,
  FairQueue,
  FileDigests,
  runInChild,
  type ChildLimits,
  type Confinement,
  type LentFile,
} from '../../child/index.ts';
import { folderBytes, removeFolder, requirePlainFile } from '../../files/index.ts';
import { type ItemFacts } from '../../raster/index.ts';
import { isCommand } from '../../steps/command.ts';
import { inputsOf, mainInput, type AnyStep, type StepEstimate } from '../../steps/step.ts';
import type { FetchOptions, PlatformInput } from './platform-input.ts';
import { openContainerService, requirePrograms } from './container-service.ts';
import type { Containers } from './containers.ts';
import { packOutputs } from './pack-outputs.ts';
import { CodeDigests } from './code-digest.ts';
import { makeProvenance } from './make-provenance.ts';
import { digestsQuestion, hashedInputs, hashInputs, measureInputs } from './input-digests.ts';
import type { Provenance, ProvenanceKnown } from './provenance.ts';
import { readDescriptions } from './output-description.ts';
import { readResult, type RunResult } from './output-summary.ts';
import { factsOfFiles, factsOfItems, factsOfSynthetic, requireBands, type InputFacts } from './input-facts.ts';
import {
  chosenInputs,
  findFiles,
  InputError,
  kindOf,
  type ChosenInput,
  type InputKind,
  type RunInput,
} from './run-input.ts';
import { incompatibilityReason } from './fit.ts';
import type { StepJobInput } from './step-job.ts';
import { checkParameters, type StepParameters } from './step-parameters.ts';
import { answered, takeOutputs, type RunOutput } from './take-outputs.ts';
import type { WorkSpace } from './work-space.ts';

const stepJob = new URL('./step-job.ts', import.meta.url);

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

export interface CheckedStep {
  readonly step: AnyStep;
  readonly parameters: StepParameters;
  /** Null where the step makes none, or nothing is known of the input. */
  readonly estimate: StepEstimate | null;
  /** Reasons why the run may still fail, in sentences. */
  readonly warnings: readonly string[];
}

export interface StepOutputs {
  /** At least one, in the order of the declaration. */
  readonly outputs: readonly RunOutput[];
  readonly result: RunResult | null;
  readonly provenance: Provenance;
}

export interface StepTask {
  /** Owner of the task. Owners take turns. */
  readonly owner: string;
  readonly stepId: string;
  /** The version that was approved: no other runs. */
  readonly stepVersion: string;
  readonly parameters: StepParameters;
  readonly input: RunInput;
  /** The operation that was approved. Default: none. */
  readonly operationId?: string | null;
  /** The task's own folder, with `input`, `step` and `output` in it; made here, removed by the caller when the output is no longer needed. */
  readonly workFolder: string;
}

export interface StepRunOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number, note: string | null) => void;
  /** Each line that the step prints. Default: nobody reads them. */
  readonly onPrinted?: ((line: string) => void) | undefined;
  /** Repeats a call to the platform while that is away. Default: calls once. */
  readonly repeat?: <T>(call: () => Promise<T>) => Promise<T>;
}

/** Maximum size of files that the server hashes on its main thread: some 3 ms. */
const hashedAtOnceBytes = 1024 * 1024;

/** Part of the progress bar in which items are fetched. */
const fetchPart = 0.2;

export interface StepHostOptions {
  /** Default: steps that run in an image are refused. */
  readonly containers?: Containers;
  /** The steps, and the module whose default export holds them: child processes load them from there. */
  readonly definition: { readonly module: string; readonly steps: readonly AnyStep[] };
  readonly inputDir: string;
  readonly confinement: Confinement;
  readonly platformInput: PlatformInput;
  readonly limits?: ChildLimits;
  /** Default: no limit to what the work folders hold together. */
  readonly workSpace?: WorkSpace;
  /** Runs a job in a child process. Default: `runInChild`, which starts a process for each job. */
  readonly inChild?: typeof runInChild;
  /** Steps that run at the same time; the others wait. */
  readonly concurrency: number;
  /** True if the platform wants one file per run: several outputs then become one zip. Default false. */
  readonly packsOutputs?: boolean;
  /** Port on which a step waits for a debugger. Default: none. */
  readonly inspectPort?: number | undefined;
  /** Receives a mistake of a step that stops no run. */
  readonly onDefect?: (error: unknown, what: string) => void;
  /** Resident memory of a step's processes, as sampled. */
  readonly onMemory?: (bytes: number) => void;
}

/** Never aborted: a look takes a minute at most. */
const unhurried = new AbortController().signal;
const nothingKnown: InputFacts = { bands: null, settles: () => false, size: null };

export function createStepHost(options: StepHostOptions): StepHost {
  const { steps } = options.definition;
  const { inChild = runInChild } = options;
  const queue = new FairQueue(options.concurrency);
  const fetches = new FairQueue(options.concurrency);
  /** Runs that hold an input of the platform: so many wait for their step, beside those that run. The others hold nothing yet. */
  const withInput = new FairQueue(2 * options.concurrency);
  const looks = new FairQueue(options.concurrency);
  const code = new CodeDigests(options.definition.module);

  function find(stepId: string): AnyStep {
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

  /** Returns the sources to process: rasters that the child makes, or files that the host lends to it. */
  async function fetchSources(
    { owner, input }: StepTask,
    step: AnyStep,
    folder: string,
    { signal, onProgress, repeat }: Pick<FetchOptions, 'signal' | 'onProgress' | 'repeat'>,
  ): Promise<Source[]> {
    const chosen = chosenInputs(step, input);
    const fetched = chosen.filter(({ source }) => source.type === 'platform');
    const sources: Source[] = [];
    let bytesTaken = 0;
    let time: ReturnType<typeof inTime> | null = null;
    for (const { name, declared, source } of chosen) {
      const kind = kindOf(declared);
      if (source.type === 'synthetic') sources.push({ name, kind, synthetic: { size: source.size }, paths: [] });
      else if (source.type === 'local')
        sources.push({ name, kind, synthetic: null, paths: await findFiles(options.inputDir, source.path, kind) });
      else {
        const part = fetched.findIndex((chosenInput) => chosenInput.name === name);
        // Fetches have a queue of their own, so that waiting for the platform keeps no step from running.
        const fetch = () => {
          // The wait for this turn does not count.
          time ??= inTime(signal);
          return options.platformInput.fetch(source.items, join(folder, name), {
            kind,
            bytesTaken,
            signal: time.timed,
            repeat,
            onProgress: (fraction) => onProgress((part + fraction) / fetched.length),
          });
        };
        const files = await fetches.run(owner, fetch, signal).catch((error: unknown) => {
          signal.throwIfAborted();
          throw time?.isLate()
            ? new KitError('job_timeout', `the app could not fetch the input within ${options.limits?.timeoutMs} ms`, {
                status: 422,
              })
            : error;
        });
        const paths = files.map(({ path }) => path);
        for (const path of paths) bytesTaken += await requirePlainFile(path);
        sources.push({ name, kind, synthetic: null, paths, ofItems: files.map(({ ofItem }) => ofItem) });
      }
    }
    return sources;
  }

  /** Fetching takes as long as a step may, and no longer. */
  function inTime(signal: AbortSignal): { timed: AbortSignal; isLate: () => boolean } {
    const timeoutMs = options.limits?.timeoutMs;
    if (timeoutMs === undefined) return { timed: signal, isLate: () => false };
    const timeout = AbortSignal.timeout(timeoutMs);
    return { timed: AbortSignal.any([signal, timeout]), isLate: () => timeout.aborted };
  }

  let lacksProcesses = false;

  /** The step's own limits, with its disk limit cut to the free space of the work folders. `isCut` is true if other runs use space that the step may use. */
  async function limitsNow(workFolder: string): Promise<{ limits: ChildLimits | undefined; isCut: boolean }> {
    const { limits, workSpace } = options;
    if (!workSpace) return { limits, isCut: false };
    const left = Math.max(1, await workSpace.left());
    const own = limits?.diskBytes ?? Infinity;
    const alone = workSpace.quotaBytes - (await folderBytes(workFolder));
    return { limits: { ...limits, diskBytes: Math.min(own, left) }, isCut: left < Math.min(own, alone) };
  }

  async function runStep(
    { workFolder, ...task }: StepTask,
    step: AnyStep,
    sources: readonly Source[],
    { signal, onProgress, onPrinted }: StepRunOptions,
  ) {
    const stepFolder = join(workFolder, 'step');
    const known: ProvenanceKnown = {
      step: { id: step.id, version: step.version, code: await code.of(step) },
      parameters: task.parameters,
      input: task.input,
      operationId: task.operationId ?? null,
      software: await code.software(),
    };
    const files = sources.flatMap(({ paths }) => paths.map((path): LentFile => ({ path, name: basename(path) })));
    const unhashed = await measureInputs(sources);
    const input: StepJobInput = {
      definition: options.definition.module,
      stepId: step.id,
      parameters: task.parameters,
      provenance: { known, inputs: unhashed },
      inputs: sources.map(({ paths, ...source }) => ({ ...source, fileCount: paths.length })),
    };
    const { limits, isCut } = await limitsNow(workFolder);
    const containerFolder = join(workFolder, 'container');
    const container = await openContainerService(step, options.containers, {
      ...{ stepFolder, folder: containerFolder, inputs: files, limits: { ...defaultLimits, ...limits } },
      ...{ onProgress, onPrinted: onPrinted ?? (() => {}) },
    });
    const { confinement, onMemory } = options;
    const digests = new FileDigests({ smallBytes: hashedAtOnceBytes });
    // The child reads its files meanwhile, and can change none of them.
    const inputDigests = hashInputs(sources, digests);
    inputDigests.catch(() => {});
    const imports = [new URL(options.definition.module)];
    let hasDigests = false;
    const ask = async (question: unknown, asking: AbortSignal): Promise<unknown> => {
      if (digestsQuestion.safeParse(question).success && !hasDigests) {
        hasDigests = true;
        return inputDigests;
      }
      if (container) return container.answer(question, asking);
      throw new ChildJobError('job_crashed', 'the process was ended: it asked an unknown question');
    };
    try {
      const answer = await inChild<unknown>({
        module: stepJob,
        input,
        files,
        imports,
        workFolder: stepFolder,
        confinement,
        limits,
        signal,
        onProgress,
        onAsk: ask,
        reads: container ? [containerFolder] : [],
        onPrinted,
        onMemory,
        inspectPort: options.inspectPort,
      })
        .then(
          (given) => {
            lacksProcesses = false;
            return given;
          },
          (error: unknown) => {
            lacksProcesses = error instanceof ChildJobError && error.code === 'job_not_started';
            throw error;
          },
        )
        .catch((error: unknown) => {
          throw isCut && error instanceof ChildJobError && error.code === 'job_disk_exceeded'
            ? workDiskFull(error)
            : error;
        })
        .finally(() => container?.settled());
      const outputFolder = join(workFolder, 'output');
      const { result, descriptions } = answered.parse(answer);
      const outputs = await takeOutputs(step, { stepFolder, outputFolder }, digests, readDescriptions(descriptions));
      const made = makeProvenance(known, hashedInputs(unhashed, await inputDigests), confinement.gdalVersion);
      return {
        outputs:
          options.packsOutputs && outputs.length > 1
            ? [await packOutputs(step, outputs, made, join(outputFolder, `${step.id}.zip`), signal)]
            : outputs,
        provenance: made,
        result: readResult(result),
      };
    } finally {
      await digests.close();
    }
  }

  async function check(stepId: string, parameters: unknown, input: RunInput, signal?: AbortSignal) {
    const step = find(stepId);
    if (isCommand(step) && options.confinement.kind !== 'bubblewrap')
      throw new KitError(
        'not_confined',
        `${step.title} runs a program, which the app does only in confined processes; they are not: ${options.confinement.summary}`,
        { status: 503, data: { isForUser: true } },
      );
    const checked = checkParameters(step, parameters);
    await requirePrograms(step, options.containers);
    const facts = new Map<string, InputFacts>();
    for (const chosen of chosenInputs(step, input)) facts.set(chosen.name, await readFacts(step, chosen, signal));
    const warnings = requireBands(step, checked, facts);
    const main = facts.get(mainInput(step)?.[0] ?? '') ?? nothingKnown;
    return { step, parameters: checked, estimate: estimateOf(step, checked, main), warnings };
  }

  async function readFacts(
    step: AnyStep,
    { declared, source }: ChosenInput,
    signal: AbortSignal | undefined,
  ): Promise<InputFacts> {
    const { inputDir, confinement, limits } = options;
    if (source.type === 'synthetic')
      return declared.kind === 'vector' || declared.synthetic === null
        ? nothingKnown
        : factsOfSynthetic(declared.synthetic, source.size);
    if (source.type === 'local') {
      const paths = await findFiles(inputDir, source.path, kindOf(declared));
      const look = () => factsOfFiles(paths, kindOf(declared), confinement, limits, inChild);
      return looks.run(source.path, look, unhurried);
    }
    const maxItems = declared.maxItems ?? (declared.kind === 'vector' ? 1 : Infinity);
    if (source.items.length > maxItems)
      throw new InputError(
        `${step.title} takes at most ${maxItems} of the platform's items${inputsOf(step).length > 1 ? ` as ${declared.title ?? 'one input'}` : ''}, not ${source.items.length}`,
      );
    const items = await options.platformInput.check(source.items, signal);
    for (const item of items) {
      const reason = incompatibilityReason(step, declared, item);
      if (reason !== null) throw new InputError(`item ${JSON.stringify(item.name ?? item.id)} ${reason}`);
    }
    return declared.kind === 'vector' ? nothingKnown : factsOfItems(items);
  }

  /** A step whose estimate fails can run all the same. */
  function estimateOf(step: AnyStep, parameters: StepParameters, { bands, size }: InputFacts): StepEstimate | null {
    if (!step.estimate || !bands || !size) return null;
    try {
      // Checked by the step's own schema, whose type `AnyStep` does not know.
      const { outputBytes, seconds, memoryBytes } = step.estimate(
        { ...size, bandCount: bands.length },
        parameters as never,
      );
      for (const [name, value] of Object.entries({ outputBytes, seconds, memoryBytes }))
        if (!Number.isFinite(value) || value < 0)
          throw new TypeError(`the estimate's ${name} must be a number from 0, and is ${String(value)}`);
      return { outputBytes: Math.round(outputBytes), seconds, memoryBytes: Math.round(memoryBytes) };
    } catch (error) {
      options.onDefect?.(error, `the estimate of step ${step.id} failed`);
      return null;
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
          const onStep = (fraction: number, note: string | null) =>
            onProgress(isFetched ? fetchPart + fraction * (1 - fetchPart) : fraction, note);
          return await queue.run(
            task.owner,
            () =>
              runStep({ ...task, parameters }, step, sources, {
                signal,
                onProgress: onStep,
                onPrinted,
                repeat,
              }),
            signal,
          );
        } finally {
          await Promise.all(
            ['input', 'step', 'services']
              .map((name) => join(task.workFolder, name))
              .map((folder) => removeFolder(folder)),
          );
        }
      };
      return isFetched ? withInput.run(task.owner, work, signal) : work();
    },
  };
}

/** Error for a step without disk space because of other runs. The app tries the step again, because these runs free their space when they end. */
function workDiskFull(cause: ChildJobError): ChildJobError {
  return new ChildJobError('work_disk_full', 'the work folders of other runs leave this step too little room', {
    kind: 'transient',
    data: cause.data,
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

interface Source {
  /** The input's, in the declaration. */
  readonly name: string;
  readonly kind: InputKind;
  readonly synthetic: { readonly size: number } | null;
  /** Absolute. */
  readonly paths: readonly string[];
  /** Metadata of the files from their catalog items, one entry per path. Default: none. */
  readonly ofItems?: readonly ItemFacts[];
}
