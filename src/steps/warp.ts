/** Warps rasters to another grid, for reproject and mosaic. Uncovered pixels are never valid. */
import type Gdal from 'gdal-async';
import { KitError } from '../contract/kit-error.ts';
import { alphaOf, BandReader, maskOf, requireOneNodata } from '../raster/band-reader.ts';
import { isInRange } from '../raster/integer-types.ts';
import { boxOf, footprintOf } from '../raster/footprint.ts';
import { fromTransform } from '../raster/affine.ts';
import { toLonLat } from '../raster/lon-lat.ts';
import type { JobContext } from '../child/in-child.ts';
import { statisticsOf } from '../raster/statistics.ts';
import type { StepJob } from './step.ts';

type Job = Pick<StepJob<never>, 'gdal' | 'workFolder' | 'signal'>;

const tiled = ['-of', 'GTiff', '-co', 'TILED=YES', '-co', 'BIGTIFF=IF_SAFER'];

/** The nodata value of a raster, if its type can store it; else null. */
function nodataOf(source: Gdal.Dataset): number | null {
  const band = source.bands
    .map((one) => one)
    .find(({ noDataValue, dataType }) => noDataValue !== null && isInRange(dataType, noDataValue));
  return band?.noDataValue ?? null;
}

/**
 * Warps rasters with the same bands into one, the last on top. Uncovered pixels get the first declared nodata, else NaN for real numbers, else a mask band.
 * Respects masks and alpha of the sources. Throws `KitError` if bands declare different nodata values. The caller closes the result.
 */
export async function warped(
  { gdal, workFolder, signal }: Job,
  sources: readonly Gdal.Dataset[],
  args: readonly (string | number)[],
  context: JobContext,
): Promise<Gdal.Dataset> {
  for (const source of sources) requireOneNodata(source);
  const [first] = sources;
  const bands = first!.bands.map((band) => band);
  const hasAlpha = alphaOf(first!) !== null;
  const isReal = bands.every(({ dataType }) => dataType?.startsWith('Float'));
  const named = sources.map(nodataOf);
  const known = named.find((value) => value !== null) ?? (isReal ? NaN : null);
  // A mask can mark any value as missing.
  const isMasked = !hasAlpha && sources.some((source) => maskOf(source.bands.get(1)) !== null);
  const needsMask = isMasked || (known === null && !hasAlpha);
  const inputs = sources.map((source, i) => withNodata(gdal, source, named[i] ?? (isReal ? NaN : null)));
  try {
    const made = await gdal.warpAsync(
      `${workFolder}/warped.tif`,
      null,
      inputs,
      [
        ...args.map(String),
        ...(known === null || hasAlpha ? [] : ['-dstnodata', String(known)]),
        ...(needsMask ? ['-dstalpha'] : []),
        ...[...tiled, '-multi', '-wo', 'NUM_THREADS=ALL_CPUS'],
      ],
      { progress_cb: (fraction) => context.progress(fraction) },
    );
    signal.throwIfAborted();
    return needsMask ? await maskFromAlpha(gdal, made, bands.length, known, `${workFolder}/masked.tif`) : made;
  } finally {
    inputs.forEach((one, i) => one !== sources[i] && one.close());
  }
}

/** A view of a raster with this nodata value in every band. */
function withNodata(gdal: typeof Gdal, source: Gdal.Dataset, value: number | null): Gdal.Dataset {
  if (source.bands.map(({ noDataValue }) => Object.is(noDataValue, value)).every(Boolean)) return source;
  const view = gdal.drivers.get('VRT').createCopy('', source);
  view.bands.forEach((band) => {
    if (!Object.is(band.noDataValue, value)) band.noDataValue = value;
  });
  return view;
}

/** Converts the last band to a mask. Leaves the mask out if every pixel is covered, or if nodata marks the gaps. */
export async function maskFromAlpha(
  gdal: typeof Gdal,
  made: Gdal.Dataset,
  count: number,
  nodata: number | null,
  path: string,
): Promise<Gdal.Dataset> {
  made.flush();
  const alpha = made.bands.get(count + 1);
  const isCovered = (statisticsOf([new BandReader({ band: alpha })])[0]?.min ?? 0) > 0;
  const bands = Array.from({ length: count }, (_, i) => ['-b', String(i + 1)]).flat();
  const mask = isCovered || nodata !== null ? ['-mask', 'none'] : ['-mask', String(count + 1)];
  gdal.config.set('GDAL_TIFF_INTERNAL_MASK', 'YES');
  const masked = await gdal.translateAsync(path, made, [...bands, ...mask, ...tiled]);
  made.close();
  return masked;
}

/** Target definition for a raster across the antimeridian, with longitudes beyond 180°; null if the raster does not cross it. */
export function targetAcross(gdal: typeof Gdal, source: Gdal.Dataset, code: string): string | null {
  const target = gdal.SpatialReference.fromUserInput(code);
  if (!crossesAntimeridian(gdal, source)) return null;
  if (target.isGeographic()) return `${target.toProj4()} +lon_wrap=180`;
  // These projections have no seam at 180°.
  if (/stere|laea|aeqd|gnom|ortho|utm|tmerc/.test(target.toProj4())) return null;
  throw new KitError(
    'crosses_antimeridian',
    `the raster crosses 180° of longitude, and ${code} is split there; choose another reference system, such as EPSG:4326 or a UTM zone`,
    { status: 422 },
  );
}

function crossesAntimeridian(gdal: typeof Gdal, { srs, geoTransform, rasterSize: { x, y } }: Gdal.Dataset): boolean {
  if (!srs || !geoTransform) return false;
  const corners = [
    [0, 0],
    [x, 0],
    [x, y],
    [0, y],
  ].map(([column = 0, row = 0]) => [...fromTransform(geoTransform, column, row)]);
  const footprint = footprintOf(corners, toLonLat(gdal, srs));
  if (!footprint) return false;
  const [west, , east] = boxOf(footprint);
  return west > east;
}

/** Arguments that make GDAL warp onto the grid of a raster. Throws `KitError` if it has no reference system, or turned pixels. */
export function gridArguments({ srs, geoTransform, rasterSize: { x, y } }: Gdal.Dataset): string[] {
  const [x0, width, turn, y0, turnDown, height] = geoTransform ?? [];
  if (!srs || x0 === undefined || y0 === undefined || !width || !height || turn !== 0 || turnDown !== 0)
    throw new KitError(
      'no_grid',
      'the raster that gives the grid must say where it lies, by a reference system and pixels that are not turned',
      { status: 422 },
    );
  const [xs, ys] = [
    [x0, x0 + x * width],
    [y0, y0 + y * height],
  ].map((side) => side.toSorted((a, b) => a - b));
  return ['-t_srs', srs.toWKT(), '-te', xs![0], ys![0], xs![1], ys![1], '-ts', x, y].map(String);
}

/** Throws if a raster has no reference system, control points or RPC. */
export function requirePlaced(source: Gdal.Dataset): void {
  const hasPoints = source.getGCPs().length > 0 || Object.keys(source.getMetadata('RPC') as object).length > 0;
  if (source.srs || hasPoints) return;
  throw new KitError(
    'not_placed',
    'the raster has no reference system; set it by the parameter from, for example EPSG:32633',
    { status: 422 },
  );
}
