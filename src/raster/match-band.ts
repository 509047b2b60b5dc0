import { KitError } from '../contract/kit-error.ts';

/** What is wrong with an input, in words its owner can act on. */
export class SceneError extends KitError {
  constructor(
    code: 'band_not_found' | 'band_ambiguous' | 'grids_differ' | 'not_one_raster' | 'not_one_layer',
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
  /** Where it is, in words; null where the item does not say. */
  readonly place: string | null;
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
    `no band has the name ${JSON.stringify(name)}; the input has ${bands.map(told).join(', ') || 'no bands'}`,
    { name },
  );
}
