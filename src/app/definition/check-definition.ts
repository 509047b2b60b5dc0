import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import {
  fileName,
  KitError,
  sourceType,
  sourceTypes,
  wireCallNames,
  type WireCallName,
  type WireProfile,
} from '../../contract/index.ts';
import { rampNames, vectorExtensions } from '../../raster/index.ts';
import { namedInCommand, reserved } from '../../steps/command.ts';
import { bandParameters } from '../processing/input-facts.ts';
import {
  fieldTypes,
  isLabel,
  inputsOf,
  outputsOf,
  vectorGeometries,
  type AnyStep,
  type OutputDeclaration,
} from '../../steps/step.ts';
import { defaultsOf, inWords, parameterSchema } from '../processing/step-parameters.ts';
import type { AppDefinition } from './app-definition.ts';
import { messageOf } from '../../files/index.ts';

/** No app can run with this definition: names each wrong place and the rule that it breaks. */
export class DefinitionError extends KitError {
  constructor(module: string, problems: readonly string[]) {
    super(
      'bad_app_definition',
      `the app in ${module} cannot start:\n${problems.map((problem) => `  ${problem}`).join('\n')}`,
    );
  }
}

const identifier = z
  .string('is missing')
  .regex(/^[a-z][a-z0-9-]{0,63}$/, 'must be a-z, 0-9 and -, first a letter, at most 64');
const words = (most: number) =>
  z.string('is missing').trim().min(1, 'must not be empty').max(most, `must be at most ${most} characters`);
const folder = z
  .instanceof(URL, { error: 'must be a file: URL, such as new URL(..., import.meta.url)' })
  .refine(({ protocol }) => protocol === 'file:', 'must be a file: URL');
/** GDAL's names that a step can write and a page can draw. */
const dataTypes = ['Byte', 'Int8', 'UInt16', 'Int16', 'UInt32', 'Int32', 'Float32', 'Float64'] as const;

const band = z.object({
  description: z.string(),
  dataType: z.enum(dataTypes, `must be one of ${dataTypes.join(', ')}`),
  nodata: z.union([z.number(), z.nan()], 'must be a number').optional(),
});
const color = z.tuple(
  [z.int().min(0).max(255), z.int().min(0).max(255), z.int().min(0).max(255)],
  'must be three integers from 0 to 255',
);

const inputItems = {
  title: words(100).optional(),
  description: words(2_000),
  sourceTypes: z.array(sourceType).min(1, 'must not be empty: leave it out for all').optional(),
  maxItems: z.int().min(1).max(200).optional(),
  optional: z.boolean().optional(),
};
const rasterInput = z.object({
  ...inputItems,
  kind: z.literal('raster').optional(),
  synthetic: z
    .enum(['multispectral', 'panchromatic', 'elevation'], 'must be multispectral, panchromatic or elevation')
    .nullable(),
});
const vectorInput = z.object({ ...inputItems, kind: z.literal('vector') });

const outputFile = {
  fileName,
  sourceType: z.enum([...sourceTypes, 'as-input'], `must be one of as-input, ${sourceTypes.join(', ')}`).optional(),
  optional: z.boolean().optional(),
};
const previewStyle = z.object({
  ramp: z.enum(rampNames, `must be one of ${rampNames.join(', ')}`),
  centre: z.number().optional(),
  range: z
    .tuple([z.number(), z.number()])
    .refine(([low, high]) => low < high, 'must be [lowest, highest]')
    .optional(),
  unit: z.string().max(50).optional(),
  classes: z.array(z.object({ value: z.number(), name: words(200), color })).optional(),
});
const rasterOutput = z.object({
  ...outputFile,
  kind: z.literal('raster').optional(),
  bands: z.union([z.enum(['as-input', 'any']), z.array(band).min(1)], {
    error: ({ input, ...issue }) => {
      // The first problem of a list says more than the three forms.
      // The rest of an issue has lost the type of `errors`.
      const inner =
        Array.isArray(input) && 'errors' in issue ? (issue.errors as z.core.$ZodIssue[][])[1]?.[0] : undefined;
      return inner === undefined
        ? "must be 'as-input', 'any', or a list of { description, dataType, nodata? }"
        : `${inner.path.join('.')} ${inner.message}`;
    },
  }),
  // A function gives the style of a run: its result is known only then.
  preview: z.preprocess((value) => (typeof value === 'function' ? { ramp: 'gray' } : value), previewStyle),
});
const vectorOutput = z.object({
  ...outputFile,
  fileName: fileName.refine(
    (name) => vectorExtensions.has(extname(name).toLowerCase()),
    `must end in one of ${[...vectorExtensions].join(' ')}`,
  ),
  kind: z.literal('vector'),
  geometry: z.enum(vectorGeometries, `must be one of ${vectorGeometries.join(', ')}`),
  fields: z.record(z.string().min(1).max(63), z.enum(fieldTypes, `must be one of ${fieldTypes.join(', ')}`)),
});
const otherOutput = z.object({ ...outputFile, kind: z.literal('file') });
const maxParts = 20;
const partName = z.string().regex(/^[a-z][A-Za-z0-9_]{0,39}$/, 'must be letters, digits and _, first a small letter');

