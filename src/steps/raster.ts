/**
 * GDAL's part of the kit: `marketplace-app-kit/raster`, for the `work` module of a step. It loads GDAL, so a declaration and a server must not import it.
 * The functions that belong to a run, which write its provenance and note what it reads, are those of the job: `job.raster.writeCog` and `job.raster.reader`.
 *
 * @module raster
 */
export { degreesPerUnit, ellipsoidOf, fromTransform, metresPerUnit, type Ellipsoid } from '../raster/affine.ts';
export {
  addMask,
  alphaOf,
  BandReader,
  hasOwnMask,
  isSignedByte,
  maskOfAllBands,
  nodataOf,
} from '../raster/band-reader.ts';
export type { ReadableBand, Reading, Scaling, ValueScale } from '../raster/band-reader.ts';
export { eachStrip, walkBands, walkStrips, type OutputValues, type Strip } from '../raster/block-walk.ts';
export { createRaster, gridOf, nameBands, type CogOptions, type Grid, type NewRaster } from '../raster/cog.ts';
export { hasColorTable } from '../raster/class-table.ts';
export { metadataOf } from '../raster/metadata-of.ts';
export { integerRanges, requireExact } from '../raster/integer-types.ts';
export { fromLonLat, toLonLat, type LonLat } from '../raster/lon-lat.ts';
export { gridDifference, type BandGrid } from '../raster/match-band.ts';
export { requireSameGrid } from '../raster/scene.ts';
export { hasPoints, transformOf } from '../raster/transform-of.ts';
export { argumentsPastPoles, placeIn, reachesPole } from './past-poles.ts';
export { requireCovered, requireOverlap, requirePlausible } from './plausible-grid.ts';
export { requireTransform } from './require-placed.ts';
export { requireSameMeaning } from './same-meaning.ts';
export { requireStoredLayer, srsOfFeatures } from './stored-layer.ts';
export { srsOfCode } from './srs-of-code.ts';
export * from './warp.ts';
export {
  keepScales,
  keepUnits,
  narrowed,
  needsPlainCopy,
  plainCopy,
  typeOf,
  widened,
  wideTypeOf,
  withItemFacts,
} from './wide-copy.ts';
export { withoutMask } from './without-mask.ts';
export * from './zones.ts';
