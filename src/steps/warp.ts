/** Warps rasters to another grid, for reproject and mosaic. Uncovered pixels are never valid. */
import { rmSync } from 'node:fs';
import gdal from 'gdal-async';
import { srsOfCode } from './srs-of-code.ts';
import { KitError } from '../contract/kit-error.ts';
import { hasPoints, transformOf } from '../raster/transform-of.ts';
import {
  alphaOf,
  BandReader,
  hasOwnMask,
  isSignedByte,
  maskOf,
  nodataOf,
  requireOneNodata,
  type ValueScale,
} from '../raster/band-reader.ts';
import { hasColorTable } from '../raster/class-table.ts';
import { messageOf, withoutFolders } from '../files/index.ts';
import { gridOf } from '../raster/cog.ts';
import { boxOf, footprintOf } from '../raster/footprint.ts';
import { fromTransform, isInDegrees } from '../raster/affine.ts';
import { fromLonLat, toLonLat } from '../raster/lon-lat.ts';
import type { Scene, SceneBand } from '../raster/scene.ts';
import { partOf, type JobContext } from '../child/in-child.ts';
import { requireSameMeaning } from './same-meaning.ts';
import type { StepJob } from './step.ts';
import {
  keepScales,
  keepUnits,
  maskFromAlpha,
  narrowed,
  tiled,
  typeOf,
  wideTypeOf,
  widened,
  withDescriptions,
} from './wide-copy.ts';
import { integerRanges } from '../raster/integer-types.ts';
import { rasterBudget } from '../raster/open-raster.ts';
import { statisticsOf } from '../raster/statistics.ts';

type Job = Pick<StepJob<never>, 'workFolder' | 'signal'>;

/**
 * Options of every warp. GDAL would turn heights in feet into metres and leave their unit, and would read values and masks from
 * the overviews of the input where the output is coarser. From the edges of the output alone it finds too little of an input that
 * the output's edge cuts, such as a map around the Pacific.
 */
export const commonOptions = ['-novshift', '-ovr', 'NONE', '-wo', 'SAMPLE_GRID=YES'];

/** A raster to warp. */
export interface WarpSource {
  /** The raster, or a view of it at another place. */
  readonly dataset: gdal.Dataset;
  /** Its bands, in their order. */
  readonly bands: readonly SceneBand[];
}

export interface WarpOptions {
  /** The stored number that marks no data. Default: the value that the file or its item declares. */
  readonly nodata?: number | undefined;
  /** Type of the result. Default: that of `like`. */
  readonly dataType?: string;
  /** The raster whose type, nodata value, alpha and metadata the result has. Default: the first source. */
  readonly like?: WarpSource;
}

/** The sources of the rasters of a scene. `views` replace the rasters. */
export const sourcesOf = (scene: Scene, views: readonly gdal.Dataset[] = scene.datasets): WarpSource[] =>
  views.map((dataset, i) => ({
    dataset,
    bands: scene.bands.filter((band) => band.dataset === scene.datasets[i]),
  }));

/** The first nodata value of a raster that its type can store, else null. */
const firstNodataOf = (source: gdal.Dataset): number | null =>
  source.bands.map(nodataOf).find((value) => value !== null) ?? null;

/** Resampling methods that select one of the source's values. */
const selectingMethods: ReadonlySet<string> = new Set(['near', 'nearest', 'mode', 'min', 'max', 'med', 'q1', 'q3']);

/** Resampling methods that give a wrong result for stored numbers with an offset. */
const summingMethods: ReadonlySet<string> = new Set(['sum', 'rms']);

/** The method of stored numbers that gives the least or the largest value, if the scale is negative. */
const oppositeMethods: Readonly<Record<string, string>> = { min: 'max', max: 'min' };

/** Methods that have no such counterpart: GDAL rounds the rank of a quartile down, and a root is never negative. */
const methodsWithoutOpposite: ReadonlySet<string> = new Set(['q1', 'med', 'q3', 'rms']);

/**
 * Returns arguments for a warp of stored numbers whose result is that of the values. Throws `KitError` (`scaled_values`) if there is no
 * such warp.
 */
