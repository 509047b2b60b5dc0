import type { MultiPolygon, Polygon, Position } from 'geojson';

export type Footprint = Polygon | MultiPolygon;

/** [west, south, east, north]; west is greater than east across the antimeridian (RFC 7946, 5.2). */
export type Box = readonly [number, number, number, number];

const segmentsPerEdge = 8;
/** Degrees: about a metre. */
const precision = 1e5;
const flatDegrees = 2e-5;
/** Degrees by which a grid may reach past a pole: half a pixel of a grid whose first row has its centre at the pole. */
const beyondPole = 5;
const clampedLatitude = (latitude: number) => Math.max(-90, Math.min(90, latitude));

/**
 * Footprint of a rectangle whose corners lie in another reference system: its edges, which become curves,
 * transformed at several points each. Split at the antimeridian (RFC 7946, 3.1.9). Null where a point has
 * no longitude and latitude.
 */
export function footprintOf(
  corners: readonly Position[],
  toLonLat: (x: number, y: number) => readonly [number, number] | null,
): Footprint | null {
  const points = corners.flatMap(([x0 = 0, y0 = 0], i) => {
    const [x1 = 0, y1 = 0] = corners[(i + 1) % corners.length] ?? [];
    return Array.from({ length: segmentsPerEdge }, (_, k) =>
      toLonLat(x0 + ((x1 - x0) * k) / segmentsPerEdge, y0 + ((y1 - y0) * k) / segmentsPerEdge),
    );
  });
  const isPlace = (point: readonly [number, number] | null) =>
    point !== null && Math.abs(point[0]) <= 720 && Math.abs(point[1]) <= 90 + beyondPole;
  if (!points.every(isPlace)) return null;
  const ring = unwrap(points.map((point) => [point?.[0] ?? 0, clampedLatitude(point?.[1] ?? 0)]));
  if (Math.abs(ring.turn) > 1) return capPolygon(ring.positions);
  return splitAtAntimeridian(counterClockwise(simplify(ring.positions)));
}

/** Box of a footprint; of one in several parts that touch the antimeridian from both sides, the one across it. */
export function boxOf(footprint: Footprint): Box {
  const polygons = footprint.type === 'Polygon' ? [footprint.coordinates] : footprint.coordinates;
  const boxes = polygons.map((rings) => boxOfPositions(rings[0] ?? []));
  const south = Math.min(...boxes.map((box) => box[1]));
  const north = Math.max(...boxes.map((box) => box[3]));
  const eastern = boxes.filter((box) => box[2] === 180 && box[0] > 0);
  const western = boxes.filter((box) => box[0] === -180 && box[2] < 0);
  if (eastern.length > 0 && western.length > 0 && eastern.length + western.length === boxes.length) {
    return [Math.min(...eastern.map((box) => box[0])), south, Math.max(...western.map((box) => box[2])), north];
  }
  return [Math.min(...boxes.map((box) => box[0])), south, Math.max(...boxes.map((box) => box[2])), north];
}

export function boxOfPositions(positions: readonly Position[]): Box {
  let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x = 0, y = 0] of positions) {
    west = Math.min(west, x);
    east = Math.max(east, x);
    south = Math.min(south, y);
    north = Math.max(north, y);
  }
  return [west, south, east, north];
}

/** A box as a footprint; across the antimeridian in two parts. */
export function footprintOfBox([west, south, east, north]: Box): Footprint {
  const rectangle = (w: number, e: number): Position[][] => [
    [
      [w, south],
      [e, south],
      [e, north],
      [w, north],
      [w, south],
    ],
  ];
  if (west <= east) return { type: 'Polygon', coordinates: rectangle(west, east) };
  return { type: 'MultiPolygon', coordinates: [rectangle(west, 180), rectangle(-180, east)] };
}

/** Longitudes without a jump. `turn` is how many degrees the ring goes round the pole. */
function unwrap(points: readonly Position[]): { positions: Position[]; turn: number } {
  let shift = 0;
  let before = points[0]?.[0] ?? 0;
  const step = (lon: number) => {
    if (lon - before > 180) shift -= 360;
    else if (lon - before < -180) shift += 360;
    before = lon;
    return lon + shift;
  };
  const positions = points.map(([lon = 0, lat = 0]) => [step(lon), lat]);
  const last = step(points[0]?.[0] ?? 0);
  return { positions, turn: last - (positions[0]?.[0] ?? 0) };
}

