import type { Geometry } from 'geojson';
import * as z from 'zod';
import { geometryAcross180 } from '../antimeridian.ts';
import { faultOf, positionsOf, tooManyPositions } from '../geometry.ts';
import { hasKey } from '../keys.ts';
import { limits } from '../limits.ts';
import { jsonValue } from '../wire.ts';
import { datetimeFilter, datetimeInterval } from './datetime-interval.ts';

/** @assumed page-size: the limits of a page (spec 8: not shown) */
export const pageLimits = { default: 10, max: 1000 } as const;

const bboxRule =
  'must be 4 or 6 numbers: [west, south, east, north] in degrees, or with heights [west, south, lowest, east, north, highest]';

/** Cut behind the first wrong length: an error is made for each element that is no number. */
const atMostSeven = (value: unknown): unknown => (Array.isArray(value) ? value.slice(0, 7) : value);

const boxNumbers = z
  .array(z.number(bboxRule), bboxRule)
  .refine((values) => values.length === 4 || values.length === 6, bboxRule)
  .transform((values): [number, number, number, number] => {
    const [west = 0, south = 0, east = 0, north = 0] =
      values.length === 6 ? [values[0], values[1], values[3], values[4]] : values;
    return [west, south, east, north];
  })
  .refine(([west, , east]) => Math.abs(west) <= 180 && Math.abs(east) <= 180, 'must have longitudes from -180 to 180')
  .refine(
    ([, south, , north]) => south >= -90 && north <= 90 && south <= 90 && north >= -90,
    'must have latitudes from -90 to 90',
  )
  .refine(([, south, , north]) => south <= north, 'must not have its south above its north');

/** Spec 4.2. West greater than east crosses the antimeridian. Heights are not looked at. Reads as four numbers. */
// `preprocess` loses the type of what goes in.
export const bbox = z.preprocess(atMostSeven, boxNumbers) as unknown as typeof boxNumbers;

const pageLimit = z.int('must be an integer').min(1, 'must be at least 1');
/** A limit over the maximum is clamped, also if it is beyond the exact integers. */
// `preprocess` loses the type of what goes in.
const limit = z.preprocess(
  (value) => (Number.isInteger(value) ? Math.min(Number(value), pageLimits.max) : value),
  pageLimit,
) as unknown as typeof pageLimit;
const offset = z.int('must be an integer').min(0, 'must be at least 0');
const ids = z
  .array(z.string(), 'must be an array of identifiers')
  .max(limits.search.identifiers, `must have at most ${limits.search.identifiers} entries`);
const sortRule = z.object({
  field: z
    .string()
    .min(1, 'must name a field')
    .max(limits.search.fieldNameCharacters, `must have at most ${limits.search.fieldNameCharacters} characters`),
  direction: z.enum(['asc', 'desc'], 'must be asc or desc').default('asc'),
});
const sortRules = z
  .array(sortRule, 'must be an array of {field, direction}')
  .max(limits.search.sortRules, `must have at most ${limits.search.sortRules} rules`);
const fieldNames = z
  .array(
    z
      .string()
      .max(limits.search.fieldNameCharacters, `must have at most ${limits.search.fieldNameCharacters} characters`),
  )
  .max(limits.search.fieldNames, `must have at most ${limits.search.fieldNames} names`)
  .optional();
const fields = z.object({ include: fieldNames, exclude: fieldNames });

const geometryTypes = [
  'Point',
  'MultiPoint',
  'LineString',
  'MultiLineString',
  'Polygon',
  'MultiPolygon',
  'GeometryCollection',
] as const;
/** A GeoJSON geometry in longitude and latitude. Polygons are split at 180°, and an edge that is longer goes the short way, unless the longitudes go on past 180°. */
export const geojsonGeometry = z
  .looseObject({
    type: z.enum(geometryTypes, `must be a GeoJSON geometry: ${geometryTypes.join(', ')}`),
    coordinates: z.array(jsonValue).optional(),
    geometries: z.array(jsonValue).optional(),
  })
  .transform((value, context): Geometry => {
    // One only if `geometryFault`, which is asked first, finds no fault.
    const geometry = value as unknown as Geometry;
    const fault =
      geometryFault(value) ?? (positionsOf(geometry).length > limits.geometryPositions ? tooManyPositions : null);
    if (fault === null) return geometryAcross180(geometry);
    context.issues.push({ code: 'custom', message: fault, input: value });
    return z.NEVER;
  });

/** Levels of arrays that the coordinates of each type have, positions aside. */
const coordinateDepth = {
  Point: 0,
  MultiPoint: 1,
  LineString: 1,
  MultiLineString: 2,
  Polygon: 2,
  MultiPolygon: 3,
} as const;

function geometryFault(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) return 'must be a GeoJSON geometry';
  const { type, coordinates, geometries }: { type?: unknown; coordinates?: unknown; geometries?: unknown } = value;
  if (type === 'GeometryCollection') {
    if (!Array.isArray(geometries) || geometries.length === 0) return 'must have geometries';
    return geometries.map(geometryFault).find((fault) => fault !== null) ?? null;
  }
  const depth = typeof type === 'string' && hasKey(coordinateDepth, type) ? coordinateDepth[type] : undefined;
  if (depth === undefined) return 'must be a GeoJSON geometry';
  if (!hasDepth(coordinates, depth)) return `must have the coordinates of a ${String(type)}`;
  if ((type === 'LineString' || type === 'MultiLineString') && !hasLines(coordinates, depth))
    return 'must have lines of at least two positions';
  // Type and coordinates fit, as was checked.
  return faultOf(value as Geometry);
}

