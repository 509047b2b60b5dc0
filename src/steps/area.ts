import * as z from 'zod';
import { maxLongitude, splitAt180 } from '../contract/antimeridian.ts';

type Position = readonly [longitude: number, latitude: number];

/** A place on the Earth in longitude and latitude (EPSG:4326), as GeoJSON; rings are closed. */
export type Area =
  | { readonly type: 'Polygon'; readonly coordinates: readonly (readonly Position[])[] }
  | { readonly type: 'MultiPolygon'; readonly coordinates: readonly (readonly (readonly Position[])[])[] };

/** Limits of an area parameter. */
export interface AreaLimits {
  /** Default: any. */
  readonly maxSquareKilometres?: number;
  /** Corners of all rings together. Default 10,000. */
  readonly maxCorners?: number;
}

/** The polygons of an area, whichever of the two it is. */
export const polygonsOf = (area: Area): readonly (readonly (readonly Position[])[])[] =>
  area.type === 'Polygon' ? [area.coordinates] : area.coordinates;

/** West, south, east, north. */
export function boundsOf(area: Area): [number, number, number, number] {
  const bounds: [number, number, number, number] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [lon, lat] of polygonsOf(area).flat(2)) {
    bounds[0] = Math.min(bounds[0], lon);
    bounds[1] = Math.min(bounds[1], lat);
    bounds[2] = Math.max(bounds[2], lon);
    bounds[3] = Math.max(bounds[3], lat);
  }
  return bounds;
}

/** On the sphere, holes taken off. */
export function squareKilometresOf(area: Area): number {
  let sum = 0;
  for (const [outer = [], ...holes] of polygonsOf(area))
    sum += ringArea(outer) - holes.reduce((taken, hole) => taken + ringArea(hole), 0);
  return sum;
}

const earthRadiusKilometres = 6_371.0088;
const radians = (degrees: number) => (degrees * Math.PI) / 180;

/** Chamberlain and Duquette, Some Algorithms for Polygons on a Sphere (2007). */
function ringArea(ring: readonly Position[]): number {
  let sum = 0;
  for (let i = 0; i + 1 < ring.length; i++) {
    const [[lon, lat], [nextLon, nextLat]] = [ring[i]!, ring[i + 1]!];
    sum += radians(nextLon - lon) * (2 + Math.sin(radians(lat)) + Math.sin(radians(nextLat)));
  }
  return Math.abs((sum * earthRadiusKilometres ** 2) / 2);
}

/** `an area of 12 square kilometres, from 34.9° W 8.1° S to 34.8° W 8° S` */
export function areaInWords(area: Area): string {
  const [west, south, east, north] = boundsOf(area);
  const degrees = (value: number, letters: string) =>
    `${Number(Math.abs(value).toFixed(3))}° ${letters[value < 0 ? 1 : 0]}`;
  const place = (lon: number, lat: number) => `${degrees(lon, 'EW')} ${degrees(lat, 'NS')}`;
  const size = Number(squareKilometresOf(area).toPrecision(3)).toLocaleString('en', { maximumSignificantDigits: 3 });
  return `an area of ${size} square kilometres, from ${place(west, south)} to ${place(east, north)}`;
}

const position = z
  .array(z.number())
  .min(2)
  .refine(([lon = NaN, lat = NaN]) => Math.abs(lon) <= maxLongitude && Math.abs(lat) <= 90)
  .transform(([lon, lat]): Position => [lon!, lat!]);
const ring = z.array(position).min(3).transform(closed);
const geometry = z.discriminatedUnion('type', [
  z.object({ type: z.literal('Polygon'), coordinates: z.array(ring).min(1) }),
  z.object({ type: z.literal('MultiPolygon'), coordinates: z.array(z.array(ring).min(1)).min(1) }),
]);
const feature = z.object({ type: z.literal('Feature'), geometry });
const collection = z.object({ type: z.literal('FeatureCollection'), features: z.array(feature).length(1) });

const rule = 'must be GeoJSON of one polygon or multipolygon, in longitude and latitude';

function closed(corners: Position[]): Position[] {
  const [first, last] = [corners[0]!, corners.at(-1)!];
  return first[0] === last[0] && first[1] === last[1] ? corners : [...corners, first];
}

/** An outline that crosses 180° means the short way, as on the map that it was drawn on; its area is split there. */
function acrossAntimeridian(area: Area): Area {
  const polygons = polygonsOf(area);
  const split = splitAt180(polygons);
  if (split.every((polygon, i) => polygon === polygons[i])) return area;
  const [only, ...others] = split;
  return only && others.length === 0
    ? { type: 'Polygon', coordinates: only }
    : { type: 'MultiPolygon', coordinates: split };
}

/** Reads GeoJSON, as a value or as its text: a geometry, a feature, or a collection of one. An area as it comes out reads as itself. */
export function areaSchema({ maxSquareKilometres, maxCorners = 10_000 }: AreaLimits): z.ZodType<Area> {
  return z.unknown().transform((given, context): Area => {
    const refuse = (message: string): never => {
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    };
    if (given === undefined) return refuse('is required');
    const value = typeof given === 'string' ? parsed(given) : given;
    const read = z.union([geometry, feature, collection]).safeParse(value);
    if (!read.success) return refuse(rule);
    const { data } = read;
    const area = acrossAntimeridian(
      data.type === 'Feature' ? data.geometry : data.type === 'FeatureCollection' ? data.features[0]!.geometry : data,
    );
    const corners = polygonsOf(area)
      .flat()
      .reduce((sum, polygon) => sum + polygon.length - 1, 0);
    if (corners > maxCorners) return refuse(`must have at most ${maxCorners} corners, not ${corners}`);
    // Without their holes: what a hole takes from one polygon leaves another as large as it is.
    const size = squareKilometresOf({
      type: 'MultiPolygon',
      coordinates: polygonsOf(area).map(([outer = []]) => [outer]),
    });
    if (!(size > 0)) return refuse('must enclose something, by an outline that does not cross itself');
    if (maxSquareKilometres !== undefined && size > maxSquareKilometres)
      return refuse(`must be at most ${maxSquareKilometres} square kilometres, not ${Number(size.toPrecision(3))}`);
    return area;
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
