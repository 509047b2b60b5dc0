import { KitError } from '../contract/kit-error.ts';
import type { Grid } from '../raster/cog.ts';

/**
 * Throws `KitError` (`not_placed`) if the pixels of a raster have no size on the map: if ground control points or polynomial coefficients
 * place it, or if its transform maps all pixels to a line or a point.
 */
export function requireTransform({ geoTransform, controlPoints, rpc }: Grid): void {
  const [, perColumn = 1, perRow = 0, , downColumn = 0, downRow = -1] = geoTransform ?? [];
  if (perColumn * downRow - perRow * downColumn === 0)
    throw new KitError(
      'not_placed',
      'the pixels of the raster have the size 0 on the map: correct its transform first, for example by gdal_translate -a_ullr',
      { status: 422 },
    );
  if (geoTransform || !(controlPoints ?? rpc)) return;
  throw new KitError(
    'not_placed',
    'the raster is placed by ground control points or polynomial coefficients, so its pixels have no size; warp it first, as the step reproject does',
    { status: 422 },
  );
}
