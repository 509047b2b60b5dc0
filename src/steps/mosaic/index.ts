import { parse } from 'node:path';
import type Gdal from 'gdal-async';
import type { Scene, SceneBand } from '../../raster/scene.ts';
import { KitError } from '../../contract/kit-error.ts';
import { resampling } from '../parameters.ts';
import { defineStep, z } from '../step.ts';

const bandsOf = (scene: Scene, dataset: Gdal.Dataset) => scene.bands.filter((one) => one.dataset === dataset);
/** What a band is called by more than its file's name. */
const ownNames = ({ names, fileName, band: { description } }: SceneBand) =>
  names.filter((name) => name === description || name !== parse(fileName).name);
const bandsInWords = (scene: Scene, dataset: Gdal.Dataset) =>
  bandsOf(scene, dataset)
    .map((one) => `${ownNames(one)[0] ?? 'a band'} (${one.band.dataType})`)
    .join(', ');

function haveSameBands(scene: Scene, a: Gdal.Dataset, b: Gdal.Dataset): boolean {
  const [ofA, ofB] = [bandsOf(scene, a), bandsOf(scene, b)];
  return (
    ofA.length === ofB.length &&
    ofA.every((one, i) => {
      const other = ofB[i]!;
      const [names, otherNames] = [ownNames(one), ownNames(other)];
      const isSameName =
        names.length === 0 && otherNames.length === 0 ? true : names.some((name) => otherNames.includes(name));
      return one.band.dataType === other.band.dataType && isSameName;
    })
  );
}

/** Keeps the pixels of the first, so that they stay as they are; of rasters in one reference system, and not rotated. */
function gridArguments(datasets: readonly Gdal.Dataset[]): string[] {
  const [first] = datasets;
  const boxes = datasets.map(({ geoTransform: t, rasterSize: { x, y }, srs }) =>
    t && t[2] === 0 && t[4] === 0 && srs && first?.srs?.isSame(srs)
      ? { west: t[0]!, north: t[3]!, east: t[0]! + x * t[1]!, south: t[3]! + y * t[5]! }
      : null,
  );
  const [origin] = boxes;
  const [, width = 1, , , , height = -1] = first?.geoTransform ?? [];
  if (!origin || boxes.includes(null) || width <= 0 || height >= 0) return [];
  const known = boxes.filter((box) => box !== null);
  // To whole pixels of the first; what lies on them but for rounding lies on them.
  const out = (distance: number, size: number) => Math.ceil(distance / size - 1e-6) * size;
  const west = origin.west - out(origin.west - Math.min(...known.map((box) => box.west)), width);
  const north = origin.north + out(Math.max(...known.map((box) => box.north)) - origin.north, -height);
  const east = west + out(Math.max(...known.map((box) => box.east)) - west, width);
  const south = north - out(north - Math.min(...known.map((box) => box.south)), -height);
  return ['-te', west, south, east, north, '-tr', width, -height].map(String);
}

/** Several rasters as one: later ones lie over earlier ones. */
export default defineStep({
  id: 'mosaic',
  version: '1.0.1',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Mosaic',
  description:
    'Puts rasters with the same bands together into one, in the reference system of the first; the last lies on top.',
  parameters: z.object({
    resampling: resampling({
      title: 'Resampling',
      description: 'How pixels that do not lie on the first grid are computed.',
    }),
  }),
  input: { description: 'Rasters with the same bands: scenes that lie side by side.', synthetic: 'multispectral' },
  output: { fileName: 'mosaic.tif', sourceType: 'UNKNOWN', bands: 'as-input', preview: { ramp: 'gray' } },

  async run({ parameters, scene, gdal, raster, outputPath, workFolder, share, signal }) {
    const [first, ...others] = scene.datasets;
    if (!first) throw new KitError('no_raster', 'there is no raster to put together', { status: 422 });
    const other = others.find((one) => !haveSameBands(scene, first, one));
    if (other)
      throw new KitError(
        'bands_differ',
        `rasters must have the same bands to be put together: one has ${bandsInWords(scene, first)}, another ${bandsInWords(scene, other)}`,
        { status: 422 },
      );
    const warping = share(0, 0.6);
    const warped = await gdal.warpAsync(
      `${workFolder}/mosaic.tif`,
      null,
      [...scene.datasets],
      [
        ...['-t_srs', first.srs?.toWKT() ?? '', '-r', parameters.resampling, ...gridArguments(scene.datasets)],
        ...['-of', 'GTiff', '-co', 'TILED=YES', '-co', 'BIGTIFF=IF_SAFER', '-multi', '-wo', 'NUM_THREADS=ALL_CPUS'],
      ],
      { progress_cb: (fraction) => warping.progress(fraction) },
    );
    signal.throwIfAborted();
    raster.writeCog(
      warped,
      outputPath,
      { compression: 'DEFLATE', blockSize: 512, resampling: 'NEAREST' },
      share(0.6, 1),
    );
    warped.close();
  },
});
