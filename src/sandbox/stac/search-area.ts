import type { Geometry } from 'geojson';
import type { Box } from '../../raster/footprint.ts';
import { segmentMeetsBox } from './outline.ts';
import { Shape } from './shape.ts';

/** A geometry that many footprints are compared with. Most are decided by their boxes; the rest by their shape. */
export class SearchArea {
  #shape: Shape;

  constructor(geometry: Geometry) {
    this.#shape = new Shape(geometry);
  }

  /** West is never greater than east. */
  get box(): Box {
    return this.#shape.box;
  }

  /** True where a footprint shares a point with the area. `box` is the footprint's; west greater than east across the antimeridian. */
  meets(box: Box, footprint: () => Geometry): boolean {
    const isPolygonal = this.#shape.polygonCount > 0 && this.#shape.points.length === 0;
    const relation = isPolygonal && box[0] <= box[2] ? this.#relationTo(box) : 'crossing';
    return relation === 'crossing' ? this.#shape.meets(new Shape(footprint())) : relation === 'within';
  }

  #relationTo(box: Box): 'apart' | 'within' | 'crossing' {
    const [west, south, east, north] = box;
    const isIn = (x: number, y: number) => x >= west && x <= east && y >= south && y <= north;
    const touches = (x0: number, y0: number, x1: number, y1: number) =>
      isIn(x0, y0) || isIn(x1, y1) || segmentMeetsBox(x0, y0, x1, y1, west, south, east, north);
    if (this.#shape.someEdge(touches, box)) return 'crossing';
    // No edge meets the box: one corner speaks for all of it.
    return this.#shape.holds(west, south) ? 'within' : 'apart';
  }
}
