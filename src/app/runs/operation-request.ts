import { limits, type OperationRequest } from '../../contract/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import { valueInWords } from '../processing/step-parameters.ts';
import { estimateInWords } from './estimate-words.ts';
import type { Run } from './run.ts';

/** Name of a run for people: the step, and the inputs if they are known, as in `Slope · Jacksboro · 1 Feb 2000`. At most as long as the name of an operation. */
export const nameOf = (title: string, subject: string): string =>
  [...(subject === '' ? title : `${title} · ${subject}`)].slice(0, limits.operationNameLength).join('');

/** Builds the request that the platform shows to the user (spec 4.8, step 3). */
export function operationOf(
  step: AnyStep,
  {
    stepVersion,
    input,
    parameters,
    estimate,
    subject = '',
  }: Pick<Run, 'stepVersion' | 'input' | 'parameters' | 'estimate'> & { readonly subject?: string },
): OperationRequest {
  return {
    name: nameOf(step.title, subject),
    description: estimate ? `${step.description} ${estimateInWords(estimate)}` : step.description,
    parameters: {
      step: `${step.id}@${stepVersion}`,
      input,
      // The platform shows them to people.
      ...Object.fromEntries(
        Object.entries(parameters).map(([name, value]) => [
          name,
          typeof value === 'object' ? valueInWords(value) : value,
        ]),
      ),
    },
  };
}
