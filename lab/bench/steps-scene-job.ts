/** Runs in a child process: a scene of noise over hills, which compresses as real ones do. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import gdal from 'gdal-async';
import type { Job } from '../../src/child/in-child.ts';

interface SceneInput {
  readonly side: number;
  readonly pixel: number;
  readonly west: number;
  readonly north: number;
  /** West, north, east and south of an area. */
  readonly middle: readonly [number, number, number, number];
}

const rowsAtOnce = 512;

/** The area in longitude and latitude. */
const job: Job<SceneInput, object> = ({ side, pixel, west, north, middle }, { workFolder }) => {
  for (const name of ['scene', 'tiles']) mkdirSync(join(workFolder, name), { recursive: true });
  let seed = 1;
  const noise = () => ((seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) | 0) >>> 16) / 65_536;
  const hills = (x: number, y: number) =>
    Math.sin(x / 411) * Math.cos(y / 307) + 0.5 * Math.sin((x + 2 * y) / 97) + 0.25 * Math.cos((x - y) / 31);
  const make = (
    name: string,
    type: 'UInt16' | 'Float32' | 'Byte',
    value: (x: number, y: number) => number,
    part?: { x: number; width: number },
  ) => {
    const { x: from = 0, width = side } = part ?? {};
    const dataset = gdal.open(join(workFolder, name), 'w', 'GTiff', width, side, 1, type, [
      'TILED=YES',
      'BIGTIFF=IF_SAFER',
    ]);
    dataset.geoTransform = [west + from * pixel, pixel, 0, north, 0, -pixel];
    dataset.srs = gdal.SpatialReference.fromEPSG(32_633);
    const band = dataset.bands.get(1);
    band.noDataValue = type === 'Float32' ? -9999 : 0;
    const rows = type === 'UInt16' ? new Uint16Array(width * rowsAtOnce) : type === 'Byte' ? new Uint8Array(width * rowsAtOnce) : new Float32Array(width * rowsAtOnce); // oxfmt-ignore
    for (let y = 0; y < side; y += rowsAtOnce) {
      const height = Math.min(rowsAtOnce, side - y);
      for (let row = 0; row < height; row++)
        for (let x = 0; x < width; x++) rows[row * width + x] = value(from + x, y + row);
      band.pixels.write(0, y, width, height, rows);
    }
    dataset.close();
  };
  const nir = (x: number, y: number) => 9_000 + 2_000 * hills(x, y) + 400 * noise();
  make('scene/nir.tif', 'UInt16', nir);
  make('scene/red.tif', 'UInt16', (x, y) => 5_000 - 900 * hills(x, y) + 400 * noise());
  make('heights.tif', 'Float32', (x, y) => 800 + 300 * hills(x, y) + 0.5 * noise());
  make('classes.tif', 'Byte', (x, y) => Math.floor(3 + 1.5 * hills(x, y)));
  const half = side / 2;
  make('tiles/1.tif', 'UInt16', nir, { x: 0, width: half });
  make('tiles/2.tif', 'UInt16', nir, { x: half, width: half });
  const [x0, y0, x1, y1] = middle;
  const ring = [[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]; // oxfmt-ignore
  const placed = { type: 'Polygon', coordinates: [ring] };
  const crs = { type: 'name', properties: { name: 'urn:ogc:def:crs:EPSG::32633' } };
  const path = join(workFolder, 'area.geojson');
  writeFileSync(path, JSON.stringify({ type: 'FeatureCollection', crs, features: [{ type: 'Feature', properties: {}, geometry: placed }] })); // oxfmt-ignore
  const dataset = gdal.open(path);
  gdal.vectorTranslate(join(workFolder, 'lonlat.geojson'), dataset, ['-f', 'GeoJSON', '-t_srs', 'EPSG:4326']).close();
  dataset.close();
  const inLonLat = gdal.open(join(workFolder, 'lonlat.geojson'));
  const geometry = JSON.parse(inLonLat.layers.get(0).features.first().getGeometry()!.toJSON()) as object;
  inLonLat.close();
  return geometry;
};
export default job;
