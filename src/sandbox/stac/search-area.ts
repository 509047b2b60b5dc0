import { booleanIntersects } from '@turf/boolean-intersects';
import Flatbush from 'flatbush';
import type { Geometry, Position } from 'geojson';
import { boxOfPositions, type Box } from '../../raster/footprint.ts';
import { positionsOf } from '../../contract/index.ts';
import { segmentMeetsBox } from './outline.ts';

/** A geometry that many footprints are compared with. Most are decided by their boxes; the rest by their shape. */
export class SearchArea {
  readonly geometry: Geometry;
  /** West is never greater than east. */
  readonly box: Box;
  #edges: Edges | null;

  constructor(geometry: Geometry) {
    this.geometry = geometry;
    this.box = boxOfPositions(positionsOf(geometry));
    const polygons = geometry.type === 'Polygon' ? [geometry.coordinates] : geometry.type === 'MultiPolygon' ? geometry.coordinates : null;
    this.#edges = polygons && new Edges(polygons);
  }

  /** True where a footprint shares a point with the area. `box` is the footprint's; west greater than east across the antimeridian. */
  meets(box: Box, footprint: () => Geometry): boolean {
    const relation = this.#edges && box[0] <= box[2] ? this.#edges.relationTo(box) : 'crossing';
    return relation === 'crossing' ? booleanIntersects(footprint(), this.geometry) : relation === 'within';
  }
}

/** The edges of polygons, found by place. */
class Edges {
  #tree: Flatbush;
  /** From and to of each edge. */
  #ends: Float64Array;
  /** Which polygon an edge is of: parts that overlap must not undo each other. */
  #polygons: Uint32Array;
  #east: number;

  constructor(polygons: readonly Position[][][]) {
    const edges = polygons.flatMap((rings, polygon) => rings.flatMap((ring) => ring.slice(1).map((to, i) => ({ from: ring[i]!, to, polygon }))));
    this.#ends = Float64Array.from(edges.flatMap(({ from, to }) => [from[0]!, from[1]!, to[0]!, to[1]!]));
    this.#polygons = Uint32Array.from(edges, ({ polygon }) => polygon);
    this.#tree = new Flatbush(edges.length);
    for (const { from: [x0 = 0, y0 = 0], to: [x1 = 0, y1 = 0] } of edges) this.#tree.add(Math.min(x0, x1), Math.min(y0, y1), Math.max(x0, x1), Math.max(y0, y1));
    this.#tree.finish();
    this.#east = this.#tree.maxX;
  }

  relationTo([west, south, east, north]: Box): 'apart' | 'within' | 'crossing' {
    const touches = (edge: number) => {
      const [x0, y0, x1, y1] = this.#endsOf(edge);
      return isIn(x0, y0) || isIn(x1, y1) || segmentMeetsBox(x0, y0, x1, y1, west, south, east, north);
    };
    const isIn = (x: number, y: number) => x >= west && x <= east && y >= south && y <= north;
    if (this.#tree.search(west, south, east, north).some(touches)) return 'crossing';
    // No edge meets the box: one corner speaks for all of it, by the even-odd rule for each polygon.
    const inside = new Map<number, boolean>();
    for (const edge of this.#tree.search(west, south, Math.max(west, this.#east), south)) {
      const [x0, y0, x1, y1] = this.#endsOf(edge);
      if (y0 > south === y1 > south || west >= ((x1 - x0) * (south - y0)) / (y1 - y0) + x0) continue;
      const polygon = this.#polygons[edge]!;
      inside.set(polygon, !inside.get(polygon));
    }
    return [...inside.values()].includes(true) ? 'within' : 'apart';
  }

  #endsOf(edge: number): readonly [number, number, number, number] {
    const ends = this.#ends;
    return [ends[edge * 4]!, ends[edge * 4 + 1]!, ends[edge * 4 + 2]!, ends[edge * 4 + 3]!];
  }
}
