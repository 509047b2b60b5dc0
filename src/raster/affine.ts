/** Affine transforms in GDAL's order, and distances on the Earth. */
import type gdal from 'gdal-async';
import type { LonLat } from './lon-lat.ts';

/** Map coordinates of a position in columns and rows from the upper left corner. */
export const fromTransform = (transform: readonly number[], column: number, row: number): LonLat => {
  const [x0 = 0, perColumn = 1, perRow = 0, y0 = 0, downColumn = 0, downRow = 1] = transform;
  return [x0 + column * perColumn + row * perRow, y0 + column * downColumn + row * downRow];
};

/** Degrees in a unit of a geographic reference system: 1 for degrees, 0.9 for grads. Null for a reference system that is not in angles. */
export const degreesPerUnit = (srs: gdal.SpatialReference | null): number | null =>
  srs?.isGeographic() ? (srs.getAngularUnits().value * 180) / Math.PI : null;

/** True for a reference system in degrees. */
export const isInDegrees = (srs: gdal.SpatialReference | null): boolean =>
  Math.abs((degreesPerUnit(srs) ?? 0) - 1) < 1e-9;

/** The shape of a body: semi-major axis in metres, and the square of the eccentricity. */
export interface Ellipsoid {
  readonly semiMajor: number;
  readonly squaredEccentricity: number;
}

const wgs84: Ellipsoid = { semiMajor: 6_378_137, squaredEccentricity: 0.006_694_379_990_141_33 };

/** The ellipsoid of a reference system. WGS84 if it names none. */
export function ellipsoidOf(srs: gdal.SpatialReference | null): Ellipsoid {
  const [, axis, inverseFlattening] = /SPHEROID\["[^"]*",([\d.eE+]+),([\d.eE+]+)/.exec(srs?.toWKT() ?? '') ?? [];
  const [semiMajor, inverse] = [Number(axis), Number(inverseFlattening)];
  if (!(semiMajor > 0)) return wgs84;
  // A sphere has an inverse flattening of 0.
  const flattening = inverse > 0 ? 1 / inverse : 0;
  return { semiMajor, squaredEccentricity: flattening * (2 - flattening) };
}

/** Metres in a unit of a geographic reference system to the east and to the north, at a latitude in that unit. */
export function metresPerUnit(
  degrees: number,
  latitude: number,
  { semiMajor, squaredEccentricity }: Ellipsoid,
): [east: number, north: number] {
  const phi = (Math.min(90, Math.max(-90, latitude * degrees)) * Math.PI) / 180;
  const w = 1 - squaredEccentricity * Math.sin(phi) ** 2;
  const radian = (degrees * Math.PI) / 180;
  return [
    (radian * semiMajor * Math.cos(phi)) / Math.sqrt(w),
    (radian * semiMajor * (1 - squaredEccentricity)) / w ** 1.5,
  ];
}
