import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { didYouMean } from '../../contract/did-you-mean.ts';
import { KitError } from '../../contract/index.ts';
import { FairQueue, runInChild } from '../../child/index.ts';
import { codeOf, removeFolder } from '../../files/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import { sourceFetcher } from './fetch-sources.ts';
import { bringEarlierTiles, tilesFolder } from './kept-tiles.ts';
import { runCheck, type CheckedStep, type RunCheckOptions } from './run-check.ts';
import { chosenInputs, type RunInput } from './run-input.ts';
import { checkParameters } from './step-parameters.ts';
import {
  StepRunner,
  type StepOutputs,
  type StepRunnerOptions,
  type StepRunOptions,
  type StepTask,
} from './step-runner.ts';

export type { StepRunOptions, StepTask } from './step-runner.ts';

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

/** Part of the progress bar in which items are fetched. */
const fetchPart = 0.2;

export type StepHostOptions = RunCheckOptions & StepRunnerOptions;

export function createStepHost(options: StepHostOptions): StepHost {
  const { steps } = options.definition;
  const { inChild = runInChild } = options;
  const localAtOnce = options.executor ? Math.min(options.concurrency, availableParallelism()) : options.concurrency;
  /** Runs that hold an input of the platform: so many wait for their step, beside those that run. The others hold nothing yet. */
  const withInput = new FairQueue(options.concurrency + localAtOnce);
  const find = (stepId: string) => findStep(steps, stepId);
  // These use this machine, whatever an engine has.
  const fetchSources = sourceFetcher({ ...options, concurrency: localAtOnce });
  const check = runCheck({ ...options, concurrency: localAtOnce }, find, inChild);

  const runner = new StepRunner(options);

  return {
    steps,
    find,
    check,
    load: () => ({ running: runner.running, waiting: runner.waiting + withInput.waiting }),
    canStartChildren: () => runner.canStartChildren,
    async run(task, { signal, onProgress, onPrinted, repeat = (call) => call() }) {
      signal.throwIfAborted();
      const step = find(task.stepId);
      if (step.version !== task.stepVersion) throw new StepVersionGoneError(step, task.stepVersion);
      const parameters = checkParameters(step, task.parameters);
      const inputFolder = join(task.workFolder, 'input');
      await removeFolder(task.workFolder);
      if (task.run) await bringEarlierTiles(task.workFolder);
      const isFetched = chosenInputs(step, task.input).some(({ source }) => source.type === 'platform');
      let used = ['input', 'step', 'services', tilesFolder];
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
          return await runner.run({ ...task, parameters }, step, sources, {
            signal,
            onProgress: onStep,
            onPrinted,
            repeat,
          });
        } catch (error) {
          // The next attempt at the run takes the finished tiles, unless they take the room that it needs.
          if (task.run && !isDiskFull(error)) used = used.filter((name) => name !== tilesFolder);
          throw error;
        } finally {
          await Promise.all(used.map((name) => removeFolder(join(task.workFolder, name))));
        }
      };
      return isFetched ? withInput.run(task.owner, work, signal) : work();
    },
  };
}

/** True if a disk, or the part of it for work folders, is full. */
const isDiskFull = (error: unknown): boolean =>
  ['ENOSPC', 'EDQUOT', 'disk_full', 'job_disk_exceeded', 'work_disk_full'].includes(codeOf(error) ?? '');

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
