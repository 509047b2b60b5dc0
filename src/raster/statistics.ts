/** Only for child processes. Computes exact statistics of a band while it is written. */
import type gdal from 'gdal-async';
import type { BandReader } from './band-reader.ts';

/** Pixels that `statisticsOf` reads at once. */
const stripPixels = 500_000;

export interface BandStatistics {
  /** Number of valid pixels. */
  readonly count: number;
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  /** Population standard deviation. */
  readonly stdDev: number;
}

/** Accumulates statistics of values. Leaves out NaN and the band's nodata. */
export class StatisticsOfBand {
  readonly #nodata: number;
  #count = 0;
  #min = Infinity;
  #max = -Infinity;
  #mean = 0;
  #squares = 0;

  constructor(nodata: number | null) {
    this.#nodata = nodata ?? NaN;
  }

  /** Adds the first `count` values. Each strip is summed around its own mean and then merged (Chan et al. 1979). */
  add(values: ArrayLike<number>, count: number): void {
    const nodata = this.#nodata;
    let [valid, min, max, sum] = [0, this.#min, this.#max, 0];
    for (let i = 0; i < count; i++) {
      const value = values[i]!;
      if (value === nodata || value !== value) continue;
      valid += 1;
      sum += value;
      if (value < min) min = value;
      if (value > max) max = value;
    }
    if (valid === 0) return;
    const mean = sum / valid;
    let squares = 0;
    for (let i = 0; i < count; i++) {
      const value = values[i]!;
      if (value === nodata || value !== value) continue;
      squares += (value - mean) * (value - mean);
    }
    const all = this.#count + valid;
    const step = mean - this.#mean;
    this.#squares += squares + (step * step * this.#count * valid) / all;
    this.#mean += (step * valid) / all;
    [this.#count, this.#min, this.#max] = [all, min, max];
  }

  /** Null if no pixel is valid. */
  get values(): BandStatistics | null {
    if (this.#count === 0) return null;
    const [count, min, max, mean] = [this.#count, this.#min, this.#max, this.#mean];
    return { count, min, max, mean, stdDev: Math.sqrt(this.#squares / count) };
  }
}

/** Computes statistics of a whole band, strip by strip. */
export function statisticsOf(reader: BandReader): BandStatistics | null {
  const { x: width, y: height } = reader.band.size;
  const blockRows = reader.band.blockSize?.y ?? 1;
  const rows = Math.min(height, Math.max(1, Math.ceil(stripPixels / width / blockRows)) * blockRows);
  const values = new Float64Array(width * rows);
  const statistics = new StatisticsOfBand(null);
  for (let y = 0; y < height; y += rows) {
    const count = width * Math.min(rows, height - y);
    reader.read([0, y, width, count / width], values);
    statistics.add(values, count);
  }
  return statistics.values;
}

/** Statistics of written bands, by dataset and band number; null if no pixel is valid. */
const kept = new WeakMap<gdal.Dataset, Map<number, BandStatistics | null>>();

export function keepStatistics(band: gdal.RasterBand, statistics: BandStatistics | null): void {
  const { ds } = band;
  const bands = kept.get(ds) ?? new Map<number, BandStatistics | null>();
  kept.set(ds, bands.set(band.id ?? 1, statistics));
}

/** Statistics of a band written by a walk; undefined for other bands. */
export const keptStatistics = (band: gdal.RasterBand): BandStatistics | null | undefined =>
  kept.get(band.ds)?.get(band.id ?? 1);

const names = { min: 'MINIMUM', max: 'MAXIMUM', mean: 'MEAN', stdDev: 'STDDEV' } as const;

/** The band's metadata with these statistics under GDAL's names. Drops statistics copied from a source. */
export function statisticsMetadata(band: gdal.RasterBand, statistics: BandStatistics | null): Record<string, string> {
  const { x, y } = band.size;
  const others = Object.entries(band.getMetadata() as Record<string, string>).filter(
    ([name]) => !name.startsWith('STATISTICS_'),
  );
  const own = statistics
    ? [
        ...Object.entries(names).map(([of, name]) => [
          `STATISTICS_${name}`,
          String(statistics[of as keyof typeof names]),
        ]),
        ['STATISTICS_VALID_PERCENT', String((100 * statistics.count) / (x * y))],
      ]
    : [];
  return Object.fromEntries([...others, ...own]) as Record<string, string>;
}

/** The exact statistics in a band's metadata; null if there are none, or only approximate ones. */
export function readStatistics(band: gdal.RasterBand): BandStatistics | null {
  const metadata = band.getMetadata() as Record<string, string | undefined>;
  if (metadata['STATISTICS_APPROXIMATE'] !== undefined) return null;
  const [min, max, mean, stdDev, share] = [...Object.values(names), 'VALID_PERCENT'].map((name) =>
    Number(metadata[`STATISTICS_${name}`]),
  ) as [number, number, number, number, number];
  const { x, y } = band.size;
  const isWhole = [min, max, mean, stdDev, share].every(Number.isFinite);
  return isWhole ? { min, max, mean, stdDev, count: Math.round((share / 100) * x * y) } : null;
}
