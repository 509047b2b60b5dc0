import gdal from 'gdal-async';
import { KitError } from '../contract/kit-error.ts';

/** Longitude and latitude in degrees, WGS84. */
export type LonLat = readonly [number, number];

const northThenEast = /AXIS\["[^"]*",NORTH\],AXIS\["[^"]*",EAST\]/;

/** True if northings or latitudes come first. A CRS without an EPSG code has the axes of its WKT, those after the projection if it is projected. */
const isNorthFirst = (srs: gdal.SpatialReference) => {
  const wkt = srs.toWKT();
  const ownAxes = wkt.slice(Math.max(0, wkt.lastIndexOf('PROJECTION[')));
  return srs.EPSGTreatsAsLatLong() || srs.EPSGTreatsAsNorthingEasting() || northThenEast.test(ownAxes);
};

/**
 * Transforms from a CRS to longitude and latitude; null where a point has none. The bindings lose which
 * axis comes first in the data: the CRS is made again, with the axes of its authority, and what the
 * authority turns round is turned back (data always comes easting or longitude first). Throws `KitError` (`not_on_earth`)
 * for a CRS without a way to longitude and latitude, as those of other bodies.
 */
export function toLonLat(srs: gdal.SpatialReference): (x: number, y: number) => LonLat | null {
  const source = gdal.SpatialReference.fromWKT(srs.toWKT());
  const isTurned = isNorthFirst(source);
  const target = gdal.SpatialReference.fromProj4('+proj=longlat +datum=WGS84 +no_defs');
  const transformation = transformationOf(source, target, srs);
  return (x, y) => {
    try {
      const { x: lon, y: lat } = isTurned ? transformation.transformPoint(y, x) : transformation.transformPoint(x, y);
      return Number.isFinite(lon) && Number.isFinite(lat) ? [lon, lat] : null;
    } catch {
      return null;
    }
  };
}

/** The other way: longitude and latitude to easting and northing (or longitude and latitude) as the CRS's data has them. Throws as `toLonLat`. */
export function fromLonLat(srs: gdal.SpatialReference): (lon: number, lat: number) => readonly [number, number] {
  const target = gdal.SpatialReference.fromWKT(srs.toWKT());
  const isTurned = isNorthFirst(target);
  const source = gdal.SpatialReference.fromProj4('+proj=longlat +datum=WGS84 +no_defs');
  const transformation = transformationOf(source, target, srs);
  return (lon, lat) => {
    const { x, y } = transformation.transformPoint(lon, lat);
    return isTurned ? [y, x] : [x, y];
  };
}

/** `named` is the CRS that the error names. */
function transformationOf(
  source: gdal.SpatialReference,
  target: gdal.SpatialReference,
  named: gdal.SpatialReference,
): gdal.CoordinateTransformation {
  try {
    return new gdal.CoordinateTransformation(source, target);
  } catch (cause) {
    const [, name = 'the reference system'] = /^\w+\["([^"]+)"/.exec(named.toWKT()) ?? [];
    throw new KitError(
      'not_on_earth',
      `${name} has no known way to longitude and latitude on Earth, so its places cannot be transformed: use a raster and areas in one and the same reference system`,
      { status: 422, cause },
    );
  }
}

/** The same as `toLonLat`; null for a CRS without a way to longitude and latitude. */
export function toLonLatIfAny(srs: gdal.SpatialReference): ReturnType<typeof toLonLat> | null {
  try {
    return toLonLat(srs);
  } catch (error) {
    if (error instanceof KitError) return null;
    throw error;
  }
}