export function argumentsForStored(
  args: readonly (string | number)[],
  { dataset, bands }: WarpSource,
  scales: readonly ValueScale[],
): readonly (string | number)[] {
  const method = methodOf(args);
  const alpha = alphaOf(dataset)?.id;
  const isNegative = scales.filter((_, i) => bands[i]?.band.id !== alpha).map(({ factor }) => factor < 0);
  const refuse = (scale: string) => {
    throw new KitError(
      'scaled_values',
      `the raster stores its values with ${scale}, so that ${method} of stored numbers is not ${method} of values; convert it by the step band-math first`,
      { status: 422 },
    );
  };
  if (summingMethods.has(method) && scales.some(({ offset }) => offset !== 0)) refuse('an offset');
  if (methodsWithoutOpposite.has(method) && isNegative.includes(true)) refuse('a negative scale');
  const opposite = oppositeMethods[method];
  if (opposite === undefined || !isNegative.includes(true)) return args;
  if (isNegative.includes(false)) refuse('a negative scale in some bands');
  return args.map((arg, i) => (args[i - 1] === '-r' ? opposite : arg));
}

/** Throws `KitError` (`classes_blended`) if a band has a colour table, because a blend of two of its numbers is the number of another class. */
export function requireNoClasses(bands: readonly SceneBand[], method: string, advice: string): void {
  const classes = bands.find(({ band }) => hasColorTable(band));
  if (!classes) return;
  throw new KitError(
    'classes_blended',
    `${classes.place ?? classes.fileName} has a colour table, so its numbers are names of classes, which ${method} would blend into other classes: ${advice}`,
    { status: 422 },
  );
}

const methodOf = (args: readonly (string | number)[]): string => {
  const at = args.indexOf('-r');
  return at < 0 ? 'near' : String(args[at + 1]).toLowerCase();
};

/** True if a blend of a source's valid values can equal its nodata value. GDAL would then change an integer by one, and lose a real number. */
function canBlendToNodata({ bands }: WarpSource): boolean {
  return bands.some((sceneBand) => {
    const [lowest, highest] = integerRanges[typeOf(sceneBand.band)] ?? [-Infinity, Infinity];
    const nodata = nodataOf(sceneBand.band);
    if (nodata === null || !(nodata > lowest && nodata < highest)) return false;
    const [values] = statisticsOf([new BandReader(sceneBand, { scaling: 'stored' })]);
    if (!values) return false;
    // Cubic and Lanczos kernels overshoot by less than the spread of the values.
    const spread = values.max - values.min;
    return nodata > values.min - spread && nodata < values.max + spread;
  });
}

/** True if GDAL's warper alone would take missing pixels for values, or values for missing pixels. */
function needsWideCopy(
  sources: readonly WarpSource[],
  args: readonly (string | number)[],
  { nodata }: WarpOptions,
): boolean {
  if (nodata !== undefined) return true;
  const method = methodOf(args);
  // A sum can be larger than its type.
  if (method === 'sum' && sources.some(({ bands }) => bands.some(({ band }) => integerRanges[typeOf(band)])))
    return true;
  if (!selectingMethods.has(method) && sources.some(canBlendToNodata)) return true;
  const known = sources.map(({ dataset }) => firstNodataOf(dataset));
  if (known.some((firstValue) => !Object.is(firstValue, known[0]))) return true;
  return sources.some(({ dataset, bands }, i) => {
    const own = bands.map(({ band }) => band);
    const values = new Set(own.filter((band) => band.id !== alphaOf(band.ds)?.id).map((band) => band.noDataValue));
    return (
      values.size > 1 ||
      own.some((band) => isSignedByte(band) || hasOwnMask(band)) ||
      // GDAL treats only the last band as alpha.
      (alphaOf(dataset)?.id ?? own.length) !== own.length ||
      bands.some(({ band, ofItem }) => band.noDataValue === null && ofItem?.nodata != null) ||
      (known[i] !== null && own.some((band) => maskOf(band) !== null)) ||
      own.some(({ dataType }) => dataType?.endsWith('Int64')) ||
      // GDAL treats numbers that are close to such a nodata value as missing.
      (known[i] !== null && own.some(({ dataType }) => /^U?Int32$/.test(dataType ?? ''))) ||
      dataset.bands.count() !== bands.length
    );
  });
}

/**
 * Warps rasters with the same bands into one, the last on top. Uncovered pixels get the first declared nodata, else NaN for real numbers, else a mask band.
 * Respects masks, alpha and nodata of each source, and keeps scale and offset. Throws `KitError` if bands declare different nodata values, or rasters different
 * scales. The caller closes the result.
 */
