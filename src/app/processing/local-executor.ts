import { hostname } from 'node:os';
import { basename, join } from 'node:path';
import {
  ChildJobError,
  defaultLimits,
  runInChild,
  type ChildUsage,
  type Confinement,
  type LentFile,
} from '../../child/index.ts';
import { openContainerService } from './container-service.ts';
import type { Containers } from './containers.ts';
import { digestsQuestion } from './input-digests.ts';
import type { StepJobInput } from './step-job.ts';
import type { ExecutorTask, StepExecutor, StepUsage } from './step-executor.ts';

const stepJob = new URL('./step-job.ts', import.meta.url);

export interface LocalExecutorOptions {
  /** The module whose default export holds the steps: child processes load them from there. */
  readonly module: string;
  readonly confinement: Confinement;
  /** Default: steps that run in an image are refused. */
  readonly containers?: Containers;
  /** Runs a job in a child process. Default: `runInChild`, which starts a process for each job. */
  readonly inChild?: typeof runInChild;
  /** Port on which a step waits for a debugger. Default: none. */
  readonly inspectPort?: number | undefined;
  /** Use of a step's processes, as sampled. */
  readonly onUsage?: (usage: ChildUsage) => void;
}

/** Runs each step in a confined child process of this machine. */
export function createLocalExecutor(options: LocalExecutorOptions): StepExecutor {
  const { inChild = runInChild, confinement } = options;
  return {
    async run({ step, sources, workFolder, limits, ...task }, { signal, onProgress, onPrinted, onBegun }) {
      onBegun?.();
      const stepFolder = join(workFolder, 'step');
      const containerFolder = join(workFolder, 'container');
      const parts = task.tile?.type === 'whole' ? task.tile.parts : [];
      const lent = [...sources.flatMap(({ paths }) => paths), ...parts.flatMap(({ paths }) => [...paths.values()])];
      const files = lent.map((path): LentFile => ({ path, name: basename(path) }));
      const container = await openContainerService(step, options.containers, {
        ...{ stepFolder, folder: containerFolder, inputs: files, limits: { ...defaultLimits, ...limits } },
        ...{ onProgress, onPrinted: onPrinted ?? (() => {}) },
      });
      let hasDigests = false;
      const onAsk = async (question: unknown, asking: AbortSignal): Promise<unknown> => {
        if (digestsQuestion.safeParse(question).success && !hasDigests) {
          hasDigests = true;
          return task.inputDigests;
        }
        if (container) return container.answer(question, asking);
        throw new ChildJobError('job_crashed', 'the process was ended: it asked an unknown question');
      };
      const usage = new UsageMeter(options.onUsage);
      try {
        const answer = await inChild<unknown>({
          module: stepJob,
          input: jobInput(options.module, { step, sources, ...task }),
          files,
          imports: [new URL(options.module)],
          workFolder: stepFolder,
          confinement,
          limits,
          signal,
          onProgress,
          onAsk,
          reads: container ? [containerFolder] : [],
          onPrinted,
          onUsage: (used) => usage.add(used),
          inspectPort: options.inspectPort,
        });
        return { answer, gdalVersion: confinement.gdalVersion, usage: usage.total(), sent: new Map() };
      } finally {
        await container?.settled();
      }
    },
    close: () => Promise.resolve(),
  };
}

function jobInput(
  definition: string,
  {
    step,
    parameters,
    provenance,
    sources,
    tile,
  }: Pick<ExecutorTask, 'step' | 'parameters' | 'provenance' | 'sources' | 'tile'>,
): StepJobInput {
  const inputs = sources.map(({ paths, ...source }) => ({ ...source, fileCount: paths.length }));
  const job = { definition, stepId: step.id, parameters, inputs };
  if (tile?.type === 'part') {
    const { from, to } = tile;
    return { ...job, provenance: null, tile: { type: 'part', from, to } };
  }
  if (!tile) return { ...job, provenance };
  const parts = tile.parts.map(({ from, paths }) => ({ from, fileNames: [...paths.keys()] }));
  return { ...job, provenance, tile: { type: 'whole', parts } };
}

/** Adds up the samples of one child. */
class UsageMeter {
  #peakMemoryBytes = 0;
  #cpuSeconds = 0;
  #onUsage: ((usage: ChildUsage) => void) | undefined;

  constructor(onUsage: ((usage: ChildUsage) => void) | undefined) {
    this.#onUsage = onUsage;
  }

  add(usage: ChildUsage): void {
    this.#peakMemoryBytes = Math.max(this.#peakMemoryBytes, usage.memoryBytes);
    this.#cpuSeconds = usage.cpuSeconds;
    this.#onUsage?.(usage);
  }

  total(): StepUsage {
    return { cpuSeconds: this.#cpuSeconds, peakMemoryBytes: this.#peakMemoryBytes, place: hostname() };
  }
}
