import type { Geometry } from 'geojson';
import type { Box, Footprint } from '../../raster/footprint.ts';
import { Shape } from './shape.ts';

/** A geometry to compare with many footprints. The box of a footprint decides most comparisons, and its shape the others. */
export class SearchArea {
  #shape: Shape;

  constructor(geometry: Geometry) {
    this.#shape = new Shape(geometry);
  }

  /** West is never greater than east. */
  get box(): Box {
    return this.#shape.box;
  }

  /** True if the footprint and the area share a point. `box` is the footprint's box. Its west is greater than its east if it crosses the antimeridian. */
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
    // No edge meets the box, so the whole box is on the same side as one corner.
    return this.#shape.holds(west, south) ? 'within' : 'apart';
  }
}

/** True if the footprint and the box share a point. West is not greater than east. */
export function meetsBox(footprint: Footprint, [west, south, east, north]: Box): boolean {
  const rings = footprint.type === 'Polygon' ? footprint.coordinates : footprint.coordinates.flat();
  let isInside = false;
  for (const ring of rings) {
    for (const [i, [x1 = 0, y1 = 0]] of ring.entries()) {
      if (x1 >= west && x1 <= east && y1 >= south && y1 <= north) return true;
      const [x0 = 0, y0 = 0] = ring[i - 1] ?? [x1, y1];
      if (segmentMeetsBox(x0, y0, x1, y1, west, south, east, north)) return true;
      // Even-odd rule for one corner. If no edge meets the box, the whole box is on the same side as the corner.
      if (y0 > south !== y1 > south && west < ((x1 - x0) * (south - y0)) / (y1 - y0) + x0) isInside = !isInside;
    }
  }
  return isInside;
}

/** True if an edge meets the box. Neither of its ends is in the box. */
function segmentMeetsBox(
  x0: number,
  y0: number,
  x1: number,
  y1: number,
  west: number,
  south: number,
  east: number,
  north: number,
): boolean {
  if ((x0 < west && x1 < west) || (x0 > east && x1 > east) || (y0 < south && y1 < south) || (y0 > north && y1 > north))
    return false;
  // The box's corners lie on both sides of the line, or on it.
  const side = (x: number, y: number) => (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0);
  const a = side(west, south);
  const b = side(east, south);
  const c = side(east, north);
  const d = side(west, north);
  return !((a > 0 && b > 0 && c > 0 && d > 0) || (a < 0 && b < 0 && c < 0 && d < 0));
}
