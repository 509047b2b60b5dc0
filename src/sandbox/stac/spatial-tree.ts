import Flatbush from 'flatbush';
import type { Box } from '../../raster/footprint.ts';

/** Decides by time and number of the collection. */
export type Accepts = (atMs: number, collection: number) => boolean;
/** Decides by the footprint of a row whose box is given. */
export type Meets = (row: number, west: number, south: number, east: number, north: number) => boolean;

export interface KeptTree {
  readonly rows: Uint32Array;
  /** As flatbush has it. */
  readonly tree: Uint8Array;
}

/** Cells of a twelfth of a degree or so: 12 bits to an axis. */
const cells = 4096;

/** Rows that a search has room for at first: more than most find. */
const firstRoom = 64;

/**
 * Boxes with the columns that a search looks at first, kept in the order of where they lie: a search reads
 * memory in runs, which makes large boxes several times faster than in the order of insertion.
 */
export class SpatialTree {
  #tree: Flatbush;
  #rows: Uint32Array;
  #datetimesMs: Float64Array;
  #collections: Uint16Array;

  /** `rows` in the order in which `tree` has their boxes. */
  private constructor(tree: Flatbush, rows: Uint32Array, datetimesMs: Float64Array, collections: Uint16Array) {
    this.#tree = tree;
    this.#rows = rows;
    this.#datetimesMs = new Float64Array(rows.length);
    this.#collections = new Uint16Array(rows.length);
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      this.#datetimesMs[i] = datetimesMs[row] as number;
      this.#collections[i] = collections[row] as number;
    }
  }

  /** `boxes` has west, south, east, north of each row. */
  static of(boxes: Float64Array, datetimesMs: Float64Array, collections: Uint16Array): SpatialTree {
    const rows = byPlace(boxes);
    const tree = new Flatbush(rows.length);
    for (const row of rows)
      tree.add(boxes[row * 4] as number, boxes[row * 4 + 1] as number, boxes[row * 4 + 2], boxes[row * 4 + 3]);
    tree.finish();
    return new SpatialTree(tree, rows, datetimesMs, collections);
  }

  /** What `kept` gave, of the same rows. */
  static from(kept: KeptTree, datetimesMs: Float64Array, collections: Uint16Array): SpatialTree {
    return new SpatialTree(Flatbush.from(kept.tree.buffer), kept.rows, datetimesMs, collections);
  }

  get kept(): KeptTree {
    return { rows: this.#rows, tree: new Uint8Array(this.#tree.data) };
  }

  /** True where the box holds everything. */
  isWithin([west, south, east, north]: Box): boolean {
    const { minX, minY, maxX, maxY } = this.#tree;
    return west <= minX && south <= minY && east >= maxX && north >= maxY;
  }

  /** Rows whose box meets the box, as far as `accepts` and `meets` let them through. */
  search([west, south, east, north]: Box, accepts: Accepts, meets: Meets): Uint32Array {
    const [rows, datetimesMs, collections] = [this.#rows, this.#datetimesMs, this.#collections];
    let found = new Uint32Array(firstRoom);
    let count = 0;
    // Flatbush would gather them in an array of its own, to be written anew as rows.
    this.#tree.search(west, south, east, north, (leaf, x0, y0, x1, y1) => {
      if (accepts(datetimesMs[leaf] as number, collections[leaf] as number)) {
        const row = rows[leaf] as number;
        if (meets(row, x0, y0, x1, y1)) {
          if (count === found.length) found = larger(found, rows.length);
          found[count++] = row;
        }
      }
      return false;
    });
    return found.subarray(0, count);
  }
}

/** Four times the room, and never more than `most`. */
function larger(rows: Uint32Array, most: number): Uint32Array<ArrayBuffer> {
  const copy = new Uint32Array(Math.min(most, rows.length * 4));
  copy.set(rows);
  return copy;
}

/** Rows along a Z-order curve of their boxes' centres. */
function byPlace(boxes: Float64Array): Uint32Array {
  const count = boxes.length / 4;
  // Cell and row in one number (24 and 29 bits), which sorts without a comparison function.
  const keys = new Float64Array(count);
  for (let row = 0; row < count; row++) {
    const x = cellOf(((boxes[row * 4] as number) + (boxes[row * 4 + 2] as number)) / 2, 180);
    const y = cellOf(((boxes[row * 4 + 1] as number) + (boxes[row * 4 + 3] as number)) / 2, 90);
    keys[row] = (spread(x) | (spread(y) << 1)) * 2 ** 29 + row;
  }
  keys.sort();
  return Uint32Array.from(keys, (key) => key % 2 ** 29);
}

function cellOf(degrees: number, limit: number): number {
  return Math.min(cells - 1, Math.max(0, Math.floor(((degrees + limit) / (2 * limit)) * cells)));
}

/** Puts a zero between each two of 12 bits. */
function spread(value: number): number {
  let bits = (value | (value << 8)) & 0x00ff00ff;
  bits = (bits | (bits << 4)) & 0x0f0f0f0f;
  bits = (bits | (bits << 2)) & 0x33333333;
  return (bits | (bits << 1)) & 0x55555555;
}
