/** Only for child processes: loads GDAL. */
import gdal from 'gdal-async';
import { BandReader } from '../../raster/band-reader.ts';
import { openRaster } from '../../raster/open-raster.ts';
import { legendName, type RasterClass } from '../../raster/class-table.ts';
import { toLonLatIfAny } from '../../raster/lon-lat.ts';
import {
  colorBands,
  drawnClasses,
  rampColors,
  rangeOf,
  readerOfPicture,
  renderPreview,
  type PreviewStyle,
} from '../../raster/preview.ts';
import { isInDegrees } from '../../raster/affine.ts';
import { readStatistics, statisticsOf as exactStatistics } from '../../raster/statistics.ts';
import { valuesSide, type OutputSummary, type RunResult } from './output-summary.ts';

const pictureSide = 768;
const sampleSide = 1_024;
const histogramParts = 32;
const maxSorted = 250_000;
const maxBands = 16;
/** The most pixels of a band that are read only to compute its statistics. */
const maxCounted = 30_000_000;
/** Without overviews. */
const maxPixels = 100_000_000;

/** Draws an output in its style and counts what is in it. Null if that would mean reading every pixel and there are too many. */
export async function summarize(path: string, style: PreviewStyle): Promise<RunResult | null> {
  const dataset = openRaster(path);
  try {
    const { x, y } = dataset.rasterSize;
    if (x * y * dataset.bands.count() > maxPixels && dataset.bands.get(1).overviews.count() === 0) return null;
    const drawn = colorBands(dataset);
    const shown = drawn.length === 1 ? drawn[0]?.id : null;
    const classes = drawnClasses(dataset, style);
    const bands = dataset.bands
      .map((band) => band)
      .slice(0, maxBands)
      .flatMap(
        (band) => summarizeBand(band, band.id === shown ? style : null, band.id === shown ? classes : null) ?? [],
      );
    const histogram = bands.find(({ colors }) => colors !== null)?.histogram;
    // The picture uses the histogram's range, so that both have the same colours.
    const picture = await renderPreview(
      dataset,
      pictureSide,
      histogram ? { ...style, range: [histogram.low, histogram.high] } : style,
    );
    return {
      summary: {
        width: x,
        height: y,
        features: null,
        corners: cornersOf(dataset),
        readings: [],
        bands,
        values: drawn.length === 1 && drawn[0] ? valuesOf(drawn[0]) : null,
      },
      picture: new Uint8Array(picture),
    };
  } finally {
    dataset.close();
  }
}

/** Null where no value is valid. `style`: of the band that is drawn by itself. */
function summarizeBand(
  band: gdal.RasterBand,
  style: PreviewStyle | null,
  classes: readonly RasterClass[] | null,
): OutputSummary['bands'][number] | null {
  const { sample } = sampleOf(band, sampleSide);
  const valid = finiteOf(sample);
  const name = band.description || `band ${band.id}`;
  const ofSample = statisticsOf(name, valid, valid.length / sample.length, style, classes);
  const { x, y } = band.size;
  // The statistics in the kit's own files are exact. Other files are read in full, up to a limit.
  const stored =
    readStatistics(band) ??
    (x * y <= maxCounted ? exactStatistics([new BandReader({ band }, { scaling: 'stored' })])[0] : null);
  if (!ofSample || !stored) return ofSample;
  const { factor, offset } = readerOfPicture(band).scale;
  // A negative factor turns the range around.
  const ends = [stored.min * factor + offset, stored.max * factor + offset];
  return {
    ...ofSample,
    unit: ofSample.unit ?? (band.unitType?.slice(0, 40) || null),
    min: Math.min(...ends),
    max: Math.max(...ends),
    mean: stored.mean * factor + offset,
    stdDev: stored.stdDev * Math.abs(factor),
    validShare: stored.count / (x * y),
  };
}

/** Returns the finite values. `filter` with a callback uses several times the memory. */
function finiteOf(sample: Float64Array): Float64Array {
  const valid = new Float64Array(sample.length);
  let count = 0;
  for (const value of sample) if (Number.isFinite(value)) valid[count++] = value;
  return valid.subarray(0, count);
}

