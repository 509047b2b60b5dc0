/** Finds the pixels of a raster inside polygons. */
import { isUtf8 } from 'node:buffer';
import { readFileSync, writeFileSync } from 'node:fs';
import gdal from 'gdal-async';
import { srsOfCode } from './srs-of-code.ts';
import * as z from 'zod';
import { jumps, splitAt180 } from '../contract/antimeridian.ts';
import { KitError } from '../contract/kit-error.ts';
import { messageOf, withoutFolders } from '../files/index.ts';
import { degreesPerUnit } from '../raster/affine.ts';
import { transformOf } from '../raster/transform-of.ts';
import { srsOfLayers } from '../raster/layer-srs.ts';
import { fromLonLat, toLonLat, type LonLat } from '../raster/lon-lat.ts';

export interface Zone {
  /** The label, or else the number of the feature, from 1. */
  readonly name: string;
  /** Value of the field `label` as text; null if it has none. */
  readonly label: string | null;
  /** Coordinates of a MultiPolygon, in longitude and latitude. */
  readonly coordinates: readonly unknown[];
}

/** Closed rings of one area in columns and rows of a raster: x and y alternate. Outer rings run the other way round than holes. */
export type PixelRings = readonly Float64Array[];

/** A zone with its rings on a raster. */
export interface PlacedZone extends Zone {
  readonly rings: PixelRings;
}

const position = z
  .array(z.number())
  .min(2)
  .transform(([x, y]): LonLat => [x!, y!]);
const geometry = z.object({
  type: z.string(),
  coordinates: z.array(z.unknown()).default([]),
  get geometries() {
    return z.array(geometry).default([]);
  },
});
const areas = z.object({
  features: z.array(
    z.object({ properties: z.record(z.string(), z.unknown()).nullable(), geometry: geometry.nullable() }),
  ),
});
const multiPolygon = z.array(z.array(z.array(position)));
const maxZones = 100_000;
/** Tolerance in pixels for rounded coordinates. */
const slack = 1e-3;
/** Rows by which an edge on a pole lies beyond it. Must be less than what a share of a pixel shows. */
const pastPoleRows = 1e-9;
/** Least share of a pixel that counts. */
const leastShare = 1e-9;
/** Longest edge before reprojection. Shorter edges follow the curve to within centimetres. */
const longestEdge = { degrees: 0.01, metres: 1_000 };

/**
 * Places the polygons of a layer on a raster. Transforms them directly to the raster's reference system, with densified edges, and shifts longitudes to the raster.
 * `label` is the field with their names. `crs` is used if the layer declares none. Throws `KitError` if a feature has no polygon, or if there is none.
 */
