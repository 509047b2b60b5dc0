/** Runs in a child process: draws one item into a box of longitude and latitude. */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import gdal from 'gdal-async';
import sharp, { type Sharp } from 'sharp';
import type { Job } from '../../child/in-child.ts';
import type { Box, Footprint } from '../../raster/footprint.ts';
import { openRaster } from '../../raster/open-raster.ts';
import { unwrap } from '../../raster/unwrap.ts';
import { classesOf } from '../../raster/class-table.ts';
import { colorBands } from '../../raster/preview.ts';

export interface PreviewInput {
  readonly footprint: Footprint;
  /** True where the raster reaches beyond the footprint. */
  readonly isClipped: boolean;
  /** West may be greater than east. */
  readonly box: Box;
  readonly width: number;
  readonly height: number;
  /** Default: `png`. WebP is smaller, for lists. */
  readonly format?: 'png' | 'webp';
}

/** Job: a picture of exactly `width` x `height`, transparent where there is no data. Of the raster that it is lent, or of the bands of a scene in the order of its colours; of the footprint where it is lent none. */
const job: Job<PreviewInput, Uint8Array> = async (input, { files, workFolder }) => {
  if (files.length === 0) return drawFootprint(input);
  // The file is alone with the overviews that were built of it: what lies beside it may be read.
  gdal.config.set('GDAL_DISABLE_READDIR_ON_OPEN', 'TRUE');
  const rasters = await Promise.all(files.map(async (path) => (await unwrap(path, workFolder))?.path ?? path));
  return drawRasters(rasters, workFolder, input);
};
export default job;

/** A raster in the box that is drawn, and as it was before that. */
interface Layer {
  readonly warped: gdal.Dataset;
  readonly selected: gdal.Dataset;
}

async function drawRasters(paths: readonly string[], folder: string, input: PreviewInput): Promise<Buffer> {
  // Closed from the last to the first: a dataset must not outlive what it reads from.
  const open: gdal.Dataset[] = [];
  const opened = (dataset: gdal.Dataset) => {
    open.unshift(dataset);
    return dataset;
  };
  try {
    const warp = await warpOptions(folder, input);
    const layers = paths.map((path, i): Layer => {
      const source = opened(openRaster(path));
      const bands = (paths.length > 1 ? [source.bands.get(1)] : colorBands(source)).flatMap((band) => [
        '-b',
        String(band.id),
      ]);
      const selected = opened(
        gdal.translate(`/vsimem/${randomUUID()}.vrt`, source, ['-of', 'VRT', ...bands, ...placed(source, input)]),
      );
      // Classes are not mixed: between forest and water lies no third thing.
      const resampling = ['-r', selected.bands.get(1).colorTable ? 'near' : 'bilinear'];
      return { selected, warped: opened(gdal.warp(`warped ${i}`, null, [selected], [...warp, ...resampling])) };
    });
    return await toPicture(layers, input);
  } finally {
    open.forEach((dataset) => dataset.close());
  }
}

async function warpOptions(
  folder: string,
  { box, width, height, isClipped, footprint }: PreviewInput,
): Promise<string[]> {
  const [west, south, , north] = box;
  const east = box[2] < west ? box[2] + 360 : box[2];
  const options = ['-of', 'MEM', '-t_srs', `+proj=longlat +datum=WGS84 +no_defs +lon_wrap=${(west + east) / 2}`];
  options.push(
    '-te',
    ...[west, south, east, north].map(String),
    '-ts',
    String(width),
    String(height),
    '-dstalpha',
    '-ot',
    'Float32',
    '-wm',
    '64',
  );
  if (!isClipped) return options;
  const cutline = join(folder, 'footprint.geojson');
  await writeFile(cutline, JSON.stringify({ type: 'Feature', properties: {}, geometry: footprint }));
  return [...options, '-cutline', cutline];
}

/** A raster without a place of its own fills the box that its uploader gave. */
function placed(source: gdal.Dataset, { footprint, box }: PreviewInput): string[] {
  if (source.srs !== null) return [];
  const positions = (footprint.type === 'Polygon' ? footprint.coordinates : footprint.coordinates.flat()).flat();
  const xs = positions.map(([x = 0]) => x);
  const ys = positions.map(([, y = 0]) => y);
  const corners =
    positions.length > 0
      ? [Math.min(...xs), Math.max(...ys), Math.max(...xs), Math.min(...ys)]
      : [box[0], box[3], box[2], box[1]];
  return ['-a_srs', '+proj=longlat +datum=WGS84 +no_defs', '-a_ullr', ...corners.map(String)];
}

