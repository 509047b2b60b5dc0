import gdal from 'gdal-async';
import { KitError } from '../contract/kit-error.ts';
import { degreesPerUnit, fromTransform } from './affine.ts';
import { toLonLat, type LonLat } from './lon-lat.ts';

/** Degrees: ten centimetres on the ground. */
const tolerance = 1e-6;

/**
 * Throws `KitError` (`crs_not_stored`) if a reference system that is read back from an output puts the pixels of a raster elsewhere, or nowhere: a format
 * does not store every reference system.
 */
export function requireStored(
  {
    srs,
    geoTransform,
    rasterSize: { x, y },
  }: Pick<gdal.Dataset, 'srs' | 'rasterSize'> & { readonly geoTransform: readonly number[] | null },
  stored: gdal.SpatialReference | null,
): void {
  // A local system lies nowhere on Earth.
  if (!srs || !geoTransform || !(srs.isGeographic() || srs.isProjected())) return;
  const places = [0, x / 2, x].flatMap((column) =>
    [0, y / 2, y].map((row) => fromTransform(geoTransform, column, row)),
  );
  if (stored && (isEqual(srs, stored) || liesAlike(srs, stored, places))) return;
  const name = /^\w+\["([^"]*)"/.exec(srs.toWKT())?.[1] ?? 'of the raster';
  throw new KitError(
    'crs_not_stored',
    `the output's format cannot store the reference system ${name}: choose another one with an EPSG code, such as EPSG:6933 for equal areas; the step reproject brings a raster to it`,
    { status: 422 },
  );
}

function isEqual(srs: gdal.SpatialReference, other: gdal.SpatialReference): boolean {
  const unitOf = (system: gdal.SpatialReference) => degreesPerUnit(system) ?? system.getLinearUnits().value;
  return srs.isSame(other) && Math.abs(unitOf(srs) / unitOf(other) - 1) < 1e-9;
}

function liesAlike(srs: gdal.SpatialReference, other: gdal.SpatialReference, places: readonly LonLat[]): boolean {
  try {
    const [ofOne, ofOther] = [toLonLat(srs), toLonLat(other)];
    return places.every(([x, y]) => {
      const [a, b] = [ofOne(x, y), ofOther(x, y)];
      if (a === null || b === null) return a === b;
      const turn = Math.abs(a[0] - b[0]) % 360;
      return Math.min(turn, 360 - turn) < tolerance && Math.abs(a[1] - b[1]) < tolerance;
    });
  } catch {
    // One of them lies nowhere on Earth.
    return false;
  }
}
