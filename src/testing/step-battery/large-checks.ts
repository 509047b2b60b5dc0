import { join } from 'node:path';
import type { RunInput } from '../../app/processing/run-input.ts';
import { createStepHost } from '../../app/processing/step-host.ts';
import { checkParameters } from '../../app/processing/step-parameters.ts';
import { runInChild } from '../../child/index.ts';
import { KitError } from '../../contract/index.ts';
import { inputsOf, outputsOf, type AnyStep, type StepEstimate } from '../../steps/step.ts';
import type { BatteryAnswer } from './battery-job.ts';
import { isRaster } from './cases.ts';
import { childTimeoutMs, fail, type BatteryCheck, type BatteryOptions, type Inputs } from './check.ts';
import { inFolder, inOneChild } from './in-child.ts';

const writeJob = new URL('./write-job.ts', import.meta.url);

type Run = (diskBytes?: number) => Promise<{
  readonly peakBytes: number;
  readonly estimate: StepEstimate | null;
  readonly outputBytes: number;
}>;

const smallSide = 512;

/** Largest allowed factor of an estimate, either way. */
const estimateFactor = 2;

/** Largest share of an input that a step may hold at once. */
const largestShare = 1 / 4;

/** Largest allowed jump of the step's progress. */
const maxJump = 0.4;

/** Maximum number of runs until one does not jump. */
const progressRuns = 3;

const syntheticSide = 1_024;

const smallStripPixels = 250_000;

