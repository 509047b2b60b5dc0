/** Only for child processes: loads GDAL and sharp. */
import type gdal from 'gdal-async';
import sharp from 'sharp';
import { BandReader } from './band-reader.ts';
import { classesOf, type RasterClass } from './class-table.ts';
import { ramps } from './ramps.ts';

/** The picture of a single band; three bands are drawn as red, green and blue. */
export interface PreviewStyle {
  readonly ramp: keyof typeof ramps;
  /** Values drawn with the first and the last colour; without it the 2nd and 98th percentile. */
  readonly range?: readonly [number, number];
  /** The value of the middle colour if `range` is not given. The range then extends equally to both sides. */
  readonly centre?: number;
  /** Unit of the values, for the legend: `m`, `°C`. */
  readonly unit?: string;
  /** The band holds classes: each is drawn in its colour, and named in the legend. Default: those of the file's own colour table. */
  readonly classes?: readonly RasterClass[];
}

/**
 * Renders a raster into a PNG of at most `maxSide` pixels a side, transparent where there is no data.
 * GDAL reads decimated, from overviews where there are any, and everything becomes 8 bit before sharp sees it.
 */
export async function renderPreview(dataset: gdal.Dataset, maxSide: number, style: PreviewStyle = { ramp: 'gray' }) {
  const { x, y } = dataset.rasterSize;
  const scale = Math.min(1, maxSide / Math.max(x, y));
  const [width, height] = [Math.max(1, Math.round(x * scale)), Math.max(1, Math.round(y * scale))];
  const bands = colorBands(dataset).map((band) => readBand(band, width, height, style));
  const rgba = Buffer.alloc(width * height * 4);
  const [first, second, third] = bands;
  const classes = first && !second ? drawnClasses(dataset, style) : null;
  const byValue =
    classes && new Map(classes.filter(({ isHidden }) => !isHidden).map(({ value, color: rgb }) => [value, rgb]));
  const colors = Array.from({ length: 256 }, (_, byte) => color(style.ramp, byte / 255)).flat();
  for (let i = 0; i < width * height; i++) {
    if (first && byValue) {
      const known = byValue.get(first.value(i));
      if (known && first.isValid(i)) rgba.set([...known, 255], i * 4);
      continue;
    }
    if (first && second && third) {
      rgba[i * 4] = first.byte(i);
      rgba[i * 4 + 1] = second.byte(i);
      rgba[i * 4 + 2] = third.byte(i);
    } else {
      const at = (first?.byte(i) ?? 0) * 3;
      rgba[i * 4] = colors[at]!;
      rgba[i * 4 + 1] = colors[at + 1]!;
      rgba[i * 4 + 2] = colors[at + 2]!;
    }
    rgba[i * 4 + 3] = bands.every((band) => band.isValid(i)) ? 255 : 0;
  }
  return sharp(rgba, { raw: { width, height, channels: 4 } })
    .png()
    .toBuffer();
}

/** The classes that the band which is drawn by itself holds; null where it holds none. */
export function drawnClasses(dataset: gdal.Dataset, style: PreviewStyle): readonly RasterClass[] | null {
  const [band, another] = colorBands(dataset);
  return band && !another ? (style.classes ?? classesOf(band)) : null;
}

/** From low to high, of equal steps; between them colours are mixed. */
export function rampColors(ramp: PreviewStyle['ramp']): readonly (readonly [number, number, number])[] {
  return ramps[ramp];
}

/** Red, green and blue where they are named or there are three bands; else the first. */
export function colorBands(dataset: gdal.Dataset): gdal.RasterBand[] {
  const bands = dataset.bands.map((band) => band);
  const named = ['red', 'green', 'blue'].map((name) =>
    bands.find((band) =>
      [band.description, band.colorInterpretation ?? ''].some((known) => known.toLowerCase() === name),
    ),
  );
  if (named.every((band) => band !== undefined)) return named;
  return bands.length >= 3 ? bands.slice(0, 3) : bands.slice(0, 1);
}

/** Reads the values that a picture shows: physical values, or the stored numbers of classes. */
export const readerOfPicture = (band: gdal.RasterBand): BandReader =>
  new BandReader({ band }, classesOf(band) ? { scaling: 'stored' } : {});

function readBand(band: gdal.RasterBand, width: number, height: number, style: PreviewStyle) {
  const values = new Float64Array(width * height);
  const reader = readerOfPicture(band);
  reader.read([0, 0, band.size.x, band.size.y], values, { size: [width, height] });
  const isValid = (i: number) => Number.isFinite(values[i]);
  const [low, high] =
    style.range ??
    rangeOf(
      values.filter((_, i) => isValid(i)),
      style,
    );
  const factor = 255 / (high - low || 1);
  return {
    isValid,
    value: (i: number) => values[i] ?? NaN,
    byte: (i: number) => Math.min(255, Math.max(0, Math.round(((values[i] ?? 0) - low) * factor))),
  };
}

/** Values of the first and last colour: the 2nd and 98th percentile, made symmetric if the style has a centre. A single value is in the middle. Sorts `valid`. */
export function rangeOf(valid: Float64Array, { centre }: PreviewStyle): [number, number] {
  const [low, high] = percentiles(valid);
  if (centre === undefined && high > low) return [low, high];
  const middle = centre ?? low;
  const far = Math.max(Math.abs(low - middle), Math.abs(high - middle)) || Math.max(0.5, Math.abs(middle) / 1_000);
  return [middle - far, middle + far];
}

/** The 2nd and the 98th. */
function percentiles(valid: Float64Array): [number, number] {
  valid.sort();
  return [valid[Math.floor((valid.length - 1) * 0.02)] ?? 0, valid[Math.floor((valid.length - 1) * 0.98)] ?? 1];
}

function color(name: keyof typeof ramps, at: number): number[] {
  const ramp: readonly (readonly number[])[] = ramps[name];
  const position = at * (ramp.length - 1);
  const from = ramp[Math.floor(position)] ?? [];
  const to = ramp[Math.ceil(position)] ?? [];
  return from.map((value, i) => Math.round(value + ((to[i] ?? value) - value) * (position - Math.floor(position))));
}
