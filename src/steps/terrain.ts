/** Gradients of elevation rasters, for slope, aspect and hillshade. */
import { KitError } from '../contract/kit-error.ts';
import { degreesPerUnit, ellipsoidOf, fromTransform, metresPerUnit } from '../raster/affine.ts';
import type { Grid } from '../raster/cog.ts';
import { metresPerUnitOf } from '../raster/units.ts';
import type { BlockFunction, PixelGrid } from './pixel-step.ts';
import { requireTransform } from './require-placed.ts';

/** Computes a value from the gradient: rise per unit to the east and to the north. */
export type OfGradient = (east: number, north: number) => number;

export interface TerrainOptions {
  /**
   * Units of height in one map unit. Default: by the stated units of heights and map. Heights without a unit are in the map's unit, and in metres on maps in degrees
   * or other angles, where the scale follows the latitude.
   */
  readonly scale?: number | undefined;
}

/** Units of height in a metre; null if the heights state no unit of length. */
function heightsPerMetre({ bands: [heights] }: PixelGrid): number | null {
  const metres = heights ? metresPerUnitOf(heights) : null;
  return metres === null ? null : 1 / metres;
}

/**
 * Computes each pixel from Horn's gradient with the full affine transform, so rotated, oblong and south-up pixels are correct. Edges follow `gdaldem -compute_edges`:
 * a missing neighbour has the value of the pixel, and heights are extrapolated beyond the raster. Requires a `reach` of 1.
 */
export function byGradient(grid: PixelGrid, { scale }: TerrainOptions, of: OfGradient): BlockFunction {
  // Without any place a pixel counts as a unit wide.
  requireTransform(grid);
  const transform = grid.geoTransform ?? [0, 1, 0, 0, 0, -1];
  const perUnit = scale === undefined ? degreesPerUnit(grid.srs) : null;
  const perMetre = heightsPerMetre(grid);
  const perMapUnit = scale ?? (perMetre === null || !grid.srs ? 1 : perMetre * grid.srs.getLinearUnits().value);
  if (perUnit !== null) requireLatitudes(grid, transform, perUnit);
  const { height } = grid;
  const ellipsoid = ellipsoidOf(grid.srs);
  const [, perColumn = 1, perRow = 0, , downColumn = 0, downRow = -1] = transform;
  /** Inverse of the affine matrix in metres. */
  const inverse = new Float64Array(4);
  const place = (column: number, row: number) => {
    const [metresEast, metresNorth] =
      perUnit === null
        ? [1, 1]
        : metresPerUnit(perUnit, fromTransform(transform, column + 0.5, row + 0.5)[1], ellipsoid);
    const factor = perUnit === null ? perMapUnit : (perMetre ?? 1);
    const [east, north] = [metresEast * factor, metresNorth * factor];
    const [a, b, c, d] = [perColumn * east, downColumn * north, perRow * east, downRow * north];
    const determinant = a * d - b * c;
    // [dz/dcolumn, dz/drow] = [[a, b], [c, d]] [dz/dx, dz/dy], and Horn's weights add up to 8.
    inverse[0] = d / determinant / 8;
    inverse[1] = -b / determinant / 8;
    inverse[2] = -c / determinant / 8;
    inverse[3] = a / determinant / 8;
  };
  const window = new Float64Array(9);
  return ([heights = window], [out = window], { y, width, rows, stride, start }) => {
    for (let row = 0, i = 0; row < rows; row++) {
      place(0, y + row);
      for (let column = 0; column < width; column++, i++) {
        if (perUnit !== null && downColumn !== 0) place(column, y + row);
        const at = start + row * stride + column;
        const centre = heights[at]!;
        if (Number.isNaN(centre)) {
          out[i] = NaN;
          continue;
        }
        const [above, below] = [at - stride, at + stride];
        let across =
          heights[above + 1]! +
          2 * heights[at + 1]! +
          heights[below + 1]! -
          (heights[above - 1]! + 2 * heights[at - 1]! + heights[below - 1]!);
        let down =
          heights[below - 1]! +
          2 * heights[below]! +
          heights[below + 1]! -
          (heights[above - 1]! + 2 * heights[above]! + heights[above + 1]!);
        if (Number.isNaN(across) || Number.isNaN(down)) {
          around(heights, at, stride, column, y + row, width, height, window);
          across = window[2]! + 2 * window[5]! + window[8]! - (window[0]! + 2 * window[3]! + window[6]!);
          down = window[6]! + 2 * window[7]! + window[8]! - (window[0]! + 2 * window[1]! + window[2]!);
        }
        out[i] = of(inverse[0]! * across + inverse[1]! * down, inverse[2]! * across + inverse[3]! * down);
      }
    }
  };
}

