import { didYouMean } from '../contract/did-you-mean.ts';
import { KitError } from '../contract/kit-error.ts';

/** Describes a problem with an input, in words that its owner can act on. */
export class SceneError extends KitError {
  constructor(
    code:
      | 'band_not_found'
      | 'band_ambiguous'
      | 'grids_differ'
      | 'not_one_raster'
      | 'not_one_layer'
      | 'complex_values'
      | 'nodata_differs',
    message: string,
    data: Readonly<Record<string, unknown>> = {},
  ) {
    super(code, message, { status: 422, data });
  }
}

/** A band as far as its names: of a file that is open, or of an item that says what it holds. */
export interface NamedBand {
  /** Every name it goes by, the common name first where it has one. */
  readonly names: readonly string[];
  /** Location of the band, in words. Null if the item does not give one. */
  readonly place: string | null;
  /** The pixels that it lies on, where that is known. */
  readonly grid?: BandGrid | null;
}

/** Facts about a band's pixels, known before its file is read. */
export interface BandGrid {
  readonly width: number;
  readonly height: number;
  /** GDAL's six numbers; null where nobody says. */
  readonly geoTransform: readonly number[] | null;
}

/** Tolerance, as a share of a pixel. */
const slack = 1e-3;

/** Describes in words why two bands cannot share the same pixels. Null if they may. */
export function gridDifference(a: BandGrid, b: BandGrid): string | null {
  const size = ({ width, height }: BandGrid) => `${width} x ${height} pixels`;
  if (size(a) !== size(b)) return `${size(a)} and ${size(b)}`;
  const [of, other] = [a.geoTransform, b.geoTransform];
  if (!of || !other) return null;
  return isSameTransform(of, other, a) ? null : `the geotransforms ${of.join(', ')} and ${other.join(', ')}`;
}

/** True if the corners of a raster lie in the same places by both geotransforms, within a thousandth of a pixel. */
export function isSameTransform(
  a: readonly number[],
  b: readonly number[],
  { width, height }: { readonly width: number; readonly height: number },
): boolean {
  const pixel = Math.max(Math.abs(a[1] ?? 1), Math.abs(a[5] ?? 1));
  const differences = a.map((value, i) => value - (b[i] ?? NaN));
  return [0, width].every((column) =>
    [0, height].every((row) =>
      [0, 3].every((i) => {
        const [origin = NaN, perColumn = NaN, perRow = NaN] = differences.slice(i, i + 3);
        return Math.abs(origin + column * perColumn + row * perRow) <= pixel * slack;
      }),
    ),
  );
}

/** The one band that goes by `name`; case does not matter. Throws `SceneError`. */
export function matchBand<Band extends NamedBand>(bands: readonly Band[], name: string): Band {
  const wanted = name.toLowerCase();
  const [found, ...others] = bands.filter((band) => band.names.some((known) => known.toLowerCase() === wanted));
  if (found && others.length === 0) return found;
  const told = ({ names: [first = 'unnamed'], place }: NamedBand) => (place === null ? first : `${first} (${place})`);
  if (found)
    throw new SceneError(
      'band_ambiguous',
      `${others.length + 1} bands have the name ${JSON.stringify(name)}: ${[found, ...others].map((band) => band.place?.replace(', ', ' ') ?? told(band)).join(', ')}`,
      { name },
    );
  throw new SceneError(
    'band_not_found',
    `no band has the name ${JSON.stringify(name)}; the input has ${bands.map(told).join(', ') || 'no bands'}${didYouMean(
      name,
      bands.flatMap(({ names }) => names),
    )}`,
    { name },
  );
}
