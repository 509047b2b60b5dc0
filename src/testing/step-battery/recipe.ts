/** The values that a recipe stands for: what the battery writes, and what it holds outputs against. */
import { integerRanges } from '../../raster/integer-types.ts';
import { parseExpression, type Expression } from '../../steps/band-math/expression.ts';
import type { RasterRecipe, RecipeType } from './cases.ts';

/** Pixels that a variant takes away. */
export interface Gap {
  /** `all`, or some of them. */
  readonly which: 'all' | 'some';
  /** Mark of the missing pixels in the file: the nodata value, NaN, both, a mask band or an alpha band. */
  readonly as: 'nodata' | 'NaN' | 'nodata and NaN' | 'mask' | 'alpha';
}

export const isGap = (gap: Gap, x: number, y: number): boolean => gap.which === 'all' || (x + 2 * y) % 5 === 0;

/** Value as a file of that type holds it. */
export function stored(value: number, type: RecipeType): number {
  const range = type === 'Int8' ? ([-128, 127] as const) : integerRanges[type];
  if (range) return Math.min(range[1], Math.max(range[0], Math.round(value)));
  return type === 'Float32' ? Math.fround(value) : value;
}

const parsed = new Map<string, Expression>();

/** Also one that names no band, `45`. */
function expressionOf(text: string): Expression {
  const known = parsed.get(text) ?? parseExpression(`x * 0 + (${text})`);
  parsed.set(text, known);
  return known;
}

/** Gives a formula's value where its names have these values; NaN where one is unknown. */
export function formulaValue(text: string, valueOf: (name: string) => number): number {
  const expression = expressionOf(text);
  const out = [NaN];
  expression.evaluate(
    expression.bands.map((name) => [valueOf(name)]),
    out,
    1,
  );
  return out[0]!;
}

/** The values of a row of a band. A gap holds its mark, or some value if a mask or alpha marks it. */
export function rowOf(recipe: RasterRecipe, band: number, y: number, gap: Gap | null): Float64Array {
  const { width, type, nodata } = recipe;
  const expression = expressionOf(recipe.bands[band]!.values);
  const xs = Float64Array.from({ length: width }, (_, x) => x);
  const row = new Float64Array(width);
  const ys = new Float64Array(width).fill(y);
  expression.evaluate(
    expression.bands.map((name) => (name === 'x' ? xs : name === 'y' ? ys : new Float64Array(width).fill(NaN))),
    row,
    width,
  );
  for (let x = 0; x < width; x++)
    row[x] = gap && isGap(gap, x, y) ? markOf(gap, y, nodata ?? 0) : stored(row[x]!, type);
  return row;
}

/** Value of the pixels that a mask or alpha hides. */
const hidden = 3;

function markOf({ as }: Gap, y: number, nodata: number): number {
  if (as === 'mask' || as === 'alpha') return hidden;
  return as === 'NaN' || (as === 'nodata and NaN' && y % 2 === 0) ? NaN : nodata;
}
