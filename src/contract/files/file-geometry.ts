import type { Geometry } from 'geojson';
import * as z from 'zod';
import { positionsOf, wktGeometry } from '../geometry.ts';
import { limits } from '../limits.ts';
import { geojsonGeometry } from '../stac/search-request.ts';

const json = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    context.issues.push({ code: 'custom', message: 'must be GeoJSON, or well-known text', input: text });
    return z.NEVER;
  }
});
const bounded = (reader: z.ZodType<Geometry, string>) =>
  reader.refine(
    (geometry) => positionsOf(geometry).length <= limits.footprintPositions,
    `must have at most ${limits.footprintPositions} positions`,
  );
const readers = { wkt: bounded(wktGeometry), geojson: bounded(json.pipe(geojsonGeometry)) };
const readerOf = (text: string) => readers[text.trimStart().startsWith('{') ? 'geojson' : 'wkt'];

/** The geometry of a file (spec 4.4) as it was given: WKT, or GeoJSON as text. Throws zod's error where it is neither. */
export const readFileGeometry = (text: string): Geometry => readerOf(text).parse(text);

/** @assumed file-geometry: GeoJSON is taken too, as text or as an object: the spec says a string, and of inference that it is WKT */
export const fileGeometry = z
  .union([z.string(), z.looseObject({ type: z.string() })], 'must be well-known text, or GeoJSON')
  .transform((given) => (typeof given === 'string' ? given : JSON.stringify(given)))
  .superRefine((text, context) => {
    const [issue] = readerOf(text).safeParse(text).error?.issues ?? [];
    if (issue) context.addIssue({ code: 'custom', message: issue.message });
  });
