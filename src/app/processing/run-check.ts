import { KitError, type CatalogItem } from '../../contract/index.ts';
import { FairQueue, type ChildLimits, type Confinement, type runInChild } from '../../child/index.ts';
import { isCommand } from '../../steps/command.ts';
import { inputsOf, mainInput, type AnyStep, type StepEstimate } from '../../steps/step.ts';
import { requirePrograms } from './container-service.ts';
import type { Containers } from './containers.ts';
import { incompatibilityReason } from './fit.ts';
import { factsOfFiles, factsOfItems, factsOfSynthetic, requireBands, type InputFacts } from './input-facts.ts';
import type { PlatformInput } from './platform-input.ts';
import { chosenInputs, findFiles, InputError, kindOf, type ChosenInput, type RunInput } from './run-input.ts';
import type { RasterSize } from './plan-tiles.ts';
import { canBeTiled } from './tiles.ts';
import { checkParameters, type StepParameters } from './step-parameters.ts';
import { subjectOf } from './subject.ts';

export interface CheckedStep {
  readonly step: AnyStep;
  readonly parameters: StepParameters;
  /** Null where the step makes none, or nothing is known of the input. */
  readonly estimate: StepEstimate | null;
  /** Size of the raster of a step whose rows several jobs can compute. Null if the step cannot, or nothing is known of the input. */
  readonly grid?: RasterSize | null;
  /** The inputs in words, as in `Olinda, Landsat 7 · 1 Jul 2002`. */
  readonly subject: string;
  /** Reasons why the run may still fail, in sentences. */
  readonly warnings: readonly string[];
}

export interface RunCheckOptions {
  /** Default: steps that run in an image are refused. */
  readonly containers?: Containers;
  readonly inputDir: string;
  readonly confinement: Confinement;
  readonly platformInput: PlatformInput;
  readonly limits?: ChildLimits;
  /** Steps that run at the same time, and files that are looked at; the others wait. */
  readonly concurrency: number;
  /** Receives a mistake of a step that stops no run. */
  readonly onDefect?: (error: unknown, what: string) => void;
}

/** Never aborted: a look takes a minute at most. */
const unhurried = new AbortController().signal;
const nothingKnown: InputFacts = { bands: null, settles: () => false, size: null };

/** Returns the check of a run before its user is asked: `StepHost.check`. `find` finds a step by its id. */
export function runCheck(options: RunCheckOptions, find: (stepId: string) => AnyStep, inChild: typeof runInChild) {
  const looks = new FairQueue(options.concurrency);
  return check;

  async function check(
    stepId: string,
    parameters: unknown,
    input: RunInput,
    signal?: AbortSignal,
  ): Promise<CheckedStep> {
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
    const subjects = new Set<string>();
    for (const chosen of chosenInputs(step, input)) {
      const items = await readItems(step, chosen, signal);
      subjects.add(subjectOf(chosen.source, items));
      facts.set(chosen.name, await readFacts(chosen, items));
    }
    const warnings = requireBands(step, checked, facts);
    const main = facts.get(mainInput(step)?.[0] ?? '') ?? nothingKnown;
    const grid = canBeTiled(step) ? main.size : null;
    const subject = [...subjects].join(', ');
    return { step, parameters: checked, estimate: estimateOf(step, checked, main), subject, warnings, grid };
  }

  /** The items of a source of the platform. Throws `InputError` if one does not fit the step. */
  async function readItems(
    step: AnyStep,
    { declared, source }: ChosenInput,
    signal: AbortSignal | undefined,
  ): Promise<readonly CatalogItem[]> {
    if (source.type !== 'platform') return [];
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
    return items;
  }

  async function readFacts({ declared, source }: ChosenInput, items: readonly CatalogItem[]): Promise<InputFacts> {
    const { inputDir, confinement, limits } = options;
    if (source.type === 'synthetic')
      return declared.kind === 'vector' || declared.synthetic === null
        ? nothingKnown
        : factsOfSynthetic(declared.synthetic, source.size);
    if (source.type === 'platform') return declared.kind === 'vector' ? nothingKnown : factsOfItems(items);
    const paths = await findFiles(inputDir, source.path, kindOf(declared));
    const look = () => factsOfFiles(paths, kindOf(declared), confinement, limits, inChild);
    return looks.run(source.path, look, unhurried);
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
}
