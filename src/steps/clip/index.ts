import { setImmediate as tick } from 'node:timers/promises';
import type Gdal from 'gdal-async';
import { KitError } from '../../contract/kit-error.ts';
import { polygonsOf } from '../area.ts';
import { area } from '../parameters.ts';
import { defineStep, z } from '../step.ts';
import { numberedZones, placedZones } from '../zones.ts';

const stripPixels = 500_000;
/** Of a pixel: what places in degrees do not say exactly. */
const slack = 1e-3;

/** What of a raster lies within an area: a pixel stays where its centre lies inside. Pixels are neither moved nor resampled. */
export default defineStep({
  id: 'clip',
  version: '1.0.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Clip to an area',
  description: 'Cuts a raster to an area that you draw. What lies outside holds no data.',
  parameters: z.object({
    area: area({ title: 'Area', description: 'Draw it on the map, or give GeoJSON in longitude and latitude.' }),
    outside: z.number().min(-1e9).max(1e9).default(0).meta({
      title: 'Value outside',
      description: 'Stands for no data in a raster of integers that names no value for it.',
    }),
  }),
  input: { description: 'One raster that says where it lies.', mostItems: 1, synthetic: 'multispectral' },
  output: { fileName: 'clipped.tif', sourceType: 'UNKNOWN', bands: 'as-input', preview: { ramp: 'gray' } },

  async run({ parameters, scene, gdal, raster, outputPath, workFolder, share, signal }) {
    const source = scene.onlyRaster();
    if (!source.srs || !source.geoTransform)
      throw new KitError('not_placed', 'the raster does not say where it lies, so no area lies in it', { status: 422 });
    for (const { band } of scene.bands) requireFits(band, parameters.outside);
    const zone = { name: 'area', coordinates: polygonsOf(parameters.area) };
    const placed = placedZones(gdal, [zone], source.srs, workFolder);
    const window = windowOf(placed, source);
    const cut = await gdal.translateAsync(`${workFolder}/cut.tif`, source, [
      ...['-srcwin', window.x, window.y, window.width, window.height].map(String),
      ...['-of', 'GTiff', '-co', 'TILED=YES', '-co', 'BIGTIFF=IF_SAFER'],
    ]);
    const inside = numberedZones(gdal, placed, cut, workFolder);
    placed.close();
    const clipping = share(0.1, 0.6);
    cut.bands.forEach((band) => {
      if (band.noDataValue === null) band.noDataValue = band.dataType?.startsWith('Float') ? NaN : parameters.outside;
    });
    const rows = Math.max(1, Math.min(window.height, Math.floor(stripPixels / window.width)));
    const [strip, isInside] = [new Float64Array(window.width * rows), new Uint32Array(window.width * rows)];
    let kept = 0;
    for (let y = 0; y < window.height; y += rows) {
      await tick();
      signal.throwIfAborted();
      const height = Math.min(rows, window.height - y);
      const count = window.width * height;
      inside.bands.get(1).pixels.read(0, y, window.width, height, isInside);
      for (let i = 0; i < count; i++) kept += isInside[i]!;
      cut.bands.forEach((band) => {
        band.pixels.read(0, y, window.width, height, strip);
        for (let i = 0; i < count; i++) if (isInside[i] === 0) strip[i] = band.noDataValue!;
        band.pixels.write(0, y, window.width, height, strip);
      });
      clipping.progress(Math.min(1, (y + rows) / window.height));
    }
    inside.close();
    if (kept === 0) throw outside();
    cut.flush();
    raster.writeCog(cut, outputPath, { compression: 'DEFLATE', blockSize: 512, resampling: 'NEAREST' }, share(0.6, 1));
    cut.close();
  },
});

/** Smallest and largest of the types that pass through 64-bit floats as they are. */
const ranges: Readonly<Record<string, readonly [number, number]>> = {
  Byte: [0, 255],
  Int8: [-128, 127],
  UInt16: [0, 65_535],
  Int16: [-32_768, 32_767],
  UInt32: [0, 4_294_967_295],
  Int32: [-2_147_483_648, 2_147_483_647],
};

function requireFits({ dataType, noDataValue }: Gdal.RasterBand, value: number): void {
  const type = dataType ?? '';
  if (type.startsWith('Float')) return;
  const range = ranges[type];
  if (!range)
    throw new KitError('type_not_supported', `the step cuts real numbers of up to 32 bits, and not ${type}`, {
      status: 422,
    });
  if (noDataValue === null && !(Number.isInteger(value) && value >= range[0] && value <= range[1]))
    throw new KitError(
      'value_does_not_fit',
      `the value outside must be a whole number from ${range[0]} to ${range[1]} in a raster of ${type}, and is ${value}`,
      { status: 422 },
    );
}

const outside = () =>
  new KitError('area_outside', 'no pixel of the raster has its centre inside the area', { status: 422 });

/** The pixels that the area's bounds lie on, cut to the raster's own. */
function windowOf(placed: Gdal.Dataset, { geoTransform, rasterSize }: Gdal.Dataset) {
  const { minX, minY, maxX, maxY } = placed.layers.get(0).getExtent();
  const [x0 = 0, xPerColumn = 1, xPerRow = 0, y0 = 0, yPerColumn = 0, yPerRow = 1] = geoTransform!;
  const determinant = xPerColumn * yPerRow - xPerRow * yPerColumn;
  const corners = [minX, maxX].flatMap((x) => [minY, maxY].map((y) => [x - x0, y - y0] as const));
  const columns = corners.map(([x, y]) => (x * yPerRow - y * xPerRow) / determinant);
  const rows = corners.map(([x, y]) => (y * xPerColumn - x * yPerColumn) / determinant);
  const [x, y] = [columns, rows].map((values) => Math.max(0, Math.floor(Math.min(...values) + slack))) as [
    number,
    number,
  ];
  const width = Math.min(rasterSize.x, Math.ceil(Math.max(...columns) - slack)) - x;
  const height = Math.min(rasterSize.y, Math.ceil(Math.max(...rows) - slack)) - y;
  // Infinite where the reference system does not reach the area.
  if (!(width > 0 && height > 0 && Number.isFinite(x + y))) throw outside();
  return { x, y, width, height };
}
