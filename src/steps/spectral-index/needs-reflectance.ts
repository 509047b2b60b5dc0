import { parseExpression } from '../band-math/expression.ts';

/** Values of the bands of three pixels, which are no multiples of each other. */
const pixels = [0, 1, 2].map((pixel) => (band: number) => 0.11 + ((band * 7 + pixel * 5) % 13) / 20);
const factor = 1_000;
/** Formulas may add a small number to avoid a division by 0. It changes the index by less than this. */
const tolerance = 1e-3;

/**
 * True if digital numbers give another index than reflectance, because the formula adds a number to values of bands, as EVI does. Other
 * indices do not change if all bands have the same factor, or change only their unit.
 */
export function needsReflectance(formula: string, constants: Readonly<Record<string, number>>): boolean {
  const expression = parseExpression(formula, constants);
  const valueOf = (pixel: (band: number) => number, by: number) => {
    const out = [NaN];
    expression.evaluate(
      expression.bands.map((_, band) => [pixel(band) * by]),
      out,
      1,
    );
    return out[0]!;
  };
  const pairs = pixels
    .map((pixel) => [valueOf(pixel, 1), valueOf(pixel, factor)] as const)
    .filter(([ofReflectance]) => Number.isFinite(ofReflectance) && ofReflectance !== 0);
  const ratios = pairs.map(([ofReflectance, ofNumbers]) => ofNumbers / ofReflectance);
  const [first = 1] = ratios;
  return ratios.some((ratio) => !(Math.abs(ratio - first) <= tolerance * Math.abs(first)));
}
