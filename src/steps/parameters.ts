import * as z from 'zod';

/** How forms and documents show a parameter. */
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
  ...words
}: ParameterWords & {
  readonly default?: string;
  /** The input that has the band. Default: the first with rasters. */
  readonly of?: string;
}): z.ZodType<string, string | undefined> {
  const one = z.string().min(1).max(64);
  return (name === undefined ? one : one.default(name)).meta({ ...words, kind: 'band' });
}

/** How GDAL computes a pixel from several. */
export const resamplings = ['near', 'bilinear', 'cubic', 'cubicspline', 'lanczos', 'average', 'mode'] as const;

/** A parameter that chooses how GDAL resamples. Default: `near`, which makes no new values. */
export function resampling({
  default: method = 'near',
  ...words
}: ParameterWords & { readonly default?: (typeof resamplings)[number] }) {
  return z.enum(resamplings).default(method).meta(words);
}

/** A parameter that names a coordinate reference system by its EPSG code, `EPSG:32633`. */
export function crs({ default: code, ...words }: ParameterWords & { readonly default?: `EPSG:${number}` }) {
  const one = z.string().regex(/^EPSG:[1-9]\d{3,6}$/, 'must be an EPSG code such as EPSG:32633');
  return (code === undefined ? one : one.default(code)).meta({ ...words, kind: 'crs' }) as z.ZodType<
    string,
    string | undefined
  >;
}

/** A parameter that is a day, `2024-06-01`. */
export function date({ default: day, ...words }: ParameterWords & { readonly default?: string }) {
  const one = z.iso.date('must be a date such as 2024-06-01');
  return (day === undefined ? one : one.default(day)).meta(words) as z.ZodType<string, string | undefined>;
}
