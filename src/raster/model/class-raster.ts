/** Only for child processes: loads GDAL. */
import gdal from 'gdal-async';
import { KitError } from '../../contract/kit-error.ts';
import type { JobContext } from '../../child/in-child.ts';
import { classesOfLabels, hiddenClasses } from '../class-table.ts';
import type { Grid } from '../cog.ts';
import type { Model } from './model-file.ts';
import type { Tile, TileReader } from './tiles.ts';

/** No data, or outside of the area. */
const noClass = 255;

/** Mask of the raster's pixels that are in an area. */
export interface AreaMask {
  /** 1 for every pixel of the window whose centre is in the area; null where none can be. */
  read(x: number, y: number, width: number, height: number): Uint8Array | null;
}

export interface ClassRasterOptions {
  readonly path: string;
  readonly model: Model;
  readonly grid: Grid;
  readonly mask: AreaMask | null;
  readonly reader: TileReader;
  readonly tiles: readonly Tile[];
  readonly context: JobContext;
  /** The model's first output: scores [1, classes, height, width] of each pixel, or [1, classes] of the whole tile. */
  readonly outputName: string;
}

/** Writes the likeliest class of every pixel, on the grid of the input; labels stand in the metadata. */
export async function writeClassRaster({
  path,
  model,
  grid,
  mask,
  reader,
  tiles,
  context,
  outputName,
}: ClassRasterOptions): Promise<void> {
  const dataset = gdal.drivers
    .get('GTiff')
    .create(path, grid.width, grid.height, 1, 'Byte', ['TILED=YES', 'COMPRESS=DEFLATE', 'BIGTIFF=IF_SAFER']);
  try {
    if (grid.geoTransform) dataset.geoTransform = [...grid.geoTransform];
    if (grid.srs) dataset.srs = grid.srs;
    const labelled = classesOfLabels(model.labels, model.colors);
    const hidden = labelled.flatMap(({ value, isHidden }) => (isHidden ? [value] : []));
    dataset.setMetadata({
      ...(grid.isPoint ? { AREA_OR_POINT: 'Point' } : {}),
      MODEL: `${model.name} ${model.version}`,
      ...(reader.values ? { MODEL_VALUES: reader.values.name } : {}),
      ...Object.fromEntries(model.labels.map((label, i) => [`CLASS_${i}`, label])),
      ...(hidden.length > 0 ? { [hiddenClasses]: hidden.join(' ') } : {}),
    });
    const band = dataset.bands.get(1);
    band.noDataValue = noClass;
    const table = new gdal.ColorTable(gdal.GPI_RGB);
    for (const { value, color } of labelled) {
      const [c1, c2, c3] = color;
      table.set(value, { c1, c2, c3, c4: 255 });
    }
    band.colorTable = table;
    for (const [i, tile] of tiles.entries()) {
      context.signal.throwIfAborted();
      const { core } = tile;
      const area = mask?.read(core.x, core.y, core.width, core.height) ?? null;
      const classes = new Uint8Array(core.width * core.height).fill(noClass);
      if (mask === null || area !== null) {
        const { outputs, isValid } = await reader.run(tile);
        fillClasses(classes, scoresOf(outputs[outputName], model), isValid, area, tile, model);
      }
      band.pixels.write(core.x, core.y, core.width, core.height, classes);
      context.progress((i + 1) / tiles.length);
    }
  } finally {
    dataset.close();
  }
}

interface Scores {
  readonly data: Float32Array;
  /** 1 where the scores are of the whole tile. */
  readonly pixels: number;
}

function scoresOf(
  output: { readonly data: unknown; readonly dims: readonly number[] } | undefined,
  { labels, tileSize, id }: Model,
): Scores {
  const dims = output?.dims ?? [];
  const isImage =
    dims.length === 4 && dims[0] === 1 && dims[1] === labels.length && dims[2] === tileSize && dims[3] === tileSize;
  const isTile = dims.length === 2 && dims[0] === 1 && dims[1] === labels.length;
  if (!output || !(output.data instanceof Float32Array) || (!isImage && !isTile)) {
    throw new KitError(
      'bad_model',
      `model ${id} must give float32 scores [1, ${labels.length}, ${tileSize}, ${tileSize}] or [1, ${labels.length}], not [${dims.join(', ')}]`,
    );
  }
  return { data: output.data, pixels: isImage ? tileSize ** 2 : 1 };
}

function fillClasses(
  classes: Uint8Array,
  { data, pixels }: Scores,
  isValid: Uint8Array,
  area: Uint8Array | null,
  { x, y, core }: Tile,
  { labels, tileSize }: Model,
): void {
  for (let row = 0; row < core.height; row++) {
    for (let column = 0; column < core.width; column++) {
      const to = row * core.width + column;
      const from = (core.y - y + row) * tileSize + (core.x - x + column);
      if (isValid[from] === 0 || (area !== null && area[to] === 0)) continue;
      let best = 0;
      for (let label = 1; label < labels.length; label++) {
        // Both lie within the array.
        if (
          (data[label * pixels + (pixels === 1 ? 0 : from)] as number) >
          (data[best * pixels + (pixels === 1 ? 0 : from)] as number)
        )
          best = label;
      }
      classes[to] = best;
    }
  }
}
