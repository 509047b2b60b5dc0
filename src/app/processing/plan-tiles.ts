/** Size of a raster in pixels. */
export interface RasterSize {
  readonly width: number;
  readonly height: number;
}

/** Rows of a raster that one job computes. */
export interface Tile {
  readonly number: number;
  readonly from: number;
  /** Row after the last one. Null: to the end of the raster, whatever its height. */
  readonly to: number | null;
}

/** Rows of blocks of the outputs (`writePixels`). A tile is whole rows of them. */
const blockRows = 512;
/** A raster is cut if it has more pixels than this number of tiles. */
const leastTiles = 4;

/** Cuts a raster into tiles of at most `tilePixels`, but whole rows of blocks. Empty if it is too small for that. */
export function planTiles({ width, height }: RasterSize, tilePixels: number): Tile[] {
  if (width * height <= leastTiles * tilePixels) return [];
  const rows = Math.max(1, Math.floor(tilePixels / width / blockRows)) * blockRows;
  const count = Math.ceil(height / rows);
  if (count < 2) return [];
  return Array.from({ length: count }, (_, number) => ({
    number,
    from: number * rows,
    to: number === count - 1 ? null : (number + 1) * rows,
  }));
}