export function placeZones(
  dataset: gdal.Dataset,
  raster: gdal.Dataset,
  { label, crs, folder }: { readonly label: string; readonly crs: string | undefined; readonly folder: string },
): PlacedZone[] {
  const { srs } = raster;
  if (!srs || !transformOf(raster))
    throw new KitError('not_placed', 'the raster has no reference system, so areas cannot be placed on it', {
      status: 422,
    });
  const layer = dataset.layers.get(0);
  const [declared] = srsOfLayers([layer]);
  const own = declared ?? (crs === undefined ? null : srsOfCode(crs));
  if (!own)
    throw new KitError(
      'zones_not_placed',
      'the zones have no reference system; set it by the parameter crs, for example EPSG:4326',
      { status: 422 },
    );
  const translated = (name: string, from: gdal.Dataset, args: readonly string[]) => {
    const path = `${folder}/${name}.geojson`;
    // Full precision, because rounding would move edges across pixel centres.
    const format = ['-f', 'GeoJSON', '-lco', 'COORDINATE_PRECISION=15', '-lco', 'RFC7946=NO'];
    // JSON numbers lose digits of 64-bit identifiers.
    const exact = ['-mapFieldType', 'Integer64=String'];
    try {
      gdal
        .vectorTranslate(path, from, [...format, ...exact, '-nlt', 'PROMOTE_TO_MULTI', '-dim', 'XY', ...args])
        .close();
    } catch (cause) {
      const number = firstWithoutPlace(from, own);
      const reason =
        number === null
          ? withoutAdviceOfPrograms(withoutFolders(messageOf(cause)))
          : `feature ${number} has coordinates that ${own.isGeographic() ? 'are no longitude and latitude' : 'lie outside its reference system'}`;
      throw new KitError('bad_zones', `the areas cannot be placed on the raster: ${reason}`, { status: 422 });
    }
    return path;
  };
  const lonLatPath = translated('zones-lon-lat', dataset, ['-s_srs', own.toWKT(), '-t_srs', 'EPSG:4326']);
  const named = areas.parse(JSON.parse(readFileSync(lonLatPath, 'utf8'))).features;
  requireNamesInUtf8(lonLatPath, named, label);
  const isSame = own.isSame(srs);
  const perUnit = degreesPerUnit(own);
  const given = named.map((feature) => polygonsOf(feature.geometry));
  const withoutArea = given.indexOf(null);
  if (withoutArea >= 0)
    throw new KitError(
      'bad_zones',
      `feature ${withoutArea + 1} has ${named[withoutArea]?.geometry ? `a ${named[withoutArea].geometry.type.replace('Multi', '')}` : 'no geometry'}; areas must be polygons, so remove it or give it one`,
      { status: 422 },
    );
  // Straight lines of a projected system are curves here: only short edges tell on which side of 180° they lie.
  const isCut =
    perUnit === null && degreesPerUnit(srs) !== null && given.some((polygons) => polygons?.flat().some(jumps) === true);
  const shortEdges = isCut ? polygonsWithShortEdges() : given;
  const hasPole = isCut ? polesOf(dataset, own) : () => undefined;
  const split = shortEdges.map((polygons, i) => polygons && splitAt180(polygons, hasPole(i)));
  // Between two projected systems, an area across 180° is one like any other, and its edges are no lines of longitudes.
  const isSplit =
    (perUnit !== null || degreesPerUnit(srs) !== null) &&
    split.some((polygons, i) => polygons?.some((polygon, k) => polygon !== given[i]?.[k]));
  const from = isSplit ? gdal.drivers.get('GeoJSON').open(splitFile(split, folder), 'r') : dataset;
  const edge =
    perUnit === null && !isSplit
      ? longestEdge.metres / own.getLinearUnits().value
      : longestEdge.degrees / (isSplit ? 1 : (perUnit ?? 1));
  const placedPath = translated('zones-placed', from, [
    ...['-s_srs', isSplit ? 'EPSG:4326' : own.toWKT(), '-t_srs', srs.toWKT()],
    ...(isSame ? [] : ['-segmentize', String(edge)]),
  ]);
  if (from !== dataset) from.close();
  const placed = areas.parse(JSON.parse(readFileSync(placedPath, 'utf8'))).features;
  const zones = named.flatMap(({ properties }, i): PlacedZone[] => {
    const field = label === '' ? undefined : properties?.[label];
    // GDAL writes text that is JSON as JSON.
    const text =
      typeof field === 'string' ? field : field === undefined || field === null ? null : JSON.stringify(field);
    const asGiven = given[i] ?? null;
    // The short edges are for the place on the raster.
    const coordinates = isCut && asGiven && !asGiven.flat().some(jumps) ? asGiven : split[i];
    if (!coordinates) return [];
    // Nothing is left of an outline without an area.
    const there = polygonsOf(placed[i]?.geometry ?? null);
    const rings = there ? ringsOn(raster, united(there)) : [];
    return [{ name: text ?? String(i + 1), label: text, coordinates, rings }];
  });
  if (zones.length === 0 || zones.length > maxZones)
    throw new KitError('bad_zones', `the areas must be 1 to ${maxZones} polygons, and are ${zones.length}`, {
      status: 422,
    });
  return zones;

  function polygonsWithShortEdges() {
    const edges = ['-segmentize', String(longestEdge.metres / own!.getLinearUnits().value)];
    const path = translated('zones-short-edges', dataset, ['-s_srs', own!.toWKT(), '-t_srs', 'EPSG:4326', ...edges]);
    return areas.parse(JSON.parse(readFileSync(path, 'utf8'))).features.map((feature) => polygonsOf(feature.geometry));
  }
}