/** Null where there is no value. */
export function statisticsOf(
  name: string,
  valid: Float64Array,
  validShare: number,
  style: PreviewStyle | null,
  classes: readonly RasterClass[] | null,
): OutputSummary['bands'][number] | null {
  if (valid.length === 0) return null;
  let [min, max, sum, squares] = [Infinity, -Infinity, 0, 0];
  for (const value of valid) {
    min = Math.min(min, value);
    max = Math.max(max, value);
    sum += value;
  }
  const mean = sum / valid.length;
  for (const value of valid) squares += (value - mean) * (value - mean);
  // The picture has the same stretch if the step sets no range: the 2nd to the 98th percentile.
  const [low, high] = style?.range ?? rangeOf(chosen(valid), style ?? { ramp: 'gray' });
  const colors =
    style && !classes
      ? rampColors(style.ramp).map(([red, green, blue]): [number, number, number] => [red, green, blue])
      : null;
  const counts = new Array<number>(histogramParts).fill(0);
  for (const value of valid) {
    if (value < low || value > high) continue;
    const part = Math.min(histogramParts - 1, Math.floor(((value - low) / (high - low || 1)) * histogramParts));
    counts[part] = (counts[part] ?? 0) + 1;
  }
  return {
    name,
    unit: style?.unit ?? null,
    min,
    mean,
    max,
    stdDev: Math.sqrt(squares / valid.length),
    validShare,
    histogram: { low, high, counts },
    colors,
    classes: classes && sharesOf(classes, valid),
  };
}

/** An even sample of the values if there are many. */
function chosen(values: Float64Array): Float64Array {
  const every = Math.ceil(values.length / maxSorted);
  return every === 1 ? values.slice() : values.filter((_value, i) => i % every === 0);
}

/** A band read to at most `longest` values a side. */
function sampleOf(band: gdal.RasterBand, longest: number): { width: number; height: number; sample: Float64Array } {
  const { x, y } = band.size;
  const scale = Math.min(1, longest / Math.max(x, y));
  const scaled = (side: number) => Math.max(1, Math.round(side * scale));
  const [width, height] = [scaled(x), scaled(y)];
  const sample = new Float64Array(width * height);
  readerOfPicture(band).read([0, 0, x, y], sample, { size: [width, height] });
  return { width, height, sample };
}

/** To four digits: nobody reads more under a pointer. */
function valuesOf(band: gdal.RasterBand): NonNullable<OutputSummary['values']> {
  const { width, height, sample } = sampleOf(band, valuesSide);
  return {
    width,
    height,
    rows: [...sample].map((value) => (Number.isFinite(value) ? Number(value.toPrecision(4)) : null)),
  };
}

const pointsPerEdge = 16;

/** The classes that occur, as often as they do. */
function sharesOf(
  classes: readonly RasterClass[],
  valid: Float64Array,
): NonNullable<OutputSummary['bands'][number]['classes']> {
  const counts = new Map<number, number>();
  for (const value of valid) counts.set(value, (counts.get(value) ?? 0) + 1);
  return classes.flatMap(({ value, name, color: [red, green, blue], isHidden = false }) => {
    const count = counts.get(value);
    return count === undefined
      ? []
      : [
          {
            value,
            name: legendName({ name, isHidden }).slice(0, 200),
            color: [red, green, blue] satisfies [number, number, number],
            share: count / valid.length,
          },
        ];
  });
}

function cornersOf(dataset: gdal.Dataset): OutputSummary['corners'] {
  const {
    srs,
    geoTransform: t,
    rasterSize: { x, y },
  } = dataset;
  if (!srs || !t) return null;
  const lonLat = lonLatOf(srs);
  if (!lonLat) return null;
  const at = (column: number, row: number) =>
    lonLat(
      (t[0] ?? 0) + column * (t[1] ?? 0) + row * (t[2] ?? 0),
      (t[3] ?? 0) + column * (t[4] ?? 0) + row * (t[5] ?? 0),
    );
  const corners: [number, number][] = [];
  const pixels = [
    [0, 0],
    [x, 0],
    [x, y],
    [0, y],
  ] as const;
  let before: readonly [column: number, row: number] = [0, 0];
  let longitude: number | null = null;
  for (const [column, row] of pixels) {
    // Longitudes go on across 180°. Along an edge, from point to point, because a raster may be as wide as the Earth.
    for (let k = 1; k <= pointsPerEdge; k++) {
      const share = k / pointsPerEdge;
      const place = at(before[0] + (column - before[0]) * share, before[1] + (row - before[1]) * share);
      if (!place) return null;
      const [lon] = place;
      const isAngle = srs.isGeographic();
      longitude = longitude === null || isAngle ? lon : lon - Math.round((lon - longitude) / 360) * 360;
      if (k === pointsPerEdge) corners.push([longitude, place[1]]);
    }
    before = [column, row];
  }
  const middle = corners.reduce((sum, [lon]) => sum + lon, 0) / corners.length;
  const shift = Math.floor((middle + 180) / 360) * 360;
  // Four corners, which `map` does not count.
  return corners.map(([lon, lat]): [number, number] => [lon - shift, Math.max(-90, Math.min(90, lat))]) as NonNullable<
    OutputSummary['corners']
  >;
}

/** Null for a reference system that lies nowhere on Earth. */
function lonLatOf(srs: gdal.SpatialReference): ((x: number, y: number) => readonly [number, number] | null) | null {
  return toLonLatIfAny(srs) ?? (isInDegrees(srs) ? (x, y) => [x, y] : null);
}
