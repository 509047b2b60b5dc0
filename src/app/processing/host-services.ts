import { join } from 'node:path';
import * as z from 'zod';
import { KitError } from '../../contract/index.ts';
import type { LentFile } from '../../child/index.ts';
import { containerOf, programOf } from '../../steps/command.ts';
import { requireProgram } from '../../steps/programs.ts';
import type { AnyStep } from '../../steps/step.ts';
import { containerQuestion } from './container-messages.ts';
import type { Containers } from './containers.ts';
import { openModelService, type ModelRunOptions, type PlatformModels } from './platform-models.ts';

/** Services of the host for steps, because a confined process cannot do these things itself. */
export interface ExternalServices {
  /** Default: steps that run the platform's models are refused. */
  readonly platformModels?: PlatformModels & { readonly maxResultBytes: number };
  /** Default: steps that run in an image are refused. */
  readonly containers?: Containers;
}

/** Answers what one run of a step asks. */
export interface HostServices {
  /** Folders that the child reads. */
  readonly reads: readonly string[];
  answer(question: unknown, signal: AbortSignal): Promise<unknown>;
  /** Resolves when nothing is under way any more: the folders may be removed. */
  settled(): Promise<void>;
}

export interface HostServicesPlace {
  /** The child's. */
  readonly stepFolder: string;
  /** The host's own, for what it makes. */
  readonly ownFolder: string;
  readonly inputs: readonly LentFile[];
  readonly limits: { readonly memoryBytes: number; readonly diskBytes: number };
}

export interface HostServicesOptions extends Pick<ModelRunOptions, 'retryWhileDown'> {
  /** `fraction` is null where it is as it was. */
  readonly onProgress: (fraction: number | null, note: string | null) => void;
  readonly onPrinted: (line: string) => void;
}

/** Progress that is the step's own, as in its process. */
const ofStep = (fraction: number) => 0.05 + 0.9 * fraction;

/** Throws `KitError` where the step needs what the app or the platform does not have. */
export async function requireServices(
  step: AnyStep,
  { platformModels, containers }: ExternalServices,
  signal?: AbortSignal,
): Promise<void> {
  const container = containerOf(step);
  const program = programOf(step);
  if (program !== null) requireProgram(program);
  if (container && !containers) throw noEngine(step);
  if (container) await containers?.require(container.image);
  if (step.platformModels && !platformModels) throw noModels();
  if (step.platformModels) await platformModels?.require(step.platformModels, signal);
}

/** Null for a step that does all by itself. */
export async function openHostServices(
  step: AnyStep,
  { platformModels, containers }: ExternalServices,
  { stepFolder, ownFolder, inputs, limits }: HostServicesPlace,
  { retryWhileDown, onProgress, onPrinted }: HostServicesOptions,
): Promise<HostServices | null> {
  const container = containerOf(step);
  if (!step.platformModels && !container) return null;
  const models = await openModelService(
    platformModels ?? null,
    step,
    { stepFolder, ownFolder: join(ownFolder, 'models'), maxBytes: platformModels?.maxResultBytes ?? 0 },
    { retryWhileDown, onNote: (note) => onProgress(null, note) },
  );
  let pending = Promise.resolve();
  const containerFolder = join(ownFolder, 'container');

  let hasRun = false;

  async function runContainer(given: unknown, signal: AbortSignal) {
    if (!container || !containers) throw noEngine(step);
    if (hasRun)
      throw new KitError('step_broke_its_declaration', `step ${step.id} asked for its container twice`, {
        status: 500,
      });
    hasRun = true;
    const question = containerQuestion.parse(given);
    return containers.run(
      { ...container, question, inputs, stepFolder, folder: containerFolder, limits },
      { signal, onPrinted, onProgress: (fraction, note) => onProgress(ofStep(fraction * question.upTo), note) },
    );
  }

  return {
    reads: [models.results, ...(container ? [ownFolder] : [])],
    answer(question, signal) {
      const isContainer = z.looseObject({ type: z.literal('run-container') }).safeParse(question).success;
      const answer = isContainer ? runContainer(question, signal) : models.answer(question, signal);
      pending = answer.then(
        () => {},
        () => {},
      );
      return answer;
    },
    settled: () => pending,
  };
}

const noModels = () =>
  new KitError('no_platform', 'the step runs a model of the platform, and there is no platform here', { status: 422 });

const noEngine = ({ title }: AnyStep) =>
  new KitError(
    'no_container_engine',
    `${title} runs in a container image, and the app has no engine for it: set CONTAINER_ENGINE to docker or podman`,
    { status: 503, data: { isForUser: true } },
  );
