import gdal from 'gdal-async';
import { gridOf, requireStoredLayer, requireTransform, withoutMask } from '../raster.ts';
import { readingOf, type ReadingParameters, type StepJob } from '../step-kit.ts';

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
  const plain = reader.isPlain ? null : await withoutMask(reader, dataset, workFolder, share(0, 0.3));
  const heights = plain?.bands.get(1) ?? found.band;
  const generating = share(plain ? 0.3 : 0, 1);
  const levels = parameters.levels
    .split(',')
    .filter((part) => part.trim() !== '')
    .map(Number);
  const made = gdal.drivers.get('GPKG').create(outputs.contours);
  const layer = made.layers.create('contours', dataset.srs, gdal.wkbLineString);
  layer.fields.add(new gdal.FieldDefn('number', gdal.OFTInteger));
  layer.fields.add(new gdal.FieldDefn('elevation', gdal.OFTReal));
  const options = {
    src: heights,
    dst: layer,
    idField: 0,
    elevField: 1,
    ...(heights.noDataValue !== null && { nodata: heights.noDataValue }),
  };
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
  made.close();
  requireStoredLayer(dataset, outputs.contours);
  plain?.close();
  signal.throwIfAborted();
}
