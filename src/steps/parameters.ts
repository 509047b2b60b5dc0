import { readdirSync } from 'node:fs';
import * as z from 'zod';
import { areaSchema, type AreaLimits } from './area.ts';

/** The words of a parameter in forms and documents. */
export interface ParameterWords {
  readonly title: string;
  readonly description: string;
}

/**
 * A parameter that chooses one of the input's bands: by common name (`nir`), name (`B5`), description or number. Forms offer the
 * bands of the chosen items, and the app refuses a band that they do not have before it asks for approval.
 */
export function band({
  default: name,
  title = name === undefined ? 'Band' : name[0]!.toUpperCase() + name.slice(1),
  description = 'Common name, name or number of the band.',
  ...words
}: Partial<ParameterWords> & {
  readonly default?: string;
  /** The input that has the band. Default: the first with rasters. */
  readonly of?: string;
}): z.ZodType<string, string | undefined> {
  const bandName = z.string().min(1).max(64);
  return (name === undefined ? bandName : bandName.default(name)).meta({
    title,
    description,
    ...words,
    kind: 'band',
  });
}

/** The ways in which GDAL computes a pixel from several. */
export const resamplings = [
  'near',
  'bilinear',
  'cubic',
  'cubicspline',
  'lanczos',
  'average',
  'rms',
  'mode',
  'max',
  'min',
  'med',
  'q1',
  'q3',
  'sum',
] as const;

/** A parameter that chooses how GDAL resamples. Default: `near`, which makes no new values. */
export function resampling({
  default: method = 'near',
  ...words
}: ParameterWords & { readonly default?: (typeof resamplings)[number] }) {
  return z.enum(resamplings).default(method).meta(words);
}

/** A parameter that names a coordinate reference system by its EPSG code, `EPSG:32633`. */
export function crs({ default: code, ...words }: ParameterWords & { readonly default?: `EPSG:${number}` }) {
  const epsgCode = z.string().regex(/^EPSG:[1-9]\d{3,6}$/, 'must be an EPSG code such as EPSG:32633');
  // One type for the schema with a default and the one without; also below.
  return (code === undefined ? epsgCode : epsgCode.default(code)).meta({ ...words, kind: 'crs' }) as z.ZodType<
    string,
    string | undefined
  >;
}

/** A parameter that is a day, `2024-06-01`. */
export function date({ default: day, ...words }: ParameterWords & { readonly default?: string }) {
  const isoDate = z.iso.date('must be a date such as 2024-06-01');
  return (day === undefined ? isoDate : isoDate.default(day)).meta(words) as z.ZodType<string, string | undefined>;
}

/** A parameter that is a place, drawn on the map or given as GeoJSON. */
export function area({ maxSquareKilometres, maxCorners, ...words }: ParameterWords & AreaLimits) {
  return areaSchema({
    ...(maxSquareKilometres !== undefined && { maxSquareKilometres }),
    ...(maxCorners !== undefined && { maxCorners }),
  }).meta({
    ...words,
    type: 'object',
    kind: 'area',
  });
}

/**
 * A parameter that chooses one of the app's own files by its name, from a folder beside the step: `new URL('./models/', import.meta.url)`.
 * Hidden files and folders are none of them. Throws where the folder is not there, or has none.
 */
export function ownFile({
  folder,
  default: name,
  ...words
}: ParameterWords & { readonly folder: URL; readonly default?: string }) {
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.startsWith('.'))
    .map((entry) => entry.name)
    .sort();
  if (names.length === 0) throw new Error(`${folder.pathname} holds no file to choose from`);
  const choice = z.enum(names);
  return (name === undefined ? choice : choice.default(name)).meta(words) as z.ZodType<string, string | undefined>;
}
