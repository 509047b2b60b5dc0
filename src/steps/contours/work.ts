import gdal from 'gdal-async';
import {
  eachStrip,
  gridOf,
  integerRanges,
  requireStoredLayer,
  requireTransform,
  srsOfFeatures,
  withoutMask,
  type BandReader,
} from '../raster.ts';
import { KitError, readingOf, type JobContext, type ReadingParameters, type StepJob } from '../step-kit.ts';

interface Parameters extends ReadingParameters {
  readonly band: string;
  readonly interval: number;
  readonly base: number;
  readonly levels: string;
}

export default async function work({
  parameters,
  scene,
  raster,
  outputs,
  workFolder,
  share,
  signal,
}: StepJob<Parameters, 'contours'>): Promise<void> {
  const found = scene.findBand(parameters.band);
  const { dataset } = found;
  requireTransform(gridOf(dataset));
  const reader = raster.reader(found, readingOf(parameters));
  // GDAL would look for the lines of infinite heights.
  const isFit = reader.isPlain && !(await hasInfinite(reader, share(0, 0.1)));
  const plain = isFit ? null : await withoutMask(reader, dataset, workFolder, share(0.1, 0.3));
  const heights = plain?.bands.get(1) ?? found.band;
  const generating = share(plain ? 0.3 : 0.1, 1);
  const levels = parameters.levels
    .split(',')
    .filter((part) => part.trim() !== '')
    .map(Number);
  const made = gdal.drivers.get('GPKG').create(outputs.contours);
  const layer = made.layers.create('contours', srsOfFeatures(dataset), gdal.wkbLineString);
  layer.fields.add(new gdal.FieldDefn('number', gdal.OFTInteger));
  layer.fields.add(new gdal.FieldDefn('elevation', gdal.OFTReal));
  const options = {
    src: heights,
    dst: layer,
    idField: 0,
    elevField: 1,
    ...(heights.noDataValue !== null && { nodata: heights.noDataValue }),
  };
  try {
    if (levels.length > 0) {
      // The asynchronous function reads the levels after they are freed (gdal-async 3.12), and loses lines.
      gdal.contourGenerate({ ...options, fixedLevels: levels.toSorted((a, b) => a - b) });
      generating.progress(1);
    } else
      await gdal.contourGenerateAsync({
        ...options,
        interval: parameters.interval,
        offset: parameters.base,
        progress_cb: (fraction) => generating.progress(fraction),
      });
  } catch (cause) {
    if (!/too many levels/.test(String(cause))) throw cause;
    throw new KitError(
      'too_many_levels',
      `the heights would need too many lines, which are ${parameters.interval} apart: choose a larger interval, or name the levels`,
      { status: 422, cause },
    );
  }
  made.close();
  requireStoredLayer(dataset, outputs.contours);
  plain?.close();
  signal.throwIfAborted();
}

/** True if a band has an infinite value. Whole numbers have none. */
async function hasInfinite(reader: BandReader, context: JobContext): Promise<boolean> {
  const { band } = reader;
  if ((band.dataType ?? '') in integerRanges) return false;
  const width = band.size.x;
  let isFound = false;
  await eachStrip(
    { bands: [band], arrays: 1 },
    (y, rows) => {
      if (isFound) return;
      const values = new Float64Array(width * rows);
      reader.read([0, y, width, rows], values);
      for (let i = 0; i < values.length && !isFound; i++) isFound = Math.abs(values[i]!) === Infinity;
    },
    context,
  );
  return isFound;
}
