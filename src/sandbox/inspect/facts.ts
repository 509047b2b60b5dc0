import { KitError } from '../../contract/kit-error.ts';
import type { SourceType } from '../../contract/index.ts';
import type { Footprint } from '../../raster/footprint.ts';
import type { FileKind } from './file-kinds.ts';

export interface BandFacts {
  /** The band's own description; empty if it has none. Files that were read before the sandbox stored it lack it. */
  readonly description?: string;
  /** `red`, `green` or `blue`, where the file says so; else empty. */
  readonly color?: string;
  readonly dataType: string;
  readonly nodata: number | null;
  /** Statistics of the valid pixels, from a sample; NaN if there are none. */
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly stdDev: number;
}

export interface RasterFacts {
  readonly driver: string;
  readonly width: number;
  readonly height: number;
  /** WKT. */
  readonly crs: string | null;
  /** EPSG code of the CRS; null where it has none. */
  readonly epsg: number | null;
  /** GDAL's values: origin, pixel size and shear. */
  readonly geoTransform: readonly number[] | null;
  readonly bands: readonly BandFacts[];
  /** True where overviews were built beside the file, into the work folder. */
  readonly builtOverviews: boolean;
}

export interface VectorFacts {
  readonly driver: string;
  readonly layers: readonly { readonly name: string; readonly features: number }[];
}

/** Results of the inspection of a readable file. */
export interface FileFacts {
  /** `any`: a file of source type UNKNOWN that nobody read (`unreadFacts`). */
  readonly kind: FileKind;
  readonly mediaType: string;
  readonly sha256: string;
  /** In longitude and latitude; null where the file says no place. */
  readonly footprint: Footprint | null;
  /** ISO 8601, as the file itself says; null where it does not. */
  readonly acquiredAt: string | null;
  readonly raster?: RasterFacts;
  readonly vector?: VectorFacts;
}

export type Found = Omit<FileFacts, 'sha256'>;

export interface InspectInput {
  readonly sourceType: SourceType;
  /** Default true: a large raster without overviews gets some, as `overviewsName` of the work folder. */
  readonly buildOverviews?: boolean;
}

/** File name of the overviews that the job has built. */
export const overviewsName = 'built-overviews.ovr';

/** A file as inspectors find it. */
export interface InspectedFile extends InspectInput {
  /** In the work folder, under the file's own name; what GDAL writes beside a file lands there too. */
  readonly path: string;
  readonly workFolder: string;
}

/** Judges one kind. Throws `notA` where the file is none. */
export type Inspector = (file: InspectedFile) => Promise<Found> | Found;

/** A file is not what it claims to be. */
export function notA(what: string): KitError {
  return new KitError('not_what_it_claims', `the file is no ${what} that can be read`, { status: 422 });
}

/** Facts of a file without a place and a time. */
export const nowhere = { footprint: null, acquiredAt: null } as const;
