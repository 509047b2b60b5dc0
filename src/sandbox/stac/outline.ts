import type { Polygon, Position } from 'geojson';
import type { Box, Footprint } from '../../raster/footprint.ts';

/**
 * A footprint as a row of numbers: longitude and latitude of each position, rings parted by a pair of NaN.
 * What is inside is decided by the even-odd rule over all rings, so holes and parts need no mark.
 */
export type Outline = Float64Array;

/** Null where the footprint is just its box, which most searches then need not look into. */
export function outlineOf(footprint: Footprint, [west, south, east, north]: Box): Outline | null {
  const rings = footprint.type === 'Polygon' ? footprint.coordinates : footprint.coordinates.flat();
  const isCorner = ([x, y]: Position) => (x === west || x === east) && (y === south || y === north);
  const isBox =
    rings.length === 1 && rings[0]?.length === 5 && west <= east && rings[0].every(isCorner) && isAround(rings[0]);
  if (isBox) return null;
  return Float64Array.from(
    rings.flatMap((ring, i) => [...(i === 0 ? [] : [NaN, NaN]), ...ring.flatMap(([x = 0, y = 0]) => [x, y])]),
  );
}

/** Consecutive corners differ in one coordinate: no bow tie. */
function isAround(ring: readonly Position[]): boolean {
  return ring.slice(1).every(([x, y], i) => (x === ring[i]?.[0]) !== (y === ring[i]?.[1]));
}

/** The footprint of an outline of one ring; null for holes and parts, which an outline does not tell apart. */
export function polygonOf(outline: Outline): Polygon | null {
  const ring: Position[] = [];
  for (let i = 0; i < outline.length; i += 2) {
    if (Number.isNaN(outline[i])) return null;
    ring.push([outline[i] ?? 0, outline[i + 1] ?? 0]);
  }
  return { type: 'Polygon', coordinates: [ring] };
}

/** True where the outline and the box (west not over east) share a point; edges count. Reads `coordinates` from `from` to `to`. */
export function outlineMeetsBox(
  coordinates: Float64Array,
  from: number,
  to: number,
  west: number,
  south: number,
  east: number,
  north: number,
): boolean {
  let inside = false;
  for (let i = from; i < to; i += 2) {
    const x1 = coordinates[i] as number;
    const y1 = coordinates[i + 1] as number;
    if (x1 >= west && x1 <= east && y1 >= south && y1 <= north) return true;
    if (i === from) continue;
    const x0 = coordinates[i - 2] as number;
    const y0 = coordinates[i - 1] as number;
    // A NaN on either side is the gap between two rings: every comparison below is false.
    if (segmentMeetsBox(x0, y0, x1, y1, west, south, east, north)) return true;
    // The even-odd rule for one corner: nothing crosses the box here, so one speaks for all.
    if (y0 > south !== y1 > south && west < ((x1 - x0) * (south - y0)) / (y1 - y0) + x0) inside = !inside;
  }
  return inside;
}

/** For an edge of which neither end is in the box. */
export function segmentMeetsBox(
  x0: number,
  y0: number,
  x1: number,
  y1: number,
  west: number,
  south: number,
  east: number,
  north: number,
): boolean {
  if (Number.isNaN(x0) || Number.isNaN(x1)) return false;
  if ((x0 < west && x1 < west) || (x0 > east && x1 > east) || (y0 < south && y1 < south) || (y0 > north && y1 > north))
    return false;
  // The box's corners lie on both sides of the line, or on it.
  const side = (x: number, y: number) => (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0);
  const a = side(west, south);
  const b = side(east, south);
  const c = side(east, north);
  const d = side(west, north);
  return !((a > 0 && b > 0 && c > 0 && d > 0) || (a < 0 && b < 0 && c < 0 && d < 0));
}
