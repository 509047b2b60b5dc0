import { mkdirSync } from 'node:fs';
import { parse } from 'node:path';
import gdal from 'gdal-async';
import {
  argumentsForStored,
  argumentsPastPoles,
  BandReader,
  closeAndRemove,
  commonOptions,
  createRaster,
  crossesAntimeridian,
  degreesPerUnit,
  fromLonLat,
  fromTransform,
  gridOf,
  hasPoints,
  hasSeamAt180,
  keepScales,
  keepUnits,
  narrowedTo,
  notWarped,
  placeIn,
  reachesPole,
  requireCovered,
  requireNoBlend,
  requireNoClasses,
  requirePlausible,
  requireTransform,
  scalesOf,
  sourcesOf,
  targetOf,
  toLonLat,
  typeOf,
  walkBands,
  warped,
  warpedWide,
  wideTypeOf,
  type WarpSource,
  srsOfCode,
} from '../raster.ts';
import { KitError, type Scene, type SceneBand, type StepJob } from '../step-kit.ts';

interface Parameters {
  readonly overlap: Order | keyof typeof overlaps;
  readonly crs?: string | undefined;
  readonly resampling: string;
}

const bandsOf = (scene: Scene, dataset: gdal.Dataset) => scene.bands.filter((band) => band.dataset === dataset);
/** Names of a band beyond its file's name. */
const ownNames = ({ names, fileName, band: { description } }: SceneBand) =>
  names.filter((name) => name === description || name !== parse(fileName).name);
const bandsInWords = (scene: Scene, dataset: gdal.Dataset) =>
  bandsOf(scene, dataset)
    .map((band) => `${ownNames(band)[0] ?? 'a band'} (${typeOf(band.band)})`)
    .join(', ');

function haveSameBands(scene: Scene, a: gdal.Dataset, b: gdal.Dataset): boolean {
  const [ofA, ofB] = [bandsOf(scene, a), bandsOf(scene, b)];
  return (
    ofA.length === ofB.length &&
    ofA.every((sceneBand, i) => {
      const other = ofB[i]!;
      const [names, otherNames] = [ownNames(sceneBand), ownNames(other)];
      const isSameName =
        names.length === 0 && otherNames.length === 0 ? true : names.some((name) => otherNames.includes(name));
      return typeOf(sceneBand.band) === typeOf(other.band) && isSameName;
    })
  );
}

interface Box {
  readonly west: number;
  readonly south: number;
  readonly east: number;
  readonly north: number;
}

const pointsPerEdge = 32;

/**
 * Bounds of a raster in a reference system, from many points on its edges; null if a point cannot be transformed. Rasters without
 * a reference system have coordinates of one plane.
 */
function boxIn(
  target: gdal.SpatialReference | null,
  { srs, geoTransform, rasterSize: { x, y } }: gdal.Dataset,
): Box | null {
  if (!geoTransform || (srs === null) !== (target === null)) return null;
  const isSame = srs === null || target === null || srs.isSame(target);
  const lonLat = isSame ? () => null : toLonLat(srs);
  const back = isSame ? (place: number, other: number) => [place, other] as const : fromLonLat(target);
  let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i <= pointsPerEdge; i++)
    for (const [column, row] of [
      [(x * i) / pointsPerEdge, 0],
      [(x * i) / pointsPerEdge, y],
      [0, (y * i) / pointsPerEdge],
      [x, (y * i) / pointsPerEdge],
    ] as const) {
      const [px, py] = fromTransform(geoTransform, column, row);
      const place = isSame ? ([px, py] as const) : lonLat(px, py);
      if (!place) return null;
      const mapped = isSame ? place : placeIn(back, place);
      if (!mapped) return null;
      const [mx, my] = mapped;
      [west, south, east, north] = [Math.min(west, mx), Math.min(south, my), Math.max(east, mx), Math.max(north, my)];
    }
  return Number.isFinite(west + south + east + north) ? { west, south, east, north } : null;
}

const shifted = (box: Box, by: number): Box => ({ ...box, west: box.west + by, east: box.east + by });
const widthOf = (boxes: readonly Box[]) =>
  Math.max(...boxes.map(({ east }) => east)) - Math.min(...boxes.map(({ west }) => west));

interface MosaicGrid {
  readonly args: readonly string[];
  /** Shift of each raster in degrees, which joins rasters on both sides of 180°. */
  readonly shifts: readonly number[];
}

/**
 * Extends the grid of the first raster to all rasters, so that its pixels stay unchanged. GDAL chooses the grid if the first raster is rotated.
 * `pixel`: width and height of a pixel of the result. Default: those of the first raster.
 */
