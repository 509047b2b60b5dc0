import gdal from 'gdal-async';
import {
  argumentsPastPoles,
  gridArguments,
  hasColorTable,
  requireCovered,
  requireOverlap,
  requirePlaced,
  requirePlausible,
  sourcesOf,
  srsOfCode,
  targetAcross,
  targetOf,
  transformOf,
  warped,
} from '../raster.ts';
import type { Scene, StepJob } from '../step-kit.ts';

interface Parameters {
  readonly crs: string;
  readonly from?: string | undefined;
  readonly resampling: string;
  readonly pixelSize?: number | undefined;
}

interface Job extends Omit<StepJob<Parameters>, 'inputs'> {
  readonly inputs: { readonly input: Scene; readonly grid: Scene | undefined };
}

export default async function work(job: Job): Promise<void> {
  const { parameters, inputs, raster, outputPath, workFolder, share } = job;
  const source = inputs.input.onlyRaster();
  const like = inputs.grid?.onlyRaster();
  const { from } = parameters;
  if (from === undefined) requirePlaced(source);
  const { rasterSize } = source;
  const geoTransform = transformOf(source);
  const srs = from === undefined ? source.srs : srsOfCode(from);
  if (like) requireOverlap({ srs, geoTransform, rasterSize }, like);
  const target = targetOf(parameters.crs, [srs]);
  const across = like ? null : targetAcross({ srs, geoTransform, rasterSize }, target);
  const { pixelSize } = parameters;
  const pastPoles = like || across !== null ? [] : argumentsPastPoles([{ dataset: source, srs }], target, pixelSize);
  const size = pixelSize === undefined || pastPoles.length > 0 ? [] : ['-tr', pixelSize, pixelSize];
  const result = await warped(
    job,
    sourcesOf(inputs.input),
    [
      ...(from === undefined ? [] : ['-s_srs', from]),
      ...(like ? gridArguments(like, [srs]) : ['-t_srs', across ?? target, ...pastPoles, ...size]),
      ...['-r', parameters.resampling],
    ],
    share(0, 0.6),
  );
  if (!like && parameters.pixelSize === undefined) requirePlausible(source.rasterSize, result, parameters.crs);
  if (!like) requireCovered({ srs, geoTransform, rasterSize }, result, parameters.crs);
  // The target is the requested reference system, with longitudes beyond 180°.
  const named = across === null ? result : gdal.translate(`${workFolder}/named.tif`, result, ['-a_srs', target]);
  if (named !== result) result.close();
  const { resampling: method } = parameters;
  const isClasses = method === 'mode' || hasColorTable(source.bands.get(1));
  raster.writeCog(
    named,
    outputPath,
    {
      compression: 'DEFLATE',
      blockSize: 512,
      resampling: isClasses ? 'MODE' : method === 'near' ? 'NEAREST' : 'AVERAGE',
    },
    share(0.6, 1),
  );
  named.close();
}