const step = z.object({
  id: identifier,
  version: z
    .string('is missing')
    .regex(/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/, 'must be a semantic version such as 1.0.0'),
  title: words(200),
  description: words(2_000),
  requires: z
    .strictObject({
      memoryBytes: z.int().min(1).optional(),
      cores: z.int().min(1).optional(),
      diskBytes: z.int().min(1).optional(),
      label: z.string().refine(isLabel, 'must be a word of a-z, 0-9 and -, such as gpu').optional(),
    })
    .optional(),
  parameters: z.instanceof(z.ZodObject, { error: 'must be z.object({...})' }),
  input: rasterInput.optional(),
  inputs: z
    .record(
      partName,
      z.discriminatedUnion('kind', [rasterInput, vectorInput], {
        // oxlint-disable-next-line typescript/no-unnecessary-condition -- Zod's type names fewer codes than it gives
        error: ({ code }) => (code === 'invalid_union' ? 'its kind must be raster or vector' : undefined),
      }),
    )
    .refine((inputs) => Object.keys(inputs).length <= maxParts, `must be at most ${maxParts}`)
    .optional(),
  sameGrid: z.boolean('must be true or false').optional(),
  output: rasterOutput.optional(),
  outputs: z
    .record(
      partName,
      z.discriminatedUnion('kind', [rasterOutput, vectorOutput, otherOutput], {
        // oxlint-disable-next-line typescript/no-unnecessary-condition -- Zod's type names fewer codes than it gives
        error: ({ code }) => (code === 'invalid_union' ? 'its kind must be raster, vector or file' : undefined),
      }),
    )
    .refine((outputs) => Object.keys(outputs).length <= maxParts, `must be at most ${maxParts}`)
    .optional(),
  needs: z.custom((value) => value === undefined || typeof value === 'function', 'must be a function').optional(),
  estimate: z.custom((value) => value === undefined || typeof value === 'function', 'must be a function').optional(),
  run: z.custom((value) => typeof value === 'function', 'must be a function'),
});

const page = z.object({
  path: identifier,
  title: words(100),
  template: z
    .string('is missing')
    .regex(/^[A-Za-z0-9][A-Za-z0-9/_-]*$/, 'must be the name of a template, without .eta'),
  data: z.custom((value) => value === undefined || typeof value === 'function', 'must be a function').optional(),
});

const definition = z.strictObject(
  {
    module: z.string('is missing: give import.meta.url').regex(/^file:/, 'must be import.meta.url'),
    id: identifier,
    name: words(200),
    description: words(2_000),
    icon: folder.optional(),
    steps: z.array(step, 'must be a list of steps').min(1, 'must not be empty'),
    profile: z
      .custom((value) => value === undefined || isProfile(value), 'must be a wire profile: wireProfile({...})')
      .optional(),
    templates: folder.optional(),
    pages: z.array(page).optional(),
  },
  { error: (issue) => (issue.code === 'unrecognized_keys' ? `has no field ${issue.keys.join(', ')}` : undefined) },
);