function mosaicGrid(datasets: readonly gdal.Dataset[], pixel?: readonly [number, number]): MosaicGrid {
  const unmoved = datasets.map(() => 0);
  const [first] = datasets;
  const [, perColumn = 1, turn = 0, , turnDown = 0, perRow = -1] = first?.geoTransform ?? [];
  const [width, height] = pixel ?? [Math.abs(perColumn), Math.abs(perRow)];
  const srs = first?.srs;
  const found = datasets.map((dataset) => boxIn(srs ?? null, dataset));
  if (found.includes(null) || turn !== 0 || turnDown !== 0) return { args: [], shifts: unmoved };
  const boxes = found.filter((box) => box !== null);
  const perUnit = srs ? degreesPerUnit(srs) : null;
  if (perUnit !== null && datasets.some(crossesInMetres))
    throw new KitError(
      'crosses_antimeridian',
      'a raster in a projected system lies on both sides of 180° of longitude, and the first raster is in degrees: choose a UTM zone or a polar system by crs, or bring that raster to degrees by the step reproject first',
      { status: 422 },
    );
  const turn360 = perUnit === null ? 0 : 360 / perUnit;
  const east = boxes.map((box) => (box.west < 0 ? turn360 : 0));
  const across = boxes.map((box, i) => shifted(box, east[i]!));
  const goesAcross = widthOf(boxes) > turn360 / 2 && widthOf(across) < widthOf(boxes);
  const placed = goesAcross ? across : boxes;
  if (perUnit !== null && widthOf(placed) > turn360 + width && boxes.every((box) => widthOf([box]) <= turn360 + width))
    throw new KitError(
      'grid_implausible',
      `together the rasters would cover ${Math.round((widthOf(placed) * 360) / turn360)}° of longitude, because they begin at different longitudes (${placed.map(({ west }) => `${Math.round(west * 100) / 100}`).join(', ')}): bring them to one range first, by the step reproject onto the grid of the first`,
      { status: 422 },
    );
  // At least one, which was checked above.
  const [origin] = placed as [Box];
  // To whole pixels of the first; what lies on them but for rounding lies on them.
  const out = (distance: number, size: number) => Math.ceil(distance / size - 1e-6) * size;
  const west = origin.west - out(origin.west - Math.min(...placed.map((box) => box.west)), width);
  const north = origin.north + out(Math.max(...placed.map((box) => box.north)) - origin.north, height);
  const end = west + out(Math.max(...placed.map((box) => box.east)) - west, width);
  const south = north - out(north - Math.min(...placed.map((box) => box.south)), height);
  return {
    args: ['-te', west, south, end, north, '-tr', width, height].map(String),
    shifts: goesAcross ? east : unmoved,
  };
}

/** The smallest width and height of a pixel, as GDAL chooses them. */
const finestPixel = (datasets: readonly gdal.Dataset[]): [number, number] =>
  [1, 5].map((i) => Math.min(...datasets.map(({ geoTransform }) => Math.abs(geoTransform?.[i] ?? Infinity)))) as [number, number]; // oxfmt-ignore

/** Leaves the grid in the given reference system to GDAL, except at a pole. Rasters in degrees that reach one keep their extent. */
function gridIn(code: string, datasets: readonly gdal.Dataset[]): MosaicGrid {
  requireNotAround(code, datasets);
  const sources = datasets.map((dataset) => ({ dataset, srs: dataset.srs }));
  const units = [srsOfCode(code), ...datasets.map(({ srs }) => srs)].map(degreesPerUnit);
  if (units[0] !== null && units.every((perUnit) => perUnit === units[0]) && reachesPole(sources))
    return mosaicGrid(datasets, finestPixel(datasets));
  return { args: argumentsPastPoles(sources, code), shifts: datasets.map(() => 0) };
}

const orders = ['last', 'first', 'newest', 'oldest'] as const;
type Order = (typeof orders)[number];
const isOrder = (overlap: string): overlap is Order => orders.some((order) => order === overlap);

/** Returns the indexes of the rasters from bottom to top. Rasters with the same date keep their order. Throws `KitError` (`no_date`) if a raster has no date. */
function lowestFirst(scene: Scene, order: Order): number[] {
  const given = scene.datasets.map((_, i) => i);
  if (order === 'last') return given;
  if (order === 'first') return given.toReversed();
  const times = scene.datasets.map((dataset) => scene.observedAt(dataset));
  const undated = given.filter((i) => times[i] === null).map((i) => bandsOf(scene, scene.datasets[i]!)[0]!.fileName);
  if (undated.length > 0)
    throw new KitError(
      'no_date',
      `${undated.join(', ')} has no date: use catalog items, write TIFFTAG_DATETIME into the file, or choose another overlap`,
      { status: 422 },
    );
  const sign = order === 'newest' ? 1 : -1;
  return given.toSorted((a, b) => sign * (times[a]! - times[b]!));
}