/** Checks that need large inputs and run the step as the app does: parts, memory, estimate, a disk without room. */
export function largeChecks(options: BatteryOptions, step: AnyStep): BatteryCheck[] {
  const { cases, definition, stepId, confinement } = options;
  const side = options.largeSide ?? smallSide * 8;
  const { inputs, parameters } = cases.cases[0]!;
  const bearsDefaults = step.parameters.safeParse({}).success;
  const hasClasses = outputsOf(step).some(([, output]) => {
    const preview = 'preview' in output ? output.preview : undefined;
    return (typeof preview === 'function' ? preview(parameters) : preview)?.classes !== undefined;
  });
  const isOfRasters = Object.values(inputs).flat().some(isRaster);

  /** Runs the step as the app does, again and again on the same input. */
  async function runsOn<T>(on: { side: number } | { synthetic: number }, work: (run: Run) => Promise<T>): Promise<T> {
    return inFolder(async (folder) => {
      const inputDir = join(folder, 'inputs');
      if ('side' in on)
        await runInChild<null>({
          module: writeJob,
          input: { inputs: sized(inputs, on.side, on.side) },
          workFolder: inputDir,
          confinement: await confinement(),
          limits: { timeoutMs: childTimeoutMs },
        });
      const wanted = checkParameters(step, 'side' in on || !bearsDefaults ? parameters : {});
      const input =
        'side' in on ? inputOf(step, Object.keys(inputs)) : ({ type: 'synthetic', size: on.synthetic } as const);
      return work(async (diskBytes) => {
        let peakBytes = 0;
        let defect: unknown = null;
        const host = createStepHost({
          definition,
          inputDir,
          confinement: await confinement(),
          platformInput: { check: () => fail('no platform'), fetch: () => fail('no platform') },
          concurrency: 1,
          limits: { timeoutMs: childTimeoutMs, ...(diskBytes !== undefined && { diskBytes }) },
          onUsage: ({ memoryBytes }) => (peakBytes = Math.max(peakBytes, memoryBytes)),
          onDefect: (error) => (defect = error),
        });
        const estimate = diskBytes === undefined ? (await host.check(stepId, wanted, input)).estimate : null;
        if (defect instanceof Error) fail(`its estimate failed: ${defect.message}`);
        const task = {
          owner: 'battery',
          stepId,
          stepVersion: step.version,
          parameters: wanted,
          input,
          workFolder: join(folder, 'run'),
        };
        const { outputs } = await host.run(task, { signal: new AbortController().signal, onProgress: () => {} });
        return { peakBytes, estimate, outputBytes: outputs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
      });
    });
  }

  /** With room, and then with half of what its outputs need. */
  const twice = (run: Run) =>
    run().then(async (first) => ({
      ...first,
      withoutRoom: await run(Math.floor(first.outputBytes / 2)).then(
        () => null,
        (error: unknown): { code?: string; message?: string } => error ?? {},
      ),
    }));
  let large: ReturnType<typeof twice> | undefined;
  const atLarge = () => (large ??= runsOn({ side }, twice));
  const readInParts = () =>
    inOneChild(
      options,
      [{ name: '', inputs: sized(inputs, side, side), parameters, readsOutputs: false, stripPixels: smallStripPixels, holds: () => {} }], // oxfmt-ignore
      step,
      childTimeoutMs,
    ).then(([answer]) =>
      answer?.failure ? fail(`it failed by ${answer.failure.code}: ${answer.failure.message}`) : answer!,
    );
  let parts: Promise<BatteryAnswer> | undefined;
  const inParts = () => (parts ??= readInParts());
  if (!isOfRasters) return [];
  return [
    {
      name: 'reads an input 64 times as large in parts',
      run: async () => {
        const { largestRead } = await inParts();
        const share = largestRead / (side * side);
        if (share > largestShare) fail(`it read ${Math.round(share * 100)} % of a raster of ${side} x ${side} at once`);
      },
    },
    {
      name: 'tells how far it is',
      run: async () => {
        let { largestJump } = await inParts();
        // On a busy machine GDAL drops progress calls. A step that jumps does so in each run.
        for (let again = 1; again < progressRuns && largestJump > maxJump; again++)
          largestJump = Math.min(largestJump, (await readInParts()).largestJump);
        if (largestJump > maxJump)
          fail(
            `its progress goes on by ${Math.round(largestJump * 100)} % at once, in which its user sees nothing move`,
          );
      },
    },
    {
      name: 'its memory and its estimate',
      run: async () => {
        const { peakBytes, estimate } = await atLarge();
        if (!estimate) return;
        const factor = peakBytes / estimate.memoryBytes;
        if (factor > estimateFactor || factor < 1 / estimateFactor)
          fail(`it held ${megabytes(peakBytes)}, and its estimate is ${megabytes(estimate.memoryBytes)}`);
      },
    },
    {
      name: 'its output and its estimate',
      run: async () => {
        if (!step.estimate) return;
        const made = await runsOn({ synthetic: syntheticSide }, (run) => run()).catch((error: unknown) => {
          // A default band of the step is not in the synthetic scene.
          if (bearsDefaults && error instanceof KitError && error.code === 'invalid_parameters') return null;
          throw error;
        });
        if (!made?.estimate) return;
        const { outputBytes, estimate } = made;
        const factor = outputBytes / estimate.outputBytes;
        // The size of compressed classes depends on the image.
        if (factor > estimateFactor || (!hasClasses && factor < 1 / estimateFactor))
          fail(
            `it made ${megabytes(outputBytes)} of a synthetic scene, and its estimate is ${megabytes(estimate.outputBytes)}: give the step an estimate, such as estimateCog(input, { bytesPerPixel: ${(outputBytes / syntheticSide ** 2).toPrecision(2)}, secondsPerMegapixel: 0.1 })`,
          );
      },
    },
    {
      name: 'a disk without room',
      run: async () => {
        const { withoutRoom: ended } = await atLarge();
        if (ended?.code !== 'job_disk_exceeded')
          fail(
            `it had no room on its disk, and ended ${ended ? `by ${ended.code}: ${ended.message}` : 'as if it had'}`,
          );
      },
    },
  ];
}

/** Every input from the folder of its name. */
function inputOf(step: AnyStep, names: readonly string[]): RunInput {
  const sources = Object.fromEntries(names.map((name) => [name, { type: 'local', path: name } as const]));
  const [only] = Object.values(sources);
  return inputsOf(step).length === 1 && only ? only : { type: 'named', inputs: sources };
}

const sized = (inputs: Inputs, width: number, height: number): Inputs =>
  Object.fromEntries(
    Object.entries(inputs).map(([name, files]) => [
      name,
      files.map((file) => (isRaster(file) ? { ...file, width, height } : file)),
    ]),
  );

const megabytes = (bytes: number) => `${(bytes / 1e6).toPrecision(3)} MB`;