export async function warped(
  job: Job,
  sources: readonly WarpSource[],
  wanted: readonly (string | number)[],
  context: JobContext,
  options: WarpOptions = {},
): Promise<gdal.Dataset> {
  requireNoBlend(sources, wanted);
  const scales = scalesOf(sources);
  const args = argumentsForStored(wanted, sources[0]!, scales);
  const method = methodOf(args);
  const sumType = method === 'sum' ? typeOf((options.like ?? sources[0])!.bands[0]!.band) : null;
  const made = needsWideCopy(sources, args, options)
    ? await narrowedTo(
        job,
        sources,
        await warpedWide(job, sources, args, partOf(context, 0, 0.7), {
          ...options,
          ...(sumType !== null && { dataType: 'Float64' }),
        }),
        partOf(context, 0.7, 1),
        { ...options, ...(sumType !== null && { dataType: options.dataType ?? sumType, isStrict: true }) },
      )
    : await warpedAsIs(
        job,
        sources.map(({ dataset }) => dataset),
        [...args, ...placement(sources), ...(options.dataType === undefined ? [] : ['-ot', options.dataType])],
        context,
      );
  keepScales(made, scales);
  keepUnits(made, options.like ? [options.like, ...sources] : sources);
  return made;
}

/** Arguments that make GDAL place a raster by its points or coefficients. It would prefer the transform of a file without one. */
function placement(sources: readonly WarpSource[]): string[] {
  const [dataset, other] = sources.map((source) => source.dataset);
  if (!dataset?.geoTransform || other || transformOf(dataset)) return [];
  return ['-to', `SRC_METHOD=${dataset.getGCPs().length > 0 ? 'GCP_POLYNOMIAL' : 'RPC'}`];
}

/** Throws `KitError` (`classes_blended`) if a warp would blend the classes of a source. */
export function requireNoBlend(sources: readonly WarpSource[], args: readonly (string | number)[]): void {
  const method = methodOf(args);
  if (selectingMethods.has(method)) return;
  for (const { bands } of sources) requireNoClasses(bands, method, 'choose near or mode');
}

/** The scale of each band. Throws `KitError` if the sources have different scales, units or classes, or the bands of one different nodata values. */
export function scalesOf(sources: readonly WarpSource[]): readonly ValueScale[] {
  for (const { dataset } of sources) requireOneNodata(dataset);
  const [firstSource, ...otherSources] = sources;
  for (const { bands } of otherSources)
    bands.forEach((band, i) => {
      const before = firstSource?.bands[i];
      if (before) requireSameMeaning(before, band);
    });
  const of = ({ bands }: WarpSource) => bands.map((band) => new BandReader(band).scale);
  const [first, ...others] = sources.map(of);
  for (const other of others)
    first!.forEach(({ factor, offset }, i) => {
      const own = other[i];
      if (own && (own.factor !== factor || own.offset !== offset))
        throw new KitError(
          'scales_differ',
          `the rasters store their values by different scales (${factor}, ${offset} and ${own.factor}, ${own.offset}); give them one scale first`,
          { status: 422 },
        );
    });
  return first!;
}

/** Warps sources in the wider type of the first, in which a value of no pixel marks missing pixels. */
export async function warpedWide(
  { workFolder, signal }: Job,
  sources: readonly WarpSource[],
  args: readonly (string | number)[],
  context: JobContext,
  { nodata, like = sources[0], dataType = typeOf(like!.bands[0]!.band) }: WarpOptions,
): Promise<gdal.Dataset> {
  const [type, missing] = wideTypeOf(dataType);
  const copies: gdal.Dataset[] = [];
  try {
    for (const [i, { dataset, bands }] of sources.entries()) {
      const path = `${workFolder}/wide-${i}.tif`;
      copies.push(
        await widened(
          bands,
          { path, grid: gridOf(dataset), type: dataType, nodata },
          partOf(context, (0.5 * i) / sources.length, (0.5 * (i + 1)) / sources.length),
        ),
      );
    }
    const made = await runWarp(
      workFolder,
      copies,
      [
        ...[...args.map(String), '-ot', type, '-srcnodata', String(missing), '-dstnodata', String(missing)],
        // Without it, GDAL takes a pixel for missing only if all bands lack it.
        ...['-wo', 'UNIFIED_SRC_NODATA=NO'],
        ...[...commonOptions, ...tiled, '-multi', '-wo', 'NUM_THREADS=ALL_CPUS'],
      ],
      partOf(context, 0.5, 1).progress,
    );
    signal.throwIfAborted();
    return made;
  } finally {
    copies.forEach(closeAndRemove);
  }
}

/** Closes a raster that the step has made in its work folder, and deletes its files, so that the next one has room. */
export function closeAndRemove(made: gdal.Dataset): void {
  const paths = made.getFileList();
  made.close();
  for (const path of paths) rmSync(path, { force: true });
}