/** Returns the latitude of the pole inside a feature of a projected system, by the feature's place; undefined if it holds none or both. */
function polesOf(dataset: gdal.Dataset, own: gdal.SpatialReference): (i: number) => number | undefined {
  const place = fromLonLat(own);
  const poles = [90, -90].flatMap((latitude) => {
    try {
      return [{ latitude, point: new gdal.Point(...place(0, latitude)) }];
    } catch {
      // The system does not reach it.
      return [];
    }
  });
  const found = dataset.layers.get(0).features.map((feature) => {
    const outline = feature.getGeometry();
    return poles.filter(({ point }) => outline?.contains(point) === true).map(({ latitude }) => latitude);
  });
  return (i) => (found[i]?.length === 1 ? found[i][0] : undefined);
}

/** Replaces messages that advise an option of GDAL's own program, because users of a step cannot set it. */
const withoutAdviceOfPrograms = (reason: string) =>
  /Terminating translation prematurely|Cannot find coordinate operations/.test(reason)
    ? 'there is no way between their reference system and that of the raster'
    : reason;

/** Throws `KitError` if a name is not UTF-8. Reading replaces its bytes by U+FFFD, which a name in UTF-8 may also contain. */
function requireNamesInUtf8(path: string, features: z.output<typeof areas>['features'], label: string): void {
  const number = features.findIndex(({ properties }) => /\ufffd/.test(String(properties?.[label]))) + 1;
  if (number > 0 && !isUtf8(readFileSync(path)))
    throw new KitError('bad_zones', `the ${label} of feature ${number} is not UTF-8; save the file in UTF-8`, {
      status: 422,
    });
}

/**
 * Repairs outlines and unites parts. An outline that crosses itself encloses what lies in it an odd number of times; what
 * lies in several parts belongs to the area once.
 */
function united(polygons: readonly LonLat[][][]): number[][][][] {
  const parts = new gdal.MultiPolygon();
  for (const coordinates of polygons) {
    for (const polygon of polygonsIn(repaired(coordinates.map((ring) => ring.map(([x, y]) => [x, y])))))
      parts.children.add(polygon);
  }
  if (parts.children.count() === 0) return [];
  const whole = parts.children.count() === 1 ? parts : parts.unionCascaded();
  // GeoJSON of polygons has arrays of numbers.
  return polygonsIn(whole).map((polygon) => (polygon.toObject() as { coordinates: number[][][] }).coordinates);
}

/** A hole that touches its outline along an edge is taken off too, which a repair of both together would lose. */
function repaired(rings: number[][][]): gdal.Geometry {
  const valid = (coordinates: number[][][]) => {
    const polygon = gdal.Geometry.fromGeoJson({ type: 'Polygon', coordinates });
    return polygon.isValid() ? polygon : polygon.makeValid();
  };
  const whole = gdal.Geometry.fromGeoJson({ type: 'Polygon', coordinates: rings });
  if (whole.isValid()) return whole;
  const [outline = [], ...holes] = rings;
  return holes.reduce((left, hole) => left.difference(valid([hole])), valid([outline]));
}

/** Polygons of a geometry, whatever else a repair has left. */
function polygonsIn(found: gdal.Geometry): gdal.Polygon[] {
  if (found instanceof gdal.Polygon) return [found];
  return found instanceof gdal.GeometryCollection
    ? found.children.map((child) => child).flatMap((child) => polygonsIn(child))
    : [];
}

function closed(ring: LonLat[]): LonLat[] {
  const [first, last] = [ring[0], ring.at(-1)];
  return first && last && (first[0] !== last[0] || first[1] !== last[1]) ? [...ring, first] : ring;
}