/** Throws `KitError` (`not_placed`) if centres of pixels lie beyond a pole: the raster is not where it says. */
function requireLatitudes({ width, height }: Grid, transform: readonly number[], perUnit: number): void {
  const corners = [0.5, width - 0.5].flatMap((column) => [0.5, height - 0.5].map((row) => [column, row] as const));
  const beyond = corners
    .map(([column, row]) => fromTransform(transform, column, row)[1] * perUnit)
    .find((latitude) => Math.abs(latitude) > 90 + 1e-6);
  if (beyond === undefined) return;
  throw new KitError(
    'not_placed',
    `the raster has pixels at latitude ${beyond.toFixed(1)}, and latitudes end at 90: give it its true place first, as the step reproject does`,
    { status: 422 },
  );
}

/** Computes each pixel from the nine heights around it. Edges and gaps are as in `byGradient`. Requires a `reach` of 1. */
export function byNeighbours({ width: columns, height }: Grid, of: (heights: Float64Array) => number): BlockFunction {
  const window = new Float64Array(9);
  return ([heights = window], [out = window], { y, width, rows, stride, start }) => {
    for (let row = 0, i = 0; row < rows; row++)
      for (let column = 0; column < width; column++, i++) {
        const at = start + row * stride + column;
        if (Number.isNaN(heights[at])) {
          out[i] = NaN;
          continue;
        }
        around(heights, at, stride, column, y + row, columns, height, window);
        out[i] = of(window);
      }
  };
}

/** Fills `window` with the nine heights around a pixel at an edge or a gap. */
function around(
  heights: Float64Array,
  at: number,
  stride: number,
  column: number,
  row: number,
  width: number,
  height: number,
  window: Float64Array,
): void {
  const centre = heights[at]!;
  if (row > 0 && row < height - 1 && column > 0 && column < width - 1) {
    // Most pixels: no edge is near.
    for (let k = 0, line = at - stride; k < 9; line += stride)
      for (let i = line - 1; i <= line + 1; i++, k++) window[k] = Number.isNaN(heights[i]) ? centre : heights[i]!;
    return;
  }
  const isTop = row === 0 && height > 1;
  const isBottom = row === height - 1 && height > 1;
  const isLeft = column === 0 && width > 1;
  const isRight = column === width - 1 && width > 1;
  for (let rowStep = -1, k = 0; rowStep <= 1; rowStep++)
    for (let columnStep = -1; columnStep <= 1; columnStep++, k++) {
      // A single row or column is taken as level across itself.
      const [dx, dy] = [width === 1 ? 0 : columnStep, height === 1 ? 0 : rowStep];
      let value: number;
      if ((isTop && dy < 0) || (isBottom && dy > 0)) {
        // Extrapolates rows beyond the raster. At a corner the last column is repeated.
        const across = (isLeft && dx < 0) || (isRight && dx > 0) ? 0 : dx;
        value = 2 * heights[at + across]! - heights[at - dy * stride + across]!;
      } else if ((isLeft && dx < 0) || (isRight && dx > 0)) {
        const line = at + dy * stride;
        value = isTop || isBottom ? heights[line]! : 2 * heights[line]! - heights[line - dx]!;
      } else value = heights[at + dy * stride + dx]!;
      window[k] = Number.isNaN(value) ? centre : value;
    }
}
