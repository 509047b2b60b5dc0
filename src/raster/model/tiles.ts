/** Only for child processes: loads GDAL. */
import { Tensor, type InferenceSession } from 'onnxruntime-node';
import { KitError } from '../../contract/kit-error.ts';
import { BandReader } from '../band-reader.ts';
import type { Grid } from '../cog.ts';
import type { SceneBand } from '../scene.ts';
import type { Model } from './model-file.ts';
import { valuesOf, type ModelValues } from './model-values.ts';
import { messageOf } from '../../files/index.ts';

/** Window that one run of the model reads (`tileSize` per side, perhaps beyond the raster), and the part of it that counts. */
export interface Tile {
  /** Upper left corner of the window. May be negative. */
  readonly x: number;
  readonly y: number;
  /** The part that counts: the window without the overlap, except at the raster's edges. */
  readonly core: { readonly x: number; readonly y: number; readonly width: number; readonly height: number };
}

/** Tiles that cover the raster, their cores side by side. */
export function tilesOf({ width, height }: Grid, { tileSize, overlap }: Model): Tile[] {
  const step = tileSize - 2 * overlap;
  const tiles: Tile[] = [];
  for (let y = 0; y < height; y += step) {
    for (let x = 0; x < width; x += step) {
      tiles.push({
        x: x - overlap,
        y: y - overlap,
        core: { x, y, width: Math.min(step, width - x), height: Math.min(step, height - y) },
      });
    }
  }
  return tiles;
}

/** Reads tiles and runs the model on them, in buffers that are used again. */
export class TileReader {
  #session: InferenceSession;
  #bands: readonly SceneBand[];
  #model: Model;
  #input: Float32Array;
  #window: Float64Array;
  #readers: readonly BandReader[];
  #isValid: Uint8Array;
  /** The range of values in use. Null if the model has no ranges. */
  readonly values: ModelValues | null;

  constructor(session: InferenceSession, bands: readonly SceneBand[], model: Model) {
    this.#session = session;
    this.#bands = bands;
    this.#model = model;
    const pixels = model.tileSize ** 2;
    this.#input = new Float32Array(bands.length * pixels);
    this.#window = new Float64Array(pixels);
    const scaling = model.values ? 'physical' : 'stored';
    this.#readers = bands.map((band) => new BandReader(band, { scaling }));
    this.values = valuesOf(model, this.#readers);
    this.#isValid = new Uint8Array(pixels);
  }

  /** The model's outputs, and 1 for every pixel of the tile where all bands have data. Both are good until the next call. */
  async run(tile: Tile): Promise<{ outputs: InferenceSession.OnnxValueMapType; isValid: Uint8Array }> {
    const { tileSize } = this.#model;
    this.#isValid.fill(1);
    this.#bands.forEach((band, i) => this.#readBand(band, tile, i));
    const [name] = this.#session.inputNames;
    const tensor = new Tensor('float32', this.#input, [1, this.#bands.length, tileSize, tileSize]);
    const outputs = await this.#session.run({ [name ?? '']: tensor }).catch((cause: unknown) => {
      throw new KitError(
        'bad_model',
        `model ${this.#model.id} refuses its input of ${this.#bands.length} bands and ${tileSize} x ${tileSize} pixels: ${messageOf(cause)}`,
      );
    });
    return { outputs, isValid: this.#isValid };
  }

  /** Beyond the raster the nearest pixel is repeated, as it is where a value is missing the mean. */
  #readBand({ band }: SceneBand, { x, y }: Tile, index: number): void {
    const { tileSize, normalisation } = this.#model;
    const { x: width, y: height } = band.size;
    const [left, top] = [Math.max(0, x), Math.max(0, y)];
    const [columns, rows] = [Math.min(width, x + tileSize) - left, Math.min(height, y + tileSize) - top];
    this.#readers[index]!.read([left, top, columns, rows], this.#window);
    const [mean, std] = [normalisation?.mean[index] ?? 0, normalisation?.std[index] ?? 1];
    const { factor, offset: added } = this.values ?? { factor: 1, offset: 0 };
    const offset = index * tileSize ** 2;
    for (let row = 0; row < tileSize; row++) {
      const from = Math.min(rows - 1, Math.max(0, y + row - top)) * columns;
      for (let column = 0; column < tileSize; column++) {
        const at = row * tileSize + column;
        // The index lies within the window, and `?? 0` takes time for each pixel.
        const value = this.#window[from + Math.min(columns - 1, Math.max(0, x + column - left))] as number;
        const isMissing = Number.isNaN(value);
        if (isMissing) this.#isValid[at] = 0;
        this.#input[offset + at] = isMissing ? 0 : (value * factor + added - mean) / std;
      }
    }
  }
}
