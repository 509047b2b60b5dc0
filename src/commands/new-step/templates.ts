/** What `new-step` writes. */
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

export const typescriptStep = (
  names: StepNames,
): string => `import { band, definePixelStep, z } from ${quoted(names.kit)};

/** Multiplies one band: replace the arithmetic in pixel by your own. */
export default definePixelStep({
${declaration(names, 'Multiplies one band of the input.')}
  bands: { band: band({ default: 'nir' }) },
  parameters: z.object({
    factor: ${factor},
  }),
  output: { fileName: ${quoted(`${names.id}.tif`)}, bands: [{ description: 'result', dataType: 'Float32', nodata: -9999 }] },
  pixel:
    ({ factor }) =>
    (value) =>
      value * factor,
});
`;

export const pythonStep = (names: StepNames): string => `import { band, definePixelStep, z } from ${quoted(names.kit)};

/** Multiplies one band, by ${names.id}.py beside it (python3-gdal): put your own arithmetic there. */
export default definePixelStep({
${declaration(names, 'Multiplies one band of the input.')}
  bands: { band: band({ default: 'nir' }) },
  parameters: z.object({
    factor: ${factor},
  }),
  output: { fileName: ${quoted(`${names.id}.tif`)}, bands: [{ description: 'result', dataType: 'Float32', nodata: -9999 }] },
  python: new URL(${quoted(`./${names.id}.py`)}, import.meta.url),
});
`;

export const pythonProgram = (): string => `"""Multiplies one band: replace the lambda by your own arithmetic."""

import marketplace_step

factor = marketplace_step.load().parameters["factor"]
marketplace_step.pixels(lambda band: band * factor)
`;

/** Of both: the same arithmetic. */
export const factorCases = {
  cases: [
    {
      name: 'every value times the factor',
      parameters: { band: 'numbers', factor: 0.5 },
      inputs: { input: [{ name: 'scene.tif', bands: [{ name: 'numbers', values: 'mod(x * 7 + y * 3, 250)' }] }] },
      expect: { output: { value: 'numbers * 0.5' } },
    },
    {
      name: 'no data stays no data',
      parameters: { band: 'numbers', factor: 2 },
      inputs: {
        input: [{ name: 'scene.tif', width: 3, height: 1, nodata: 1, bands: [{ name: 'numbers', values: 'x' }] }],
      },
      expect: { output: { pixels: [0, null, 4] } },
    },
    {
      name: 'a band that is not there',
      parameters: { band: 'nir' },
      inputs: { input: [{ name: 'scene.tif', bands: [{ name: 'numbers', values: 'x' }] }] },
      refused: 'band_not_found',
    },
  ],
};

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
    .filter((one) => !one.startsWith('{'))
    .join(' ')} makes of one raster.`,
)}
  parameters: z.object({}),
  input: { description: 'One raster.', mostItems: 1, synthetic: 'elevation' },
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
