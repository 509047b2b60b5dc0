import gdal from 'gdal-async';
import { KitError } from '../contract/kit-error.ts';

/** The reference system that a code or a WKT names. Throws `KitError` (`unknown_crs`) for a code that PROJ does not know. */
export function srsOfCode(code: string): gdal.SpatialReference {
  try {
    return gdal.SpatialReference.fromUserInput(code);
  } catch (cause) {
    if (!/^[A-Z]+:\d+$/.test(code)) throw cause;
    throw new KitError(
      'unknown_crs',
      `${code} is not a reference system that PROJ knows: choose another EPSG code, such as EPSG:4326 or that of a UTM zone`,
      { status: 422, cause },
    );
  }
}
