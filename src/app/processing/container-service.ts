import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { KitError } from '../../contract/index.ts';
import type { LentFile } from '../../child/index.ts';
import { containerOf, programOf } from '../../steps/command.ts';
import { requireProgram } from '../../steps/programs.ts';
import type { AnyStep } from '../../steps/step.ts';
import { containerQuestion } from './container-messages.ts';
import type { Containers } from './containers.ts';

/** Runs the container of one step for its process, because a confined process cannot start one. */
interface ContainerService {
  /** Answers the request of the step's process. */
  answer(question: unknown, signal: AbortSignal): Promise<unknown>;
  /** Resolves when the container has ended: its folder may be removed. */
  settled(): Promise<void>;
}

interface ContainerServiceOptions {
  /** Folder of the step's process. */
  readonly stepFolder: string;
  /** The step's process reads it. The container's own folder is made in it. */
  readonly folder: string;
  readonly inputs: readonly LentFile[];
  readonly limits: { readonly memoryBytes: number; readonly diskBytes: number };
  readonly onProgress: (fraction: number, note: string | null) => void;
  readonly onPrinted: (line: string) => void;
}

/** Converts progress of the container to progress of the step. */
const ofStep = (fraction: number) => 0.05 + 0.9 * fraction;

/** Throws `KitError` if the step needs a program or an image that the app does not have. */
export async function requirePrograms(step: AnyStep, containers: Containers | undefined): Promise<void> {
  const container = containerOf(step);
  const program = programOf(step);
  if (program !== null) requireProgram(program);
  if (container && !containers) throw noEngine(step);
  if (container) await containers?.require(container.image);
}

/** Makes the container's folder. Null if the step runs in no image. */
export async function openContainerService(
  step: AnyStep,
  containers: Containers | undefined,
  { stepFolder, folder, inputs, limits, onProgress, onPrinted }: ContainerServiceOptions,
): Promise<ContainerService | null> {
  const container = containerOf(step);
  if (!container) return null;
  if (!containers) throw noEngine(step);
  await mkdir(folder, { recursive: true });
  let running: Promise<unknown> | null = null;
  return {
    answer(request, signal) {
      if (running)
        throw new KitError('step_broke_its_declaration', `step ${step.id} asked for its container twice`, {
          status: 500,
        });
      const question = containerQuestion.parse(request);
      running = containers.run(
        { ...container, question, inputs, stepFolder, folder: join(folder, 'run'), limits },
        { signal, onPrinted, onProgress: (fraction, note) => onProgress(ofStep(fraction * question.upTo), note) },
      );
      return running;
    },
    settled: async () => {
      await running?.catch(() => {});
    },
  };
}

const noEngine = ({ title }: AnyStep) =>
  new KitError(
    'no_container_engine',
    `${title} runs in a container image, and the app has no engine for it: set CONTAINER_ENGINE to docker or podman`,
    { status: 503, data: { isForUser: true } },
  );
