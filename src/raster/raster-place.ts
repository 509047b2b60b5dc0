/** Only for child processes: the place of a raster on Earth. */
import gdal from 'gdal-async';
import { footprintOf, type Footprint } from './footprint.ts';
import { toLonLatIfAny } from './lon-lat.ts';
import { isIdentity } from './transform-of.ts';

/** Footprint in longitude and latitude. Null without a reference system, or without a place in it: GDAL gives a raster that has none the identity. */
export function footprintOfRaster(dataset: gdal.Dataset): Footprint | null {
  const { srs, geoTransform: t, rasterSize } = dataset;
  if (!srs || !t || isIdentity(t)) return null;
  const lonLat = toLonLatIfAny(srs);
  if (!lonLat) return null;
  const corner = (column: number, row: number) => [
    (t[0] ?? 0) + column * (t[1] ?? 0) + row * (t[2] ?? 0),
    (t[3] ?? 0) + column * (t[4] ?? 0) + row * (t[5] ?? 0),
  ];
  const { x, y } = rasterSize;
  return footprintOf([corner(0, 0), corner(0, y), corner(x, y), corner(x, 0)], lonLat);
}

/** Null if the reference system has no code of EPSG. */
export function epsgOf(srs: gdal.SpatialReference | null): number | null {
  if (!srs || srs.getAuthorityName() !== 'EPSG') return null;
  return Number(srs.getAuthorityCode()) || null;
}
