import gdal from 'gdal-async';

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
 * authority turns round is turned back (data always comes easting or longitude first).
 */
export function toLonLat(srs: gdal.SpatialReference): (x: number, y: number) => LonLat | null {
  const source = gdal.SpatialReference.fromWKT(srs.toWKT());
  const isTurned = isNorthFirst(source);
  const target = gdal.SpatialReference.fromProj4('+proj=longlat +datum=WGS84 +no_defs');
  const transformation = new gdal.CoordinateTransformation(source, target);
  return (x, y) => {
    try {
      const { x: lon, y: lat } = isTurned ? transformation.transformPoint(y, x) : transformation.transformPoint(x, y);
      return Number.isFinite(lon) && Number.isFinite(lat) ? [lon, lat] : null;
    } catch {
      return null;
    }
  };
}

/** The other way: longitude and latitude to easting and northing (or longitude and latitude) as the CRS's data has them. */
export function fromLonLat(srs: gdal.SpatialReference): (lon: number, lat: number) => readonly [number, number] {
  const target = gdal.SpatialReference.fromWKT(srs.toWKT());
  const isTurned = isNorthFirst(target);
  const transformation = new gdal.CoordinateTransformation(
    gdal.SpatialReference.fromProj4('+proj=longlat +datum=WGS84 +no_defs'),
    target,
  );
  return (lon, lat) => {
    const { x, y } = transformation.transformPoint(lon, lat);
    return isTurned ? [y, x] : [x, y];
  };
}
