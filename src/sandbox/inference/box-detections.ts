/** Only for child processes: loads GDAL. */
import type { Feature } from 'geojson';
import { KitError } from '../../contract/kit-error.ts';
import type { JobContext } from '../../child/in-child.ts';
import type { Grid } from '../../raster/cog.ts';
import type { AreaMask } from '../../raster/model/class-raster.ts';
import { allPlaced, placing, writeFeatures } from './detections.ts';
import type { Model } from './models.ts';
import type { Tile, TileReader } from '../../raster/model/tiles.ts';

/** In pixels of the raster. */
export interface DetectedBox {
  readonly x0: number;
  readonly y0: number;
  readonly x1: number;
  readonly y1: number;
  readonly score: number;
  readonly label: number;
}

export interface BoxesOptions {
  readonly resultPath: string;
  readonly model: Model;
  readonly grid: Grid;
  readonly mask: AreaMask | null;
  readonly reader: TileReader;
  readonly tiles: readonly Tile[];
  readonly context: JobContext;
}

/** More are no detections any more. */
const maxBoxes = 1_000_000;

/** Writes what the model finds as boxes: outputs `boxes` [n, 4] (x0, y0, x1, y1 in pixels of the tile), `scores` [n] and `labels` [n]. */
export async function writeBoxes({
  resultPath,
  model,
  grid,
  mask,
  reader,
  tiles,
  context,
}: BoxesOptions): Promise<void> {
  const found: DetectedBox[] = [];
  for (const [i, tile] of tiles.entries()) {
    context.signal.throwIfAborted();
    const { core } = tile;
    const area = mask?.read(core.x, core.y, core.width, core.height) ?? null;
    if (mask === null || area !== null) {
      const { outputs } = await reader.run(tile);
      for (const box of boxesOf(outputs, tile, model)) {
        const [x, y] = [Math.floor((box.x0 + box.x1) / 2) - core.x, Math.floor((box.y0 + box.y1) / 2) - core.y];
        // If two tiles see an object, the tile whose core holds its centre reports it.
        const isHere = x >= 0 && y >= 0 && x < core.width && y < core.height;
        if (isHere && (area === null || area[y * core.width + x] === 1)) found.push(box);
      }
      if (found.length > maxBoxes)
        throw new KitError('too_many_detections', `model ${model.id} finds more than ${maxBoxes} objects`);
    }
    context.progress((i + 1) / tiles.length);
  }
  const place = placing(grid.srs);
  const features = suppressed(found, model.maxOverlap).map((box) => featureOf(box, grid, place, model));
  await writeFeatures(
    resultPath,
    model,
    features.filter((feature) => feature !== null),
  );
}

function boxesOf(
  outputs: Readonly<Record<string, { readonly data: unknown }>>,
  { x, y }: Tile,
  { id, labels, minScore, background }: Model,
): DetectedBox[] {
  const [boxes, scores, classes] = ['boxes', 'scores', 'labels'].map((name) => outputs[name]?.data);
  if (
    !(boxes instanceof Float32Array) ||
    !(scores instanceof Float32Array) ||
    boxes.length !== scores.length * 4 ||
    !(classes instanceof BigInt64Array || classes instanceof Int32Array || classes instanceof Float32Array)
  ) {
    throw new KitError('bad_model', `model ${id} must give boxes float32 [n, 4], scores float32 [n] and labels [n]`);
  }
  return Array.from(scores, (score, i): DetectedBox => {
    const [x0 = 0, y0 = 0, x1 = 0, y1 = 0] = boxes.subarray(i * 4, i * 4 + 4);
    return { x0: x + x0, y0: y + y0, x1: x + x1, y1: y + y1, score, label: Number(classes[i]) };
  }).filter(
    (box) =>
      box.score >= minScore &&
      box.label !== background &&
      box.label < labels.length &&
      box.x1 > box.x0 &&
      box.y1 > box.y0,
  );
}

/** Removes a box that overlaps a more certain box of its class too much (non-maximum suppression). */
export function suppressed(boxes: readonly DetectedBox[], maxOverlap: number): DetectedBox[] {
  const kept: DetectedBox[] = [];
  // By cells of a hundred pixels or so, so that many objects are not compared with each other.
  const cells = new Map<string, DetectedBox[]>();
  const cell = 128;
  const cellsOf = (box: DetectedBox) => {
    const keys: string[] = [];
    for (let cx = Math.floor(box.x0 / cell); cx <= Math.floor(box.x1 / cell); cx++)
      for (let cy = Math.floor(box.y0 / cell); cy <= Math.floor(box.y1 / cell); cy++)
        keys.push(`${box.label},${cx},${cy}`);
    return keys;
  };
  for (const box of [...boxes].sort((a, b) => b.score - a.score)) {
    const keys = cellsOf(box);
    if (keys.some((key) => cells.get(key)?.some((other) => overlap(box, other) > maxOverlap))) continue;
    kept.push(box);
    for (const key of keys) cells.set(key, [...(cells.get(key) ?? []), box]);
  }
  return kept;
}

/** Intersection over union. */
function overlap(a: DetectedBox, b: DetectedBox): number {
  const width = Math.min(a.x1, b.x1) - Math.max(a.x0, b.x0);
  const height = Math.min(a.y1, b.y1) - Math.max(a.y0, b.y0);
  if (width <= 0 || height <= 0) return 0;
  const area = (box: DetectedBox) => (box.x1 - box.x0) * (box.y1 - box.y0);
  return (width * height) / (area(a) + area(b) - width * height);
}

/** In longitude and latitude where the raster has a place, else in pixels; null where a corner has none. */
function featureOf(
  box: DetectedBox,
  { geoTransform: t }: Grid,
  place: ReturnType<typeof placing>,
  { labels }: Model,
): Feature | null {
  const corner = (column: number, row: number) => {
    if (!t) return place(column, row);
    return place(
      (t[0] ?? 0) + column * (t[1] ?? 0) + row * (t[2] ?? 0),
      (t[3] ?? 0) + column * (t[4] ?? 0) + row * (t[5] ?? 0),
    );
  };
  const ring = allPlaced([
    corner(box.x0, box.y1),
    corner(box.x1, box.y1),
    corner(box.x1, box.y0),
    corner(box.x0, box.y0),
    corner(box.x0, box.y1),
  ]);
  return (
    ring && {
      type: 'Feature',
      geometry: { type: 'Polygon', coordinates: [ring] },
      properties: { label: labels[box.label], class: box.label, score: Number(box.score.toFixed(4)) },
    }
  );
}
