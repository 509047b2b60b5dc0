/** Polygons in longitude and latitude at 180°: an edge longer than 180° goes the short way round, unless the polygon is in longitudes from 0 on and goes past 180°. A polygon across 180° is split there (RFC 7946, 3.1.9). */

import type { Geometry, Position as GeoPosition } from 'geojson';

type Position = readonly [longitude: number, latitude: number];
type Polygon = readonly (readonly Position[])[];

/** Degrees. */
const sameLatitude = 1e-6;
/** Corners may lie this far round, as maps that do not wrap give them. */
export const maxLongitude = 540;

/** A geometry whose polygons are split at 180°. Heights stay where nothing is split. */
export function geometryAcross180(geometry: Geometry): Geometry {
  if (geometry.type === 'GeometryCollection')
    return { ...geometry, geometries: geometry.geometries.map(geometryAcross180) };
  if (geometry.type !== 'Polygon' && geometry.type !== 'MultiPolygon') return geometry;
  const polygons = geometry.type === 'Polygon' ? [geometry.coordinates] : geometry.coordinates;
  // Positions have a longitude and a latitude.
  const split = splitAt180(polygons as unknown as Polygon[]) as unknown as GeoPosition[][][];
  if (split.length === polygons.length && split.every((polygon, i) => polygon === polygons[i])) return geometry;
  const [only, ...others] = split;
  return only && others.length === 0
    ? { type: 'Polygon', coordinates: only }
    : { type: 'MultiPolygon', coordinates: split };
}

/**
 * The same polygons with longitudes from -180 to 180. Polygons that stay on one side of 180° are unchanged. `pole`: the latitude of the pole inside a polygon
 * that goes round one. Default: that of the hemisphere in which its outline lies.
 */
export function splitAt180(polygons: readonly Polygon[], pole?: number): Polygon[] {
  return polygons.flatMap((polygon) => {
    const isFlat = polygon.every((ring) => !jumps(ring) && ring.every(([longitude]) => Math.abs(longitude) <= 180));
    return isFlat ? [polygon] : splitOne(polygon, pole);
  });
}

/**
 * True if an edge of a ring would go round more than half of the Earth. One from -180 to 180 is an edge of a world map if the ring goes on along one of these
 * meridians; otherwise the ring goes round a pole.
 */
export function jumps(ring: readonly Position[]): boolean {
  return ring.some((from, i) => {
    const to = ring[i + 1] ?? from;
    const width = Math.abs(to[0] - from[0]);
    // An edge of a map lies on a parallel.
    if (width !== 360 || Math.abs(to[1] - from[1]) > sameLatitude) return width > 180;
    // The last corner is the first one again.
    const [before, after] = [ring[i === 0 ? ring.length - 2 : i - 1], ring[i + 2 < ring.length ? i + 2 : 1]];
    return !isAlong(from, before) && !isAlong(to, after);
  });
}

/** True for corners on one meridian. A doubled corner has no direction. */
const isAlong = ([longitude, latitude]: Position, other: Position | undefined) =>
  other?.[0] === longitude && Math.abs(other[1] - latitude) > sameLatitude;

function splitOne(polygon: Polygon, pole: number | undefined): Polygon[] {
  const [outer = [], ...holes] = polygon.map((ring) => ring.map(snapped));
  const turned = goesOn(outer) ? (ring: readonly Position[]) => [...ring] : unwrap;
  const unwrapped = closedAtPole(turned(outer), pole);
  const west = Math.min(...unwrapped.map(([longitude]) => longitude));
  const inside = holes.map((hole) => beside(turned(hole), west));
  const turns = [-2, -1, 0, 1, 2].map((turn) => turn * 360);
  return turns.flatMap((turn): Polygon[] => {
    const part = clipped(unwrapped, turn);
    if (part === null) return [];
    return [[part, ...inside.map((hole) => clipped(hole, turn)).filter((hole) => hole !== null)]];
  });
}

/** A corner at 180° that rounding has moved past it. */
const snapped = ([longitude, latitude]: Position): Position =>
  Math.abs(longitude) > 180 && Math.abs(longitude) < 180 + 1e-6
    ? [Math.sign(longitude) * 180, latitude]
    : [longitude, latitude];

/** True if the longitudes of a ring go on past 180° without a jump, as on maps that do not wrap and in grids from 0 to 360. */
function goesOn(ring: readonly Position[]): boolean {
  if (!ring.some(([longitude]) => Math.abs(longitude) > 180)) return false;
  return ring.every(([from], i) => {
    const to = ring[i + 1]?.[0] ?? from;
    return Math.abs(to - from) <= 180 || from * to >= 0;
  });
}

/** Longitudes without a jump: each edge goes the short way. */
function unwrap(ring: readonly Position[]): Position[] {
  let shift = 0;
  let before = ring[0]?.[0] ?? 0;
  return ring.map(([longitude, latitude]) => {
    if (longitude - before > 180) shift -= 360;
    else if (longitude - before < -180) shift += 360;
    before = longitude;
    return [longitude + shift, latitude];
  });
}

/** An outline that goes round a pole reaches from there to the pole, at all longitudes. */
function closedAtPole(ring: readonly Position[], pole: number | undefined): readonly Position[] {
  const [first, last] = [ring[0], ring.at(-1)];
  if (!first || !last || Math.abs(first[0] - last[0]) <= 1) return ring;
  const middle = ring.reduce((sum, [, latitude]) => sum + latitude, 0) / ring.length;
  const latitude = pole ?? (middle < 0 ? -90 : 90);
  return [...ring, [last[0], latitude], [first[0], latitude], first];
}

/** A hole on the same turn as its outline. */
function beside(hole: readonly Position[], west: number): Position[] {
  const own = Math.min(...hole.map(([longitude]) => longitude));
  const shift = Math.ceil((west - own) / 360 - 1e-9) * 360;
  return hole.map(([longitude, latitude]) => [longitude + shift, latitude]);
}

/** The part of a ring from -180 to 180 after it was turned; null if nothing is left. */
function clipped(ring: readonly Position[], turn: number): Position[] | null {
  const turned = ring.map(([longitude, latitude]): Position => [longitude + turn, latitude]);
  const cut = cutAt(cutAt(turned, -180, 1), 180, -1);
  const longitudes = cut.map(([longitude]) => longitude);
  return cut.length < 4 || Math.max(...longitudes) === Math.min(...longitudes) ? null : cut;
}

/** Sutherland and Hodgman (1974), for one meridian. `side` 1 keeps what is east of it, -1 what is west. Closed in and out. */
function cutAt(ring: readonly Position[], meridian: number, side: 1 | -1): Position[] {
  const isIn = ([longitude]: Position) => (longitude - meridian) * side >= 0;
  const kept: Position[] = [];
  for (const [i, from] of ring.entries()) {
    const to = ring[i + 1];
    if (!to) break;
    if (isIn(from)) kept.push(from);
    if (isIn(from) === isIn(to)) continue;
    const share = (meridian - from[0]) / (to[0] - from[0]);
    kept.push([meridian, from[1] + share * (to[1] - from[1])]);
  }
  return [...kept, ...kept.slice(0, 1)];
}