/** Polygons of a geometry with closed rings, also those of a collection; null if it has none. In the geometry's own coordinates. */
function polygonsOf(found: z.output<typeof geometry> | null): LonLat[][][] | null {
  if (found === null) return null;
  const read = (coordinates: unknown) => multiPolygon.parse(coordinates).map((rings) => rings.map(closed));
  if (found.type === 'MultiPolygon') return read(found.coordinates);
  if (found.type === 'Polygon') return read([found.coordinates]);
  const parts = found.geometries.flatMap((part) => polygonsOf(part) ?? []);
  return parts.length === 0 ? null : parts;
}

/** Writes polygons by feature as GeoJSON. Returns the path. */
function splitFile(polygons: readonly (readonly unknown[] | null)[], folder: string): string {
  const features = polygons.map((coordinates) => ({
    type: 'Feature',
    properties: {},
    geometry: coordinates && { type: 'MultiPolygon', coordinates },
  }));
  const path = `${folder}/zones-split.geojson`;
  writeFileSync(path, JSON.stringify({ type: 'FeatureCollection', features }));
  return path;
}

/** Number of the first feature, from 1, with a corner that has no longitude and latitude; null if all have. */
function firstWithoutPlace(dataset: gdal.Dataset, own: gdal.SpatialReference): number | null {
  const lonLat = toLonLat(own);
  const isPlaced = (x: number, y: number) => Math.abs(lonLat(x, y)?.[1] ?? NaN) <= 90;
  let [number, found]: [number, number | null] = [0, null];
  dataset.layers.get(0).features.forEach((feature) => {
    number += 1;
    const outline = found === null ? feature.getGeometry() : null;
    if (!outline) return;
    const { minX, minY, maxX, maxY } = outline.getEnvelope();
    if (![minX, maxX].every((x) => [minY, maxY].every((y) => isPlaced(x, y)))) found = number;
  });
  return found;
}

/** Places one area in longitude and latitude on a raster. */
export function placeArea(coordinates: readonly unknown[], raster: gdal.Dataset, folder: string): PixelRings {
  const path = `${folder}/area.geojson`;
  const feature = { type: 'Feature', properties: {}, geometry: { type: 'MultiPolygon', coordinates } };
  writeFileSync(path, JSON.stringify({ type: 'FeatureCollection', features: [feature] }));
  const area = gdal.drivers.get('GeoJSON').open(path, 'r');
  const [placed] = placeZones(area, raster, { label: '', crs: undefined, folder });
  area.close();
  return placed!.rings;
}

/** Converts polygons to rings in columns and rows. Repeats polygons in degrees at each longitude shift that meets the raster. */
function ringsOn({ srs, geoTransform, rasterSize: { x, y } }: gdal.Dataset, polygons: number[][][][]): Float64Array[] {
  const [x0 = 0, perColumn = 1, perRow = 0, y0 = 0, downColumn = 0, downRow = -1] = geoTransform!;
  const determinant = perColumn * downRow - perRow * downColumn;
  const turn360 = 360 / (degreesPerUnit(srs) ?? Infinity);
  const turns = turn360 === 0 ? [0] : [-turn360, 0, turn360];
  // Beyond a pole is no other area to which a centre on the edge could belong.
  const pastPole = (py: number) =>
    turn360 > 0 && Math.abs(py) >= turn360 / 4 ? py + Math.sign(py) * Math.abs(downRow) * pastPoleRows : py;
  return polygons.flatMap((polygon) =>
    turns.flatMap((turn) => {
      const rings = polygon.map((ring, k) => {
        const out = new Float64Array(ring.length * 2);
        ring.forEach(([px = NaN, py = NaN], i) => {
          const [dx, dy] = [px + turn - x0, pastPole(py) - y0];
          out[2 * i] = (dx * downRow - dy * perRow) / determinant;
          out[2 * i + 1] = (dy * perColumn - dx * downColumn) / determinant;
        });
        return areaOf(out) > 0 === (k === 0) ? out : reversed(out);
      });
      return touches(rings, x, y) ? rings : [];
    }),
  );
}

