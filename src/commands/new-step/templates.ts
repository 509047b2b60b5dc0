/** Files that `new-step` writes. */
import type { VectorOutput } from '../../steps/step.ts';

export interface StepNames {
  /** `snow-cover` */
  readonly id: string;
  /** `snowCover` */
  readonly variable: string;
  /** `Snow cover` */
  readonly title: string;
  /** The kit, as a step of the room imports it. */
  readonly kit: string;
}

/** Output of a program in its trial run. */
export type Left =
  | { readonly bands: 'as-input' | readonly { readonly dataType: string; readonly nodata: number | null }[] }
  | Pick<VectorOutput, 'geometry' | 'fields'>;

const bandDeclaration = (
  { dataType, nodata }: { readonly dataType: string; readonly nodata: number | null },
  i: number,
): string =>
  `{ description: 'band ${i + 1}', dataType: ${quoted(dataType)}${nodata === null ? '' : `, nodata: ${Object.is(nodata, NaN) ? 'NaN' : nodata}`} }`;

const quoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

const declaration = ({ id, title }: StepNames, does: string) => `  id: ${quoted(id)},
  version: '1.0.0',
  cases: new URL('./cases.json', import.meta.url),
  title: ${quoted(title)},
  description: ${quoted(does)},`;

const factor = `z
      .number()
      .min(-1000)
      .max(1000)
      .default(1)
      .meta({ title: 'Factor', description: 'The factor that multiplies every value.' })`;

/** Parameters that choose bands. Each default is the parameter's own name, except for the single `band`. */
export const defaultBands: readonly string[] = ['band'];

const defaultOf = (name: string) => (name === 'band' ? 'nir' : name);

const bandParameters = (bands: readonly string[]) =>
  bands.map((name) => `${name}: band({ default: ${quoted(defaultOf(name))} })`).join(', ');

const sum = (bands: readonly string[]) => (bands.length === 1 ? bands.join('') : `(${bands.join(' + ')})`);

const doesOf = (bands: readonly string[]) =>
  bands.length === 1 ? 'Multiplies one band of the input.' : `Multiplies the sum of ${bands.join(', ')}.`;

const pixelStep = (
  names: StepNames,
  bands: readonly string[],
  comment: string,
  arithmetic: string,
) => `import { band, definePixelStep, z } from ${quoted(names.kit)};

/** ${comment} */
export default definePixelStep({
${declaration(names, doesOf(bands))}
  bands: { ${bandParameters(bands)} },
  parameters: z.object({
    factor: ${factor},
  }),
  output: { fileName: ${quoted(`${names.id}.tif`)}, bands: [{ description: 'result', dataType: 'Float32' }] },
  ${arithmetic},
});
`;

export const typescriptStep = (names: StepNames, bands: readonly string[]): string =>
  pixelStep(
    names,
    bands,
    'Replace the arithmetic in pixel by your own.',
    `pixel:
    ({ factor }) =>
    (${bands.join(', ')}) =>
      ${sum(bands)} * factor`,
  );

export const pythonStep = (names: StepNames, bands: readonly string[]): string =>
  pixelStep(
    names,
    bands,
    `Replace the arithmetic in ${names.id}.py by your own. It needs python3-gdal.`,
    `python: new URL(${quoted(`./${names.id}.py`)}, import.meta.url)`,
  );

export const pythonProgram = (bands: readonly string[]): string => `"""Replace the lambda by your own arithmetic."""

import marketplace_step

factor = marketplace_step.load().parameters["factor"]
marketplace_step.pixels(lambda ${bands.join(', ')}: ${sum(bands)} * factor)
`;

/** Cases of both languages, because the arithmetic is the same. */
export function factorCases(bands: readonly string[]): { readonly cases: readonly object[] } {
  const scene = (values: (i: number) => string) =>
    bands.map((name, i) => ({ name: defaultOf(name), values: values(i) }));
  return {
    cases: [
      {
        name: bands.length === 1 ? 'every value times the factor' : 'the sum of the bands times the factor',
        parameters: { factor: 0.5 },
        inputs: { input: [{ name: 'scene.tif', bands: scene((i) => `mod(x * ${7 + i} + y * 3, 250)`) }] },
        expect: { output: { value: `${sum(bands.map(defaultOf))} * 0.5` } },
      },
      {
        name: 'no data stays no data',
        parameters: { factor: 2 },
        inputs: { input: [{ name: 'scene.tif', width: 3, height: 1, nodata: 1, bands: scene(() => 'x') }] },
        expect: { output: { pixels: [0, null, 4 * bands.length] } },
      },
      {
        name: 'a band that is not there',
        parameters: { [bands.at(-1) ?? '']: 'missing' },
        inputs: { input: [{ name: 'scene.tif', bands: scene(() => 'x') }] },
        refused: 'band_not_found',
      },
    ],
  };
}

/** Step that runs a program. `left` is null before the trial run, and for files that are neither a raster nor features. */
export function commandStep(names: StepNames, argv: readonly string[], fileName: string, left: Left | null): string {
  const outputs =
    left === null
      ? `  outputs: { output: { kind: 'file', fileName: ${quoted(fileName)}, sourceType: 'UNKNOWN' } },`
      : 'bands' in left
        ? `  output: {
    fileName: ${quoted(fileName)},
    sourceType: 'UNKNOWN',
    bands: ${left.bands === 'as-input' ? `'as-input'` : `[${left.bands.map(bandDeclaration).join(', ')}]`},
    preview: { ramp: 'gray' },
  },`
        : `  outputs: {
    output: {
      kind: 'vector',
      fileName: ${quoted(fileName)},
      sourceType: 'UNKNOWN',
      geometry: ${quoted(left.geometry)},
      fields: { ${Object.entries(left.fields)
        .map(([name, type]) => `${/^[A-Za-z_]\w*$/.test(name) ? name : quoted(name)}: ${quoted(type)}`)
        .join(', ')} },
    },
  },`;
  return `import { command, defineStep, z } from ${quoted(names.kit)};

/** By ${argv[0]}: see its own documentation for what it does. */
export default defineStep({
${declaration(
  names,
  `What ${argv
    .slice(0, 2)
    .filter((word) => !word.startsWith('{'))
    .join(' ')} makes of one raster.`,
)}
  parameters: z.object({}),
  input: { description: 'One raster.', maxItems: 1, synthetic: 'elevation' },
${outputs}
  run: command({
    argv: [${argv.map(quoted).join(', ')}],
    progress: 'percent',
  }),
});
`;
}

export const testFile = (
  id: string,
  app: string,
  testing: string,
): string => `/** All that a step must do, and its own cases (cases.json beside it). */
import { test } from 'vitest';
import myApp from ${quoted(app)};
import { testStep } from ${quoted(testing)};

testStep(myApp, ${quoted(id)}, { test }, { largeSide: 2048 });
`;
