import { wktToGeoJSON } from 'betterknown';
import type { Geometry, Position } from 'geojson';
import * as z from 'zod';
import { geometryAcross180 } from './antimeridian.ts';
import { limits } from './limits.ts';

const rule = 'must be well-known text in longitude and latitude, such as POLYGON((10 50, 11 50, 11 51, 10 50))';

/** A geometry as WKT in WGS84, longitude first (spec 4.4, 4.7); reads as GeoJSON, with polygons split at 180°. */
export const wktGeometry = z.string(rule).transform((text, context): Geometry => {
  const geometry = parse(text);
  const fault = geometry === null ? rule : faultOf(geometry);
  if (geometry !== null && fault === null) return geometryAcross180(geometry);
  context.issues.push({ code: 'custom', message: fault ?? rule, input: text });
  return z.NEVER;
});

/** Characters: some tens of thousands of positions. */
const maxWktLength = 1_000_000;
/** Brackets in one another: a collection of collections of multipolygons has six. The parser's work grows with the cube of it. */
const maxWktDepth = 10;

function parse(text: string): Geometry | null {
  // The parser stops at the geometry's end: what follows it is looked at here.
  const trimmed = text.trim();
  if (trimmed.length > maxWktLength || !trimmed.endsWith(')') || !/^(SRID=4326;\s*)?[A-Z][^;]*$/i.test(trimmed))
    return null;
  if (!isOneGeometry(trimmed)) return null;
  try {
    return wktToGeoJSON(trimmed);
  } catch {
    return null;
  }
}

/** True if the last bracket closes the first one, and the brackets are not nested too deeply. */
function isOneGeometry(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++)
    if (text[i] === '(' && ++depth > maxWktDepth) return false;
    else if (text[i] === ')' && --depth <= 0) return depth === 0 && i === text.length - 1;
  return false;
}

export const tooManyPositions = `must have at most ${limits.geometryPositions} positions`;

/** Returns the fault in a geometry in longitude and latitude, or null. */
export function faultOf(geometry: Geometry): string | null {
  if (geometry.type === 'GeometryCollection' && positionsOf(geometry).length > limits.geometryPositions)
    return tooManyPositions;
  if (geometry.type === 'GeometryCollection')
    return geometry.geometries.length === 0
      ? 'must not be empty'
      : (geometry.geometries.map(faultOf).find((fault) => fault !== null) ?? null);
  const positions = positionsOf(geometry);
  if (positions.length > limits.geometryPositions) return tooManyPositions;
  if (positions.length === 0) return 'must not be empty';
  // Corners of a polygon across 180° may go on past it, for less than a turn.
  const longest = geometry.type.endsWith('Polygon') ? 360 : 180;
  if (positions.some(([x, y]) => !isDegrees(x, longest) || !isDegrees(y, 90)))
    return 'must be in longitude (-180 to 180) and latitude (-90 to 90)';
  const rings =
    geometry.type === 'Polygon'
      ? geometry.coordinates
      : geometry.type === 'MultiPolygon'
        ? geometry.coordinates.flat()
        : [];
  const isClosed = (ring: Position[]) =>
    ring.length >= 4 && ring[0]?.[0] === ring.at(-1)?.[0] && ring[0]?.[1] === ring.at(-1)?.[1];
  return rings.every(isClosed) ? null : 'must have closed rings of at least four positions';
}

/** Every position of a geometry. */
export function positionsOf(geometry: Geometry): Position[] {
  return geometry.type === 'GeometryCollection'
    ? geometry.geometries.flatMap(positionsOf)
    : positionsIn(geometry.coordinates);
}

function positionsIn(coordinates: unknown): Position[] {
  if (!Array.isArray(coordinates)) return [];
  // An array that begins with a number is a position.
  return typeof coordinates[0] === 'number' ? [coordinates as Position] : coordinates.flatMap(positionsIn);
}

function isDegrees(value: number | undefined, limit: number): boolean {
  return typeof value === 'number' && Math.abs(value) <= limit;
}
