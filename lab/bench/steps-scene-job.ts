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
  for (const name of ['scene', 'tiles', 'masked', 'pan', 'later'])
    mkdirSync(join(workFolder, name), { recursive: true });
  let seed = 1;
  const noise = () => ((seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) | 0) >>> 16) / 65_536;
  const hills = (x: number, y: number) =>
    Math.sin(x / 411) * Math.cos(y / 307) + 0.5 * Math.sin((x + 2 * y) / 97) + 0.25 * Math.cos((x - y) / 31);
  const make = (
    name: string,
    type: 'UInt16' | 'Float32' | 'Byte',
    value: (x: number, y: number) => number,
    part?: { x: number; width: number; coarser?: number },
  ) => {
    const { x: from = 0, width: fineWidth = side, coarser = 1 } = part ?? {};
    const [width, height] = [fineWidth / coarser, side / coarser];
    const dataset = gdal.open(join(workFolder, name), 'w', 'GTiff', width, height, 1, type, [
      'TILED=YES',
      'BIGTIFF=IF_SAFER',
    ]);
    dataset.geoTransform = [west + from * pixel, pixel * coarser, 0, north, 0, -pixel * coarser];
    dataset.srs = gdal.SpatialReference.fromEPSG(32_633);
    const band = dataset.bands.get(1);
    if (!name.includes('QA_PIXEL')) band.noDataValue = type === 'Float32' ? -9999 : 0;
    const rows = type === 'UInt16' ? new Uint16Array(width * rowsAtOnce) : type === 'Byte' ? new Uint8Array(width * rowsAtOnce) : new Float32Array(width * rowsAtOnce); // oxfmt-ignore
    for (let y = 0; y < height; y += rowsAtOnce) {
      const count = Math.min(rowsAtOnce, height - y);
      for (let row = 0; row < count; row++)
        for (let x = 0; x < width; x++) rows[row * width + x] = value(from + x * coarser, (y + row) * coarser);
      band.pixels.write(0, y, width, count, rows);
    }
    dataset.close();
  };
  const nir = (x: number, y: number) => 9_000 + 2_000 * hills(x, y) + 400 * noise();
  make('scene/nir.tif', 'UInt16', nir);
  const red = (x: number, y: number) => 5_000 - 900 * hills(x, y) + 400 * noise();
  make('scene/red.tif', 'UInt16', red);
  make('later/nir.tif', 'UInt16', (x, y) => nir(x, y) + 300 * hills(y, x));
  make('masked/red.tif', 'UInt16', red);
  make('masked/QA_PIXEL.tif', 'UInt16', (x, y) => (hills(x, y) > 1 ? 8 : 64));
  make('pan/pan.tif', 'UInt16', nir);
  for (const color of ['red', 'green', 'blue'])
    make(`pan/${color}.tif`, 'UInt16', red, { x: 0, width: side, coarser: 2 });
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
  // A hundred squares over the scene.
  const step = (side / 10) * pixel;
  const zones = Array.from({ length: 100 }, (_, i) => {
    const [zoneWest, zoneSouth] = [west + (i % 10) * step, north - (Math.floor(i / 10) + 1) * step];
    const corners = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]].map(([x = 0, y = 0]) => [zoneWest + x * step, zoneSouth + y * step]); // oxfmt-ignore
    return { type: 'Feature', properties: { zone: i }, geometry: { type: 'Polygon', coordinates: [corners] } };
  });
  writeFileSync(join(workFolder, 'zones.geojson'), JSON.stringify({ type: 'FeatureCollection', crs, features: zones }));
  writeFileSync(join(workFolder, 'colors.txt'), '0 26 150 65\n800 255 255 191\n2000 140 109 90\nnv 0 0 0 0\n');
  const dataset = gdal.open(path);
  gdal.vectorTranslate(join(workFolder, 'lonlat.geojson'), dataset, ['-f', 'GeoJSON', '-t_srs', 'EPSG:4326']).close();
  dataset.close();
  const inLonLat = gdal.open(join(workFolder, 'lonlat.geojson'));
  const geometry = JSON.parse(inLonLat.layers.get(0).features.first().getGeometry()!.toJSON()) as object;
  inLonLat.close();
  return geometry;
};
export default job;
