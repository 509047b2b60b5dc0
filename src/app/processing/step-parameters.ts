import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { KitError, type ValidationDetail } from '../../contract/index.ts';
import type { StepDeclaration } from '../../steps/step.ts';

export class InvalidParametersError extends KitError {
  readonly details: readonly ValidationDetail[];

  constructor(stepId: string, details: readonly ValidationDetail[]) {
    const reasons = details.map(({ path, message }) => `${path}: ${message}`).join('; ');
    super('invalid_parameters', `step ${stepId} cannot run with these parameters: ${reasons}`, {
      status: 400,
      data: { details },
    });
    this.details = details;
  }
}

export type StepParameters = Readonly<Record<string, string | number | boolean>>;

/** The declaration's parameters as one JSON Schema: unknown names refused, everything without a default required. */
export function parameterSchema(step: StepDeclaration) {
  const required = Object.entries(step.parameters).flatMap(([name, schema]) =>
    schema.default === undefined ? [name] : [],
  );
  return { type: 'object', properties: step.parameters, required, additionalProperties: false };
}

const validators = new WeakMap<StepDeclaration, ValidateFunction<StepParameters>>();

function validatorOf(step: StepDeclaration): ValidateFunction<StepParameters> {
  const known =
    validators.get(step) ??
    new Ajv({ allErrors: true, useDefaults: true }).compile<StepParameters>(parameterSchema(step));
  validators.set(step, known);
  return known;
}

/** Checks `parameters` against the step's declaration and fills in defaults. Throws `InvalidParametersError`. */
export function checkParameters(step: StepDeclaration, parameters: unknown): StepParameters {
  const validate = validatorOf(step);
  const candidate: unknown = structuredClone(parameters ?? {});
  if (validate(candidate)) return candidate;
  const known = Object.keys(step.parameters).join(', ') || 'none';
  throw new InvalidParametersError(
    step.id,
    (validate.errors ?? []).map((error) => detail(error, known)),
  );
}

function detail(error: ErrorObject, known: string): ValidationDetail {
  const at = error.instancePath.slice(1).replaceAll('/', '.');
  const named = (key: string) => [at, String((error.params as Record<string, unknown>)[key])].filter(Boolean).join('.');
  switch (error.keyword) {
    case 'additionalProperties':
      return { path: named('additionalProperty'), message: `is no parameter of this step; known are ${known}` };
    case 'required':
      return { path: named('missingProperty'), message: 'is required' };
    case 'enum':
      return {
        path: at,
        message: `must be one of ${String((error.params as { allowedValues: unknown[] }).allowedValues)}`,
      };
    default:
      return { path: at || 'parameters', message: error.message ?? 'is invalid' };
  }
}