/** Throws `DefinitionError` where the app cannot be what its definition says. */
export function checkDefinition(given: AppDefinition): void {
  const module =
    // oxlint-disable-next-line typescript/no-unnecessary-condition -- a fork's JavaScript may give anything
    typeof given?.module === 'string' && given.module.startsWith('file:')
      ? fileURLToPath(given.module)
      : 'its definition';
  const read = definition.safeParse(given);
  if (!read.success)
    throw new DefinitionError(
      module,
      read.error.issues.map((issue) => `${placeOf(issue.path, given)}: ${issue.message}`),
    );
  const problems = [
    ...repeated(
      given.steps.map(({ id }) => id),
      'steps',
      'another step has the id',
    ),
    ...repeated(
      (given.pages ?? []).map(({ path }) => path),
      'pages',
      'another page has the path',
    ),
    ...given.steps.flatMap((checked, i) =>
      problemsOfParameters(checked).map((problem) => `${placeOf(['steps', i], given)}.parameters.${problem}`),
    ),
    ...given.steps.flatMap((checked, i) =>
      [...problemsOfInputs(checked), ...problemsOfOutputs(checked)].map(
        (problem) => `${placeOf(['steps', i], given)}.${problem}`,
      ),
    ),
    ...given.steps.flatMap((checked, i) =>
      namedInCommand(checked)
        .filter((name) => !isAlwaysThere(checked, name))
        .map(
          (name) =>
            `${placeOf(['steps', i], given)}.run: the command names {${name}}, and the step has no such parameter, or one that may be left out`,
        ),
    ),
    ...problemsOfFiles(given),
    ...problemsOfPlace(given),
  ];
  if (problems.length > 0) throw new DefinitionError(module, problems);
}

/** True if the name already has another meaning within the step. */
const isTaken = (declared: AnyStep, name: string): boolean =>
  reserved.has(name) || Object.hasOwn(declared.parameters.shape, name) || Object.hasOwn(declared.inputs ?? {}, name);

function problemsOfInputs(declared: AnyStep): string[] {
  if (declared.input && declared.inputs) return ['inputs: the step has an input too: put it among them'];
  const inputs = inputsOf(declared);
  if (inputs.length === 0) return ['input: is missing'];
  const rasters = inputs.flatMap(([name, { kind }]) => (kind === 'vector' ? [] : [name]));
  return [
    ...inputs.flatMap(([name]) =>
      name !== 'input' && (reserved.has(name) || Object.hasOwn(declared.parameters.shape, name))
        ? [`inputs.${name}: the name is taken, by a parameter or a command's own word`]
        : [],
    ),
    ...(inputs.every(([, { optional }]) => optional) ? ['inputs: one must not be optional'] : []),
    ...bandParameters(declared).flatMap(({ name, of }) =>
      of !== undefined && !rasters.includes(of) ? [`parameters.${name}: no input with rasters is called ${of}`] : [],
    ),
  ];
}

function problemsOfOutputs(declared: AnyStep): string[] {
  if (declared.output && declared.outputs) return ['outputs: the step has an output too: put it among them'];
  const outputs = outputsOf(declared);
  if (outputs.length === 0) return ['output: is missing'];
  const names = outputs.map(([, { fileName: name }]) => name.toLowerCase());
  return [
    ...outputs.flatMap(([name, { fileName }], i) =>
      names.indexOf(fileName.toLowerCase()) < i ? [`outputs.${name}: another output has its file name`] : [],
    ),
    ...outputs.flatMap(([name]) =>
      name !== 'output' && isTaken(declared, name)
        ? [`outputs.${name}: the name is taken, by a parameter, an input or a command's own word`]
        : [],
    ),
    ...(outputs.every(([, { optional }]) => optional) ? ['outputs: one must not be optional'] : []),
    ...outputs.flatMap(([name, output]) => problemsOfPreview(declared, name, output)),
  ];
}

/** A function that gives the style of a picture must do so for the default parameters. */
function problemsOfPreview(declared: AnyStep, name: string, output: OutputDeclaration): string[] {
  if (!('preview' in output) || typeof output.preview !== 'function') return [];
  try {
    const read = previewStyle.safeParse(output.preview(defaultsOf(declared)));
    return read.success
      ? []
      : [`outputs.${name}.preview: gives ${read.error.issues[0]?.message} for the default parameters`];
  } catch (error) {
    return [`outputs.${name}.preview: fails for the default parameters: ${String(error)}`];
  }
}

// A shape that is not known has the type `any` for each of its schemas.
const schemaOf = (declared: AnyStep, name: string) =>
  (declared.parameters.shape as Readonly<Record<string, z.ZodType>>)[name];

/** A parameter that the step has, required or with a default. */
function isAlwaysThere(declared: AnyStep, name: string): boolean {
  const schema = schemaOf(declared, name);
  return schema !== undefined && schema.safeParse(undefined).data !== undefined
    ? true
    : schema !== undefined && !schema.safeParse(undefined).success;
}