/** Combines overlapping values, which are sorted. */
const overlaps = {
  min: (values: Float64Array) => values[0]!,
  max: (values: Float64Array) => values.at(-1)!,
  mean: (values: Float64Array) => values.reduce((sum, value) => sum + value, 0) / values.length,
  median: (values: Float64Array) => (values[(values.length - 1) >> 1]! + values[values.length >> 1]!) / 2,
} as const;

export default async function work(job: StepJob<Parameters>): Promise<void> {
  const { parameters, scene, raster, outputPath, share } = job;
  const [first, ...others] = scene.datasets;
  if (!first) throw new KitError('no_raster', 'there is no raster to put together', { status: 422 });
  const other = others.find((dataset) => !haveSameBands(scene, first, dataset));
  if (other)
    throw new KitError(
      'bands_differ',
      `rasters must have the same bands to be put together: one has ${bandsInWords(scene, first)}, another ${bandsInWords(scene, other)}`,
      { status: 422 },
    );
  requireAllPlaced(scene.datasets);
  // GDAL would take the transform of a file without one for degrees.
  for (const dataset of scene.datasets) if (dataset.geoTransform) requireTransform(gridOf(dataset));
  const { args, shifts } =
    parameters.crs === undefined ? mosaicGrid(scene.datasets) : gridIn(parameters.crs, scene.datasets);
  const views = scene.datasets.map((dataset, i) => (shifts[i] === 0 ? dataset : moved(dataset, shifts[i]!)));
  const wanted = parameters.crs ?? first.srs?.toWKT();
  const systems = scene.datasets.map(({ srs }) => srs);
  const warp = [...(wanted === undefined ? [] : ['-t_srs', targetOf(wanted, systems)]), '-r', parameters.resampling];
  const sources = sourcesOf(scene, views);
  const { overlap } = parameters;
  if (overlap === 'mean' || overlap === 'median') requireNoClasses(scene.bands, overlap, 'choose another overlap');
  const made = isOrder(overlap)
    ? await warped(
        job,
        lowestFirst(scene, overlap).map((i) => sources[i]!),
        [...warp, ...args],
        share(0, 0.6),
        { like: sources[0]! },
      )
    : await combined(job, sources, warp, args, overlaps[overlap]);
  views.forEach((view, i) => view !== scene.datasets[i] && view.close());
  if (parameters.crs !== undefined) requirePossible(parameters.crs, scene.datasets, made);
  raster.writeCog(made, outputPath, { compression: 'DEFLATE', blockSize: 512, resampling: 'NEAREST' }, share(0.6, 1));
  made.close();
}

/** Throws `KitError` if the grid that GDAL chose for the reference system is implausible, or leaves a raster out. */
function requirePossible(code: string, datasets: readonly gdal.Dataset[], made: gdal.Dataset): void {
  const largest = datasets.map(({ rasterSize }) => rasterSize).toSorted((a, b) => b.x * b.y - a.x * a.y)[0];
  if (largest)
    requirePlausible(
      largest,
      made,
      code,
      `clip the rasters to the area of use of ${code} first, or choose another one`,
    );
  for (const dataset of datasets) requireCovered(dataset, made, code);
}

/** Throws `KitError` if rasters on both sides of 180° would come out as one around the earth, almost all of it empty. */
function requireNotAround(code: string, datasets: readonly gdal.Dataset[]): void {
  const target = srsOfCode(code);
  const perUnit = degreesPerUnit(target);
  if (perUnit === null) return requireNoSeam(code, target, datasets);
  if (datasets.some(crossesInMetres)) throw bothSidesOf180(code);
  const boxes = datasets.map((dataset) => boxIn(target, dataset)).filter((box) => box !== null);
  const across = boxes.map((box) => shifted(box, box.west < 0 ? 360 / perUnit : 0));
  if (widthOf(boxes) * perUnit < 300 || widthOf(across) * perUnit > 180) return;
  throw bothSidesOf180(code);
}

/** True for a raster in a projected system that lies on both sides of 180°: in degrees it would be cut in two. */
const crossesInMetres = (dataset: gdal.Dataset) => !dataset.srs?.isGeographic() && crossesAntimeridian(dataset);

const bothSidesOf180 = (code: string) =>
  new KitError(
    'crosses_antimeridian',
    `the rasters lie on both sides of 180° of longitude, where ${code} is split: choose a UTM zone or a polar system by crs, or leave crs out if the first raster is in degrees`,
    { status: 422 },
  );

/** Throws `KitError` if rasters lie on both sides of 180°, and a map on which both sides lie far apart would join them around the Earth. */
function requireNoSeam(code: string, target: gdal.SpatialReference, datasets: readonly gdal.Dataset[]): void {
  const lonLat = gdal.SpatialReference.fromEPSG(4326);
  const boxes = datasets.map((dataset) => boxIn(lonLat, dataset)).filter((box) => box !== null);
  const across = boxes.map((box) => shifted(box, box.west < 0 ? 360 : 0));
  const [first] = datasets;
  if (
    !first?.srs ||
    !first.geoTransform ||
    widthOf(boxes) < 180 ||
    widthOf(across) > 180 ||
    !hasSeamAt180(first, target)
  )
    return;
  throw bothSidesOf180(code);
}