/** Twice the signed area of a closed ring. */
function areaOf(ring: Float64Array): number {
  let sum = 0;
  for (let i = 0; i + 3 < ring.length; i += 2) sum += ring[i]! * ring[i + 3]! - ring[i + 2]! * ring[i + 1]!;
  return sum;
}

function reversed(ring: Float64Array): Float64Array {
  const out = new Float64Array(ring.length);
  for (let i = 0; i < ring.length; i += 2) out.set(ring.subarray(i, i + 2), ring.length - 2 - i);
  return out;
}

const touches = (rings: PixelRings, width: number, height: number) => {
  const box = boundsOf(rings);
  return box.right > 0 && box.bottom > 0 && box.left < width && box.top < height;
};

function boundsOf(rings: PixelRings) {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const ring of rings)
    for (let i = 0; i < ring.length; i += 2) {
      [left, right] = [Math.min(left, ring[i]!), Math.max(right, ring[i]!)];
      [top, bottom] = [Math.min(top, ring[i + 1]!), Math.max(bottom, ring[i + 1]!)];
    }
  return { left, top, right, bottom };
}

/** The pixel window of an area's bounds, clipped to the raster; null if it is empty. */
export function windowOf(rings: PixelRings, width: number, height: number) {
  const { left, top, right, bottom } = boundsOf(rings);
  const [x, y] = [Math.max(0, Math.floor(left + slack)), Math.max(0, Math.floor(top + slack))];
  const size = {
    width: Math.min(width, Math.ceil(right - slack)) - x,
    height: Math.min(height, Math.ceil(bottom - slack)) - y,
  };
  // Bounds are infinite if the reference system does not cover the area.
  return size.width > 0 && size.height > 0 && Number.isFinite(x + y) ? { x, y, ...size } : null;
}

/**
 * Sets `mask` to 1 for the pixels of a window inside an area, row by row. A pixel is inside if its centre is; a centre on an edge is in one of the two areas beside it,
 * or marks every pixel that the area touches.
 */
export function markInside(
  rings: PixelRings,
  window: { readonly x: number; readonly y: number; readonly width: number; readonly height: number },
  mask: Uint8Array,
  { isTouched = false }: { readonly isTouched?: boolean } = {},
): void {
  const { x, y, width, height } = window;
  mask.fill(0, 0, width * height);
  const crossings: number[][] = Array.from({ length: height }, () => []);
  const fill = (row: number, from: number, to: number) => {
    const [first, last] = [Math.max(0, from - x), Math.min(width, to - x)];
    if (first < last) mask.fill(1, row * width + first, row * width + last);
  };
  for (const ring of rings)
    for (let i = 0; i + 3 < ring.length; i += 2) {
      const [x1, y1, x2, y2] = [ring[i]!, ring[i + 1]!, ring[i + 2]!, ring[i + 3]!];
      if (isTouched) touch(x1, y1, x2, y2, window, mask);
      // From its upper end on, whichever way it runs: both neighbours of an edge round alike.
      const [low, high, upper, lower] = y1 < y2 ? [y1, y2, x1, x2] : [y2, y1, x2, x1];
      const [first, last] = [Math.max(y, Math.ceil(low - 0.5)), Math.min(y + height - 1, Math.floor(high - 0.5))];
      for (let row = first; row <= last; row++) {
        const centre = row + 0.5;
        // An edge through pixel centres belongs to one of two neighbours: the centres of its upper end count, those of its lower end do not.
        if (centre >= low && centre < high)
          crossings[row - y]!.push(Math.floor(upper + ((centre - low) * (lower - upper)) / (high - low) + 0.5));
      }
    }
  crossings.forEach((places, row) => {
    places.sort((a, b) => a - b);
    for (let i = 0; i + 1 < places.length; i += 2) fill(row, places[i]!, places[i + 1]!);
  });
}

/** Distance within which a coordinate counts as that of a pixel's border, in pixels. */
const borderTolerance = 1e-6;
const onBorder = (place: number): number => {
  const border = Math.round(place);
  return Math.abs(place - border) < borderTolerance ? border : place;
};

