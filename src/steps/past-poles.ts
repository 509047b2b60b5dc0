/** Extents of rasters that reach a pole. The first and the last row of a climate model are centred on the poles. */
import gdal from 'gdal-async';
import { KitError } from '../contract/kit-error.ts';
import { degreesPerUnit, fromTransform } from '../raster/affine.ts';
import { fromLonLat, toLonLat, type LonLat } from '../raster/lon-lat.ts';
import { srsOfCode } from './srs-of-code.ts';

interface Source {
  readonly dataset: gdal.Dataset;
  /** Its reference system, or the one that the user gives it. */
  readonly srs: gdal.SpatialReference | null;
}

const pointsPerSide = 33;
/** Coordinates of places on Earth are smaller than this, in units of any reference system. */
const maxCoordinate = 1e8;
/** Share of a row that an edge may lie past a pole by rounding. */
const tolerance = 1e-6;

/**
 * Arguments that make GDAL's warper keep the rows at a pole. The edge of such a row lies past the pole, where GDAL cannot
 * transform it, so GDAL would leave out up to ten degrees of the raster. If the target is in degrees, a raster that reaches a pole keeps
 * its extent, to which GDAL would add all longitudes from -180° to 180°. Empty for all other rasters. `pixelSize`: in units of the target;
 * default: the smallest that GDAL suggests. Throws `KitError` (`grid_implausible`) if a raster reaches past a pole that has no coordinates
 * in the target, as in Web Mercator.
 */
export function argumentsPastPoles(sources: readonly Source[], code: string, pixelSize?: number): string[] {
  const target = srsOfCode(code);
  const perUnit = degreesPerUnit(target);
  if (perUnit !== null) return reachesPole(sources) ? ownExtent(sources, perUnit, pixelSize) : [];
  const poles = sources.flatMap(polesPassed);
  if (poles.length === 0) return [];
  requirePlaceOf(poles, target, code);
  const grids = sources.map((source) => gridIn(source, target));
  if (!grids.every((grid) => grid !== null)) return [];
  const [west, south] = [0, 1].map((side) => Math.min(...grids.map(({ box }) => box[side]!)));
  const [east, north] = [2, 3].map((side) => Math.max(...grids.map(({ box }) => box[side]!)));
  const size = pixelSize ?? Math.min(...grids.map((grid) => grid.pixelSize));
  return ['-te', west, south, east, north, '-tr', size, size].map(String);
}

/** True if an edge of a raster in degrees is at a pole, or past it by at most one row. */
export const reachesPole = (sources: readonly Source[]): boolean =>
  sources.some((source) =>
    latitudesOf(source).some(([latitude, perRow]) => {
      const past = Math.abs(latitude) - 90;
      return past >= -tolerance * perRow && past <= perRow * (1 + tolerance);
    }),
  );

/** The common extent and the pixel size of rasters in degrees. Empty if a raster has another unit or is rotated. */
function ownExtent(sources: readonly Source[], perTargetUnit: number, pixelSize?: number): string[] {
  const boxes = sources.map(({ srs, dataset: { geoTransform, rasterSize } }) => {
    const perUnit = degreesPerUnit(srs);
    if (perUnit === null || !geoTransform || geoTransform[2] !== 0 || geoTransform[4] !== 0) return null;
    const scaled = geoTransform.map((value) => (value * perUnit) / perTargetUnit);
    const [x = 0, perColumn = 0, , y = 0, , perRow = 0] = scaled;
    const [otherX, otherY] = [x + rasterSize.x * perColumn, y + rasterSize.y * perRow];
    const size = [Math.abs(perColumn), Math.abs(perRow)] as const;
    return { west: Math.min(x, otherX), east: Math.max(x, otherX), south: Math.min(y, otherY), north: Math.max(y, otherY), size }; // oxfmt-ignore
  });
  if (!boxes.every((box) => box !== null)) return [];
  // With larger pixels, the whole last row would be past the pole.
  const most = pixelSize === undefined ? Infinity : 90 / perTargetUnit + pixelSize / 2;
  const [west, east] = [Math.min(...boxes.map((box) => box.west)), Math.max(...boxes.map((box) => box.east))];
  const south = Math.max(-most, Math.min(...boxes.map((box) => box.south)));
  const north = Math.min(most, Math.max(...boxes.map((box) => box.north)));
  const [width, height] = [0, 1].map((side) => pixelSize ?? Math.min(...boxes.map(({ size }) => size[side]!)));
  return ['-te', west, south, east, north, '-tr', width!, height!].map(String);
}

