import Flatbush from 'flatbush';
import type { Geometry, Position } from 'geojson';
import { orient2d } from 'robust-predicates';
import { boxOfPositions, type Box } from '../../raster/footprint.ts';

/**
 * A geometry as points, edges and polygons, its edges found by place: two shapes are compared in little more time than
 * their positions take together, where they do not lie on top of each other.
 */
export class Shape {
  /** West is never greater than east. */
  readonly box: Box;
  readonly points: readonly Position[];
  readonly polygonCount: number;
  /** One position of each part that hangs together: where no edges meet, it speaks for all of the part. */
  #representatives: readonly Position[];
  #places: Flatbush;
  /** From and to of each edge. */
  #ends: Float64Array;
  /** Polygon of each edge, so that overlapping parts do not undo each other; -1 for an edge of a line. */
  #polygons: Int32Array;
  #tree: Flatbush | null;

  constructor(geometry: Geometry) {
    const parts = flattened(geometry);
    const positionsOfType = (type: string) => parts.flatMap((part) => (part.type === type ? [part.coordinates] : []));
    // Coordinates of these types have as many levels as follow from their names.
    this.points = [...positionsOfType('Point'), ...positionsOfType('MultiPoint').flat()] as Position[];
    const lines = [...positionsOfType('LineString'), ...positionsOfType('MultiLineString').flat()] as Position[][];
    const polygons = [...positionsOfType('Polygon'), ...positionsOfType('MultiPolygon').flat()] as Position[][][];
    this.polygonCount = polygons.length;
    this.#representatives = [...this.points, ...[...lines, ...polygons.flat()].map((path) => path[0] ?? [])];
    const paths = [
      ...lines.map((path) => ({ path, polygon: -1 })),
      ...polygons.flatMap((rings, polygon) => rings.map((path) => ({ path, polygon }))),
    ];
    this.#places = new Flatbush(this.#representatives.length);
    for (const [x = 0, y = 0] of this.#representatives) this.#places.add(x, y, x, y);
    this.#places.finish();
    this.box = boxOfPositions([...this.points, ...paths.flatMap(({ path }) => path)]);
    const count = paths.reduce((sum, { path }) => sum + Math.max(0, path.length - 1), 0);
    this.#ends = new Float64Array(count * 4);
    this.#polygons = new Int32Array(count);
    this.#tree = count > 0 ? new Flatbush(count) : null;
    let edge = 0;
    for (const { path, polygon } of paths) {
      for (let i = 1; i < path.length; i++) {
        const [[x0 = 0, y0 = 0], [x1 = 0, y1 = 0]] = [path[i - 1] ?? [], path[i] ?? []];
        this.#ends.set([x0, y0, x1, y1], edge * 4);
        this.#polygons[edge++] = polygon;
        this.#tree?.add(Math.min(x0, x1), Math.min(y0, y1), Math.max(x0, x1), Math.max(y0, y1));
      }
    }
    this.#tree?.finish();
  }

  /** True where the two share a point; edges and corners count. */
  meets(other: Shape): boolean {
    const [a, b] = [this.box, other.box];
    if (a[0] > b[2] || a[2] < b[0] || a[1] > b[3] || a[3] < b[1]) return false;
    const [few, many] = this.#polygons.length <= other.#polygons.length ? [this, other] : [other, this];
    if (few.#anyEdge((x0, y0, x1, y1) => many.#touchesEdge(x0, y0, x1, y1))) return true;
    // No edges meet: a part of one lies wholly in the other, or they are apart.
    const isPointOf = (shape: Shape) => {
      const known = new Set(shape.points.map(([x, y]) => `${x} ${y}`));
      return ([x, y]: Position) => known.has(`${x} ${y}`);
    };
    return (
      this.#reachesInto(other) ||
      other.#reachesInto(this) ||
      (this.points.length > 0 && other.points.length > 0 && other.points.some(isPointOf(this)))
    );
  }

  /** True where a part of this shape lies in the other. */
  #reachesInto(other: Shape): boolean {
    return this.#places.search(...other.box).some((part) => other.covers(this.#representatives[part] ?? []));
  }

  /** True for a position in a polygon of this shape, or on one of its edges. */
  covers([x = 0, y = 0]: Position): boolean {
    const [west, south, east, north] = this.box;
    if (this.#tree === null || x < west || x > east || y < south || y > north) return false;
    if (this.#touchesEdge(x, y, x, y)) return true;
    return this.polygonCount > 0 && this.holds(x, y);
  }

  /** By the even-odd rule for each polygon, for a position on no edge. */
  holds(x: number, y: number): boolean {
    const inside = new Set<number>();
    this.#tree?.search(x, y, Math.max(x, this.box[2]), y, (edge) => {
      // The tree names edges that it was given.
      const polygon = this.#polygons[edge] as number;
      const [x0, y0, x1, y1] = this.#endsOf(edge);
      // The edge passes the height of the position, and does so east of it.
      if (polygon >= 0 && y0 > y !== y1 > y && orient2d(x0, y0, x1, y1, x, y) > 0 === y0 > y1) {
        if (!inside.delete(polygon)) inside.add(polygon);
      }
      return false;
    });
    return inside.size > 0;
  }

  /** True where an edge fulfils `test`. With a box, of the edges whose own boxes meet it. */
  someEdge(
    test: (x0: number, y0: number, x1: number, y1: number) => boolean,
    [west, south, east, north]: Box,
  ): boolean {
    let found = false;
    this.#tree?.search(west, south, east, north, (edge) => {
      found ||= test(...this.#endsOf(edge));
      return false;
    });
    return found;
  }

