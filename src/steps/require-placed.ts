import { KitError } from '../contract/kit-error.ts';
import type { Grid } from '../raster/cog.ts';

/** Throws `KitError` (`not_placed`) if ground control points or polynomial coefficients place a raster: its pixels have no size on the map. */
export function requireTransform({ geoTransform, controlPoints, rpc }: Grid): void {
  if (geoTransform || !(controlPoints ?? rpc)) return;
  throw new KitError(
    'not_placed',
    'the raster is placed by ground control points or polynomial coefficients, so its pixels have no size; warp it first, as the step reproject does',
    { status: 422 },
  );
}