/** Gives a wide raster of the work folder the type of the first source, or that of the options. Closes and removes the wide one. */
export async function narrowedTo(
  job: Job,
  sources: readonly WarpSource[],
  wide: gdal.Dataset,
  context: JobContext,
  { dataType, like = sources[0], isStrict = false }: WarpOptions & { readonly isStrict?: boolean } = {},
): Promise<gdal.Dataset> {
  const first = like!;
  const type = dataType ?? typeOf(first.bands[0]!.band);
  const declared = [first, ...sources].flatMap(({ bands }) =>
    bands.map(({ band, ofItem }) => band.noDataValue ?? ofItem?.nodata ?? null),
  );
  const nodata =
    type.startsWith('Float') && dataType !== undefined && !isStrict
      ? NaN
      : (declared.find((value) => value !== null) ?? null);
  try {
    return await narrowed(
      job,
      wide,
      { type, nodata, hasAlpha: alphaOf(first.dataset) !== null, like: first.dataset, isStrict },
      context,
    );
  } finally {
    closeAndRemove(wide);
  }
}

/** Warps into the work folder. Throws `KitError` (`not_reprojected`, `grid_implausible`) with GDAL's reason, without paths of the server. */
async function runWarp(
  workFolder: string,
  sources: readonly gdal.Dataset[],
  args: readonly string[],
  progress: (fraction: number) => void,
): Promise<gdal.Dataset> {
  try {
    return await gdal.warpAsync(`${workFolder}/warped.tif`, null, [...sources], [...args], { progress_cb: progress });
  } catch (cause) {
    throw notWarped(cause, sources[0]!.rasterSize);
  }
}

/** Messages of GDAL that only its programmers understand, in the words of a user. */
const warpReasons: readonly (readonly [message: RegExp, reason: string])[] = [
  [/^$/, 'GDAL gave no reason, as it does for some damaged files'],
  [
    /IReadBlock failed|TIFFFillTile|TIFFReadEncoded|Read error/i,
    'its file is damaged, so that its pixels cannot be read',
  ],
  [/NO_GEOTRANSFORM|Cannot invert geotransform/, 'it does not say where its pixels lie, or they have no size'],
  [/Transform is not solvable/, 'its control points lie on one line or in one place'],
  [/Wrong value for -t[rs] /, 'the size of the new pixels must be a number above 0'],
  [/Cannot find coordinate operations/, 'there is no way between its reference system and the new one'],
];

/** Messages of GDAL about a result that is too large for the disk, or for its own counters. */
const tooManyPixels =
  /Free disk space available|Computed dimensions are too big|File too large|create -\d+x-\d+ dataset/i;

/** Bytes of the largest raster that the kit opens. A smaller result fails only if the disk is full. */
const largestBytes = rasterBudget.pixels * 8;

/** Converts a failure of GDAL's warper. The size is that of the first raster. */
export function notWarped(cause: unknown, { x, y }: gdal.Dataset['rasterSize']): Error {
  const message = withoutFolders(messageOf(cause)).trim();
  const reason = warpReasons.find(([pattern]) => pattern.test(message))?.[1] ?? message;
  const neededBytes = Number(/whereas (\d+) are at least necessary/.exec(message)?.[1] ?? Infinity);
  if (tooManyPixels.test(message) && neededBytes > largestBytes)
    return new KitError(
      'grid_implausible',
      `the raster has ${x} × ${y} pixels, and the result would have more than there is room for: choose larger pixels, or another reference system`,
      { status: 422 },
    );
  if (neededBytes <= largestBytes) return Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  return /create (0x\d+|\d+x0) dataset/.test(reason)
    ? new KitError(
        'grid_implausible',
        `the raster has ${x} × ${y} pixels, and the result would have less than one row or column: take a larger raster, or give a raster whose grid the result gets`,
        { status: 422 },
      )
    : new KitError('not_reprojected', `the raster cannot be reprojected: ${reason}`, { status: 422 });
}

/** Warps rasters that mark missing pixels in one way. */
async function warpedAsIs(
  { workFolder, signal }: Job,
  sources: readonly gdal.Dataset[],
  args: readonly (string | number)[],
  context: JobContext,
): Promise<gdal.Dataset> {
  const [first] = sources;
  const bands = first!.bands.map((band) => band);
  const hasAlpha = alphaOf(first!) !== null;
  const isReal = bands.every(({ dataType }) => dataType?.startsWith('Float'));
  const named = sources.map(firstNodataOf);
  const known = named.find((value) => value !== null) ?? (isReal ? NaN : null);
  // A mask can mark any value as missing.
  const isMasked = !hasAlpha && sources.some((source) => maskOf(source.bands.get(1)) !== null);
  const needsMask = isMasked || (known === null && !hasAlpha);
  const inputs = sources.map((source, i) => withNodata(source, named[i] ?? (isReal ? NaN : null)));
  try {
    const made = await runWarp(
      workFolder,
      inputs,
      [
        ...args.map(String),
        ...(known === null || hasAlpha ? [] : ['-dstnodata', String(known)]),
        ...(needsMask ? ['-dstalpha'] : []),
        ...[...commonOptions, ...tiled, '-multi', '-wo', 'NUM_THREADS=ALL_CPUS'],
      ],
      context.progress,
    );
    signal.throwIfAborted();
    if (!needsMask) return made;
    const masked = await maskFromAlpha(made, bands.length, known, `${workFolder}/masked.tif`);
    return withDescriptions(masked, bands, `${workFolder}/masked.vrt`);
  } finally {
    inputs.forEach((input, i) => input !== sources[i] && input.close());
  }
}

