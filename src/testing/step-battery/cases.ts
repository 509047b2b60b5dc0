/** Content of a step's `cases.json`. It is data, so that a step in any language has the same. */
import { readFileSync } from 'node:fs';
import * as z from 'zod';
import type { ParameterValue } from '../../app/processing/step-parameters.ts';
import { KitError } from '../../contract/kit-error.ts';
import { ExpressionError, parseExpression } from '../../steps/band-math/expression.ts';
import { messageOf } from '../../files/index.ts';

const formula = z.string().superRefine((text, context) => {
  // A number alone names no band.
  const problem = problemOf(`x * 0 + (${text})`);
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});

function problemOf(text: string): string | null {
  try {
    parseExpression(text);
    return null;
  } catch (error) {
    if (error instanceof ExpressionError) return error.message;
    throw error;
  }
}

const dataTypes = ['Byte', 'Int8', 'UInt16', 'Int16', 'UInt32', 'Int32', 'Float32', 'Float64'] as const;
export type RecipeType = (typeof dataTypes)[number];

const rasterRecipe = z.strictObject({
  /** Name of the file. */
  name: z.string().regex(/^[A-Za-z0-9._-]+\.tif$/, 'must be a file name that ends in .tif'),
  width: z.int().min(1).max(20_000).default(37),
  height: z.int().min(1).max(20_000).default(23),
  type: z.enum(dataTypes).default('UInt16'),
  nodata: z.number().optional(),
  /** Null: the file names no coordinate reference system. */
  epsg: z.int().nullable().default(32_633),
  /** Scale of the file. It stores `(value - offset) / factor`. Default: it stores the values. */
  scale: z.strictObject({ factor: z.number(), offset: z.number() }).optional(),
  /** GDAL's six numbers. */
  geoTransform: z.array(z.number()).length(6).default([500_000, 30, 0, 5_400_000, 0, -30]),
  /** Each by a formula over `x` and `y`, column and row from 0. Values are cut to what the type holds. */
  bands: z.array(z.strictObject({ name: z.string().default(''), values: formula })).min(1),
});
export type RasterRecipe = z.output<typeof rasterRecipe>;

const vectorRecipe = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9._-]+\.geojson$/, 'must be a file name that ends in .geojson'),
  geoJson: z.record(z.string(), z.unknown()),
});
export type VectorRecipe = z.output<typeof vectorRecipe>;
export type FileRecipe = RasterRecipe | VectorRecipe;
export const isRaster = (file: FileRecipe): file is RasterRecipe => 'bands' in file;

const expectedRaster = z.strictObject({
  /** From 1. */
  band: z.int().min(1).default(1),
  /**
   * Formula for each pixel, over `x`, `y` and the bands of the input by name (of several inputs, `"before.nir"`). No data if
   * a band has none, or if no number comes out.
   */
  value: formula.optional(),
  /** Or the pixels themselves, row by row; null where there is none. */
  pixels: z.array(z.number().nullable()).optional(),
  /** Position of the output, for a step that makes its own grid: GDAL's six numbers. */
  geoTransform: z.array(z.number()).length(6).optional(),
  /** Value where the input has no data, or the formula gives no number. Default: no data. */
  missing: z.number().optional(),
  /** Allowed difference, as a share of the larger of 1 and the value. */
  tolerance: z.number().min(0).default(1e-6),
});
const expectedFeatures = z.strictObject({
  count: z.int().min(0).optional(),
  /** Properties of each feature, in order; numbers to `tolerance`. Of its geometry: `$west`, `$south`, `$east`, `$north`, `$area`, `$length`, in the units of the layer. */
  properties: z.array(z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))).optional(),
  tolerance: z.number().min(0).default(1e-6),
});
export type ExpectedRaster = z.output<typeof expectedRaster>;
export type ExpectedFeatures = z.output<typeof expectedFeatures>;

const oneCase = z
  .strictObject({
    name: z.string().min(1),
    parameters: z
      .record(
        z.string(),
        z.custom<ParameterValue>((value) => value !== undefined && value !== null),
      )
      .default({}),
    /** By the names of the step's inputs. */
    inputs: z.record(z.string(), z.array(z.union([rasterRecipe, vectorRecipe])).min(1)),
    /** By the names of the step's outputs. */
    expect: z.record(z.string(), z.union([expectedRaster, expectedFeatures])).optional(),
    /** The code of the error by which the step refuses. */
    refused: z.string().optional(),
  })
  .refine(({ expect, refused }) => (expect === undefined) !== (refused === undefined), 'must have expect or refused');
export type StepCase = z.output<typeof oneCase>;

/** Schema of `cases.json`. */
export const stepCases = z.strictObject({
  /** For editors. */
  $schema: z.string().optional(),
  /**
   * Distance up to which other pixels affect a pixel. Next to a gap and at the raster's edges, the pixels within it are not
   * compared.
   */
  reach: z.int().min(0).default(0),
  /** `input`: an output lies on the pixels of the first input, whatever that is. `own`: the step makes its own. */
  grid: z.enum(['input', 'own']).default('input'),
  /** True if pixels depend on their position and size, as those of slopes do. In another place, only the grid is then checked. */
  dependsOnPlace: z.boolean().default(false),
  /** Types of the input with which the first case must hold as well. */
  types: z.array(z.enum(dataTypes)).default(['Byte', 'UInt16', 'Int16', 'Float32', 'Float64']),
  /** Variants of the first case that the step must refuse, with the error code of each. */
  refuses: z.record(z.string(), z.string().min(1)).default({}),
  /** Checks that the step is exempt from, each with the reason. */
  exempt: z.record(z.string(), z.string().min(10, 'must say why')).default({}),
  /** `outside`: the step is one call that nothing interrupts, and the host ends it. */
  cancel: z.enum(['cooperative', 'outside']).default('cooperative'),
  /** The first is the one that the battery varies. */
  cases: z.array(oneCase).min(1),
});
export type StepCases = z.output<typeof stepCases>;

/** Throws `KitError` with every place that is wrong. */
export function readCases(from: URL): StepCases {
  const read = stepCases.safeParse(parsed(from));
  if (read.success) return read.data;
  throw new KitError(
    'bad_cases',
    `${from.pathname} cannot be used:\n${read.error.issues.map(({ path, message }) => `  ${path.join('.')}: ${message}`).join('\n')}`,
  );
}

function parsed(from: URL): unknown {
  try {
    return JSON.parse(readFileSync(from, 'utf8'));
  } catch (cause) {
    throw new KitError('bad_cases', `${from.pathname} cannot be read: ${messageOf(cause)}`, { cause });
  }
}
