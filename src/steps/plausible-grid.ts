/** Refuses grids that GDAL chose for a result, if they are implausible. */
import type gdal from 'gdal-async';
import { KitError } from '../contract/kit-error.ts';
import { degreesPerUnit, fromTransform } from '../raster/affine.ts';
import { fromLonLat, toLonLat } from '../raster/lon-lat.ts';

/** Smallest share of the input's pixels that a result of about the same pixels has. */
const minShare = 0.25;
/** A width of pixels that no reference system has, in its units. */
const widerThanEarth = 1e8;

/** Throws `KitError` if GDAL chose pixels that are far larger than the input's, as where the projection has no end at a pole. */
export function requirePlausible(
  from: { readonly x: number; readonly y: number },
  { srs, rasterSize: { x, y }, geoTransform }: gdal.Dataset,
  code: string,
  advice = `set pixelSize, clip the raster to the area of use of ${code} first, or choose another reference system`,
): void {
  const pixel = Math.abs(geoTransform?.[1] ?? 0);
  // Pixels of equal degrees are fewer towards the poles.
  const isFew = !srs?.isGeographic() && x * y < minShare * from.x * from.y;
  if (!isFew && pixel < widerThanEarth) return;
  throw new KitError(
    'grid_implausible',
    `in ${code} the raster would have ${x} × ${y} pixels of ${pixel.toPrecision(3)}: ${advice}`,
    { status: 422 },
  );
}

/** Sample points along each side of the input. */
const pointsPerSide = 33;
/** Largest share of sample points that may be outside the result, for pixels that are cut at an edge. */
const maxLostShare = 0.02;
const maxLatitude = 80;

type Place = Pick<gdal.Dataset, 'srs' | 'geoTransform' | 'rasterSize'>;

/** Throws `KitError` (`area_outside`) if the box around a raster does not reach the grid of another. */
export function requireOverlap({ srs, geoTransform, rasterSize }: Place, grid: Place): void {
  if (!srs || !geoTransform || !grid.srs || !grid.geoTransform) return;
  const [west, width, turn, north, otherTurn, height] = grid.geoTransform as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (turn !== 0 || otherTurn !== 0) return;
  const lonLatOf = toLonLat(srs);
  const toGrid = fromLonLat(grid.srs);
  const [columns, rows]: [number[], number[]] = [[], []];
  for (let i = 0; i < pointsPerSide ** 2; i++) {
    const column = ((i % pointsPerSide) * rasterSize.x) / (pointsPerSide - 1);
    const row = (Math.floor(i / pointsPerSide) * rasterSize.y) / (pointsPerSide - 1);
    const place = lonLatOf(...fromTransform(geoTransform, column, row));
    if (!place) return;
    try {
      const [x, y] = toGrid(...place);
      columns.push((x - west) / width);
      rows.push((y - north) / height);
    } catch {
      // The raster reaches beyond the system of the grid, so its box is not known.
      return;
    }
  }
  const turnOf = 360 / (degreesPerUnit(grid.srs) ?? Infinity) / width;
  const meets = (values: readonly number[], size: number, shift = 0) =>
    Math.max(...values) + shift > -1 && Math.min(...values) + shift < size + 1;
  const isBeside = [-turnOf, 0, turnOf].every((shift) => !meets(columns, grid.rasterSize.x, shift));
  if (!isBeside && meets(rows, grid.rasterSize.y)) return;
  throw new KitError(
    'area_outside',
    'no part of the raster is on the grid of the other raster: choose a grid that the raster reaches',
    { status: 422 },
  );
}

/** Throws `KitError` if the extent that GDAL chose does not contain the whole input. An example is a projection without bounds at a pole. */
export function requireCovered(
  { srs, geoTransform, rasterSize }: Pick<gdal.Dataset, 'srs' | 'geoTransform' | 'rasterSize'>,
  result: gdal.Dataset,
  code: string,
): void {
  if (!srs || !geoTransform || !result.srs || !result.geoTransform) return;
  const lonLatOf = toLonLat(srs);
  const toTarget = fromLonLat(result.srs);
  const [west, width, , north, , height] = result.geoTransform as [number, number, number, number, number, number];
  const columnsOfTurn = 360 / (degreesPerUnit(result.srs) ?? Infinity) / width;
  const isInside = ([x, y]: readonly [number, number]) => {
    const [column, row] = [(x - west) / width, (y - north) / height];
    return (
      [column - columnsOfTurn, column, column + columnsOfTurn].some(
        (value) => value > -1 && value < result.rasterSize.x + 1,
      ) &&
      row > -1 &&
      row < result.rasterSize.y + 1
    );
  };
  let [placed, lost] = [0, 0];
  for (let i = 0; i < pointsPerSide ** 2; i++) {
    const column = (((i % pointsPerSide) + 0.5) * rasterSize.x) / pointsPerSide;
    const row = ((Math.floor(i / pointsPerSide) + 0.5) * rasterSize.y) / pointsPerSide;
    const place = lonLatOf(...fromTransform(geoTransform, column, row));
    // GDAL cuts off the poles, which many projections do not contain.
    if (!place || Math.abs(place[1]) > maxLatitude) continue;
    try {
      const point = toTarget(...place);
      placed += 1;
      if (!isInside(point)) lost += 1;
    } catch {
      // The target does not contain this point.
    }
  }
  if (lost <= placed * maxLostShare) return;
  throw new KitError(
    'grid_implausible',
    `in ${code} no extent was found that holds the whole raster: clip it to the area of use of ${code} first, or choose another reference system`,
    { status: 422 },
  );
}