/** `steps[1] (ndvi).output.fileName` */
function placeOf(path: readonly PropertyKey[], given: AppDefinition): string {
  const place = path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '');
  const [list, index] = path;
  const id = list === 'steps' && typeof index === 'number' ? given.steps[index]?.id : undefined;
  return typeof id === 'string'
    ? place.replace(`[${String(index)}]`, `[${String(index)}] (${id})`)
    : place || 'the definition';
}

function repeated(names: readonly string[], list: string, rule: string): string[] {
  return names.flatMap((name, i) => (names.indexOf(name) < i ? [`${list}[${i}]: ${rule} ${name}`] : []));
}

function problemsOfParameters(declared: AnyStep): string[] {
  const types = ['string', 'number', 'integer', 'boolean'];
  let view: ReturnType<typeof parameterSchema>;
  try {
    view = parameterSchema(declared);
  } catch (error) {
    return [`: JSON Schema cannot express it (${messageOf(error)})`];
  }
  const problems = Object.entries(view.properties).flatMap(([name, { type, title, kind, enum: values }]) => [
    ...(types.includes(type ?? '') || values || kind === 'area'
      ? []
      : [`${name}: must be a string, a number, a boolean, a choice or an area`]),
    ...(title ? [] : [`${name}: has no title: add .meta({ title, description })`]),
  ]);
  if (problems.length > 0) return problems;
  const defaults = Object.entries(view.properties).flatMap(([name, { default: value }]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  return defaults.flatMap(([name, value]) => {
    const schema = schemaOf(declared, name);
    const read = schema?.safeParse(value, { error: inWords });
    return read && !read.success ? read.error.issues.map(({ message }) => `${name}: its default ${message}`) : [];
  });
}

const maxIconBytes = 180 * 1024;

function problemsOfFiles({ icon, templates, pages = [] }: AppDefinition): string[] {
  const problems: string[] = [];
  if (icon) {
    const path = fileURLToPath(icon);
    if (!/\.(svg|png)$/i.test(path)) problems.push(`icon: ${path} must be an SVG or a PNG`);
    else if (!existsSync(path)) problems.push(`icon: there is no file ${path}`);
    else if (statSync(path).size > maxIconBytes) problems.push(`icon: ${path} must be at most ${maxIconBytes} bytes`);
  }
  if (templates && !existsSync(templates)) problems.push(`templates: there is no folder ${fileURLToPath(templates)}`);
  pages.forEach(({ template }, i) => {
    const path = templates && new URL(`${template}.eta`, `${templates.href.replace(/\/$/, '')}/`);
    if (!path) problems.push(`pages[${i}]: a page of your own needs templates, the folder of its template`);
    else if (!existsSync(path)) problems.push(`pages[${i}].template: there is no file ${fileURLToPath(path)}`);
  });
  return problems;
}

/** A child process reads what lies beside the module: that must be code, and not a whole project, or somebody's home. */
function problemsOfPlace({ module }: AppDefinition): string[] {
  const folder = dirname(fileURLToPath(module));
  const isProject = ['package.json', '.git', '.env', '.ssh'].some((name) => existsSync(join(folder, name)));
  return isProject
    ? [`module: steps could read all of ${folder}: put the app into a folder of its own, such as src/my-app`]
    : [];
}

function isProfile(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return false;
  const profile: Partial<WireProfile> = value;
  const isCall = (name: WireCallName) =>
    // oxlint-disable-next-line typescript/no-unnecessary-condition -- a fork's profile may lack a call
    (['encode', 'decode'] as const).every((half) => typeof profile.calls?.[name]?.[half] === 'function');
  return (
    typeof profile.name === 'string' &&
    (['authenticate', 'decodeError', 'uploadsCollection'] as const).every(
      (name) => typeof profile[name] === 'function',
    ) &&
    typeof profile.limits === 'object' &&
    ['uploads', 'zip'].includes(profile.severalOutputs ?? '') &&
    Array.isArray(profile.refusedFields) &&
    wireCallNames.every(isCall)
  );
}

/** Returns the manifest of the app, except its address. */
export function manifestOf(definition: AppDefinition) {
  const { id, name, description } = definition;
  return { id, name, description, icon: iconDataUrl(definition) };
}

/** The icon as a `data:` URL; undefined where the app has none of its own. */
function iconDataUrl({ icon }: Pick<AppDefinition, 'icon'>): string | undefined {
  if (!icon) return undefined;
  const type = /\.png$/i.test(icon.pathname) ? 'image/png' : 'image/svg+xml';
  return `data:${type};base64,${readFileSync(icon).toString('base64')}`;
}
