import { didYouMean } from '../../contract/did-you-mean.ts';
import * as z from 'zod';
import { KitError, withCount, type ValidationDetail } from '../../contract/index.ts';
import { areaInWords, type Area } from '../../steps/area.ts';
import type { StepDeclaration } from '../../steps/step.ts';

/** Wrong parameters that an error's message names. */
const maxInMessage = 3;

export class InvalidParametersError extends KitError {
  readonly details: readonly ValidationDetail[];

  constructor(stepId: string, all: readonly ValidationDetail[]) {
    const details = withCount(all, all.length);
    const more = all.length > maxInMessage ? `; and ${all.length - maxInMessage} more` : '';
    const reasons = `${all
      .slice(0, maxInMessage)
      .map(({ path, message }) => `${path}: ${message}`)
      .join('; ')}${more}`;
    super('invalid_parameters', `step ${stepId} cannot run with these parameters: ${reasons}`, {
      status: 400,
      data: { details },
    });
    this.details = details;
  }
}

/** An area is GeoJSON, everything else a scalar. */
export type ParameterValue = string | number | boolean | Area;
export type StepParameters = Readonly<Record<string, ParameterValue>>;

/** One parameter as forms and the API show it: JSON Schema, draft-07. */
export interface ParameterView {
  readonly type?: 'string' | 'number' | 'integer' | 'boolean' | 'object';
  readonly title?: string;
  readonly description?: string;
  readonly default?: string | number | boolean;
  readonly enum?: readonly (string | number | boolean)[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  /** `band`: one of the input's bands; `crs`: an EPSG code; `area`: GeoJSON. */
  readonly kind?: string;
  /** The input that has the band, for a parameter that names a band. */
  readonly of?: string;
  /** Titles of the choices, and the bands that each needs. A form finds them by typing. */
  readonly choices?: Readonly<Record<string, { readonly title: string; readonly bands?: readonly string[] }>>;
  /** Heading under which a form folds the parameter away with its neighbours of the same group. */
  readonly group?: string;
}

/** A step's parameters as one JSON Schema: unknown names refused, everything without a default required. */
export interface ParametersView {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, ParameterView>>;
  readonly required: readonly string[];
  readonly additionalProperties: false;
}

const views = new WeakMap<StepDeclaration, ParametersView>();

export function parameterSchema(step: StepDeclaration): ParametersView {
  const known = views.get(step);
  if (known) return known;
  const { properties = {}, required = [] } = z.toJSONSchema(step.parameters, { target: 'draft-7', io: 'input' });
  const view = {
    type: 'object',
    // Schemas of scalars and areas: the definition was checked for it.
    properties: properties as ParametersView['properties'],
    required,
    additionalProperties: false,
  } as const;
  views.set(step, view);
  return view;
}

/** The default values of a step's parameters. Parameters without a default are left out. */
export const defaultsOf = (step: StepDeclaration): StepParameters =>
  Object.fromEntries(
    Object.entries(parameterSchema(step).properties).flatMap(([name, view]) =>
      view.default === undefined ? [] : [[name, view.default]],
    ),
  );

/** Checks `parameters` against the step's declaration and fills in defaults. Throws `InvalidParametersError`. */
export function checkParameters(step: StepDeclaration, parameters: unknown): StepParameters {
  const read = step.parameters.strict().safeParse(parameters ?? {}, { error: inWords });
  // Parameters are scalars and areas: the definition was checked for it.
  if (read.success) return read.data as StepParameters;
  const known = Object.keys(step.parameters.shape);
  throw new InvalidParametersError(
    step.id,
    read.error.issues.flatMap((issue) =>
      issue.code === 'unrecognized_keys'
        ? issue.keys.map((key) => ({
            path: key.slice(0, 100),
            message: `is not a parameter of this step, which knows ${known.join(', ') || 'none'}${didYouMean(key, known)}`,
          }))
        : [{ path: issue.path.join('.') || 'parameters', message: issue.message }],
    ),
  );
}

const maxListed = 40;
const listed = (values: readonly string[]) =>
  values.length <= maxListed
    ? values.join(', ')
    : `${values.slice(0, maxListed).join(', ')}, and ${values.length - maxListed} more`;

/** Zod's issues as a user reads them. */
export const inWords: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined
        ? 'is required'
        : `must be ${/^[aeiou]/.test(issue.expected) ? 'an' : 'a'} ${issue.expected}`;
    case 'invalid_value':
      return issue.input === undefined ? 'is required' : `must be one of ${listed(issue.values.map(String))}`;
    case 'too_small':
      return issue.origin === 'string'
        ? `must have at least ${issue.minimum} characters`
        : `must be ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}`;
    case 'too_big':
      return issue.origin === 'string'
        ? `must have at most ${issue.maximum} characters`
        : `must be ${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}`;
    default:
      return undefined;
  }
};

/** A parameter as people read it. */
export const valueInWords = (value: ParameterValue): string =>
  typeof value === 'object' ? areaInWords(value) : String(value);
