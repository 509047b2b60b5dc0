import type { OperationRequest } from '../../contract/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import { valueInWords } from '../processing/step-parameters.ts';
import { estimateInWords } from './estimate-words.ts';
import type { Run } from './run.ts';

/** Builds the request that the platform shows to the user (spec 4.8, step 3). */
export function operationOf(
  step: AnyStep,
  { stepVersion, input, parameters, estimate }: Pick<Run, 'stepVersion' | 'input' | 'parameters' | 'estimate'>,
): OperationRequest {
  return {
    name: step.title,
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
