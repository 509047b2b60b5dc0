/** The page of one step, from its declaration. */
import { existsSync, readFileSync } from 'node:fs';
import { parameterSchema, type ParameterView } from '../../src/app/processing/step-parameters.ts';
import myApp from '../../src/my-app/app.ts';
import { isCommand } from '../../src/steps/command.ts';
import { spectralIndices } from '../../src/steps/spectral-index/catalogue.ts';
import { needsReflectance } from '../../src/steps/spectral-index/needs-reflectance.ts';
import {
  inputsOf,
  outputsOf,
  sourceTypeOfOutput,
  type AnyStep,
  type InputDeclaration,
  type OutputDeclaration,
} from '../../src/steps/step.ts';
import { examples } from './examples.ts';
import { kitSteps } from './kit-steps.ts';

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const row = (...cells: string[]) => `| ${cells.map(cell).join(' | ')} |`;
const table = (head: string[], rows: string[][]) =>
  [row(...head), row(...head.map(() => '---')), ...rows.map((one) => row(...one))].join('\n');

export function pageOfSteps(steps: Readonly<Record<string, AnyStep>>, pictures: readonly string[]): string {
  const rows = Object.entries(steps).map(([name, { id, title, description }]) => [
    pictures.includes(`${id}.png`) ? `<img src="./${id}.png" alt="" width="120">` : '',
    `[${title}](${id}.md)`,
    `\`${name}\``,
    description,
  ]);
  return `# The kit's steps

Import a step from \`marketplace-app-kit\` (in a fork: \`../index.ts\`) and list it in your \`app.ts\`. \`npm run lab -- scripts/reference.ts\` generates these pages from the code. The types and functions for your own steps are in the API reference, which \`npm run docs\` shows at \`/api/\`.

${table(['', 'Step', 'Export', 'What it does'], rows)}
`;
}