function requireAllPlaced(datasets: readonly gdal.Dataset[]): void {
  const [first] = datasets;
  const isAlone = datasets.length === 1 && first !== undefined && (first.geoTransform !== null || hasPoints(first));
  if (datasets.every(({ srs }) => (srs === null) === (first!.srs === null)) && (first!.srs !== null || isAlone)) return;
  throw new KitError(
    'not_placed',
    'a raster does not say in which reference system it lies; give it one first, as the step reproject does by its parameter from',
    { status: 422 },
  );
}

/** Shifts a raster to the east, in degrees. */
function moved(source: gdal.Dataset, degrees: number): gdal.Dataset {
  const view = gdal.drivers.get('VRT').createCopy('', source);
  const [x0 = 0, ...rest] = source.geoTransform!;
  view.geoTransform = [x0 + degrees, ...rest];
  return view;
}

/** Grid of the warped rasters. A virtual raster reads no pixels. */
function virtualWarp(sources: readonly WarpSource[], path: string, args: readonly string[]) {
  try {
    const datasets = sources.map(({ dataset }) => dataset);
    return gdal.warp(path, null, datasets, ['-of', 'VRT', ...commonOptions, ...args]);
  } catch (cause) {
    throw notWarped(cause, sources[0]!.dataset.rasterSize);
  }
}

/** Warps each raster onto the common grid and combines overlapping values. */
async function combined(
  job: Pick<StepJob<never>, 'workFolder' | 'signal' | 'share'>,
  sources: readonly WarpSource[],
  wanted: readonly string[],
  grid: readonly string[],
  of: (values: Float64Array) => number,
): Promise<gdal.Dataset> {
  const { workFolder, share } = job;
  requireNoBlend(sources, wanted);
  const scales = scalesOf(sources);
  const warp = argumentsForStored(wanted, sources[0]!, scales).map(String);
  const common = virtualWarp(sources, `${workFolder}/common.vrt`, [...warp, ...grid]);
  const [x0 = 0, width = 1, , y0 = 0, , height = -1] = common.geoTransform ?? [];
  const { x, y } = common.rasterSize;
  const extent = ['-te', x0, y0 + y * height, x0 + x * width, y0, '-ts', x, y].map(String);
  const lies = gridOf(common);
  common.close();
  const dataTypeOfAll = typeOf(sources[0]!.bands[0]!.band);
  const [dataType, missing] = wideTypeOf(dataTypeOfAll);
  const layers: gdal.Dataset[] = [];
  for (const [i, source] of sources.entries()) {
    const workOfOne = `${workFolder}/layer-${i}`;
    mkdirSync(workOfOne);
    layers.push(
      await warpedWide(
        { ...job, workFolder: workOfOne },
        [source],
        [...warp, ...extent],
        share((0.3 * i) / sources.length, (0.3 * (i + 1)) / sources.length),
        {
          dataType: dataTypeOfAll,
        },
      ),
    );
  }
  const names = layers[0]!.bands.map(({ description }) => description);
  const made = await createRaster(
    {
      path: `${workFolder}/combined.tif`,
      grid: lies,
      dataType,
      bands: names.map((description) => ({ description, nodata: missing })),
    },
    async (target) => {
      const values = new Float64Array(layers.length);
      for (let b = 1; b <= names.length; b++) {
        const isNegative = (scales[b - 1]?.factor ?? 1) < 0;
        await walkBands(
          {
            inputs: layers.map((layer) => new BandReader({ band: layer.bands.get(b) }, { scaling: 'stored' })),
            outputs: [target.bands.get(b)],
          },
          (inputs, [out], strip) => {
            const count = strip.width * strip.rows;
            for (let i = 0; i < count; i++) {
              let n = 0;
              for (const input of inputs) if (!Number.isNaN(input[i])) values[n++] = input[i]!;
              const sorted = values.subarray(0, n).sort();
              // Values with a negative scale have the opposite order.
              const value = n === 0 ? missing : of(isNegative ? sorted.reverse() : sorted);
              out![i] = dataTypeOfAll.startsWith('Float') ? value : Math.round(value);
            }
          },
          share(0.3 + (0.2 * (b - 1)) / names.length, 0.3 + (0.2 * b) / names.length),
        );
      }
    },
  );
  layers.forEach(closeAndRemove);
  const result = await narrowedTo(job, sources, made, share(0.5, 0.6));
  keepScales(result, scales);
  keepUnits(result, sources);
  return result;
}
