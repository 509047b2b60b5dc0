import type gdal from 'gdal-async';
import { metadataOf } from './metadata-of.ts';

const identity = [0, 1, 0, 0, 0, 1];

/** True for the transform that GDAL gives a raster without one. */
export const isIdentity = (transform: readonly number[] | null): boolean =>
  transform?.every((coefficient, i) => coefficient === identity[i]) ?? false;

/** True if ground control points or polynomial coefficients place a raster. */
export const hasPoints = (dataset: gdal.Dataset): boolean =>
  dataset.getGCPs().length > 0 || Object.keys(metadataOf(dataset, 'RPC')).length > 0;

/** The transform that places a raster. Null if it has none: the identity beside points or coefficients is that of a file without one. */
export const transformOf = (dataset: gdal.Dataset): number[] | null =>
  isIdentity(dataset.geoTransform) && hasPoints(dataset) ? null : dataset.geoTransform;
