/** Only for child processes. Reads values and validity of a band, for every step, preview and summary. */
import type gdal from 'gdal-async';
import { KitError } from '../contract/kit-error.ts';
import { canHold, requireExact } from './integer-types.ts';
import { SceneError } from './match-band.ts';
import { inPieces } from './pieces.ts';
import { metadataOf } from './metadata-of.ts';

/** Converts stored numbers to values: by the scale and offset of the file or its item (`physical`), unchanged (`stored`), or by a given factor and offset. */
export type Scaling = 'physical' | 'stored' | { readonly factor: number; readonly offset: number };

/** Options for reading a band. */
export interface Reading {
  /** Default `physical`. */
  readonly scaling?: Scaling;
  /** The stored number that marks no data. Default: the value that the file or its item declares. */
  readonly nodata?: number | undefined;
  /** Refuses integers of 64 bits beyond 2^52, which would lose digits (`KitError` `type_not_supported`). Default: false, as for statistics and previews. */
  readonly isExact?: boolean;
}

/** A linear scale: the physical value is `stored * factor + offset`. */
export interface ValueScale {
  readonly factor: number;
  readonly offset: number;
}

/** A band, with its metadata from the catalog item. */
export interface ReadableBand {
  readonly band: gdal.RasterBand;
  /** Default: none. The file's own scale and nodata take precedence. */
  readonly ofItem?: ItemBand | null;
}

/** Metadata of a band from its catalog item (STAC raster extension). */
export interface ItemBand {
  /** The item's names for the band. If empty, the band is identified by its position. */
  readonly names: readonly string[];
  readonly scale: ValueScale | null;
  readonly nodata: number | null;
}

/** Metadata of a file from its catalog item. */
export interface ItemFacts {
  /** Acquisition time: the item's `datetime` in ISO 8601, UTC. Null if the item has none. */
  readonly observedAt: string | null;
  /** Empty if the item does not describe its values. */
  readonly bands: readonly ItemBand[];
  /** The platform's word for the kind of data. Default: the item has none. */
  readonly sourceType?: string;
  /** West, south, east, north, in degrees. Default: the item has no place. */
  readonly bbox?: readonly [number, number, number, number];
}

/** Layout of the values in an array: rows of `stride` values, starting at `start`. Default: contiguous rows from 0. */
export interface Place {
  readonly stride?: number;
  readonly start?: number;
}

/** GDAL's mask flags. */
const flag = { allValid: 1, ofAllBands: 2, alpha: 4, nodata: 8 } as const;
const unscaled: ValueScale = { factor: 1, offset: 0 };
const isPlain = ({ factor, offset }: ValueScale) => factor === 1 && offset === 0;

/**
 * Reads physical values as Float64. A pixel without a value is NaN: the declared nodata, NaN, a mask of 0 or an alpha of 0.
 * Bytes of `PIXELTYPE=SIGNEDBYTE` are signed. Throws `SceneError` for complex numbers.
 */
export class BandReader {
  readonly band: gdal.RasterBand;
  /** The scale in use. Factor 1 and offset 0 leave stored numbers unchanged. */
  readonly scale: ValueScale;
  /** Source of the scale. `none`: the file and its item have no scale. */
  readonly scaleOrigin: 'file' | 'item' | 'parameter' | 'none';
  /** Stored numbers that mark no data. */
  readonly #missing: readonly number[];
  readonly #isSigned: boolean;
  readonly #isChecked: boolean;
  readonly #mask: gdal.RasterBand | null;
  #maskValues: Uint8Array | Float32Array = new Uint8Array(0);

  constructor({ band, ofItem = null }: ReadableBand, { scaling = 'physical', nodata, isExact = false }: Reading = {}) {
    if (/^C(Int|Float)/.test(band.dataType ?? ''))
      throw new SceneError(
        'complex_values',
        `the band holds complex numbers (${band.dataType}), and the step takes real ones; make its amplitude or its phase a band first`,
      );
    this.band = band;
    this.#isSigned = isSignedByte(band);
    this.#isChecked = isExact && (band.dataType?.endsWith('Int64') ?? false);
    this.#mask = maskOf(band);
    const declared = nodata ?? band.noDataValue ?? ofItem?.nodata ?? null;
    const rounded = band.dataType === 'Float32' && declared !== null ? Math.fround(declared) : declared;
    this.#missing = [...new Set([declared, rounded])]
      .filter((marker) => marker !== null)
      .filter((marker) => !Number.isNaN(marker));
    const own = { factor: band.scale ?? 1, offset: band.offset ?? 0 };
    if (scaling !== 'physical')
      [this.scale, this.scaleOrigin] = [scaling === 'stored' ? unscaled : scaling, 'parameter'];
    else if (!isPlain(own)) [this.scale, this.scaleOrigin] = [own, 'file'];
    else [this.scale, this.scaleOrigin] = ofItem?.scale ? [ofItem.scale, 'item'] : [unscaled, 'none'];
  }

  /** True if stored numbers are the values and only the declared nodata marks gaps. Other programs then read the same values from the file. */
  get isPlain(): boolean {
    return (
      !this.#isSigned &&
      this.#mask === null &&
      isPlain(this.scale) &&
      this.#missing.every((marker) => marker === this.band.noDataValue)
    );
  }

