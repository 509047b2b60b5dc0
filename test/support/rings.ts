/** Rings of polygons for tests. */

export type Ring = [number, number][];

/** The closed ring of a box. */
export const box = (west: number, south: number, east: number, north: number): Ring => [
  [west, south],
  [east, south],
  [east, north],
  [west, north],
  [west, south],
];
