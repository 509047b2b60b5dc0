import { KitError } from '../step-kit.ts';

/** Most values that all bands of a zone keep for percentiles, until the zone ends. A weight counts as a value. */
const maxKept = 16_000_000;
/** Most different values of one zone that count as classes. */
const maxClasses = 10_000;

/** The percentiles of the output, in percent. */
const percentiles = { p10: 0.1, p25: 0.25, median: 0.5, p75: 0.75, p90: 0.9 } as const;

type Percentiles = Readonly<Record<keyof typeof percentiles, number | null>>;

/** Options for additional statistics. */
export interface Asked {
  /** Computes percentiles. Keeps every value of the zone in memory. */
  readonly percentiles: boolean;
  /** Counts each value, and finds the most frequent one. */
  readonly classes: boolean;
  /** Weights each pixel by its share inside the zone. */
  readonly shares: boolean;
  /** Number of bands that keep values at the same time. */
  readonly bands: number;
}

/** Statistics of values that come one after the other (Welford). Each value counts by its weight, the share of the pixel that lies inside. */
export class ZoneStatistics {
  count = 0;
  #mean = 0;
  #squares = 0;
  #min = Infinity;
  #max = -Infinity;
  #sum = 0;
  #kept: Float64Array | null;
  /** Weights of the kept values; null if all are 1. */
  #weights: Float64Array | null;
  #keptCount = 0;
  readonly #classes: Map<number, number> | null;
  readonly #maxKept: number;

  constructor(asked: Asked) {
    this.#kept = asked.percentiles ? new Float64Array(1_024) : null;
    this.#weights = asked.percentiles && asked.shares ? new Float64Array(1_024) : null;
    this.#classes = asked.classes ? new Map() : null;
    this.#maxKept = Math.floor(maxKept / asked.bands / (asked.shares ? 2 : 1));
  }

  /** Throws `KitError` if there are too many pixels for percentiles, or too many values for classes. */
  add(value: number, weight = 1): void {
    this.count += weight;
    const step = value - this.#mean;
    this.#mean += (weight * step) / this.count;
    this.#squares += weight * step * (value - this.#mean);
    this.#min = Math.min(this.#min, value);
    this.#max = Math.max(this.#max, value);
    this.#sum += weight * value;
    if (this.#kept) this.#keep(value, weight);
    if (this.#classes) this.#countClass(value, weight);
  }

  /** Values of a zone without pixels are null, but for their number and sum. The deviation is that of the population. */
  get values() {
    const of = (value: number) => (this.count === 0 ? null : value);
    return {
      count: this.count,
      mean: of(this.#mean),
      min: of(this.#min),
      max: of(this.#max),
      // Rounding can make the sum of squares of equal values less than 0.
      stdDev: of(Math.sqrt(Math.max(0, this.#squares) / this.count)),
      sum: this.#sum,
      ...this.#percentiles(),
      majority: this.#majority(),
      variety: this.#classes?.size ?? null,
    };
  }

  /** Each value with its number of pixels, in ascending order. Empty unless classes were asked for. */
  get classes(): readonly (readonly [value: number, count: number])[] {
    return [...(this.#classes ?? [])].toSorted(([a], [b]) => a - b);
  }

  #keep(value: number, weight: number): void {
    if (this.#keptCount === this.#maxKept)
      throw new KitError(
        'zone_too_large',
        `a zone has more than ${this.#maxKept} pixels, too many for percentiles of this many bands; leave percentiles out, choose one band, or divide the zone`,
        { status: 422 },
      );
    const at = this.#keptCount++;
    if (at === this.#kept!.length) {
      this.#kept = grown(this.#kept!);
      this.#weights &&= grown(this.#weights);
    }
    this.#kept![at] = value;
    if (this.#weights) this.#weights[at] = weight;
  }

  #countClass(value: number, weight: number): void {
    this.#classes!.set(value, (this.#classes!.get(value) ?? 0) + weight);
    if (this.#classes!.size > maxClasses)
      throw new KitError(
        'too_many_classes',
        `a zone has more than ${maxClasses} different values, so they are no classes; leave classes out`,
        { status: 422 },
      );
  }

  /** By linear interpolation, as numpy, R (type 7) and QGIS do. */
  #percentiles(): Percentiles {
    const count = this.#keptCount;
    if (!this.#kept || count === 0) return { p10: null, p25: null, median: null, p75: null, p90: null };
    const values = this.#kept.subarray(0, count);
    const quantile = this.#weights ? weightedQuantile(values, this.#weights, this.count) : plainQuantile(values);
    const { p10, p25, median, p75, p90 } = percentiles;
    return { p10: quantile(p10), p25: quantile(p25), median: quantile(median), p75: quantile(p75), p90: quantile(p90) };
  }

  /** The most frequent value; of several the lowest. */
  #majority(): number | null {
    let [best, most]: [number | null, number] = [null, 0];
    for (const [value, count] of this.classes) if (count > most) [best, most] = [value, count];
    return best;
  }
}

function grown(values: Float64Array): Float64Array {
  const more = new Float64Array(2 * values.length);
  more.set(values);
  return more;
}

const between = (a: number, b: number, share: number) => a + share * (b - a);

/** Sorts the values in place. */
function plainQuantile(values: Float64Array): (share: number) => number {
  values.sort();
  return (share) => {
    const place = share * (values.length - 1);
    const low = Math.floor(place);
    return between(values[low]!, values[Math.min(low + 1, values.length - 1)]!, place - low);
  };
}

/** The weighted quantile of exactextract: value i, in ascending order, has the place `i * weight + (n - 1) * (weights before it)`. */
function weightedQuantile(values: Float64Array, weights: Float64Array, total: number): (share: number) => number {
  const order = Uint32Array.from(values, (_, i) => i).sort((a, b) => values[a]! - values[b]!);
  let before = 0;
  const places = Float64Array.from(order, (index, i) => {
    const place = i * weights[index]! + (values.length - 1) * before;
    before += weights[index]!;
    return place;
  });
  return (share) => {
    const wanted = share * total * (values.length - 1);
    const next = places.findIndex((place) => place > wanted);
    if (next === 0 || next === -1) return values[order.at(next)!]!;
    const [from, to] = [places[next - 1]!, places[next]!];
    return between(values[order[next - 1]!]!, values[order[next]!]!, (wanted - from) / (to - from));
  };
}

type Row = Readonly<Record<string, string | number | null>>;

/** Comma-separated, with a header (RFC 4180). A text that a spreadsheet would read as a formula gets a leading apostrophe. */
export function csvOf(columns: readonly string[], rows: readonly Row[]): string {
  const cell = (value: string | number | null | undefined) => {
    if (typeof value !== 'string') return String(value ?? '');
    const plain = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  };
  const lines = [columns.join(','), ...rows.map((row) => columns.map((name) => cell(row[name])).join(','))];
  return `${lines.join('\r\n')}\r\n`;
}
