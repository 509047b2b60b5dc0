/** Only for child processes: a coarse raster's values at the pixels of a finer one. */
import type gdal from 'gdal-async';
import type { BandReader } from '../step-kit.ts';

export const upsamplings = ['nearest', 'bilinear', 'cubic'] as const;
export type Upsampling = (typeof upsamplings)[number];

/** From a fine raster's column or row to the coarse one's: `coarse = fine * scale + offset`, both counted in pixels from the edge. */
export interface Axis {
  readonly scale: number;
  readonly offset: number;
}

/** Four coarse pixels and their weights for one fine pixel; a `first` that lies outside is cut to the edge pixel where it is read. */
interface Taps {
  readonly first: Int32Array;
  /** Four for each fine pixel. */
  readonly weights: Float64Array;
}

/** Pixels at each side that a coarse pixel's neighbours reach. */
const margin = 2;

/** Weights of the four pixels around `t`, from 0 at the second to 1 at the third. */
const kernels: Readonly<Record<Upsampling, (t: number) => readonly [number, number, number, number]>> = {
  nearest: (t) => (t < 0.5 ? [0, 1, 0, 0] : [0, 0, 1, 0]),
  bilinear: (t) => [0, 1 - t, t, 0],
  // Keys (1981), a = -0.5.
  cubic: (t) => [
    ((-0.5 * t + 1) * t - 0.5) * t,
    (1.5 * t - 2.5) * t * t + 1,
    ((-1.5 * t + 2) * t + 0.5) * t,
    (0.5 * t - 0.5) * t * t,
  ],
};

function tapsOf({ scale, offset }: Axis, from: number, count: number, method: Upsampling): Taps {
  const first = new Int32Array(count);
  const weights = new Float64Array(count * 4);
  for (let i = 0; i < count; i++) {
    // Position of the pixel's centre, from the centre of the first coarse pixel.
    const at = (from + i + 0.5) * scale + offset - 0.5;
    const second = Math.floor(at);
    first[i] = second - 1;
    weights.set(kernels[method](at - second), i * 4);
  }
  return { first, weights };
}

/**
 * Gives rows of a coarse band at the columns of a fine raster. A pixel whose neighbours are not all there is
 * computed from those of its nearest four that are, and has no value (NaN) where the nearest has none, or where it lies outside the band.
 */
export class Upsampler {
  readonly #band: gdal.RasterBand;
  readonly #reader: BandReader;
  readonly #method: Upsampling;
  readonly #rowAxis: Axis;
  readonly #columnAxis: Axis;
  readonly #width: number;
  readonly #columns: Taps;
  #window = new Float64Array(0);
  #firstRow = 0;
  /** A coarse row at the wanted height, with its edge pixels repeated at both sides. */
  readonly #line: Float64Array;

  /** `width`: columns of the fine raster. */
  constructor(
    reader: BandReader,
    axes: { readonly columns: Axis; readonly rows: Axis },
    width: number,
    method: Upsampling,
  ) {
    const { band } = reader;
    this.#band = band;
    this.#reader = reader;
    this.#method = method;
    this.#rowAxis = axes.rows;
    this.#columnAxis = axes.columns;
    this.#width = width;
    this.#columns = tapsOf(axes.columns, 0, width, method);
    this.#line = new Float64Array(band.size.x + 2 * margin);
  }

  /** Reads what the fine rows `y` to `y + count` need. */
  load(y: number, count: number): void {
    const { x: width, y: height } = this.#band.size;
    const rowOf = (row: number) => clamp(Math.floor(row * this.#rowAxis.scale + this.#rowAxis.offset), 0, height - 1);
    const [above, below] = [rowOf(y), rowOf(y + count)];
    const from = Math.max(0, Math.min(above, below) - margin);
    const rows = Math.min(height, Math.max(above, below) + margin + 1) - from;
    if (this.#window.length < width * rows) this.#window = new Float64Array(width * rows);
    this.#reader.read([0, from, width, rows], this.#window);
    this.#firstRow = from;
  }

  /** Fills `out` with the fine row `y`, which `load` has covered. */
  fill(y: number, out: Float64Array): void {
    const { x: width, y: height } = this.#band.size;
    const rows = tapsOf(this.#rowAxis, y, 1, this.#method);
    const top = rows.first[0]!;
    const at = [0, 1, 2, 3].map((k) => (clamp(top + k, 0, height - 1) - this.#firstRow) * width) as [
      number,
      number,
      number,
      number,
    ]; // four numbers, which `map` does not count
    const center = (y + 0.5) * this.#rowAxis.scale + this.#rowAxis.offset;
    if (center < 0 || center > height) {
      out.fill(NaN);
      return;
    }
    const [r0 = 0, r1 = 0, r2 = 0, r3 = 0] = rows.weights;
    const window = this.#window;
    const line = this.#line;
    for (let x = 0; x < width; x++)
      line[x + margin] =
        window[at[0] + x]! * r0 + window[at[1] + x]! * r1 + window[at[2] + x]! * r2 + window[at[3] + x]! * r3;
    line.fill(line[margin]!, 0, margin);
    line.fill(line[width + margin - 1]!, width + margin);
    const { first, weights } = this.#columns;
    const { scale, offset } = this.#columnAxis;
    for (let x = 0; x < this.#width; x++) {
      const column = (x + 0.5) * scale + offset;
      if (column < 0 || column > width) {
        out[x] = NaN;
        continue;
      }
      const i = first[x]! + margin;
      const w = x * 4;
      const value =
        line[i]! * weights[w]! +
        line[i + 1]! * weights[w + 1]! +
        line[i + 2]! * weights[w + 2]! +
        line[i + 3]! * weights[w + 3]!;
      out[x] = Number.isNaN(value)
        ? this.#ofThoseThere(first[x]! + 1, column - 0.5, at[1], at[2], center - 0.5 - (top + 1))
        : value;
    }
  }

  /** Value from the four pixels around, bilinear in those that hold a value; NaN if the nearest has none. */
  #ofThoseThere(left: number, column: number, upper: number, lower: number, down: number): number {
    const last = this.#band.size.x - 1;
    const right = column - left;
    const [t, u] = this.#method === 'nearest' ? [Math.round(right), Math.round(down)] : [right, down];
    const [a, b] = [clamp(left, 0, last), clamp(left + 1, 0, last)];
    const values = [
      this.#window[upper + a]!,
      this.#window[upper + b]!,
      this.#window[lower + a]!,
      this.#window[lower + b]!,
    ];
    const weights = [(1 - t) * (1 - u), t * (1 - u), (1 - t) * u, t * u];
    if (Number.isNaN(values[(u < 0.5 ? 0 : 2) + (t < 0.5 ? 0 : 1)]!)) return NaN;
    let [sum, whole] = [0, 0];
    values.forEach((value, i) => {
      if (Number.isNaN(value)) return;
      sum += value * weights[i]!;
      whole += weights[i]!;
    });
    return sum / whole;
  }
}

const clamp = (value: number, low: number, high: number) => Math.min(high, Math.max(low, value));
