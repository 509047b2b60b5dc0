import { mkdirSync } from 'node:fs';
import type gdal from 'gdal-async';
import {
  degreesPerUnit,
  ellipsoidOf,
  gridArguments,
  gridDifference,
  metresPerUnit,
  requirePlaced,
  sourcesOf,
  warped,
} from '../raster.ts';
import {
  isNotAlpha,
  KitError,
  namesIn,
  readingOf,
  realTypeOf,
  writePixels,
  type ReadingParameters,
  type SceneBand,
  type StepJob,
} from '../step-kit.ts';
import { isSizeWord } from './size-words.ts';

interface Parameters extends ReadingParameters {
  readonly grid: string;
  readonly bands: string;
  readonly resampling: string;
}

export default async function work(job: StepJob<Parameters>): Promise<void> {
  const { parameters, scene, raster, outputPath, share } = job;
  const names = namesIn(parameters.bands);
  const chosen = names.length > 0 ? names.map((name) => scene.findBand(name)) : scene.bands.filter(isNotAlpha);
  const like = isSizeWord(parameters.grid)
    ? chosen.toSorted((a, b) => pixelArea(a.dataset) - pixelArea(b.dataset)).at(parameters.grid === 'finest' ? 0 : -1)
    : scene.findBand(parameters.grid);
  if (!like) throw new KitError('no_raster', 'there is no band to harmonize', { status: 422 });
  const reading = readingOf(parameters);
  const dataType = realTypeOf(chosen.map(({ band }) => band.dataType));
  const moved = await warpToGrid(job, like.dataset, chosen, parameters);
  await writePixels(
    job,
    {
      bands: moved,
      // The scale is that of the band as it came. Moved bands mark missing pixels by NaN.
      readers: moved.map((sceneBand, i) => {
        const { scale: scaling } = raster.reader(chosen[i]!, reading);
        return raster.reader(sceneBand, sceneBand === chosen[i] ? { ...reading, scaling } : { scaling });
      }),
      output: {
        path: outputPath,
        unitsOf: chosen,
        bands: chosen.map((sceneBand, i) => ({
          description: names[i] ?? sceneBand.names[0] ?? `band ${i + 1}`,
          dataType,
          nodata: NaN,
        })),
        overviews: ['near', 'mode'].includes(parameters.resampling) ? 'NEAREST' : 'AVERAGE',
      },
      share: (from, to) => share(0.4 + 0.6 * from, 0.4 + 0.6 * to),
    },
    () =>
      (inputs, outputs, { width, rows }) =>
        outputs.forEach((out, k) => {
          for (let i = 0; i < width * rows; i++) out[i] = inputs[k]![i]!;
        }),
  );
  for (const movedDataset of new Set(moved.map(({ dataset }) => dataset)))
    if (!scene.datasets.includes(movedDataset)) movedDataset.close();
}

/** Area of a pixel in square metres, about. */
function pixelArea(dataset: gdal.Dataset): number {
  requirePlaced(dataset, 'give it one by the step reproject first');
  const [, a = 1, b = 0, y = 0, c = 0, d = 1] = dataset.geoTransform ?? [];
  const perUnit = degreesPerUnit(dataset.srs);
  const metres = dataset.srs?.isProjected() ? dataset.srs.getLinearUnits().value : 1;
  const [east, north] = perUnit === null ? [metres, metres] : metresPerUnit(perUnit, y, ellipsoidOf(dataset.srs));
  return Math.abs(a * d - b * c) * east * north;
}

const sizeAndPlace = ({ rasterSize: { x, y }, geoTransform }: gdal.Dataset) => ({ width: x, height: y, geoTransform });

function isSameGrid(a: gdal.Dataset, b: gdal.Dataset): boolean {
  return gridDifference(sizeAndPlace(a), sizeAndPlace(b)) === null && (!a.srs || !b.srs || a.srs.isSame(b.srs));
}

/** The bands on the grid of `like`. The caller closes rasters that are not the scene's. */
async function warpToGrid(
  job: Pick<StepJob<never>, 'scene' | 'workFolder' | 'signal' | 'share'>,
  like: gdal.Dataset,
  bands: readonly SceneBand[],
  { resampling: method, nodata }: { readonly resampling: string; readonly nodata?: number | undefined },
): Promise<SceneBand[]> {
  const sources = [...new Set(bands.map(({ dataset }) => dataset))];
  const moved = new Map<gdal.Dataset, gdal.Dataset>();
  // A warp puts north up and west left. Rasters on the grid of `like` then need the same orientation.
  const [, width = 1, , , , height = -1] = like.geoTransform ?? [];
  const isTurned = (width < 0 || height > 0) && sources.some((source) => !isSameGrid(source, like));
  for (const [i, source] of sources.entries()) {
    const isSame = isSameGrid(source, like);
    if (isSame && !isTurned) moved.set(source, source);
    else {
      const workFolder = `${job.workFolder}/moved-${i}`;
      mkdirSync(workFolder);
      const own = sourcesOf(job.scene).filter(({ dataset }) => dataset === source);
      const context = job.share((0.4 * i) / sources.length, (0.4 * (i + 1)) / sources.length);
      // Means of whole numbers are fractions.
      const dataType = realTypeOf(source.bands.map((band) => band.dataType));
      const options = { dataType, nodata };
      moved.set(
        source,
        await warped(
          { ...job, workFolder },
          own,
          [...gridArguments(like, [source.srs]), '-r', isSame ? 'near' : method],
          context,
          options,
        ),
      );
    }
  }
  return bands.map((band) => {
    const dataset = moved.get(band.dataset)!;
    return dataset === band.dataset ? band : { ...band, dataset, band: dataset.bands.get(band.index), ofItem: null };
  });
}