/** A ring round a pole covers all longitudes. */
function capPolygon(positions: readonly Position[]): Polygon {
  const [, south, , north] = boxOfPositions(positions);
  const isNorthern = south + north > 0;
  // A box from -180 to 180 crosses no antimeridian, so it is one polygon.
  return footprintOfBox([-180, isNorthern ? round(south) : -90, 180, isNorthern ? 90 : round(north)]) as Polygon;
}

/** Leaves out what lies on the line between its neighbours. */
function simplify(positions: readonly Position[]): Position[] {
  const isCorner = (i: number) => i % segmentsPerEdge === 0;
  const kept: Position[] = [];
  positions.forEach((position, i) => {
    const before = kept.at(-1);
    const after = positions[(i + 1) % positions.length] ?? position;
    if (isCorner(i) || !before || distanceToLine(position, before, after) > flatDegrees) kept.push(position);
  });
  return kept;
}

function distanceToLine([x = 0, y = 0]: Position, [x0 = 0, y0 = 0]: Position, [x1 = 0, y1 = 0]: Position): number {
  const length = Math.hypot(x1 - x0, y1 - y0);
  return length === 0 ? Math.hypot(x - x0, y - y0) : Math.abs((x1 - x0) * (y0 - y) - (x0 - x) * (y1 - y0)) / length;
}

function counterClockwise(positions: readonly Position[]): Position[] {
  let area = 0;
  positions.forEach(([x0 = 0, y0 = 0], i) => {
    const [x1 = 0, y1 = 0] = positions[(i + 1) % positions.length] ?? [];
    area += x0 * y1 - x1 * y0;
  });
  return area >= 0 ? [...positions] : positions.toReversed();
}

/** An open ring with longitudes that may leave -180 to 180. */
function splitAtAntimeridian(ring: readonly Position[]): Footprint | null {
  const [west, south, east, north] = boxOfPositions(ring);
  // One around the Earth has no edge at its ends.
  if (east - west >= 360 - flatDegrees) return footprintOfBox([-180, round(south), 180, round(north)]);
  // Rounding may have moved an edge at 180° a little past it.
  const shift = -360 * Math.floor((west + 180 + flatDegrees) / 360);
  const shifted = ring.map(([x = 0, y = 0]): Position => [x + shift, y]);
  if (east + shift <= 180 + flatDegrees) {
    const inRange = shifted.map(([x = 0, y = 0]): Position => [Math.max(-180, Math.min(180, x)), y]);
    return { type: 'Polygon', coordinates: [closed(inRange)] };
  }
  const inside = clip(shifted, (x) => 180 - x);
  const outside = clip(shifted, (x) => x - 180).map(([x = 0, y = 0]): Position => [x - 360, y]);
  const parts = [inside, outside].filter((part) => part.length >= 3).map((part) => [closed(part)]);
  if (parts.length === 0) return null;
  return parts.length === 1
    ? { type: 'Polygon', coordinates: parts[0] ?? [] }
    : { type: 'MultiPolygon', coordinates: parts };
}

/** The part of an open ring where `inside` of the longitude is positive (Sutherland and Hodgman). */
function clip(ring: readonly Position[], inside: (x: number) => number): Position[] {
  return ring.flatMap(([x0 = 0, y0 = 0], i) => {
    const [x1 = 0, y1 = 0] = ring[(i + 1) % ring.length] ?? [];
    const [a, b] = [inside(x0), inside(x1)];
    const kept: Position[] = a >= 0 ? [[x0, y0]] : [];
    if (a > 0 !== b > 0 && a !== 0 && b !== 0)
      kept.push([x0 + ((x1 - x0) * a) / (a - b), y0 + ((y1 - y0) * a) / (a - b)]);
    return kept;
  });
}

function closed(ring: readonly Position[]): Position[] {
  const rounded = ring.map(([x = 0, y = 0]): Position => [round(x), round(y)]);
  return [...rounded, rounded[0] ?? [0, 0]];
}

function round(degrees: number): number {
  return Math.round(degrees * precision) / precision;
}