function hasDepth(coordinates: unknown, depth: number): coordinates is unknown[] {
  if (!Array.isArray(coordinates)) return false;
  if (depth === 0)
    return (
      coordinates.length >= 2 &&
      coordinates.every((coordinate) => typeof coordinate === 'number' && Number.isFinite(coordinate))
    );
  return coordinates.length > 0 && coordinates.every((coordinate) => hasDepth(coordinate, depth - 1));
}

function hasLines(coordinates: unknown[], depth: number): boolean {
  return depth === 1 ? coordinates.length >= 2 : coordinates.every((line) => Array.isArray(line) && line.length >= 2);
}

/** Paging and query members of other catalogs. They are rejected, because a client would otherwise receive the first page forever. */
const notHere = {
  page: z.undefined('is not supported: use offset, or follow the link next').optional(),
  token: z.undefined('is not supported: use offset, or follow the link next').optional(),
  query: z.undefined('is not supported: use filter, in CQL2-JSON').optional(),
};

/** @assumed search-extras: everything but bbox, collections, datetime, limit, offset and sortby: as STAC's item search and its extensions have it */
const lenient = z.strictObject({
  ...notHere,
  bbox: bbox.optional(),
  collections: ids.optional(),
  datetime: datetimeFilter.optional(),
  limit: limit.optional(),
  offset: offset.optional(),
  sortby: sortRules.optional(),
  fields: fields.optional(),
  ids: ids.optional(),
  intersects: geojsonGeometry.optional(),
  filter: jsonValue.optional(),
  'filter-lang': z.literal('cql2-json', 'must be cql2-json').optional(),
  'filter-crs': z
    .literal('http://www.opengis.net/def/crs/OGC/1.3/CRS84', 'must be http://www.opengis.net/def/crs/OGC/1.3/CRS84')
    .optional(),
});

/** Body of `POST /public/stac/search`, as standard clients send it. */
export const lenientSearchRequest = lenient.refine(
  ({ bbox: box, intersects }) => box === undefined || intersects === undefined,
  {
    path: ['intersects'],
    error: 'must not come together with bbox',
  },
);

/** Body of `POST /public/stac/search` as spec 4.2 wants it. */
export const strictSearchRequest = lenient.extend({
  bbox,
  collections: ids.min(1, 'must name at least one collection'),
  datetime: datetimeInterval,
});

/** Body of a search (spec 4.2). */
export type SearchRequest = z.output<typeof lenient>;
/** A property by which a search sorts, and the direction. */
export type SortRule = z.output<typeof sortRule>;
/** Fields that a search includes and excludes. */
export type FieldSet = z.output<typeof fields>;

const list = (text: string) => text.split(',').filter((part) => part !== '');
const numberRule = (rule: string, mostDigits = 15) =>
  z
    .string()
    .regex(new RegExp(`^[+-]?\\d{1,${mostDigits}}$`), rule)
    .transform(Number);
const json = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    context.issues.push({ code: 'custom', message: 'must be JSON', input: text });
    return z.NEVER;
  }
});

/** `+properties.datetime`, `-id`: STAC's sort extension for GET. */
const sortText = z.string().transform((text) =>
  list(text).map((rule): z.input<typeof sortRule> => ({
    field: rule.replace(/^[ +-]/, ''),
    direction: rule.startsWith('-') ? 'desc' : 'asc',
  })),
);
const fieldsText = z.string().transform((text) => ({
  include: list(text)
    .filter((field) => !field.startsWith('-'))
    .map((field) => field.replace(/^[ +]/, '')),
  exclude: list(text)
    .filter((field) => field.startsWith('-'))
    .map((field) => field.slice(1)),
}));

/** Members of a page's query: `limit` and `offset`. */
const page = {
  limit: numberRule('must be an integer', 300).pipe(limit).optional(),
  offset: numberRule('must be an integer').pipe(offset).optional(),
};
const bboxText = z
  .string()
  .transform((text) => text.split(',').map((part) => (part.trim() === '' ? NaN : Number(part))))
  .pipe(bbox);

/** Query of `GET /public/stac/search`. Never strict. */
export const searchQuery = z
  .object({
    ...notHere,
    ...page,
    bbox: bboxText.optional(),
    datetime: datetimeFilter.optional(),
    collections: z.string().transform(list).pipe(ids).optional(),
    ids: z.string().transform(list).pipe(ids).optional(),
    sortby: sortText.pipe(sortRules).optional(),
    fields: fieldsText.pipe(fields.required()).optional(),
    intersects: json.pipe(geojsonGeometry).optional(),
    filter: json.pipe(jsonValue).optional(),
    'filter-lang': z.literal('cql2-json', 'must be cql2-json').optional(),
    'filter-crs': z
      .literal('http://www.opengis.net/def/crs/OGC/1.3/CRS84', 'must be http://www.opengis.net/def/crs/OGC/1.3/CRS84')
      .optional(),
  })
  .refine(({ bbox: box, intersects }) => box === undefined || intersects === undefined, {
    path: ['intersects'],
    error: 'must not come together with bbox',
  });

/** Query of the items list; another parameter is refused, as the conformance class wants it. @assumed items-query (spec 4.1: not shown) */
export const itemsQuery = z.strictObject({ ...page, bbox: bboxText.optional(), datetime: datetimeFilter.optional() });
/** Query of a strict items list, which takes no single instant (spec 4.2). */
export const strictItemsQuery = itemsQuery.extend({ datetime: datetimeInterval.optional() });