async function toPicture(layers: readonly Layer[], { width, height, format }: PreviewInput): Promise<Buffer> {
  const pixels = width * height;
  const read = (band: gdal.RasterBand) => {
    const values = new Float32Array(pixels);
    band.pixels.read(0, 0, width, height, values);
    return values;
  };
  // The last band of each is its alpha.
  const alphas = layers.map(({ warped }) => read(warped.bands.get(warped.bands.count())));
  const values = layers.flatMap(({ warped, selected }) =>
    selected.bands.map((band) => ({ band: read(warped.bands.get(band.id ?? 1)), ...stretchOf(band) })),
  );
  const only =
    layers.length === 1 && layers[0]?.selected.bands.count() === 1 ? classesOf(layers[0].selected.bands.get(1)) : null;
  const colors = only && new Map(only.filter(({ isHidden }) => !isHidden).map(({ value, color }) => [value, color]));
  const rgba = Buffer.alloc(pixels * 4);
  for (let i = 0; i < pixels; i++) {
    const isValid = alphas.every((alpha) => (alpha[i] ?? 0) > 0) && values.every(({ band }) => !Number.isNaN(band[i]));
    if (!isValid) continue;
    if (colors) {
      const color = colors.get(values[0]?.band[i] ?? NaN);
      if (color) rgba.set([...color, 255], i * 4);
      continue;
    }
    for (let channel = 0; channel < 3; channel++) {
      const channelValues = values[values.length >= 3 ? channel : 0];
      rgba[i * 4 + channel] = channelValues
        ? Math.min(
            255,
            Math.max(0, Math.round(((channelValues.band[i] ?? 0) - channelValues.low) * channelValues.factor)),
          )
        : 0;
    }
    rgba[i * 4 + 3] = 255;
  }
  return encoded(sharp(rgba, { raw: { width, height, channels: 4 } }), format);
}

function encoded(picture: Sharp, format: PreviewInput['format'] = 'png'): Promise<Buffer> {
  return (format === 'webp' ? picture.webp({ quality: 72 }) : picture.png()).toBuffer();
}

const sampleSide = 256;

/** The 2nd to the 98th percentile of the whole band, so that every part of it is drawn alike. */
function stretchOf(band: gdal.RasterBand): { low: number; factor: number } {
  const { x, y } = band.size;
  const [width, height] = [Math.min(x, sampleSide), Math.min(y, sampleSide)];
  const sample = new Float32Array(width * height);
  band.pixels.read(0, 0, x, y, sample, { buffer_width: width, buffer_height: height });
  const nodata = band.noDataValue === null ? null : Math.fround(band.noDataValue);
  const valid = sample.filter((value) => !Number.isNaN(value) && value !== nodata).sort();
  const at = (share: number) => valid[Math.floor((valid.length - 1) * share)] ?? 0;
  return { low: at(0.02), factor: 255 / (at(0.98) - at(0.02) || 1) };
}

/** Draws the footprint of an item without pixels. */
function drawFootprint({ footprint, box, width, height, format }: PreviewInput): Promise<Buffer> {
  const [west, south, , north] = box;
  const east = box[2] < west ? box[2] + 360 : box[2];
  const x = (lon: number) => (((lon < west && box[2] < west ? lon + 360 : lon) - west) / (east - west)) * width;
  const y = (lat: number) => ((north - lat) / (north - south)) * height;
  const polygons = footprint.type === 'Polygon' ? [footprint.coordinates] : footprint.coordinates;
  const path = polygons
    .flatMap((rings) =>
      rings.map(
        (ring) => `M${ring.map(([lon = 0, lat = 0]) => `${x(lon).toFixed(2)},${y(lat).toFixed(2)}`).join('L')}Z`,
      ),
    )
    .join('');
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><path d="${path}" fill="#2f7d8c" fill-opacity="0.55" fill-rule="evenodd"/></svg>`;
  return encoded(sharp(Buffer.from(svg)), format);
}