  #anyEdge(test: (x0: number, y0: number, x1: number, y1: number) => boolean): boolean {
    for (let edge = 0; edge < this.#polygons.length; edge++) if (test(...this.#endsOf(edge))) return true;
    return false;
  }

  #touchesEdge(x0: number, y0: number, x1: number, y1: number): boolean {
    // The innermost of all loops of a search: nothing is made in it.
    const ends = this.#ends;
    let found = false;
    this.#tree?.search(Math.min(x0, x1), Math.min(y0, y1), Math.max(x0, x1), Math.max(y0, y1), (edge) => {
      if (!found)
        found = segmentsMeet(
          x0,
          y0,
          x1,
          y1,
          ends[edge * 4] ?? 0,
          ends[edge * 4 + 1] ?? 0,
          ends[edge * 4 + 2] ?? 0,
          ends[edge * 4 + 3] ?? 0,
        );
      return false;
    });
    return found;
  }

  #endsOf(edge: number): [number, number, number, number] {
    const ends = this.#ends;
    return [ends[edge * 4] ?? 0, ends[edge * 4 + 1] ?? 0, ends[edge * 4 + 2] ?? 0, ends[edge * 4 + 3] ?? 0];
  }
}

/** Two segments whose boxes meet. Exact: the orientations are not rounded. */
function segmentsMeet(
  x0: number,
  y0: number,
  x1: number,
  y1: number,
  x2: number,
  y2: number,
  x3: number,
  y3: number,
): boolean {
  const a = orient2d(x0, y0, x1, y1, x2, y2);
  const b = orient2d(x0, y0, x1, y1, x3, y3);
  if ((a > 0 && b > 0) || (a < 0 && b < 0)) return false;
  const c = orient2d(x2, y2, x3, y3, x0, y0);
  const d = orient2d(x2, y2, x3, y3, x1, y1);
  // All four are zero on one line, where the boxes decide: they meet.
  return !((c > 0 && d > 0) || (c < 0 && d < 0));
}

type Simple = Exclude<Geometry, { type: 'GeometryCollection' }>;

/** Without collections, however deep they are in each other. */
function flattened(geometry: Geometry): Simple[] {
  const simple: Simple[] = [];
  const open: Geometry[] = [geometry];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.type === 'GeometryCollection') open.push(...next.geometries);
    else simple.push(next);
  }
  return simple;
}
