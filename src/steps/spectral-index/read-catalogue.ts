/** Reads the files of Awesome Spectral Indices (https://github.com/awesome-spectral-indices/awesome-spectral-indices). */
import { existsSync, readFileSync } from 'node:fs';
import * as z from 'zod';
import { KitError } from '../step-kit.ts';
import { ExpressionError, parseExpression } from '../band-math/expression.ts';
import type { IndexCatalogue, SpectralIndex } from './catalogue.ts';

const files = {
  indices: 'spectral-indices-dict.json',
  constants: 'constants.json',
  bands: 'bands.json',
} as const;

const indicesFile = z.object({
  SpectralIndices: z.record(
    z.string().regex(/^[\w.+-]{1,40}$/, 'must be a short name'),
    z.object({
      long_name: z.string().max(200),
      formula: z.string(),
      reference: z.string().max(500),
      bands: z.array(z.string()),
    }),
  ),
});
const constantsFile = z.record(
  z.string().regex(/^[A-Za-z]\w{0,30}$/, 'must be a name'),
  z.object({ description: z.string().max(200), default: z.number().nullable() }),
);
const bandsFile = z.record(z.string(), z.object({ common_name: z.string() }));

/** Parameters of the step besides the constants. */
const otherParameters = ['index', 'factor', 'offset', 'scaling', 'nodata'];
/** Polarizations have no common name: they are called by themselves. */
const polarizations = ['VV', 'VH', 'HV', 'HH'];
/** Not the exponent of a number. */
const word = /(?<![\w.])[A-Za-z_]\w*/g;

export interface ReadCatalogue extends IndexCatalogue {
  /** Number of indices whose formula the expression language cannot express, such as those of kernels. */
  readonly leftOut: number;
}

/**
 * The catalogue of a folder; null if none of its three files is there. Formulas name bands by their common names afterwards.
 * Throws `KitError` if a file is missing or cannot be read.
 */
export function readIndexCatalogue(folder: URL): ReadCatalogue | null {
  const missing = Object.values(files).filter((name) => !existsSync(new URL(name, folder)));
  if (missing.length === Object.keys(files).length) return null;
  if (missing.length > 0)
    throw new KitError('bad_index_catalogue', `${folder.pathname} lacks ${missing.join(' and ')} beside the others`);
  const read = <T>(name: string, schema: z.ZodType<T>): T => {
    const text = readFileSync(new URL(name, folder), 'utf8');
    const parsed = schema.safeParse(jsonOf(text));
    if (parsed.success) return parsed.data;
    // An error of zod has an issue.
    const [{ path, message }] = parsed.error.issues as [z.core.$ZodIssue];
    throw new KitError(
      'bad_index_catalogue',
      `${folder.pathname}${name} cannot be used: ${path.join('.')}: ${message}`,
    );
  };
  const { SpectralIndices: given } = read(files.indices, indicesFile);
  const constants = read(files.constants, constantsFile);
  const bands = read(files.bands, bandsFile);
  const taken = Object.keys(constants).find((name) => otherParameters.includes(name));
  if (taken !== undefined)
    throw new KitError(
      'bad_index_catalogue',
      `${folder.pathname}${files.constants}: the step has a parameter ${taken}`,
    );
  const indices: Record<string, SpectralIndex> = {};
  for (const [id, { long_name: name, formula, reference }] of Object.entries(given)) {
    const named = formulaOfBands(formula, constants, bands);
    if (named !== null) indices[id] = { name, formula: named, reference };
  }
  if (Object.keys(indices).length === 0)
    throw new KitError(
      'bad_index_catalogue',
      `${folder.pathname}${files.indices} has no formula that the expression language can express`,
    );
  return { indices, constants, leftOut: Object.keys(given).length - Object.keys(indices).length };
}

/** The formula over common names; null if it names something else, or cannot be parsed. */
function formulaOfBands(
  formula: string,
  constants: IndexCatalogue['constants'],
  bands: z.output<typeof bandsFile>,
): string | null {
  let isKnown = true;
  const named = formula.replaceAll(word, (name) => {
    if (Object.hasOwn(bands, name)) return bands[name]!.common_name;
    isKnown &&= Object.hasOwn(constants, name) || polarizations.includes(name);
    return name;
  });
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- the callback above sets it
  if (!isKnown) return null;
  try {
    parseExpression(named, Object.fromEntries(Object.keys(constants).map((name) => [name, 1])));
    return named;
  } catch (error) {
    if (error instanceof ExpressionError) return null;
    throw error;
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