export function pageOfStep(name: string, step: AnyStep, pictures: readonly string[]): string {
  const { properties, required } = parameterSchema(step);
  const example = examples[step.id];
  const parts = [
    `# ${step.title}`,
    step.description,
    pictures.includes(`${step.id}.png`) ? `![What ${step.title} makes](${step.id}.png)` : '',
    example && !isInTheApp(step)
      ? `${example.about} The default app does not have this step: list \`${name}\` in your \`app.ts\`.`
      : example
        ? `Made with:\n\n\`\`\`sh\n${commandsOf(step).join('\n')}\n\`\`\`\n\n${example.about}`
        : 'No picture: the kit ships no scene that suits it.',
    `\`${name}\` of the package, id \`${step.id}\`, version ${step.version}.${isCommand(step) ? ' A program does it: it runs only where bubblewrap confines it.' : ''}${step.estimate ? '' : ' It makes no estimate.'}`,
    '## Parameters',
    Object.keys(properties).length === 0
      ? 'None.'
      : table(
          ['Name', 'Takes', 'Default', 'What it is'],
          Object.entries(properties).map(([key, view]) => [
            `\`${key}\``,
            takes(view),
            view.default !== undefined
              ? `\`${String(view.default)}\``
              : required.includes(key) || view.kind === 'area'
                ? 'required'
                : 'left out',
            `${view.title}. ${view.description ?? ''}`,
          ]),
        ),
    '## Input',
    table(
      ['Name', 'Kind', 'Items', 'What it is'],
      inputsOf(step).map(([key, one]) => [
        `\`${key}\``,
        one.kind === 'vector' ? 'features' : 'rasters',
        `${itemsOf(one)}${one.sourceTypes ? `, ${one.sourceTypes.join(', ')}` : ''}`,
        one.description,
      ]),
    ),
    '## Output',
    table(
      ['File', 'Source type', 'What it holds'],
      outputsOf(step).map(([, one]) => [
        `\`${one.fileName}\`${one.optional ? ', may be left out' : ''}`,
        sourceTypeOfOutput(one),
        holds(one),
      ]),
    ),
    refusals(step),
    step.id === 'spectral-index' ? indices() : '',
  ];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

function itemsOf({ optional, maxItems, kind }: InputDeclaration): string {
  const most = maxItems ?? (kind === 'vector' ? 1 : 200);
  const least = optional ? 0 : 1;
  return most === least ? String(most) : `${least} to ${most}`;
}

function takes({
  type,
  kind,
  enum: choices,
  minimum,
  maximum,
  minLength,
  maxLength,
  pattern,
  of,
}: ParameterView): string {
  if (kind === 'band') return `a band${of ? ` of \`${of}\`` : ''}`;
  if (kind === 'crs') return 'an EPSG code';
  if (kind === 'area') return 'an area, GeoJSON in longitude and latitude';
  if (choices) return choices.map((one) => `\`${String(one)}\``).join(', ');
  const bounds =
    minimum !== undefined || maximum !== undefined
      ? ` from ${minimum ?? '-∞'} to ${maximum ?? '∞'}`
      : minLength !== undefined || maxLength !== undefined
        ? `, ${minLength ?? 0} to ${maxLength ?? 'any number of'} characters`
        : '';
  return `${type ?? 'a value'}${bounds}${pattern ? `, \`${pattern}\`` : ''}`;
}

function holds(output: OutputDeclaration): string {
  if (output.kind === 'file') return 'a file';
  if (output.kind === 'vector')
    return `${output.geometry === 'None' ? 'rows' : output.geometry}: ${Object.entries(output.fields)
      .map(([name, type]) => `\`${name}\` ${type}`)
      .join(', ')}`;
  if (output.bands === 'as-input') return 'the bands of its input';
  if (output.bands === 'any') return 'bands that follow from the parameters and the input';
  return output.bands
    .map(
      ({ description, dataType, nodata }) =>
        `${description}, ${dataType}${nodata === undefined ? '' : `, no data ${nodata}`}`,
    )
    .join('; ');
}

/** By its own cases: what a user may be told. */
function refusals({ cases }: AnyStep): string {
  if (!cases || !existsSync(cases)) return '';
  const read = JSON.parse(readFileSync(cases, 'utf8')) as { cases: readonly { name: string; refused?: string }[] };
  const refused = read.cases.filter((one) => one.refused !== undefined);
  if (refused.length === 0) return '';
  return `## What it refuses\n\n${table(
    ['Code', 'Such as'],
    refused.map(({ name, refused: code }) => [`\`${code}\``, name]),
  )}`;
}

function indices(): string {
  return `## Indices\n\n${table(
    ['Index', 'What it shows', 'Formula', 'Needs reflectance', 'Reference'],
    Object.entries(spectralIndices).map(([name, { name: shows, formula, reference }]) => [
      `\`${name}\``,
      shows,
      `\`${formula}\``,
      needsReflectance(formula, {}) ? 'yes' : '',
      reference,
    ]),
  )}`;
}

const isInTheApp = ({ id }: AnyStep) => myApp.steps.some((one) => one.id === id);

/** Commands of an example, in order: those that make its inputs, then its own. */
function commandsOf(step: AnyStep): string[] {
  const example = examples[step.id];
  if (!example) return [];
  const makers = Object.values(example.inputs).flatMap(
    (path) =>
      Object.values(kitSteps).find((other) => outputsOf(other).some(([, { fileName }]) => fileName === path)) ?? [],
  );
  const commands = [...(example.first ?? []), ...makers.flatMap(commandsOf), commandOf(step, example)];
  return [...new Set(commands)];
}

function commandOf({ id }: AnyStep, { inputs, parameters }: (typeof examples)[string]): string {
  const given = Object.entries(inputs).map(([name, path]) => {
    const place = path.includes('/') ? path : `data/demo/${path}`;
    return Object.keys(inputs).length > 1 ? `--input ${name}=${place}` : `--input ${place}`;
  });
  const named = Object.entries(parameters ?? {}).map(([name, value]) => {
    const text = `${name}=${typeof value === 'object' ? JSON.stringify(value) : String(value)}`;
    return `--param ${/[^\w.=:,-]/.test(text) ? `'${text}'` : text}`;
  });
  return ['npm run demo -- --step', id, ...given, ...named].join(' ');
}
