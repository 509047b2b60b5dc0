/** Affine transforms in GDAL's order, and distances on the Earth. */
import type { LonLat } from './lon-lat.ts';

/** Map coordinates of a position in columns and rows from the upper left corner. */
export const fromTransform = (transform: readonly number[], column: number, row: number): LonLat => {
  const [x0 = 0, perColumn = 1, perRow = 0, y0 = 0, downColumn = 0, downRow = 1] = transform;
  return [x0 + column * perColumn + row * perRow, y0 + column * downColumn + row * downRow];
};

/** Metres in a degree to the east and to the north, at a latitude in degrees on the WGS84 ellipsoid. */
export function metresPerDegree(latitude: number): [east: number, north: number] {
  const phi = (Math.min(90, Math.max(-90, latitude)) * Math.PI) / 180;
  const [a, e2] = [6_378_137, 0.006_694_379_990_141_33];
  const w = 1 - e2 * Math.sin(phi) ** 2;
  const radian = Math.PI / 180;
  return [(radian * a * Math.cos(phi)) / Math.sqrt(w), (radian * a * (1 - e2)) / w ** 1.5];
}