  /** Reads a window into `out`. `size` resamples the window to that many columns and rows. */
  read(
    window: readonly [x: number, y: number, width: number, height: number],
    out: Float64Array,
    { stride, start = 0, size }: Place & { readonly size?: readonly [number, number] } = {},
  ): void {
    const [x, y] = window;
    const [width, height] = [window[2], window[3]];
    const [columns, rows] = size ?? [width, height];
    const line = stride ?? columns;
    const end = start + (rows - 1) * line + columns;
    const buffer = size ? { buffer_width: columns, buffer_height: rows } : {};
    this.band.pixels.read(x, y, width, height, out, {
      ...buffer,
      ...(line === columns ? {} : { pixel_space: 8, line_space: line * 8 }),
      ...(start === 0 ? {} : { offset: start }),
    });
    if (this.#isSigned) for (let i = start; i < end; i++) if (out[i]! > 127) out[i]! -= 256;
    const scaled = (from: number, to: number) => {
      if (this.#isChecked) for (let i = start + from; i < start + to; i++) requireExact(out[i]!);
      if (!isPlain(this.scale)) applyScale(out, this.scale, start + from, start + to);
    };
    // Masked pixels are missing, so they are not checked.
    const isMaskFirst = this.#isChecked && this.#mask !== null;
    inPieces(end - start, (from, to) => {
      for (const missing of this.#missing) erase(out, missing, start + from, start + to);
      if (!isMaskFirst) scaled(from, to);
    });
    if (!this.#mask) return;
    const count = columns * rows;
    // An alpha band of real numbers may have values between 0 and 1, which bytes would round.
    const Values = this.#mask.dataType?.startsWith('Float') ? Float32Array : Uint8Array;
    if (this.#maskValues.length < count) this.#maskValues = new Values(count);
    const mask = this.#maskValues;
    this.#mask.pixels.read(x, y, width, height, mask, buffer);
    for (let row = 0, i = 0; row < rows; row++)
      for (let to = start + row * line, last = to + columns; to < last; to++, i++) if (mask[i] === 0) out[to] = NaN;
    if (isMaskFirst) inPieces(end - start, scaled);
  }
}

function erase(values: Float64Array, missing: number, from: number, to: number): void {
  for (let i = from; i < to; i++) if (values[i] === missing) values[i] = NaN;
}

function applyScale(values: Float64Array, { factor, offset }: ValueScale, from: number, to: number): void {
  for (let i = from; i < to; i++) values[i] = values[i]! * factor + offset;
}

/** Makes a reader of a band. Returns a reader unchanged. */
export const readerOf = (source: gdal.RasterBand | ReadableBand | BandReader, reading?: Reading): BandReader =>
  source instanceof BandReader ? source : new BandReader('band' in source ? source : { band: source }, reading);

/** True for bytes of `PIXELTYPE=SIGNEDBYTE`. */
export function isSignedByte(band: gdal.RasterBand): boolean {
  const { PIXELTYPE } = metadataOf(band, 'IMAGE_STRUCTURE');
  return band.dataType === 'Byte' && PIXELTYPE === 'SIGNEDBYTE';
}

/** The declared nodata value of a band if its type can store it, else null. */
export const nodataOf = ({ dataType, noDataValue }: gdal.RasterBand): number | null =>
  noDataValue !== null && canHold(dataType, noDataValue) ? noDataValue : null;

/** The mask or alpha band of a band; null if only the declared nodata marks gaps. */
export function maskOf(band: gdal.RasterBand): gdal.RasterBand | null {
  const flags = band.getMaskFlags();
  if ((flags & flag.allValid) === 0 && flags !== flag.nodata) return band.getMaskBand();
  // GDAL looks for alpha only in rasters of two and of four bands.
  const alpha = alphaOf(band.ds);
  return alpha && alpha.id !== band.id ? alpha : null;
}

/** True if a band has a mask that the other bands of its raster do not have. Few programs keep such masks. */
export const hasOwnMask = (band: gdal.RasterBand): boolean => band.getMaskFlags() === 0;

/** The one mask of all bands, which is not alpha; null if a raster has none. */
export function maskOfAllBands(dataset: gdal.Dataset): gdal.RasterBand | null {
  const first = dataset.bands.get(1);
  const flags = first.getMaskFlags();
  return (flags & flag.ofAllBands) !== 0 && (flags & flag.alpha) === 0 ? first.getMaskBand() : null;
}

/** Adds a mask of all bands, in which no pixel is missing, to a GeoTIFF that is being written. */
export function addMask(dataset: gdal.Dataset): gdal.RasterBand {
  const first = dataset.bands.get(1);
  first.createMaskBand(flag.ofAllBands);
  const mask = first.getMaskBand()!;
  mask.fill(255);
  return mask;
}

/** The alpha band of a raster; null if it has none. */
export function alphaOf(dataset: gdal.Dataset): gdal.RasterBand | null {
  const bands = dataset.bands.map((band) => band);
  return bands.find(({ colorInterpretation }) => colorInterpretation?.toLowerCase() === 'alpha') ?? null;
}

/** Throws if bands declare different nodata values. */
export function requireOneNodata(source: gdal.Dataset): void {
  const values = source.bands.map(({ noDataValue }) => noDataValue);
  if (new Set(values.filter((value) => value !== null)).size < 2) return;
  throw new KitError(
    'nodata_differs',
    `the bands name different values for no data (${values.join(', ')}), and a GeoTIFF has one for all; give the raster one value first, as gdal_translate -a_nodata does band by band`,
    { status: 422 },
  );
}
