import { parameterSchema } from '../app/processing/step-parameters.ts';
import type { AppDefinition } from '../app/definition/app-definition.ts';
import { KitError } from '../contract/index.ts';
import { inputsOf, type AnyStep } from '../steps/index.ts';

/** Quick and true to its input: where the app has it, what is tried is not the step. */
const preferred = 'cog';

/** The step that an app is tried with when nobody names one: `cog`, or else the first that needs no parameter. Throws `KitError`. */
function trialStep({ steps, name }: Pick<AppDefinition, 'steps' | 'name'>): AnyStep {
  const free = steps.filter((step) => parameterSchema(step).required.length === 0);
  const step = free.find(({ id }) => id === preferred) ?? free[0];
  if (step) return step;
  throw new KitError(
    'no_trial_step',
    `${name} has no step that runs without parameters: give those of one of its steps a default`,
  );
}

/** The body of a run to try an app with: on a raster of `size` pixels a side that code makes, or on an item where the step takes one raster. */
export function trialRun(
  definition: Pick<AppDefinition, 'steps' | 'name'>,
  size: number,
  item: { readonly collectionId: string; readonly itemId: string } | null = null,
) {
  const step = trialStep(definition);
  const [[, input] = [], another] = inputsOf(step).filter(([, { optional }]) => optional !== true);
  const isOneRaster = input !== undefined && another === undefined && (input.kind ?? 'raster') === 'raster';
  return {
    stepId: step.id,
    input: item !== null && isOneRaster ? { type: 'platform', items: [item] } : { type: 'synthetic', size },
  } as const;
}