/** A view of a raster with this nodata value in every band. */
function withNodata(source: gdal.Dataset, value: number | null): gdal.Dataset {
  if (source.bands.map(({ noDataValue }) => Object.is(noDataValue, value)).every(Boolean)) return source;
  const view = gdal.drivers.get('VRT').createCopy('', source);
  view.bands.forEach((band) => {
    if (!Object.is(band.noDataValue, value)) band.noDataValue = value;
  });
  return view;
}

/** A raster's place. */
type Place = Pick<gdal.Dataset, 'srs' | 'geoTransform' | 'rasterSize'>;

/** Target definition for a raster across the antimeridian, with longitudes beyond 180°; null if the raster does not cross it. */
export function targetAcross(source: Place, code: string): string | null {
  const target = srsOfCode(code);
  if (!crossesAntimeridian(source)) return null;
  // PROJ's text knows no other unit of angles.
  if (isInDegrees(target)) return `${target.toProj4()} +lon_wrap=180`;
  if (!target.isGeographic() && !hasSeamAt180(source, target)) return null;
  throw new KitError(
    'crosses_antimeridian',
    `the raster crosses 180° of longitude, and ${code} is split there; choose another reference system, such as EPSG:4326 or a UTM zone`,
    { status: 422 },
  );
}

/** True if both sides of 180° lie far apart in a reference system, at the latitude of the raster. */
export function hasSeamAt180({ srs, geoTransform, rasterSize }: Place, target: gdal.SpatialReference) {
  const middle = toLonLat(srs!)(...fromTransform(geoTransform!, rasterSize.x / 2, rasterSize.y / 2));
  const latitude = middle?.[1] ?? 0;
  const to = fromLonLat(target);
  try {
    const [[x, y], [otherX, otherY]] = [to(179.9999, latitude), to(-179.9999, latitude)];
    return !(Math.hypot(x - otherX, y - otherY) < 1_000);
  } catch {
    return true;
  }
}

/** True if a raster lies on both sides of 180° of longitude. */
export function crossesAntimeridian({ srs, geoTransform, rasterSize: { x, y } }: Place): boolean {
  if (!srs || !geoTransform) return false;
  const corners = [
    [0, 0],
    [x, 0],
    [x, y],
    [0, y],
  ].map(([column = 0, row = 0]) => [...fromTransform(geoTransform, column, row)]);
  const footprint = footprintOf(corners, toLonLat(srs));
  if (!footprint) return false;
  const [west, , east] = boxOf(footprint);
  return west > east;
}

/** A target without its system of heights, unless each source has that system: values are never converted to it. */
export function targetOf(target: string, sources: readonly (gdal.SpatialReference | null)[]): string {
  const srs = srsOfCode(target);
  if (!srs.isCompound() || sources.every((source) => source?.isSame(srs))) return target;
  return /^COMPD_CS\["[^"]*",(.*),VERT_CS\[/s.exec(srs.toWKT())?.[1] ?? target;
}

/** Arguments that make GDAL warp onto the grid of a raster. Throws `KitError` if it has no reference system, or turned pixels. */
export function gridArguments(like: gdal.Dataset, sources: readonly (gdal.SpatialReference | null)[]): string[] {
  const { srs, rasterSize } = like;
  const { x, y } = rasterSize;
  const [x0, width, turn, y0, turnDown, height] = transformOf(like) ?? [];
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
  return ['-t_srs', targetOf(srs.toWKT(), sources), '-te', xs![0], ys![0], xs![1], ys![1], '-ts', x, y].map(String);
}

/** Throws if a raster has no reference system, control points or RPC. `advice`: how to give it one. */
export function requirePlaced(
  source: gdal.Dataset,
  advice = 'set it by the parameter from, for example EPSG:32633',
): void {
  if (source.srs || hasPoints(source)) return;
  throw new KitError('not_placed', `the raster has no reference system; ${advice}`, { status: 422 });
}