/** Marks each pixel whose inner part an edge crosses. An edge on the border of two pixels crosses neither of them. */
function touch(
  startX: number,
  startY: number,
  endX: number,
  endY: number,
  { x, y, width, height }: { readonly x: number; readonly y: number; readonly width: number; readonly height: number },
  mask: Uint8Array,
): void {
  const [x1, y1, x2, y2] = [onBorder(startX), onBorder(startY), onBorder(endX), onBorder(endY)];
  const [low, high] = y1 < y2 ? [y1, y2] : [y2, y1];
  const end = low === high && !Number.isInteger(low) ? Math.floor(low) + 1 : Math.ceil(high);
  for (let row = Math.max(y, Math.floor(low)); row < Math.min(y + height, end); row++) {
    // X coordinates of the edge within this row.
    const at = (place: number) =>
      y1 === y2 ? null : onBorder(x1 + ((Math.min(high, Math.max(low, place)) - y1) * (x2 - x1)) / (y2 - y1));
    const [from, to] = [at(row) ?? x1, at(row + 1) ?? x2];
    const [left, right] = [Math.min(from, to), Math.max(from, to)];
    const afterLast = left === right && !Number.isInteger(left) ? Math.floor(left) + 1 : Math.ceil(right);
    for (let column = Math.max(x, Math.floor(left)); column < Math.min(x + width, afterLast); column++)
      mask[(row - y) * width + column - x] = 1;
  }
}

/**
 * Sets `shares` to the share of each pixel of a window that an area covers, 0 to 1, row by row. Sums the exact area between each edge and the right
 * end of the row. Polygons of one area must not overlap.
 */
export function coverShares(
  rings: PixelRings,
  { x, y, width, height }: { readonly x: number; readonly y: number; readonly width: number; readonly height: number },
  shares: Float64Array,
): void {
  shares.fill(0, 0, width * height);
  // Each edge adds its area to the cells that it crosses, and its height to all cells right of them.
  const heights = new Float64Array(width * height);
  /** Adds a piece of an edge within one row. `from` and `to` are its columns, `rise` its height. */
  const addPiece = (row: number, from: number, to: number, rise: number): void => {
    const [low, high] = from < to ? [from, to] : [to, from];
    if (low >= width) return;
    if (low < 0 && high > 0) {
      const part = -low / (high - low);
      addPiece(row, low, 0, rise * part);
      return addPiece(row, 0, high, rise * (1 - part));
    }
    const add = (column: number, part: number, middle: number) => {
      shares[row * width + column]! += part * (column + 1 - middle);
      heights[row * width + column]! += part;
    };
    if (high <= 0) return add(0, rise, 0);
    if (low === high) return add(Math.floor(low), rise, low);
    for (let column = Math.floor(low); column < Math.min(width, Math.ceil(high)); column++) {
      const [left, right] = [Math.max(low, column), Math.min(high, column + 1)];
      add(column, (rise * (right - left)) / (high - low), (left + right) / 2);
    }
  };
  for (const ring of rings)
    for (let i = 0; i + 3 < ring.length; i += 2) {
      const [x1, y1, x2, y2] = [ring[i]! - x, ring[i + 1]! - y, ring[i + 2]! - x, ring[i + 3]! - y];
      const [low, high] = [Math.min(y1, y2), Math.max(y1, y2)];
      for (let row = Math.max(0, Math.floor(low)); row < Math.min(height, Math.ceil(high)); row++) {
        const [top, bottom] = [Math.max(low, row), Math.min(high, row + 1)];
        const at = (place: number) => x1 + ((place - y1) * (x2 - x1)) / (y2 - y1);
        if (bottom > top) addPiece(row, at(top), at(bottom), y2 > y1 ? top - bottom : bottom - top);
      }
    }
  for (let row = 0; row < height; row++)
    for (let column = 0, sum = 0, i = row * width; column < width; column++, i++) {
      const share = shares[i]! + sum;
      // Rounding leaves traces in pixels that the area does not meet.
      shares[i] = share < leastShare ? 0 : share > 1 - leastShare ? 1 : share;
      sum += heights[i]!;
    }
}