/** Latitude of the first and of the last edge, each with the height of a row, in degrees. Empty for a rotated raster or one in other units. */
function latitudesOf({ srs, dataset: { geoTransform, rasterSize } }: Source): [latitude: number, perRow: number][] {
  const perUnit = degreesPerUnit(srs);
  if (perUnit === null || !geoTransform || geoTransform[2] !== 0 || geoTransform[4] !== 0) return [];
  const [first, perRow] = [geoTransform[3]! * perUnit, geoTransform[5]! * perUnit];
  return [first, first + rasterSize.y * perRow].map((latitude) => [latitude, Math.abs(perRow)]);
}

/** Latitudes of the poles that an edge is past, by at most one row. */
const polesPassed = (source: Source): number[] =>
  latitudesOf(source)
    .filter(([latitude, perRow]) => {
      const past = Math.abs(latitude) - 90;
      return past > tolerance * perRow && past <= perRow;
    })
    .map(([latitude]) => 90 * Math.sign(latitude));

function requirePlaceOf(poles: readonly number[], target: gdal.SpatialReference, code: string): void {
  const toTarget = fromLonLat(target);
  const missing = poles.find((latitude) => placeIn(toTarget, [0, latitude]) === null);
  if (missing === undefined) return;
  throw new KitError(
    'grid_implausible',
    `the raster reaches the ${missing > 0 ? 'North' : 'South'} Pole, which has no place in ${code}: clip the raster to the area of use of ${code} first, or choose another reference system`,
    { status: 422 },
  );
}

/**
 * Returns the extent (west, south, east, north) and pixel size that GDAL suggests for a raster. The extent is enlarged to the
 * points of the raster up to the poles. Null if a point cannot be transformed.
 */
function gridIn({ dataset, srs }: Source, target: gdal.SpatialReference): { box: number[]; pixelSize: number } | null {
  const { geoTransform, rasterSize } = dataset;
  if (!srs || !geoTransform) return null;
  const found = suggestedGrid(dataset, srs, target);
  if (!found) return null;
  const [x0, pixelSize, , y0] = found.geoTransform as [number, number, number, number];
  let box = [x0, y0 - found.rasterSize.y * pixelSize, x0 + found.rasterSize.x * pixelSize, y0];
  const toTarget = fromLonLat(target);
  const lonLatOf = toLonLat(srs);
  for (let i = 0; i < pointsPerSide ** 2; i++) {
    const column = ((i % pointsPerSide) * rasterSize.x) / (pointsPerSide - 1);
    const row = (Math.floor(i / pointsPerSide) * rasterSize.y) / (pointsPerSide - 1);
    const [x, y] = fromTransform(geoTransform, column, row);
    const lonLat = lonLatOf(x, y);
    const place = lonLat && placeIn(toTarget, lonLat);
    if (!place) return null;
    const [east, north] = place;
    box = [Math.min(box[0]!, east), Math.min(box[1]!, north), Math.max(box[2]!, east), Math.max(box[3]!, north)];
  }
  return { box, pixelSize };
}

/** Returns null if GDAL suggests no grid. The warper then throws its own error. */
function suggestedGrid(src: gdal.Dataset, srs: gdal.SpatialReference, target: gdal.SpatialReference) {
  try {
    return gdal.suggestedWarpOutput({ src, s_srs: srs, t_srs: target });
  } catch {
    return null;
  }
}

/** Transforms a longitude and a latitude, which counts as the pole if it lies past it. Returns null if the projection is infinite there; PROJ may return a large number for that. */
export function placeIn(toTarget: ReturnType<typeof fromLonLat>, [lon, lat]: LonLat): LonLat | null {
  try {
    const [east, north] = toTarget(lon, Math.min(Math.max(lat, -90), 90));
    return Math.abs(east) < maxCoordinate && Math.abs(north) < maxCoordinate ? [east, north] : null;
  } catch {
    return null;
  }
}
